# SPDX-License-Identifier: BSD-3-Clause
"""Entries that are not observed: masks and NaN."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from contract.observed_data import MASK, START, W0, V, divergence, from_start
from sipower import KLNMF
from sipower.io import convert, open_store
from sipower.nmf import SOLVERS
from sipower.nmf.exposure import Exposure

LAYOUTS = [np.asarray, sp.csr_array]
ROWS, COLUMNS = np.r_[0:40], np.r_[3:35]
# These draw random numbers for items or need data without other terms.
EXACT = [s for s in SOLVERS if s not in ("s-sci-pi", "vanilla", "scd", "rows")]
HOLES = np.where(MASK, V, np.nan)


@pytest.mark.filterwarnings("ignore:.*no observed entry:UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", EXACT)
def test_masked_rows_and_columns_are_left_out(solver, layout):
    mask = np.zeros(V.shape, bool)
    mask[np.ix_(ROWS, COLUMNS)] = True
    masked = from_start(solver=solver)
    W = masked.fit_transform(layout(V), mask=mask, **START)
    without = from_start(solver=solver)
    part = layout(V[np.ix_(ROWS, COLUMNS)])
    same = without.fit_transform(part, W=W0[ROWS], H=START["H"][:, COLUMNS])
    assert masked.kl_divergence_ == pytest.approx(without.kl_divergence_, rel=1e-10)
    np.testing.assert_allclose(masked.components_[:, COLUMNS], without.components_, rtol=1e-9)
    np.testing.assert_allclose(W[ROWS], same, rtol=1e-9, atol=1e-14)
    assert not W[40:].any()
    assert not masked.components_[:, :3].any()


def test_a_mask_of_features_leaves_them_out():
    mask = np.isin(np.arange(40), COLUMNS)
    masked, without = from_start(), from_start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        W = masked.fit_transform(V, mask=mask, **START)
    same = without.fit_transform(V[:, COLUMNS], W=W0, H=START["H"][:, COLUMNS])
    np.testing.assert_allclose(W, same, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(masked.components_[:, COLUMNS], without.components_, rtol=1e-9)
    with pytest.warns(UserWarning, match="8 features have no observed entry"):
        both = from_start().fit(V, mask=np.tile(mask, (60, 1)), **START)
    np.testing.assert_allclose(both.components_, masked.components_, rtol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_samples_measured_on_some_features_are_solved_on_these(layout):
    model = from_start().fit(V, **START)
    rows = model.transform(layout(V), mask=MASK)
    for i in (0, 7, 20, 59):
        seen = MASK[i]
        part = from_start().fit(V[:, seen], W=W0, H=START["H"][:, seen])
        part.components_ = np.ascontiguousarray(model.components_[:, seen])
        np.testing.assert_allclose(rows[i], part.transform(V[[i]][:, seen])[0], rtol=1e-6)
    vector = MASK[3]
    few = model.transform(layout(V), mask=vector)
    np.testing.assert_allclose(few, model.transform(V, mask=np.tile(vector, (60, 1))), rtol=1e-9)


FORMS = {
    "ndarray": np.asarray,
    "list": lambda X: X.tolist(),
    "Fortran": np.asfortranarray,
    "objects": lambda X: X.astype(object),
    "DataFrame": lambda X: pd.DataFrame(X, columns=[f"g{j}" for j in range(40)]),
    "DataFrame of objects": lambda X: pd.DataFrame(X).astype(object),
    "nullable DataFrame": lambda X: pd.DataFrame(X).astype("Int64"),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_array,
    "dok": sp.dok_array,
    "csr_matrix": sp.csr_matrix,
}


@pytest.mark.parametrize("form", FORMS)
def test_nan_means_not_observed(form):
    X, model = FORMS[form](HOLES), from_start(missing="nan")
    W = model.fit_transform(X, **START)
    dense = not sp.issparse(X)
    masked = from_start()
    data = V if dense else sp.csr_array(V)
    assert masked.fit_transform(data, mask=MASK, **START).tobytes() == W.tobytes()
    assert masked.components_.tobytes() == model.components_.tobytes()
    assert model.transform(X).tobytes() == masked.transform(data, mask=MASK).tobytes()
    assert model.score(X) == masked.score(data, mask=MASK)
    assert (hasattr(model, "feature_names_in_")) == (form == "DataFrame")
    np.testing.assert_array_equal(np.isnan(HOLES), ~MASK)  # not changed


def test_nan_and_mask_and_weights_multiply():
    half = np.where(np.arange(60)[:, None] < 30, V, HOLES)
    weights = np.where(np.arange(60)[:, None] < 30, MASK, 1.0)
    one = from_start(missing="nan").fit(half, weights=weights, **START)
    two = from_start().fit(V, mask=MASK, **START)
    assert one.components_.tobytes() == two.components_.tobytes()


@pytest.mark.parametrize("layout", [*LAYOUTS, pd.DataFrame])
@pytest.mark.parametrize("value", [0.5, 1e12, 1e300, np.inf, np.nan, -3.0])
def test_values_under_a_mask_have_no_influence(value, layout):
    data, other = layout(V), layout(np.where(MASK, V, value))
    one, two = from_start(), from_start()
    W = one.fit_transform(data, mask=MASK, **START)
    assert two.fit_transform(other, mask=MASK, **START).tobytes() == W.tobytes()
    assert two.components_.tobytes() == one.components_.tobytes()
    assert two.kl_divergence_ == one.kl_divergence_
    assert two.score(other, mask=MASK) == one.score(data, mask=MASK)
    assert two.transform(other, mask=MASK).tobytes() == W.tobytes()
    columns = np.arange(40) < 30
    hidden = np.where(columns, V, value)
    seen = one.transform(data, mask=columns)
    assert one.transform(layout(hidden), mask=columns).tobytes() == seen.tobytes()


def test_values_under_a_mask_may_exceed_the_working_type():
    X = np.where(MASK, V, 1e39)
    huge, plain = (from_start(dtype=np.float32).fit(A, mask=MASK, **START) for A in (X, V))
    assert huge.components_.tobytes() == plain.components_.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", ["sample", "feature"])
def test_a_row_or_column_without_observed_entries_is_zero_with_one_warning(side, layout):
    mask = np.ones(V.shape, bool)
    mask[(4, slice(None)) if side == "sample" else (slice(None), 4)] = False
    model = from_start()
    with pytest.warns(UserWarning, match="no observed entry") as caught:
        W = model.fit_transform(layout(V), mask=mask, **START)
    factor = "W" if side == "sample" else "H"
    sentence = f"1 {side} has no observed entry, such as {side} 4 (counted from 0): {factor} is "
    assert [str(w.message) for w in caught] == [f"{sentence}zero there unless it has a prior."]
    empty = W[4] if side == "sample" else model.components_[:, 4]
    assert not empty.any()
    assert np.isfinite(model.kl_divergence_)
    if side == "feature":  # nothing is wrong with new samples that lack a feature
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.transform(layout(V), mask=mask)


def test_rows_whose_features_all_have_weight_zero_or_are_missing_are_reported():
    X = V.copy()
    X[4, :20] = np.nan
    mask = np.arange(40) < 20
    with pytest.warns(UserWarning, match="1 sample has no observed entry, such as sample 4"):
        W = from_start(missing="nan").fit_transform(X, mask=mask, **START)
    assert not W[4].any()


def test_missing_entries_are_predicted():
    """Held-out entries of generated data are predicted better than by means or from zeros."""
    rng = np.random.default_rng(0)
    mean = rng.gamma(0.3, 1.0, (150, 3)) @ rng.gamma(0.3, 1.0, (3, 80)) * 20
    data, seen = rng.poisson(mean).astype(float), rng.random(mean.shape) < 0.7
    model = KLNMF(3, random_state=0, missing="nan")
    Z = model.fit_transform(np.where(seen, data, np.nan)) @ model.components_
    marginal = np.outer(data.mean(axis=1), data.mean(axis=0)) / data.mean()
    zeros = KLNMF(3, random_state=0)
    Z0 = zeros.fit_transform(np.where(seen, data, 0)) @ zeros.components_
    error, *others = (divergence(data, np.maximum(A, 1e-9), ~seen) for A in (Z, marginal, Z0))
    assert error < 0.6 * min(others)


@pytest.mark.parametrize("batches", [None, 2])
@pytest.mark.parametrize("side", [0, 1])
def test_linear_terms_are_exact_where_most_of_a_sum_is_hidden(side, batches):
    """A difference of two sums once lost the digits of what is left."""
    rng = np.random.default_rng(0)
    hidden = rng.random((30, 20)) < 0.5
    hidden[3], hidden[:, 5] = True, True
    factors = [rng.random((size, 4)) for size in (20, 30)]
    for factor, line in zip(factors, (hidden[7], hidden[:, 9]), strict=True):
        factor[line] *= 10.0 ** rng.integers(4, 9, 4)
    E = sp.csr_array(-hidden.astype(float))
    batch = None if batches is None else np.arange(30) % 2
    effects = None if batches is None else rng.gamma(5.0, 0.2, (2, 20))
    X = ~hidden * (1.0 if effects is None else effects[batch])
    exposure = Exposure(E, effects=effects, batch=batch, counts=effects)
    expected = (X if side == 0 else X.T) @ factors[side]
    np.testing.assert_allclose(exposure.linear_terms(side, factors[side]), expected, rtol=1e-9)
    if effects is not None:
        H, W = factors
        W[::3] *= 1e15 * hidden[::3].mean(axis=1, keepdims=True).round()
        Z = ~hidden * (W @ H.T)
        expected = np.stack([Z[batch == b].sum(axis=0) for b in range(2)])
        np.testing.assert_allclose(exposure.expected(W, H), expected, rtol=1e-9)


def test_annotated_data_are_refused_with_and_without_missing_values():
    anndata = pytest.importorskip("anndata")
    for missing in (None, "nan"):
        with pytest.raises(TypeError, match=r"use sipower\.tl\.nmf, or pass its \.X"):
            KLNMF(2, missing=missing).fit(anndata.AnnData(V))


@pytest.mark.parametrize("name", ["mask", "sample_weight", "weights", "offsets", "batch"])
def test_data_on_disk_give_the_bits_of_data_in_memory(tmp_path, name):
    np.save(tmp_path / "data.npy", V)
    convert(tmp_path / "data.npy", tmp_path / "store")
    store, memory = open_store(tmp_path / "store"), sp.csr_array(V)
    given = {
        "mask": MASK,
        "sample_weight": np.linspace(0, 2, 60),
        "weights": np.where(MASK, 1.5, 0.5),
        "offsets": np.linspace(1, 2, 60),
        "batch": np.arange(60) % 2,
    }
    options = {name: given[name]}
    one, two = (from_start(missing="nan").fit(X, **options, **START) for X in (store, memory))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(store, **options), two.transform(memory, **options))
    assert one.score(store, **options) == two.score(memory, **options)


def test_nan_without_missing_is_an_error():
    with pytest.raises(ValueError, match=r"NaN in data.*use missing='nan'"):
        from_start().fit(HOLES, **START)
    with pytest.raises(ValueError, match="NaN in data"):
        from_start().fit(V, **START).transform(HOLES)
    with pytest.raises(ValueError, match="`partial_fit` takes neither"):
        KLNMF(2, missing="nan").partial_fit(HOLES)


def test_nothing_observed_is_one_sentence():
    nothing = np.zeros(V.shape)
    for given in ({"mask": nothing > 0}, {"weights": nothing}):
        with pytest.raises(ValueError, match="No entry is observed"):
            from_start().fit(V, **given, **START)
    with pytest.raises(ValueError, match="No entry is observed"):
        from_start(missing="nan").fit(np.full(V.shape, np.nan), **START)


def test_lists_may_hold_anything_under_a_mask():
    one = from_start().fit(HOLES.tolist(), mask=~np.isnan(HOLES), **START)
    two = from_start().fit(HOLES, mask=~np.isnan(HOLES), **START)
    assert one.components_.tobytes() == two.components_.tobytes()


# ---- frames ----------------------------------------------------------------------------------

WHOLE = (V > 1).astype(float)
FRAMES = {
    "bool": pd.DataFrame(V > 1),
    "nullable bool": pd.DataFrame(V > 1).astype("boolean"),
    "nullable integers": pd.DataFrame(WHOLE).astype("Int64"),
    "objects": pd.DataFrame(WHOLE.astype(int).astype(object)),
    "mixed": pd.DataFrame(
        {str(j): V[:, j] > 1 if j % 2 else WHOLE[:, j] for j in range(V.shape[1])}
    ),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_entries_of_frames_of_any_type_can_be_hidden(kind):
    """No type of column refuses a zero or makes pandas warn; the frame is not changed."""
    X = FRAMES[kind]
    before = X.copy()
    expected = from_start().fit(WHOLE, mask=MASK, **START)
    masked = from_start().fit(X, mask=MASK, **START)
    np.testing.assert_array_equal(masked.components_, expected.components_)
    if kind.startswith("nullable"):
        holes = X.mask(~MASK)
        missing = from_start(missing="nan").fit(holes, **START)
        np.testing.assert_array_equal(missing.components_, expected.components_)
    pd.testing.assert_frame_equal(X, before)
