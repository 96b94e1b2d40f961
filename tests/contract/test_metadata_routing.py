# SPDX-License-Identifier: BSD-3-Clause
"""Weights and batches through scikit-learn's metadata routing, and bad values of every argument."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from contract.observed_data import FEATURE_WEIGHT, MASK, SAMPLE_WEIGHT, V
from sipower import KLNMF

BATCH = np.arange(60) % 2
METADATA = {"sample_weight": SAMPLE_WEIGHT, "batch": BATCH}
REQUEST = dict.fromkeys(METADATA, True)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def plain(**options):
    return KLNMF(**{"n_components": 3, "random_state": 0, "n_jobs": 1, **options})


def requesting(**options):
    model = plain(**options).set_fit_request(**REQUEST)
    return model.set_transform_request(**REQUEST).set_score_request(**REQUEST)


def test_a_pipeline_passes_everything_on():
    pipeline = make_pipeline(FunctionTransformer(), requesting())
    W = pipeline.fit_transform(V, **METADATA)
    direct = plain()
    expected = direct.fit_transform(V, **METADATA)
    assert W.tobytes() == expected.tobytes()
    fitted = make_pipeline(FunctionTransformer(), requesting()).fit(V, **METADATA)
    assert fitted[-1].components_.tobytes() == direct.components_.tobytes()
    assert fitted.transform(V, **METADATA).tobytes() == direct.transform(V, batch=BATCH).tobytes()
    score = fitted.score(V, **METADATA)
    assert score == direct.score(V, **METADATA)


def test_a_pipeline_ends_with_a_classifier():
    y = (V[:, 0] > np.median(V[:, 0])).astype(int)
    last = LogisticRegression(max_iter=5000).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(requesting(), last)
    predicted = pipeline.fit(V, y, **METADATA).predict(V, **METADATA)
    W = plain().fit_transform(V, **METADATA)
    direct = LogisticRegression(max_iter=5000).fit(W, y, sample_weight=SAMPLE_WEIGHT)
    np.testing.assert_array_equal(predicted, direct.predict(W))


def test_a_grid_search_splits_weights_and_batches_with_the_samples():
    search = GridSearchCV(requesting(), {"n_components": [2, 3]}, cv=3, refit=False)
    search.fit(V, **METADATA)
    first = np.arange(20)
    rest = np.arange(20, 60)
    model = plain(n_components=2).fit(V[rest], **{k: v[rest] for k, v in METADATA.items()})
    score = model.score(V[first], **{k: v[first] for k, v in METADATA.items()})
    assert search.cv_results_["split0_test_score"][0] == score


def test_cross_validation_takes_masks_of_entries():
    model = plain().set_fit_request(mask=True).set_score_request(mask=True)
    scores = cross_validate(model, V, params={"mask": MASK}, cv=3)["test_score"]
    direct = plain().fit(V[20:], mask=MASK[20:]).score(V[:20], mask=MASK[:20])
    assert scores[0] == direct


def test_metadata_that_nobody_requested_are_refused():
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        make_pipeline(FunctionTransformer(), plain()).fit(V, sample_weight=SAMPLE_WEIGHT)


def test_every_argument_can_be_requested():
    names = ("sample_weight", "feature_weight", "weights", "mask", "offsets", "batch")
    for name in names:
        model = plain().set_fit_request(**{name: True}).set_score_request(**{name: True})
        model.set_transform_request(**{name: True})
        requests = model.get_metadata_routing()
        methods = requests.fit, requests.transform, requests.score
        assert all(method.requests[name] for method in methods)


# ---- bad values ----------------------------------------------------------------------------------

RAGGED = [[1], [1, 2]]
BAD = {
    "sample_weight": [
        (np.r_[-1.0, np.ones(59)], "must be finite and non-negative, got -1 at position 0"),
        (np.r_[np.nan, np.ones(59)], "must be finite and non-negative, got nan at position 0"),
        (np.ones(59), "must have one number for each of the 60 samples"),
        (np.ones((60, 1)), "must have one number for each of the 60 samples"),
        (1.0, "must have one number for each of the 60 samples"),
        ("a", "must be an array of numbers"),
        (RAGGED, "must be an array of numbers"),
    ],
    "feature_weight": [
        (-np.ones(40), "must be finite and non-negative"),
        (np.full(40, np.inf), "must be finite and non-negative"),
        (SAMPLE_WEIGHT, "must have one number for each of the 40 features"),
        (np.zeros(40), "must not be all zero"),
    ],
    "weights": [
        (-np.ones(V.shape), r"must be finite and non-negative, got -1 at \(0, 0\)"),
        (np.where(V == 7, np.nan, 1), "must be finite and non-negative, got nan at"),
        (sp.csr_array(-np.ones(V.shape)), "must be finite and non-negative"),
        (np.ones((40, 60)), r"must have the shape \(60, 40\) of the data"),
        (sp.csr_array(np.ones((3, 3))), r"must have the shape \(60, 40\) of the data"),
        (FEATURE_WEIGHT, r"must have shape \(60, 40\)"),
        (sp.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), V.shape), "must have one weight per entry"),
        ("a", "must be an array of numbers"),
        (RAGGED, "must be an array of numbers"),
    ],
    "mask": [
        (np.ones(V.shape), "must be boolean"),
        (np.ones((40, 60), bool), r"must be boolean with the shape \(60, 40\)"),
        (np.ones(60, bool), r"must be boolean, with shape \(samples, 40\) or \(40,\)"),
        (np.ones(40), "must be boolean"),
        (np.zeros(40, bool), "must be True for some feature"),
        (sp.csr_array(np.ones(V.shape)), "must be boolean"),
        (RAGGED, "must be a boolean array"),
        (True, "must be boolean"),
    ],
    "offsets": [
        (np.r_[0.0, np.ones(59)], "must be positive, got 0 for sample 0"),
        (-np.ones(60), "must be finite and non-negative"),
        (np.full(60, np.nan), "must be finite and non-negative"),
        (np.ones(40), "must have one number for each of the 60 samples"),
    ],
}
CASES = [(name, value, sentence) for name, cases in BAD.items() for value, sentence in cases]


@pytest.mark.parametrize(("name", "value", "sentence"), CASES)
def test_bad_values_get_one_sentence(name, value, sentence):
    model = plain(max_iter=3, tol=0).fit(V)
    before = model.components_.tobytes()
    for method in (model.fit, model.transform, model.score):
        with pytest.raises(ValueError, match=rf"`{name}` {sentence}"):
            method(V, **{name: value})
    assert model.components_.tobytes() == before


def test_weights_of_zero_are_refused_where_nothing_can_be_learned():
    model, zeros = plain(max_iter=3, tol=0), np.zeros(60)
    with pytest.raises(ValueError, match="`sample_weight` must not be all zero"):
        model.fit(V, sample_weight=zeros)
    model.fit(V)
    assert model.score(V, sample_weight=zeros) == 0
    assert model.transform(V, sample_weight=zeros).any()
