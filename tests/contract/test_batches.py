# SPDX-License-Identifier: BSD-3-Clause
"""Batch effects: recovery, monotone descent, labels and messages."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import kl_div

from contract.observed_data import divergence, mean_cosine
from sipower import KLNMF, solve, tl
from sipower.data.validate import as_matrix
from sipower.io import open_store
from sipower.loop.solve import Stop
from sipower.nmf.batch_effects import BatchEffects, BatchFactorization, centre
from sipower.nmf.exposure import Exposure, batch_sums
from sipower.nmf.terms import ModelTerms
from sipower.store import write_store

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
    "Series": pd.Series(WORDS),
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


# ---- confounded batches --------------------------------------------------------------------------

GENES = np.array([f"gene {j}" for j in range(200)])
SHARED = [[0.25, 0.25, 0.25, 0.25, 0]] * 2


def draw_cells(shares, seed=0, effects=1.0, sizes=(150, 150, 150), markers=15):
    """Return counts of cells whose types have 15 marker genes each, and their batches."""
    rng = np.random.default_rng(seed)
    types, m = len(shares[0]), len(GENES)
    profiles = np.tile(rng.lognormal(0, 1, m), (types, 1))
    for t in range(types):
        profiles[t, t * markers : (t + 1) * markers] += profiles[t].mean()
    batch = np.repeat(np.arange(len(shares)), sizes[: len(shares)])
    kinds = np.array([rng.choice(types, p=shares[b]) for b in batch])
    mean = profiles[kinds] * np.broadcast_to(effects, (len(shares), m))[batch]
    depth = rng.lognormal(np.log(1000), 0.3, (len(batch), 1))
    return rng.poisson(depth * mean / mean.sum(axis=1, keepdims=True)).astype(float), batch


def confounding(V, batch, n_components=5, **options):
    """Return the warnings of a fit that say that a batch is confounded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KLNMF(n_components, random_state=0, **{"n_jobs": 1, **options}).fit(V, batch=batch)
    return [str(w.message) for w in caught if "only this batch contains" in str(w.message)]


CONFOUNDED = {  # shares of the types in every batch, and the batch that alone has the last type
    "the batch is the type": ([[0, 0, 0, 0, 1], SHARED[1]], 0),
    "half of the batch": ([[0.125] * 4 + [0.5], SHARED[1]], 0),
    "a tenth of the batch": ([SHARED[0], [0.225] * 4 + [0.1]], 1),
    "one batch of three": ([SHARED[0], [0.2] * 5, SHARED[1]], 1),
}
TECHNICAL = np.exp(np.random.default_rng(8).normal(0, 0.4, (3, 200)))


@pytest.mark.parametrize("effects", [1.0, TECHNICAL], ids=["no effects", "technical effects"])
@pytest.mark.parametrize("design", CONFOUNDED)
def test_a_type_in_one_batch_alone_is_reported_with_its_features(design, effects):
    """The effects had taken up its markers (3.6 times their mean), and nothing was said."""
    shares, alone = CONFOUNDED[design]
    effects = effects if np.isscalar(effects) else effects[: len(shares)]
    V, batch = draw_cells(shares, effects=effects)
    data = pd.DataFrame(V, columns=GENES)
    (message,) = confounding(data, np.array(["A", "B", "C"])[batch])
    assert message.startswith(f"`batch`: the effects of batch {'ABC'[alone]!r}, for example on ")
    named = [int(word) for word in re.findall(r"gene (\d+)", message)]
    assert len(named) == 3
    if np.isscalar(effects):
        assert all(60 <= j < 75 for j in named), message  # its markers
    assert message.endswith("use fewer components, or increase `batch_prior`.")
    (message,) = confounding(sp.csr_array(V), batch)
    assert "(counted from 0)" in message


def fit_cells(V, batch):
    ad = pytest.importorskip("anndata")
    cells = ad.AnnData(sp.csr_matrix(V), pd.DataFrame({"donor": batch}))
    cells.obs_names, cells.var_names = np.arange(len(V)).astype(str), GENES
    tl.nmf(cells, 5, batch_key="donor")


DOORS = {
    "fit": lambda V, batch: KLNMF(5).fit(pd.DataFrame(V, columns=GENES), batch=batch),
    "fit_transform": lambda V, batch: KLNMF(5).fit_transform(
        pd.DataFrame(V, columns=GENES), batch=batch
    ),
    "tl": fit_cells,
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_names_batch_and_genes_and_points_at_the_line_of_the_user(door):
    """After `fit`, the warning pointed at a line of this library."""
    V, batch = draw_cells(CONFOUNDED["half of the batch"][0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DOORS[door](V, np.array(["A", "B"])[batch])
    (warning,) = [w for w in caught if "only this batch contains" in str(w.message)]
    assert re.match(
        r"`batch`: the effects of batch 'A', for example on features 'gene \d+', 'gene \d+' and "
        r"'gene \d+', cannot be told from a component", str(warning.message),
    )  # fmt: skip
    assert warning.filename == __file__


def test_batches_that_are_one_type_each_are_reported():
    V, batch = draw_cells(np.eye(3, 5))
    (message,) = confounding(V, batch, 3)
    assert "also found for" in message


@pytest.mark.parametrize("effects", [1.0, TECHNICAL[:2]], ids=["no effects", "technical effects"])
def test_a_type_for_which_there_is_no_component_is_reported(effects):
    """Four components for five types: the effects and another component take up the private one."""
    V, batch = draw_cells([SHARED[0], [0.2] * 5], effects=effects)
    (message,) = confounding(V, batch, 4)
    assert "effects of batch '1'" in message


@pytest.mark.parametrize("seed", [100, 102])
def test_a_private_type_is_found_among_many_batches(seed):
    """Three additional components all merged with the types of all batches."""
    effects = np.exp(np.random.default_rng(seed).normal(0, 0.3, (6, 200)))
    shares = [SHARED[0]] * 5 + [[0.13] * 4 + [0.48]]
    (message,) = confounding(*draw_cells(shares, seed, effects, (80,) * 6), 3)
    assert "effects of batch '5'" in message


PANEL = np.where(np.arange(200) % 50 == 7, [[5.0], [1.0]], 1.0)  # 2 % of the features
SHARED_TYPES = {
    "no effects": {},
    "technical effects": {"effects": TECHNICAL[:2]},
    "another panel": {"effects": PANEL},
    "one type 20 % and 5 %": {"shares": [[0.25, 0.25, 0.25, 0.2, 0.05], [0.2] * 5]},
    "three sizes": {"shares": [[0.2] * 5] * 3, "sizes": (200, 60, 20), "effects": TECHNICAL},
}


@pytest.mark.parametrize("n_components", [4, 5, 8])
@pytest.mark.parametrize("design", SHARED_TYPES)
def test_batches_that_share_all_types_draw_no_warning(design, n_components):
    options = {"shares": [[0.2] * 5] * 2, **SHARED_TYPES[design]}
    assert confounding(*draw_cells(**options), n_components) == []


def test_the_check_reads_weights_and_missing_values():
    """A mask that hides other features in every batch is no difference between its samples."""
    rng = np.random.default_rng(1)
    mask = (rng.random((2, 200)) < 0.8)[np.repeat([0, 1], 150)]
    rest = {"mask": mask, "sample_weight": rng.random(300) + 0.5, "offsets": np.full(300, 3.0)}
    for shares, warned in ((CONFOUNDED["half of the batch"][0], 1), ([[0.2] * 5] * 2, 0)):
        V, batch = draw_cells(shares, effects=TECHNICAL[:2])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            KLNMF(5, random_state=0, prior_W=0.01).fit(V, batch=batch, **rest)
        assert len([w for w in caught if "only this batch" in str(w.message)]) == warned


def test_the_sentence_is_the_same_on_disk_and_for_any_number_of_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("sipower.kernels.threads.MIN_PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr("sipower.data.block_bounds.MIN_BLOCK", 64)
    V, batch = draw_cells([SHARED[0], [0.2] * 5])
    (expected,) = confounding(sp.csr_array(V), batch, 4)  # the check needs more components
    write_store(sp.csr_array(V), tmp_path / "counts.sipower")
    stored = open_store(tmp_path / "counts.sipower")
    assert confounding(stored, batch, 4) == [expected]
    assert confounding(sp.csr_array(V), batch, 4, n_jobs=2) == [expected]


def test_ctrl_c_during_the_check_keeps_the_fit(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sipower.estimators.remarks.find_confounding", interrupted)
    model = quick()
    with pytest.warns(UserWarning, match="its components was interrupted"):
        W = model.fit_transform(V, batch=BATCH)
    assert model.kl_divergence_ == pytest.approx(plain_divergence(model, W), rel=1e-6)


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
