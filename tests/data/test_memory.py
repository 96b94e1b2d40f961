# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: the same data in another layout, working type or process."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from data.layouts import V, as_dense
from sipower import as_matrix
from sipower.data.memory import Matrix
from sipower.data.validate import name_array
from sipower.problems.kl import KLBlock


def make_named(layout, **options):
    matrix = as_matrix(layout(V), **options)
    return matrix.with_names(np.arange(12), np.array(list("abcdefghi")))


def assert_same_names(left, right):
    np.testing.assert_array_equal(left.row_names, right.row_names)
    np.testing.assert_array_equal(left.column_names, right.column_names)


def test_a_new_matrix_has_no_names_and_all_capabilities(layout):
    matrix = Matrix(as_matrix(layout(V)).array, np.float64)
    assert (matrix.row_names, matrix.column_names) == (None, None)
    assert matrix.threads == 1
    assert matrix.has_items
    assert matrix.has_columns
    assert matrix.is_in_memory


def test_settings_that_agree_change_nothing_and_others_share_the_data(layout):
    matrix = as_matrix(layout(V), n_jobs=2)
    for same in (matrix, matrix.columns, as_matrix(layout(V), rows_only=True, n_jobs=2).columns):
        assert same.with_settings() is same
        assert same.with_settings(same.dtype, 2) is same
    other = matrix.with_settings(threads=3)
    assert (other.threads, matrix.threads) == (3, 2)
    assert (other.T.threads, matrix.T.threads) == (3, 2)
    assert other.array is matrix.array
    assert other.bounds is matrix.bounds
    assert other.sparse().threads == 3
    alone = as_matrix(layout(V), rows_only=True, n_jobs=2).columns.with_settings(threads=3)
    assert (alone.threads, alone.columns.threads) == (3, 3)


def test_columns_without_items_say_what_they_lack():
    columns = as_matrix(V, rows_only=True).columns
    assert not columns.has_items
    assert not columns.is_in_memory
    assert columns.columns.has_items
    for act in (columns.windows, lambda: columns.take(np.array([0])), lambda: columns.row(0)):
        with pytest.raises(ValueError, match=r"available by row only, .* needs their columns: use"):
            act()


def test_arrays_that_need_no_conversion_are_shared():
    dense, sparse = np.ascontiguousarray(V), sp.csr_array(V)
    sparse.indptr = sparse.indptr.astype(np.int64)
    assert Matrix(dense, np.float64).array is dense
    assert Matrix(sparse, np.float64).indptr is sparse.indptr


@pytest.mark.parametrize("rows_only", [False, True])
def test_pickling_keeps_everything(layout, rows_only):
    matrix = make_named(layout, dtype=np.float32, n_jobs=3, rows_only=rows_only)
    again = pickle.loads(pickle.dumps(matrix))
    np.testing.assert_array_equal(as_dense(again), V)
    assert (again.dtype, again.threads, again.layout) == (np.float32, 3, matrix.layout)
    assert again.array.dtype == matrix.array.dtype
    assert_same_names(again, matrix)
    assert not (again.array if again.dense else again.array.data).flags.writeable


@pytest.mark.parametrize("rows_only", [False, True])
def test_another_working_type_keeps_everything_else(layout, rows_only):
    matrix = make_named(layout, rows_only=rows_only)
    other = matrix.with_settings(np.dtype(np.float32), 3)
    assert (other.dtype, other.threads, other.layout) == (np.float32, 3, matrix.layout)
    np.testing.assert_array_equal(as_dense(other), V)
    assert_same_names(other, matrix)
    counts = matrix.array.dtype == np.uint8
    assert (other.array is matrix.array) == counts  # the kernels read small counts as they are
    assert counts or other.array.dtype == np.float32
    assert not (other.array if other.dense else other.array.data).flags.writeable
    assert matrix.with_settings(matrix.dtype, 2).array is matrix.array


def test_sixteen_bits_are_read_as_they_are_and_sparse_ones_are_not():
    wide = as_matrix(V.astype(np.uint16))
    assert wide.with_settings(np.dtype(np.float32), 1).array is wide.array
    small = Matrix(sp.csr_array(V.astype(np.float32)), np.float32)
    assert small.with_settings(np.dtype(np.float64), 1).array.dtype == np.float64


def test_the_sparse_form_is_made_once(layout):
    matrix = as_matrix(layout(V), dtype=np.float32, n_jobs=3)
    sparse = matrix.sparse()
    assert sparse is matrix.sparse() is sparse.sparse()
    assert (sparse is matrix) == (not matrix.dense)
    assert (sparse.dtype, sparse.threads, sparse.nnz) == (np.float32, 3, np.count_nonzero(V))
    assert sparse.array.dtype == np.float32
    assert not matrix.dense or not sparse.array.data.flags.writeable
    np.testing.assert_array_equal(sparse.array.toarray(), V)


def test_parts_are_those_of_the_data(layout):
    matrix = as_matrix(layout(V))
    for item in range(12):
        np.testing.assert_array_equal(matrix.row(item), V[item])
        assert matrix.row(item).dtype == np.float64
    items = np.array([7, 0, 7])
    for part, expected in ((matrix.rows(2, 5), V[2:5]), (matrix.take(items), V[items])):
        np.testing.assert_array_equal(part if matrix.dense else part.toarray(), expected)
    np.testing.assert_array_equal(matrix.column_mass, V.sum(axis=0))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_of_float32_data_are_summed_in_float64(form):
    data = np.random.default_rng(0).random((500, 4), np.float32)
    sums = as_matrix(form(data)).column_mass
    np.testing.assert_allclose(sums, data.sum(axis=0, dtype=np.float64), rtol=1e-14)


def test_the_transpose_shares_settings_and_is_made_once(layout):
    matrix = make_named(layout, dtype=np.float32, n_jobs=3)
    assert matrix.T is matrix.T
    assert matrix.T.T is matrix
    assert (matrix.T.dtype, matrix.T.threads) == (np.float32, 3)
    np.testing.assert_array_equal(matrix.T.row_names, matrix.column_names)
    np.testing.assert_array_equal(matrix.T.column_names, matrix.row_names)
    assert not (matrix.T.array if matrix.dense else matrix.T.array.data).flags.writeable


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_arrays_that_are_not_aligned_are_read_all_the_same(layout):
    """What comes over a network may begin anywhere: a cluster's blocks and factors do."""

    def shifted(array):
        moved = np.ndarray(array.shape, array.dtype, np.empty(array.nbytes + 1, np.uint8), 1)
        moved[...] = array
        assert not moved.flags.aligned
        return moved

    rng = np.random.default_rng(0)
    data, B, h = (
        layout(rng.poisson(1.0, (30, 20)).astype(float)),
        rng.random((20, 3)),
        rng.random((30, 3)),
    )
    other = data.copy()
    if isinstance(other, np.ndarray):
        other = shifted(other)
    else:
        for part in ("data", "indices", "indptr"):
            setattr(other, part, shifted(getattr(other, part)))
    plain = KLBlock(Matrix(data, np.float64), B)
    moved = KLBlock(Matrix(other, np.float64), shifted(B))
    np.testing.assert_array_equal(plain.ratio_sums(h), moved.ratio_sums(shifted(h)))
    np.testing.assert_array_equal(plain.gaps(h), moved.gaps(shifted(h)))
    assert plain.divergence(h) == moved.divergence(shifted(h))


def test_names_are_as_long_as_they_are():
    assert name_array(None) is None
    names = name_array(("long" * 99, "NUL\0"))
    assert names.dtype == object
    assert names.tolist() == ["long" * 99, "NUL\0"]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_indices_of_two_types_are_copied_at_most_once(kind):
    """SciPy would widen the column numbers to the type of indptr; kernels copy them back."""
    csr = sp.csr_array(V)
    csr.indptr, csr.indices = csr.indptr.astype(np.int64), csr.indices.astype(kind)
    matrix = as_matrix(csr)
    array = matrix.array
    assert (array.indices.dtype, array.indptr.dtype) == (np.int32, np.int32)
    assert np.shares_memory(array.indices, csr.indices) == (kind is np.int32)
    assert np.shares_memory(array.data, csr.data)
    assert (matrix.T.array.indices.dtype, matrix.T.array.indptr.dtype) == (np.int32, np.int32)
    assert matrix.sha256 == as_matrix(V).sha256
