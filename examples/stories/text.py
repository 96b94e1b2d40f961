# SPDX-License-Identifier: BSD-3-Clause
"""A text story: topics of raw texts, and the topics of a new text."""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sipower import KLNMF

SUBJECTS = {
    "cooking": "flour butter oven sugar bake recipe kitchen dough salt taste",
    "sailing": "boat wind sail harbour mast anchor wave rope captain tide",
    "music": "chord melody rhythm piano violin concert song orchestra tempo note",
}
COMMON = ["the", "and", "of", "to", "it", "was", "with", "very", "then", "they"]


def generated_texts(count, seed=0):
    """Write texts about one or two subjects, with common words in between."""
    rng = np.random.default_rng(seed)
    vocabularies = [words.split() for words in SUBJECTS.values()]
    texts = []
    for _ in range(count):
        shares = rng.dirichlet(np.full(len(vocabularies), 0.2))
        subjects = rng.choice(len(vocabularies), 60, p=shares)
        words = [rng.choice(vocabularies[subject]) for subject in subjects]
        texts.append(" ".join([*words, *rng.choice(COMMON, 20)]))
    return texts


def main(count=400):
    """Print the top words of each topic, and the topics of a new text."""
    texts = generated_texts(count)
    vectorizer = CountVectorizer(stop_words="english", min_df=2)
    V = vectorizer.fit_transform(texts)
    model = KLNMF(n_components=3, random_state=0).fit(V)
    print(f"{V.shape[0]} texts, {V.shape[1]} words: {model.status_}")

    words = vectorizer.get_feature_names_out()
    topics = [", ".join(words[np.argsort(-h)[:6]]) for h in model.components_]
    for number, top in enumerate(topics):
        print(f"topic {number}: {top}")

    new = "The captain dropped the anchor in the harbour while the violin played a song."
    weights = model.transform(vectorizer.transform([new]))[0] * model.components_.sum(axis=1)
    shares = weights / weights.sum()
    print("a new text:", ", ".join(f"topic {k} {share:.0%}" for k, share in enumerate(shares)))
    return topics, shares


if __name__ == "__main__":
    main()
