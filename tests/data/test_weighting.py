# SPDX-License-Identifier: BSD-3-Clause
"""Weighted data in memory: the NumPy product, with all settings of the data."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from data.layouts import as_dense
from sipower import Stop, as_matrix, solve
from sipower.data.weighting import Weights, apply_weights
from sipower.nmf import Factorization, make_solver
from weight_cases import KINDS, make_weights, product

V = oracles.counts(40, 30)
INPUTS = {
    "uint8": lambda v: v.astype(np.uint8),
    "uint16": lambda v: v.astype(np.uint16),
    "float32": lambda v: (v / 3).astype(np.float32),
    "float64": lambda v: v / 3,
    "csr": lambda v: sp.csr_array(v / 3),
    "csr of float32": lambda v: sp.csr_array((v / 3).astype(np.float32)),
}


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", INPUTS)
def test_weighted_data_are_the_product(name, kind, dtype):
    plain, weights = as_matrix(INPUTS[name](V), dtype=dtype), make_weights(kind, V.shape)
    before = as_dense(plain).copy()
    weighted = apply_weights(plain, weights)
    expected = product(before, weights, plain.dtype)
    np.testing.assert_array_equal(as_dense(weighted), expected)
    np.testing.assert_array_equal(as_dense(weighted.T), expected.T)
    np.testing.assert_array_equal(as_dense(plain), before)
    assert weighted.array.dtype == weighted.dtype == plain.dtype
    assert weighted.dense == plain.dense
    np.testing.assert_allclose(weighted.mass, expected.sum(axis=1, dtype=float), rtol=1e-12)
    np.testing.assert_allclose(weighted.column_mass, expected.sum(axis=0, dtype=float), rtol=1e-12)
    assert weighted.dense or weighted.nnz == np.count_nonzero(expected)
    assert weighted.sha256 == as_matrix(expected).sha256


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_several_blocks_give_the_same_product(layout, kind):
    large = oracles.counts(500, 300)
    weights = make_weights(kind, large.shape)
    plain = as_matrix(layout(large))
    assert len(plain.bounds) > 2
    weighted = apply_weights(plain, weights)
    np.testing.assert_array_equal(as_dense(weighted), product(large, weights))


def test_weights_of_the_transpose_give_the_bits_of_the_transpose():
    weights, plain = make_weights("all", V.shape), as_matrix(sp.csr_array(V / 3))
    there = apply_weights(plain.T, weights.transpose())
    np.testing.assert_array_equal(as_dense(there), as_dense(apply_weights(plain, weights)).T)
    assert weights.transpose().entries.nnz == weights.entries.nnz


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rows_only", [False, True])
def test_names_and_settings_are_kept(layout, rows_only):
    plain = as_matrix(layout(V), dtype=np.float32, n_jobs=3, rows_only=rows_only)
    plain = plain.with_names(np.arange(40), np.arange(30) + 100)
    weighted = apply_weights(plain, make_weights("all", V.shape))
    assert (weighted.dtype, weighted.threads) == (np.float32, 3)
    assert weighted.layout == plain.layout
    assert weighted.has_columns == (not rows_only)
    np.testing.assert_array_equal(weighted.row_names, plain.row_names)
    np.testing.assert_array_equal(weighted.column_names, plain.column_names)
    again = pickle.loads(pickle.dumps(weighted))
    np.testing.assert_array_equal(as_dense(again), as_dense(weighted))


def test_the_arrays_of_the_caller_stay_writeable():
    counts = sp.csr_array(V)
    counts.sum_duplicates()
    weighted = apply_weights(as_matrix(counts), Weights(rows=np.full(40, 2.0)))
    for name in ("data", "indices", "indptr"):
        assert getattr(counts, name).flags.writeable
        assert not getattr(weighted.array, name).flags.writeable


def test_no_weights_return_the_data_themselves(layout):
    plain = as_matrix(layout(V))
    assert apply_weights(plain, Weights()) is plain


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_empty_rows_and_weights_that_leave_nothing(layout):
    plain = as_matrix(layout(V))
    rows = np.ones(40)
    rows[:39] = 0
    last = apply_weights(plain, Weights(rows=rows))
    assert (last.mass[:39] == 0).all()
    assert last.total == V[39].sum()
    nothing = apply_weights(plain, Weights(columns=np.zeros(30)))
    assert nothing.total == 0
    assert nothing.dense or nothing.nnz == 0
    empty = apply_weights(as_matrix(layout(np.zeros((3, 2)))), Weights(rows=np.full(3, 2.0)))
    assert empty.total == 0


def test_entries_without_a_count_or_without_a_weight():
    entries = sp.csr_array(([5.0, 0.0], ([0, 2], [1, 2])), shape=(3, 3))
    counts = np.array([[1.0, 0, 2], [0, 0, 0], [3, 0, 4]])
    expected = [[1, 0, 2], [0, 0, 0], [3, 0, 0]]
    for layout in (np.asarray, sp.csr_array):
        for stored in (entries, sp.csr_array((3, 3))):
            weighted = apply_weights(as_matrix(layout(counts)), Weights(entries=stored))
            np.testing.assert_array_equal(as_dense(weighted), expected if stored.nnz else counts)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("factor", [1e38, 1e-30])
def test_a_weight_that_the_working_type_cannot_hold_is_one_sentence(layout, factor):
    plain = as_matrix(layout(V), dtype=np.float32)
    message = r"weights are from .* to .*, out of range for float32: rescale the weights"
    with pytest.raises(ValueError, match=message):
        apply_weights(plain, Weights(rows=np.full(40, factor)))
    apply_weights(as_matrix(layout(V)), Weights(rows=np.full(40, factor)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_overflow_in_float64_and_of_the_sum_are_refused(layout):
    with pytest.raises(ValueError, match="inf, out of range for float64"):
        apply_weights(as_matrix(layout(V)), Weights(rows=np.full(40, 1.7e308)))
    with pytest.raises(ValueError, match="products of `weights` must be finite"):
        apply_weights(as_matrix(layout(V)), Weights(np.full(40, 1e200), np.full(30, 1e200)))
    largest = np.finfo(np.float32).max
    with pytest.raises(ValueError, match="sum of the data is too large for float32"):
        apply_weights(
            as_matrix(layout(V), dtype=np.float32), Weights(rows=np.full(40, largest / V.max()))
        )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (Weights(rows=np.ones(39)), r"weights.rows` must have shape \(40,\), got \(39,\)"),
        (Weights(columns=-np.ones(30)), "weights.columns` must be non-negative and finite"),
        (Weights(rows=np.full(40, np.nan)), "weights.rows` must be non-negative and finite"),
        (Weights(entries=sp.csr_array((40, 31))), r"weights.entries` must have shape \(40, 30\)"),
    ],
)
def test_invalid_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        apply_weights(as_matrix(V), weights)


def test_data_without_single_rows_refuse_weights():
    columns = as_matrix(V, rows_only=True).columns
    with pytest.raises(ValueError, match="need data in memory or on disk, got ColumnSums"):
        apply_weights(columns, Weights(columns=np.ones(40)))
    WorkerRows = pytest.importorskip("sipower.dask.worker_rows").WorkerRows
    rows = object.__new__(WorkerRows)
    rows.shape = V.shape
    with pytest.raises(ValueError, match="need data in memory or on disk, got WorkerRows"):
        apply_weights(rows, Weights(rows=np.ones(40)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_fit_of_weighted_data_is_the_fit_of_the_product(layout):
    weights = make_weights("all", V.shape)
    fits = [
        solve(Factorization(data, 3), make_solver("mu"), stop=Stop(0, 5), seed=1).x
        for data in (
            apply_weights(as_matrix(layout(V)), weights),
            as_matrix(layout(product(V, weights))),
        )
    ]
    for left, right in zip(*fits, strict=True):
        assert left.tobytes() == right.tobytes()
