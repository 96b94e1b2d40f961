# SPDX-License-Identifier: BSD-3-Clause
"""Batch effects: recovery, monotone descent, labels and messages."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import kl_div

from contract.observed_data import divergence, mean_cosine
from sipower import KLNMF, solve
from sipower.data.validate import as_matrix
from sipower.estimators.model import warn_if_confounded
from sipower.loop.solve import Stop
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization, centre
from sipower.nmf.exposure import Exposure, batch_sums
from sipower.nmf.terms import ModelTerms

LAYOUTS = [np.asarray, sp.csr_array]


def simulate(seed, n=300, m=200, rank=4, size=1.0, batches=2):
    """Return data, components, batches and log effects: ±size on a third of the features."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(m, 1.0), rank)
    W = rng.dirichlet(np.full(rank, 0.3), n) * 400
    batch = rng.integers(0, batches, n)
    x = np.where(rng.random(m) < 1 / 3, rng.choice([-1.0, 1.0], m), 0) * size
    logs = np.stack([x * (-1) ** b for b in range(batches)])
    return rng.poisson(W @ H * np.exp(logs[batch])).astype(float), H, batch, logs


V, TRUTH, BATCH, LOGS = simulate(0, n=120, m=60)
rng = np.random.default_rng(2)
MASK = rng.random(V.shape) < 0.85
WEIGHTS = rng.gamma(2.0, 0.5, V.shape)
VECTORS = {
    "sample_weight": rng.random(120) + 0.2,
    "feature_weight": rng.random(60) + 0.2,
    "offsets": rng.gamma(5.0, 0.2, 120),
}
EVERYTHING = {"batch": BATCH, "mask": MASK, "weights": WEIGHTS, **VECTORS}


def quick(**options):
    fixed = {"random_state": 0, "max_iter": 400, "tol": 1e-5, "n_jobs": 1}
    return KLNMF(**{"n_components": 4, **fixed, **options})


def plain_divergence(model, W, weights=1.0, offsets=None):
    places = np.searchsorted(model.batches_, BATCH)
    Z = model.batch_effects_[places] * (W.astype(float) @ model.components_)
    return divergence(V, Z if offsets is None else offsets[:, None] * Z, weights)


# ---- the mathematics -----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("known", [0, 2, 4])
def test_the_objective_with_its_penalty_never_rises(known, layout):
    X = as_matrix(layout(V))
    counts = batch_sums(V, BATCH, 2)
    exposure = Exposure(effects=np.ones((2, 60)), batch=BATCH, counts=counts)
    fixed = np.tile(np.arange(4) < known, (60, 1)) if known else None
    values = 100 * TRUTH.T.copy() if known else None
    problem = BatchFactorization(X, 4, ModelTerms(exposure, fixed, values), 10.0)
    stop = Stop(0.0, rounds=60)
    result = solve(problem, BatchEffects(), None, stop=stop, seed=0, trace="every")
    objective = [record.objective for record in result.trace]
    rises = np.diff(objective)
    assert rises.max() <= 1e-12 * objective[0]
    W, H, effects = result.x
    D = divergence(V, effects[BATCH] * (W @ H.T))
    assert objective[-1] == pytest.approx(D + 10 * kl_div(1, effects).sum(), rel=1e-12)
    assert result.value == pytest.approx(objective[-1], rel=1e-12)
    if known:
        np.testing.assert_array_equal(H[:, :known], values[:, :known])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "rel"), [(np.float64, 1e-11), (np.float32, 1e-6)])
@pytest.mark.parametrize("known", [None, 100 * TRUTH[:2], 100 * TRUTH])
def test_value_and_certificate_with_mask_and_weights(known, dtype, rel, layout):
    """With known components, the reported D was once that of other components."""
    model = quick(components_fixed=known, dtype=dtype, tol=1e-4)
    W = model.fit_transform(layout(V), **EVERYTHING)
    assert model.status_ == "converged"
    assert model.kkt_residual_ <= 1e-4
    rho, phi, s = VECTORS.values()
    weights = MASK * WEIGHTS * rho[:, None] * phi
    D = plain_divergence(model, W, weights, s)
    assert model.kl_divergence_ == pytest.approx(D, rel=rel)
    score = model.score(layout(V), **EVERYTHING)
    assert score == pytest.approx(-D / (weights * V).sum(), rel=rel)
    again = model.transform(layout(V), **EVERYTHING)
    np.testing.assert_allclose(again, W, rtol=1e3 * rel, atol=100 * rel)
    if known is not None:
        fitted = model.components_[: len(known)]
        assert fitted.tobytes() == known.astype(dtype).tobytes()


def test_centring_changes_no_expectation_and_centres_both_ways():
    model = quick().fit(V, batch=BATCH)
    logs = np.log(model.batch_effects_)
    np.testing.assert_allclose(logs.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(logs.mean(axis=1), 0, atol=1e-12)
    effects = np.random.default_rng(0).gamma(5.0, 0.2, (2, 60))
    W, H = np.random.default_rng(1).random((120, 4)), np.random.default_rng(1).random((60, 4))
    W1, H1, centred = centre(type("x", (), {"W": W, "H": H, "effects": effects}), BATCH)
    Z = effects[BATCH] * (W @ H.T)
    np.testing.assert_allclose(centred[BATCH] * (W1 @ H1.T), Z, rtol=1e-12)


def test_effects_are_recovered():
    """±1 log unit on a third of the features: components are found where the plain fit is lower."""
    batch_cosines, plain_cosines = [], []
    for seed in range(3):
        data, truth, batch, logs = simulate(seed)
        model = KLNMF(4, random_state=0).fit(data, batch=batch)
        batch_cosines.append(mean_cosine(model.components_, truth))
        plain = KLNMF(4, random_state=0).fit(data)
        plain_cosines.append(mean_cosine(plain.components_, truth))
        difference = np.diff(np.log(model.batch_effects_), axis=0).ravel()
        expected = np.diff(logs, axis=0).ravel()
        assert np.corrcoef(difference, expected)[0, 1] > 0.95
    assert np.mean(batch_cosines) >= 0.95
    assert np.mean(plain_cosines) < np.mean(batch_cosines) - 0.02


@pytest.mark.parametrize("seed", range(2))
def test_data_without_effects_lose_nothing(seed):
    data, truth, batch, _ = simulate(seed, size=0.0)
    with_batch = KLNMF(4, random_state=0).fit(data, batch=batch)
    plain = KLNMF(4, random_state=0).fit(data)
    loss = mean_cosine(plain.components_, truth) - mean_cosine(with_batch.components_, truth)
    assert loss <= 0.01


def test_one_batch_is_the_plain_model():
    options = {"tol": 1e-7, "max_iter": 3000, "init": "random"}
    one = quick(**options).fit(V, batch=np.zeros(120))
    np.testing.assert_array_equal(one.batch_effects_, 1)
    plain = quick(**options).fit(V)
    assert one.kl_divergence_ == pytest.approx(plain.kl_divergence_, rel=1e-6)


def test_many_prior_counts_remove_the_effects():
    effects = quick(batch_prior=1e12).fit(V, batch=BATCH).batch_effects_
    np.testing.assert_allclose(effects, 1, atol=1e-6)


# ---- labels --------------------------------------------------------------------------------------

WORDS = np.where(BATCH, "x", "y")
LABELS = {
    "strings": WORDS,
    "objects": WORDS.astype(object),
    "Categorical": pd.Categorical(WORDS),
    "Series": pd.Series(WORDS, index=np.arange(120)[::-1]),
    "string Series": pd.Series(WORDS, dtype="string"),
    "integers": BATCH,
    "list": BATCH.tolist(),
    "objects of integers": BATCH.astype(object),
    "Categorical of integers": pd.Categorical(BATCH),
    "nullable integers": pd.Series(BATCH, dtype="Int64"),
    "floats": BATCH.astype(float),
    "objects of floats": BATCH.astype(float).astype(object),
    "booleans": BATCH.astype(bool),
    "mixed": [("x" if b else 3) for b in BATCH],
    "dates": pd.Series(pd.to_datetime(BATCH, unit="D")),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type(kind):
    labels = LABELS[kind]
    model, integers = quick(max_iter=20, tol=0), quick(max_iter=20, tol=0).fit(V, batch=BATCH)
    model.fit(V, batch=labels)
    assert len(model.batches_) == 2
    assert model.kl_divergence_ == pytest.approx(integers.kl_divergence_, rel=1e-9)
    rows = integers.transform(V, batch=BATCH)
    np.testing.assert_allclose(model.transform(V, batch=labels), rows, rtol=1e-5, atol=1e-7)
    if kind.endswith(("integers", "list", "floats", "booleans")):  # equal labels of other types
        np.testing.assert_allclose(model.transform(V, batch=BATCH), rows, rtol=1e-5, atol=1e-7)


MISSING = {
    "None": [None, *WORDS[1:]],
    "NaN": [np.nan, *WORDS[1:]],
    "Categorical": pd.Categorical([None, *WORDS[1:]]),
    "string Series": pd.Series([None, *WORDS[1:]], dtype="string"),
    "floats": np.r_[np.nan, BATCH[1:]],
    "nullable integers": pd.Series([None, *BATCH[1:]], dtype="Int64"),
    "dates": pd.Series([pd.NaT, *pd.to_datetime(BATCH[1:], unit="D")]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_labels_get_one_sentence(kind):
    with pytest.raises(ValueError, match="label for every sample, got none for sample 0"):
        quick().fit(V, batch=MISSING[kind])


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (BATCH[:5], r"one label for each of the 120 samples, got shape \(5,\)"),
        (BATCH[:, None], "one label for each of the 120 samples"),
        ("a", "one label for each of the 120 samples"),
        ([[1], [1, 2]], "must be an array of labels"),
        (np.r_[7, BATCH[1:]], "at least two samples in every batch, got one in '7'"),
    ],
)
def test_bad_labels_get_one_sentence(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        quick().fit(V, batch=labels)


def test_unseen_batches_have_no_effects():
    model = quick().fit(V, batch=BATCH)
    plain, mixed = model.transform(V), np.where(np.arange(120) < 60, BATCH, 9)
    with pytest.warns(UserWarning, match="No label of `batch` was in fit"):
        unseen = model.transform(V, batch=np.full(120, 9))
    np.testing.assert_allclose(unseen, plain, rtol=1e-6)
    rows = model.transform(V, batch=mixed)
    np.testing.assert_allclose(rows[60:], plain[60:], rtol=1e-6, atol=1e-9)
    known = model.transform(V, batch=BATCH)
    np.testing.assert_allclose(rows[:60], known[:60], rtol=1e-6, atol=1e-9)
    assert np.abs(known - plain).max() > 0.01


def test_a_model_without_batches_refuses_them():
    model = quick().fit(V, batch=BATCH).fit(V)
    assert not hasattr(model, "batches_")
    for method in (model.transform, model.score):
        with pytest.raises(ValueError, match="`batch` was not given in fit"):
            method(V, batch=BATCH)


def test_confounded_batches_warn_and_shared_components_do_not():
    rng = np.random.default_rng(3)
    H, W = rng.dirichlet(np.full(60, 0.1), 4), rng.dirichlet(np.full(4, 0.3), 200) * 300
    batch = np.repeat(["a", "b"], 100)
    own = W.copy()
    own[:100, 2:] = own[100:, :2] = 0
    with pytest.warns(UserWarning, match="its batch effects cannot be told from its components"):
        quick(tol=1e-3).fit(rng.poisson(own @ H), batch=batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(tol=1e-3).fit(rng.poisson(W @ H), batch=batch)


def test_shares_of_components_are_measured_in_counts():
    W = np.array([[1e-3, 1.0, 0.0]] * 3 + [[1e-3, 0.0, 1.0]] * 3)  # the first is shared
    components = np.ones((3, 8)) * [[1e4], [1.0], [1.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_confounded(W, components, np.repeat([0, 1], 3))


# ---- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, 100 * TRUTH[:2]])
def test_a_resumed_fit_gives_the_same_bits(known, tmp_path):
    options = {"tol": 0, "components_fixed": known, "max_iter": 12}
    whole = quick(**options).fit(V, **EVERYTHING)
    options["checkpoint"] = tmp_path / "state"
    quick(**{**options, "max_iter": 5}).fit(V, **EVERYTHING)
    resumed = quick(**options).fit(V, **EVERYTHING)
    assert resumed.n_iter_ == 12
    for name in ("components_", "batch_effects_"):
        assert getattr(resumed, name).tobytes() == getattr(whole, name).tobytes()
    for change in ({"batch": 1 - np.r_[BATCH[:5], 1 - BATCH[5:]]}, {"batch": None}):
        with pytest.raises(ValueError, match=r"is a checkpoint of another (batch|model)"):
            quick(**options).fit(V, **{**EVERYTHING, **change})
    with pytest.raises(ValueError, match=r"is a checkpoint of another (batch|model)"):
        quick(**options, batch_prior=3.0).fit(V, **EVERYTHING)


def test_threads_pickle_and_frames(monkeypatch):
    monkeypatch.setattr("sipower.kernels.threads.MIN_PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr("sipower.data.block_bounds.MIN_BLOCK", 64)
    one, two = (quick(n_jobs=n, max_iter=8, tol=0).fit(V, **EVERYTHING) for n in (1, 2))
    assert one.components_.tobytes() == two.components_.tobytes()
    assert one.batch_effects_.tobytes() == two.batch_effects_.tobytes()
    again = pickle.loads(pickle.dumps(one)).set_output(transform="pandas")
    frame = again.transform(V, batch=BATCH)
    assert list(frame.columns) == [f"klnmf{k}" for k in range(4)]
    assert frame.to_numpy().tobytes() == one.transform(V, batch=BATCH).tobytes()
