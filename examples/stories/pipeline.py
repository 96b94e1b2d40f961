# SPDX-License-Identifier: BSD-3-Clause
"""A scikit-learn story: KLNMF as a step of a pipeline, its rank chosen by a grid search."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sipower import KLNMF
from sipower.datasets import poisson_topics


def labelled_counts(samples, features, seed=0):
    """Draw two classes of samples with three components each."""
    parts = [
        poisson_topics(samples // 2, features, 3, length=60, beta=0.3, seed=seed + label)
        for label in (0, 1)
    ]
    X = np.concatenate([part.toarray() for part in parts])
    return X, np.repeat([0, 1], samples // 2)


def main(samples=600, features=200):
    """Print the cross-validated accuracy for each rank, and the accuracy on test data."""
    X, y = labelled_counts(samples, features)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    pipeline = make_pipeline(
        KLNMF(n_components=2, random_state=0),  # instead of sklearn.decomposition.NMF
        Normalizer(norm="l1"),
        LogisticRegression(),
    )
    search = GridSearchCV(pipeline, {"klnmf__n_components": [1, 2, 6]}, cv=3)
    search.fit(X_train, y_train)
    results = search.cv_results_
    for rank, score in zip(
        results["param_klnmf__n_components"], results["mean_test_score"], strict=True
    ):
        print(f"K = {rank}: accuracy {score:.2f} in cross-validation")
    accuracy = search.score(X_test, y_test)
    print(f"best K: {search.best_params_['klnmf__n_components']}, accuracy on test data", accuracy)
    model = search.best_estimator_[0]
    print("names of the new features:", ", ".join(model.get_feature_names_out()))
    return search, accuracy


if __name__ == "__main__":
    main()
