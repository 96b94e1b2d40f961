# SPDX-License-Identifier: BSD-3-Clause
"""`Matrix`: blocks that cover every item once, and the two primitives over them."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import as_matrix, kernels
from sipower.data.block_bounds import MAX_BLOCK, MIN_BLOCK, cut_by_work
from sipower.data.memory import Matrix

# ---- blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "max_blocks", "blocks"),
    [
        ([], None, 0),
        ([1], None, 1),
        ([1, 1], None, 1),
        ([MIN_BLOCK - 1], None, 1),
        ([MIN_BLOCK] * 10, None, 10),
        ([2 * MIN_BLOCK - 1], None, 1),
        ([MIN_BLOCK - 1, MIN_BLOCK], None, 1),
        ([MIN_BLOCK] * 2, None, 2),
        ([MIN_BLOCK / 2] * 5, None, 2),
        ([MIN_BLOCK] * 100, None, 64),
        ([MIN_BLOCK] * 100, 16, 16),
        ([MIN_BLOCK] * 10, 16, 10),
        ([3 * MIN_BLOCK] * 2, None, 2),
        ([MAX_BLOCK] * 64, None, 64),
        ([MAX_BLOCK] * 65, None, 65),
        ([MAX_BLOCK] * 200, None, 200),
        ([MAX_BLOCK] * 200, 7, 7),
    ],
)
def test_blocks_are_as_many_as_their_work_is_worth(work, max_blocks, blocks):
    assert len(cut_by_work(np.array(work, dtype=int), max_blocks)) == blocks + 1


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
    assert cut_by_work(np.full(300, MIN_BLOCK // 64)) == [0, 75, 150, 225, 300]
    assert cut_by_work(np.array([4, 1, 1, 2]) * MIN_BLOCK // 2) == [0, 1, 3, 4]
    assert cut_by_work(np.array([1, 5]) * MIN_BLOCK) == [0, 2]  # half of it is in the second


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
    many = sp.csr_array(np.ones((65, MIN_BLOCK), np.float32))
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

    def kernel(data, operand, factor, begin, end, result, *extra):
        assert data is matrix.data
        assert operand is basis
        assert factor is h
        assert extra == ("more", 7)
        result[begin:end] += np.arange(begin, end)

    assert matrix.for_items(kernel, basis, h, out, "more", 7) is out
    np.testing.assert_array_equal(out, np.arange(300))


def test_sums_add_what_every_block_leaves_in_float64_and_in_order(blocks):
    matrix, basis, h = blocks
    parts = np.array([1.0, 2.0**-53, 2.0**-53])  # rounded away one by one, from the left
    starts = dict(zip(matrix.bounds, parts, strict=False))

    def kernel(data, operand, factor, begin, end, part):
        assert data is matrix.data
        assert operand is basis
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
    sums = matrix.sums(kernels.sums, kernels.basis(H, dense=matrix.dense), W)
    Z = W @ H.T
    np.testing.assert_allclose(sums, (big / Z).T @ W, rtol=1e-11)


@pytest.mark.parametrize(("columns", "threads"), [(400, 5), (300, 1)])
def test_work_that_is_not_worth_a_thread_has_none(monkeypatch, columns, threads):
    """200 µs at 0.2 ns for each of 100 · columns · 30 terms."""
    matrix, ranges = Matrix(np.ones((100, columns)), np.float64, 5), []
    monkeypatch.setattr(kernels, "run_blocks", lambda count, task, t: ranges.append(t))
    monkeypatch.setattr(kernels, "sum_blocks", lambda count, task, total, t: ranges.append(t))
    basis, h = kernels.basis(np.ones((columns, 30)), dense=True), np.ones((100, 30))
    matrix.for_items(kernels.mu, basis, h, np.empty_like(h))
    matrix.sums(kernels.sums, basis, h)
    assert ranges == [threads, threads]
