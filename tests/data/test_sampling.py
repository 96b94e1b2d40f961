# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: batches as the schemes promise, of rows, of columns and of nonzeros."""

import numpy as np
import pytest
import scipy.sparse as sp

from data.layouts import DRAW, V, as_dense
from sipower import as_matrix, kernels
from sipower.data.row_blocks import ColumnSums
from sipower.data.sampling import SCHEMES, draw_positions

# ---- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_vectors_are_drawn_columns_times_n_over_s(layout, dtype, replace):
    matrix = as_matrix(layout(V), dtype=dtype, n_jobs=3)
    batch = matrix.sample("vectors", 0.5, DRAW, replace=replace)
    other_rows = DRAW.batch(9, 5, replace=replace)  # ⌈0.5 · 9⌉
    np.testing.assert_array_equal(batch.basis_rows, other_rows)
    np.testing.assert_allclose(as_dense(batch.matrix), V[:, other_rows] * (9 / 5), rtol=1e-6)
    assert batch.matrix.dtype == batch.matrix.array.dtype == dtype
    assert batch.matrix.dense == matrix.dense
    assert batch.matrix.threads == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_elements_are_drawn_nonzeros_times_nnz_over_s(layout, dtype, replace):
    nnz = np.count_nonzero(V)
    s = -(-nnz * 3 // 10)
    matrix = as_matrix(layout(V), dtype=dtype, n_jobs=3)
    batch = matrix.sample("elements", 0.3, DRAW, replace=replace)
    at = DRAW.batch(nnz, s, replace=replace)
    expected = np.zeros(V.shape)
    np.add.at(expected, tuple(np.argwhere(V)[at].T), V[V > 0][at] * (nnz / s))
    assert batch.basis_rows is None
    assert batch.matrix.nnz == s
    assert batch.matrix.dtype == batch.matrix.array.dtype == dtype
    assert batch.matrix.threads == 3
    np.testing.assert_allclose(batch.matrix.array.toarray(), expected, rtol=1e-6)
    single = matrix.sample("elements", 1e-9, DRAW).matrix.array
    assert single.data / V[single.nonzero()] == pytest.approx([nnz])
    rows = np.argwhere(V)[at, 0]
    np.testing.assert_array_equal(np.diff(batch.matrix.indptr), np.bincount(rows, minlength=12))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_stratified_terms_are_those_of_their_item_times_n_over_s(layout, dtype, replace):
    part, zeros_part = as_matrix(layout(V), dtype=dtype, n_jobs=3).sample(
        "stratified", 0.4, DRAW, replace=replace
    )
    terms = np.count_nonzero(V, axis=1)
    n_drawn = np.ceil(0.4 * terms)
    assert zeros_part is None
    assert part.threads == 3
    assert part.dtype == part.array.dtype == dtype
    np.testing.assert_array_equal(np.diff(part.indptr), n_drawn)
    row = np.repeat(np.arange(len(V)), np.diff(part.indptr))
    expected = V[row, part.array.indices] * (terms / np.maximum(n_drawn, 1))[row]
    np.testing.assert_allclose(part.array.data, expected, rtol=1e-6)
    places = set(zip(row, part.array.indices, strict=True))
    assert (len(places) < part.nnz) == replace  # whether a term came twice


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighted_draws_keep_the_mass_of_every_item(layout, dtype):
    """s_j draws with probability V_ij/c_j, each worth c_j/s_j."""
    part, zeros_part = as_matrix(layout(V), dtype=dtype, n_jobs=3).sample(
        "weighted", 0.4, DRAW, replace=True
    )
    n_drawn = np.ceil(0.4 * np.count_nonzero(V, axis=1))
    row = np.repeat(np.arange(len(V)), np.diff(part.indptr))
    assert zeros_part is None
    assert part.threads == 3
    assert part.array.dtype == dtype
    np.testing.assert_array_equal(np.diff(part.indptr), n_drawn)
    np.testing.assert_allclose(part.array.data, (V.sum(axis=1) / np.maximum(n_drawn, 1))[row], 1e-6)
    assert (V[row, part.array.indices] > 0).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_whole_share_is_the_whole_matrix(layout, scheme):
    part, zeros_part = as_matrix(layout(V)).sample(scheme, 1.0, DRAW)
    whole = np.zeros_like(V)
    whole[:, slice(None) if zeros_part is None else zeros_part] = as_dense(part)
    np.testing.assert_allclose(whole, V, rtol=1e-12)
    again = as_matrix(layout(V)).sample(scheme, 1.0, DRAW, replace=True).matrix
    assert not np.array_equal(as_dense(again), V[:, zeros_part] if zeros_part is not None else V)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_batches_of_data_without_nonzeros_are_empty(layout, scheme):
    part = as_matrix(layout(np.zeros((4, 6)))).sample(scheme, 0.5, DRAW).matrix
    assert part.shape == (4, 3 if scheme == "vectors" else 6)
    assert part.total == 0


def test_positions_of_elements_are_sorted_and_fewer_than_two_to_the_31():
    matrix = as_matrix(sp.csr_array(V))
    positions = draw_positions(matrix.nnz, 0.3, DRAW, replace=False)
    expected = sorted(DRAW.batch(matrix.nnz, kernels.batch_size(0.3, matrix.nnz)))
    np.testing.assert_array_equal(positions, expected)
    assert positions.dtype == draw_positions(0, 0.3, DRAW, False).dtype
    with pytest.raises(
        ValueError, match=r"^scheme='elements' .* 2\^31 - 1 nonzeros, .*: use 'stratified'\.$"
    ):
        draw_positions(2**31, 1e-9, DRAW, replace=True)


# ---- the columns of a matrix that holds its rows alone -------------------------------------------


def test_columns_know_what_the_transpose_knows(layout):
    both = as_matrix(layout(V))
    alone = as_matrix(layout(V), rows_only=True)
    columns = alone.columns
    assert isinstance(columns, ColumnSums)
    assert both.columns is both.T
    for name in ("shape", "dtype", "dense", "nnz", "total"):
        assert getattr(columns, name) == getattr(both.T, name), name
    np.testing.assert_array_equal(columns.mass, both.T.mass)
    assert columns.mass.dtype == np.float64
    assert (both.layout, alone.layout) == (
        ("dense", "dense, rows alone") if both.dense else ("sparse", "sparse, rows alone")
    )
    with pytest.raises(ValueError, match="available by row only"):
        _ = alone.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_columns_are_sampled_by_whole_rows(layout, dtype, replace):
    alone = as_matrix(layout(V), dtype=dtype, rows_only=True, n_jobs=3)
    batch = alone.columns.sample("vectors", 0.6, DRAW, replace=replace)
    rows = DRAW.batch(12, 8, replace=replace)  # ⌈0.6 · 12⌉
    np.testing.assert_array_equal(batch.basis_rows, rows)
    assert isinstance(batch.matrix, ColumnSums)
    assert batch.matrix.shape == (9, 8)
    assert batch.matrix.dtype == batch.matrix.columns.array.dtype == dtype
    assert batch.matrix.columns.threads == 3
    np.testing.assert_array_equal(as_dense(batch.matrix.columns), (V[rows] * 1.5).astype(dtype))
    every = alone.columns.sample("vectors", 0.6, DRAW).basis_rows
    assert len(set(every)) == 8  # distinct unless asked otherwise
    with pytest.raises(
        ValueError, match=r"^`scheme` must be 'vectors' for data available by row only, got 'el"
    ):
        alone.columns.sample("elements", 0.5, DRAW)


# ---- unevenness ------------------------------------------------------------------------------


def test_unevenness_is_that_of_the_variance_of_a_batch():
    """1 for equal terms, n for a single one; by mass in between; no item without counts counts."""
    assert as_matrix(np.full((3, 8), 7)).unevenness == pytest.approx(1, rel=1e-14)
    assert as_matrix(np.eye(5)[:, :4] * 3 + 0).unevenness == pytest.approx(4, rel=1e-14)
    V = np.array([[1.0, 1, 1, 1], [12.0, 0, 0, 0], [0.0, 0, 0, 0]])
    assert as_matrix(V).unevenness == pytest.approx((4 * 1 + 12 * 4) / 16, rel=1e-14)
    assert as_matrix(V).T.unevenness == pytest.approx(
        3 * (170 / 26 + 1 + 1 + 1) * 1 / 16 * 2, rel=1
    )
    assert as_matrix(np.zeros((3, 4))).unevenness == 1
    assert as_matrix(V * 2.0**500).unevenness == as_matrix(V).unevenness  # squares overflow


def test_unevenness_of_sparse_data_takes_nonzeros_as_alike():
    V = sp.csr_array(np.array([[5.0, 0, 1, 0], [0.0, 0, 2, 0]]))
    assert as_matrix(V).unevenness == as_matrix(V).T.unevenness == pytest.approx(8 / 3)
    assert as_matrix(V, rows_only=True).columns.unevenness == pytest.approx(8 / 3)


def test_unevenness_is_the_ratio_of_variances():
    """Of the sum over a random term, against that over equal terms of the same sum with weights."""
    rng = np.random.default_rng(0)
    v, b = rng.gamma(0.3, 1.0, 2000), rng.normal(size=(400, 2000))
    uneven, even = (b * v / v.sum()).var(axis=1).mean(), (b / len(v)).var(axis=1).mean()
    assert as_matrix(v[None, :]).unevenness == pytest.approx(uneven / even, rel=0.1)
