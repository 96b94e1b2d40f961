# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: blocks that cover every item once, batches as their table says, other forms of it."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import as_matrix, kernels
from sipower.data.memory import (
    LARGEST_BLOCK,
    LEAST_BLOCK,
    SCHEMES,
    Columns,
    Matrix,
    cut_by_work,
    name_array,
)
from sipower.kernels import Draw
from sipower.problems.kl import KLBlock

V = oracles.counts(12, 9)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array, "uint8": lambda v: v.astype(np.uint8)}
DRAW = Draw(5, round=3)


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


def as_dense(matrix):
    return matrix.array if matrix.dense else matrix.array.toarray()


# ---- blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "most", "blocks"),
    [
        ([], None, 0),
        ([1], None, 1),
        ([1, 1], None, 1),
        ([LEAST_BLOCK - 1], None, 1),
        ([LEAST_BLOCK] * 10, None, 10),
        ([2 * LEAST_BLOCK - 1], None, 1),
        ([LEAST_BLOCK - 1, LEAST_BLOCK], None, 1),
        ([LEAST_BLOCK] * 2, None, 2),
        ([LEAST_BLOCK / 2] * 5, None, 2),
        ([LEAST_BLOCK] * 100, None, 64),
        ([LEAST_BLOCK] * 100, 16, 16),
        ([LEAST_BLOCK] * 10, 16, 10),
        ([3 * LEAST_BLOCK] * 2, None, 2),
        ([LARGEST_BLOCK] * 64, None, 64),
        ([LARGEST_BLOCK] * 65, None, 65),
        ([LARGEST_BLOCK] * 200, None, 200),
        ([LARGEST_BLOCK] * 200, 7, 7),
    ],
)
def test_blocks_are_as_many_as_their_work_is_worth(work, most, blocks):
    assert len(cut_by_work(np.array(work, dtype=int), most)) == blocks + 1


@pytest.mark.parametrize("seed", range(5))
def test_a_block_exceeds_its_share_by_less_than_two_items(seed):
    work = np.random.default_rng(seed).integers(0, 50_000, 300)
    bounds = cut_by_work(work)
    assert (bounds[0], bounds[-1]) == (0, 300)
    assert bounds == sorted(set(bounds))
    sums = np.add.reduceat(work, bounds[:-1])
    assert abs(sums - work.sum() / 64).max() < work.max()
    ends = np.cumsum(work)[np.array(bounds[1:-1]) - 1]
    share = work.sum() * np.arange(1, 64) / 64
    before = ends - work[np.array(bounds[1:-1]) - 1]
    assert ((before < share) & (share <= ends)).all()  # the item that reaches the share ends it


def test_equal_work_is_cut_equally():
    assert cut_by_work(np.full(300, LEAST_BLOCK // 64)) == [0, 75, 150, 225, 300]
    assert cut_by_work(np.array([4, 1, 1, 2]) * LEAST_BLOCK // 2) == [0, 1, 3, 4]
    assert cut_by_work(np.array([1, 5]) * LEAST_BLOCK) == [0, 2]  # half of it is in the second


@pytest.mark.parametrize(
    ("rows", "columns", "blocks"),
    [(20, 32768 * 2, 16), (400, 8192, 25), (2000, 4096, 64), (32, 32768 - 8, 16), (3, 32768, 3)],
)
def test_dense_blocks_share_the_basis(rows, columns, blocks):
    """16 items to a block where that leaves at least 16 blocks; sparse items need no company."""
    ones = np.ones((1, columns), np.uint8)
    matrix = Matrix(np.broadcast_to(ones, (rows, columns)).copy(), np.float64)
    assert len(matrix.bounds) == blocks + 1


def test_empty_items_are_work_too():
    """32 blocks of 4096 items without a single term; sparse items are cut up to 64 blocks."""
    assert len(Matrix(sp.csr_array((32 * 4096, 3)), np.float64).bounds) == 33
    many = sp.csr_array(np.ones((65, LEAST_BLOCK), np.float32))
    assert len(Matrix(many, np.float32).bounds) == 65


# ---- the two primitives --------------------------------------------------------------------------


@pytest.fixture(params=[1, 3])
def blocks(request):
    """Dense data of three blocks, and a basis and a factor that a kernel might ask for."""
    matrix = as_matrix(np.ones((300, 400)), n_jobs=request.param)
    assert len(matrix.bounds) == 4
    return matrix, kernels.basis(np.ones((400, 30)), dense=True), np.ones((300, 30))


def test_for_items_hands_every_item_to_the_kernel_once(blocks):
    matrix, basis, h = blocks
    out = np.zeros(300)

    def kernel(data, given, factor, begin, end, result, *extra):
        assert data is matrix.data
        assert given is basis
        assert factor is h
        assert extra == ("more", 7)
        result[begin:end] += np.arange(begin, end)

    assert matrix.for_items(kernel, basis, h, out, "more", 7) is out
    np.testing.assert_array_equal(out, np.arange(300))


def test_sums_add_what_every_block_leaves_in_float64_and_in_order(blocks):
    matrix, basis, h = blocks
    parts = np.array([1.0, 2.0**-53, 2.0**-53])  # rounded away one by one, from the left
    starts = dict(zip(matrix.bounds, parts, strict=False))

    def kernel(data, given, factor, begin, end, part):
        assert data is matrix.data
        assert given is basis
        assert factor is h
        assert end == matrix.bounds[matrix.bounds.index(begin) + 1]
        assert not part.any()
        part += starts[begin]

    total = matrix.sums(kernel, basis, h)
    assert total.dtype == np.float64
    np.testing.assert_array_equal(total, np.ones((400, 30)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_sums_are_those_of_the_transpose(layout):
    """Σ_j h_j v_ij/(b_i·h_j) by the rows, against the definition."""
    big = oracles.counts(300, 250)
    W, H = oracles.factors(300, 250, 4)
    matrix = as_matrix(layout(big))
    found = matrix.sums(kernels.sums, kernels.basis(H, dense=matrix.dense), W)
    Z = W @ H.T
    np.testing.assert_allclose(found, (big / Z).T @ W, rtol=1e-11)


@pytest.mark.parametrize(("columns", "threads"), [(400, 5), (300, 1)])
def test_work_that_is_not_worth_a_thread_has_none(monkeypatch, columns, threads):
    """200 µs at 0.2 ns for each of 100 · columns · 30 terms."""
    matrix, seen = Matrix(np.ones((100, columns)), np.float64, 5), []
    monkeypatch.setattr(kernels, "run_blocks", lambda count, task, t: seen.append(t))
    monkeypatch.setattr(kernels, "sum_blocks", lambda count, task, total, t: seen.append(t))
    basis, h = kernels.basis(np.ones((columns, 30)), dense=True), np.ones((100, 30))
    matrix.for_items(kernels.mu, basis, h, np.empty_like(h))
    matrix.sums(kernels.sums, basis, h)
    assert seen == [threads, threads]


# ---- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_vectors_are_drawn_columns_times_n_over_s(layout, dtype, replace):
    matrix = as_matrix(layout(V), dtype=dtype, n_jobs=3)
    batch = matrix.sample("vectors", 0.5, DRAW, replace=replace)
    others = DRAW.batch(9, 5, replace=replace)  # ⌈0.5 · 9⌉
    np.testing.assert_array_equal(batch.others, others)
    np.testing.assert_allclose(as_dense(batch.matrix), V[:, others] * (9 / 5), rtol=1e-6)
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
    assert batch.others is None
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
    part, others = as_matrix(layout(V), dtype=dtype, n_jobs=3).sample(
        "stratified", 0.4, DRAW, replace=replace
    )
    terms = np.count_nonzero(V, axis=1)
    drawn = np.ceil(0.4 * terms)
    assert others is None
    assert part.threads == 3
    assert part.dtype == part.array.dtype == dtype
    np.testing.assert_array_equal(np.diff(part.indptr), drawn)
    row = np.repeat(np.arange(len(V)), np.diff(part.indptr))
    expected = V[row, part.array.indices] * (terms / np.maximum(drawn, 1))[row]
    np.testing.assert_allclose(part.array.data, expected, rtol=1e-6)
    places = set(zip(row, part.array.indices, strict=True))
    assert (len(places) < part.nnz) == replace  # whether a term came twice


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weighted_draws_keep_the_mass_of_every_item(layout, dtype):
    """s_j draws with probability V_ij/c_j, each worth c_j/s_j."""
    part, others = as_matrix(layout(V), dtype=dtype, n_jobs=3).sample(
        "weighted", 0.4, DRAW, replace=True
    )
    drawn = np.ceil(0.4 * np.count_nonzero(V, axis=1))
    row = np.repeat(np.arange(len(V)), np.diff(part.indptr))
    assert others is None
    assert part.threads == 3
    assert part.array.dtype == dtype
    np.testing.assert_array_equal(np.diff(part.indptr), drawn)
    np.testing.assert_allclose(part.array.data, (V.sum(axis=1) / np.maximum(drawn, 1))[row], 1e-6)
    assert (V[row, part.array.indices] > 0).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_whole_share_is_the_whole_matrix(layout, scheme):
    part, others = as_matrix(layout(V)).sample(scheme, 1.0, DRAW)
    whole = np.zeros_like(V)
    whole[:, slice(None) if others is None else others] = as_dense(part)
    np.testing.assert_allclose(whole, V, rtol=1e-12)
    again = as_matrix(layout(V)).sample(scheme, 1.0, DRAW, replace=True).matrix
    assert not np.array_equal(as_dense(again), V[:, others] if others is not None else V)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_batches_of_data_without_nonzeros_are_empty(layout, scheme):
    part = as_matrix(layout(np.zeros((4, 6)))).sample(scheme, 0.5, DRAW).matrix
    assert part.shape == (4, 3 if scheme == "vectors" else 6)
    assert part.total == 0


def test_positions_of_elements_are_sorted_and_fewer_than_two_to_the_31():
    matrix = as_matrix(sp.csr_array(V))
    found = matrix.draw_elements(0.3, DRAW, replace=False)
    expected = sorted(DRAW.batch(matrix.nnz, kernels.batch_size(0.3, matrix.nnz)))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == as_matrix(np.zeros((2, 2))).draw_elements(0.3, DRAW, False).dtype
    matrix.nnz = 2**31
    with pytest.raises(ValueError, match=r"^More than 2\^31 nonzeros .*: use 'stratified'\.$"):
        matrix.draw_elements(1e-9, DRAW, replace=True)


# ---- the columns of a matrix that holds its rows alone -------------------------------------------


def test_columns_know_what_the_transpose_knows(layout):
    both = as_matrix(layout(V))
    alone = as_matrix(layout(V), transposable=False)
    columns = alone.columns
    assert isinstance(columns, Columns)
    assert both.columns is both.T
    for name in ("shape", "dtype", "dense", "nnz", "total"):
        assert getattr(columns, name) == getattr(both.T, name), name
    np.testing.assert_array_equal(columns.mass, both.T.mass)
    assert columns.mass.dtype == np.float64
    assert (both.layout, alone.layout) == (
        ("dense", "dense, rows alone") if both.dense else ("sparse", "sparse, rows alone")
    )
    with pytest.raises(ValueError, match="holds its rows only"):
        _ = alone.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("replace", [False, True])
def test_columns_are_sampled_by_whole_rows(layout, dtype, replace):
    alone = as_matrix(layout(V), dtype=dtype, transposable=False, n_jobs=3)
    batch = alone.columns.sample("vectors", 0.6, DRAW, replace=replace)
    drawn = DRAW.batch(12, 8, replace=replace)  # ⌈0.6 · 12⌉
    np.testing.assert_array_equal(batch.others, drawn)
    assert isinstance(batch.matrix, Columns)
    assert batch.matrix.shape == (9, 8)
    assert batch.matrix.dtype == batch.matrix.rows.array.dtype == dtype
    assert batch.matrix.rows.threads == 3
    np.testing.assert_array_equal(as_dense(batch.matrix.rows), (V[drawn] * 1.5).astype(dtype))
    every = alone.columns.sample("vectors", 0.6, DRAW).others
    assert len(set(every)) == 8  # distinct unless asked otherwise
    with pytest.raises(
        ValueError, match=r"^A matrix that .* rows is sampled by vectors, not by el"
    ):
        alone.columns.sample("elements", 0.5, DRAW)


# ---- other forms of the same data ----------------------------------------------------------------


def named(layout, **options):
    matrix = as_matrix(layout(V), **options)
    matrix.row_names, matrix.column_names = np.arange(12), np.array(list("abcdefghi"))
    return matrix


def assert_same_names(left, right):
    np.testing.assert_array_equal(left.row_names, right.row_names)
    np.testing.assert_array_equal(left.column_names, right.column_names)


def test_a_new_matrix_has_no_names_and_no_fingerprint(layout):
    matrix = Matrix(as_matrix(layout(V)).array, np.float64)
    assert (matrix.row_names, matrix.column_names, matrix.sha256) == (None, None, None)
    assert matrix.threads == 1
    assert matrix.transposable


def test_arrays_that_need_no_conversion_are_shared():
    dense, sparse = np.ascontiguousarray(V), sp.csr_array(V)
    sparse.indptr = sparse.indptr.astype(np.int64)
    assert Matrix(dense, np.float64).array is dense
    assert Matrix(sparse, np.float64).indptr is sparse.indptr


@pytest.mark.parametrize("transposable", [True, False])
def test_pickling_keeps_everything(layout, transposable):
    matrix = named(layout, dtype=np.float32, n_jobs=3, transposable=transposable)
    again = pickle.loads(pickle.dumps(matrix))
    np.testing.assert_array_equal(as_dense(again), V)
    assert (again.dtype, again.threads, again.layout) == (np.float32, 3, matrix.layout)
    assert again.array.dtype == matrix.array.dtype
    assert_same_names(again, matrix)
    assert not (again.array if again.dense else again.array.data).flags.writeable


@pytest.mark.parametrize("transposable", [True, False])
def test_another_working_type_keeps_everything_else(layout, transposable):
    matrix = named(layout, transposable=transposable)
    other = matrix.working_in(np.dtype(np.float32), 3)
    assert (other.dtype, other.threads, other.layout) == (np.float32, 3, matrix.layout)
    np.testing.assert_array_equal(as_dense(other), V)
    assert_same_names(other, matrix)
    counts = matrix.array.dtype == np.uint8
    assert (other.array is matrix.array) == counts  # the kernels read small counts as they are
    assert counts or other.array.dtype == np.float32
    assert not (other.array if other.dense else other.array.data).flags.writeable
    assert matrix.working_in(matrix.dtype, 2).array is matrix.array


def test_sixteen_bits_are_read_as_they_are_and_sparse_ones_are_not():
    wide = as_matrix(V.astype(np.uint16))
    assert wide.working_in(np.dtype(np.float32), 1).array is wide.array
    small = Matrix(sp.csr_array(V.astype(np.float32)), np.float32)
    assert small.working_in(np.dtype(np.float64), 1).array.dtype == np.float64


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


def test_the_transpose_shares_settings_and_is_made_once(layout):
    matrix = named(layout, dtype=np.float32, n_jobs=3)
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
    assert as_matrix(V, transposable=False).columns.unevenness == pytest.approx(8 / 3)


def test_unevenness_is_the_ratio_of_variances():
    """Of the sum over a random term, against that over equal terms of the same sum with weights."""
    rng = np.random.default_rng(0)
    v, b = rng.gamma(0.3, 1.0, 2000), rng.normal(size=(400, 2000))
    uneven, even = (b * v / v.sum()).var(axis=1).mean(), (b / len(v)).var(axis=1).mean()
    assert as_matrix(v[None, :]).unevenness == pytest.approx(uneven / even, rel=0.1)
