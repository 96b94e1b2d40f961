# SPDX-License-Identifier: BSD-3-Clause
"""Compiled kernels against the plain formulas, over ranks, types and layouts."""

import gc
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import KLNMF, as_matrix, kernels, nmf
from sipower.problems import KLBlock

RANKS = [1, 2, 19, 20, 63, 65, 200]
TOLERANCE = {np.float64: 1e-12, np.float32: 3e-5}


def layouts(V):
    return {"csr": sp.csr_array(V), "dense": V, "uint16": V.astype(np.uint16)}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["csr", "dense", "uint16"])
@pytest.mark.parametrize("rank", RANKS)
def test_gradient_and_divergence(rank, layout, dtype):
    V = oracles.counts(37, 131)
    W, H = oracles.factors(37, 131, rank)
    block = KLBlock(as_matrix(layouts(V)[layout], dtype=dtype), H)
    exact = (np.divide(V, W @ H.T)) @ H
    result = block.ratio_sums(W.astype(dtype))
    np.testing.assert_allclose(result, exact, rtol=TOLERANCE[dtype])
    H32 = H.astype(dtype)
    W32 = W.astype(dtype)
    assert block.divergence(W32) == pytest.approx(oracles.divergence(V, W32, H32), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["csr", "dense"])
@pytest.mark.parametrize("rank", [1, 20, 65])
def test_sums_for_the_other_side_equal_items(rank, layout, dtype):
    """The form that needs no transpose gives the gradient of the form that has it."""
    V = oracles.counts(137, 61)
    W, H = (f.astype(dtype) for f in oracles.factors(137, 61, rank))
    rows_only = as_matrix(layouts(V)[layout], dtype=dtype, rows_only=True)
    both = as_matrix(layouts(V)[layout], dtype=dtype)
    by_sums = KLBlock(rows_only.columns, W)
    by_items = KLBlock(both.T, W)
    np.testing.assert_allclose(by_sums.ratio_sums(H), by_items.ratio_sums(H), rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(by_sums.c, by_items.c, rtol=1e-14)
    assert by_sums.divergence(H) == pytest.approx(by_items.divergence(H), rel=1e-12)
    with pytest.raises(ValueError, match="by row only"):
        _ = rows_only.T


def test_long_items_in_float32_lose_no_digits():
    """A sum of 300,000 equal terms in float32 alone would be off by 1e-3."""
    V = np.ones((1, 300_000))
    B = np.full((300_000, 3), 0.1)
    for data in (V, sp.csr_array(V)):
        block = KLBlock(as_matrix(data, dtype=np.float32), B)
        result = block.ratio_sums(np.ones((1, 3), np.float32))
        np.testing.assert_allclose(result, 300_000 / 3, rtol=3e-6)


def test_logarithm_over_the_whole_range():
    """D of a single entry is v log(v/z) − v + z for ratios from 1e-300 to 1e300."""
    for z in [1e-290, 1e-30, 0.1, 0.7071067811865475, 0.99999999, 1.0, 1.5, 3e7, 1e290]:
        block = KLBlock(np.array([[1.0]]), np.array([[1.0]]))
        exact = -np.log(z) - 1 + z
        divergence = block.divergence(np.array([[z]]))
        assert divergence == pytest.approx(exact, rel=1e-14, abs=1e-15)


def test_dead_components_are_skipped():
    """A zero column of the basis has G = 0 and its component keeps its value."""
    V = oracles.counts(12, 17)
    W, H = oracles.factors(12, 17, 3)
    H[:, 1] = 0
    block = KLBlock(V, H)
    assert (block.multiplier(W)[:, 1] == 0).all()
    for kernel, extra in ((kernels.mu, ()), (kernels.power, (1.0,))):
        out = block.V.for_items(kernel, block.basis, W, np.zeros_like(W), block.c, *extra)
        alive = V.sum(axis=1) > 0
        np.testing.assert_array_equal(out[alive, 1], W[alive, 1])
        np.testing.assert_array_equal(out[~alive], 0)


def test_a_lost_item_starts_again_from_the_uniform_point():
    V = oracles.counts(9, 11)
    _, H = oracles.factors(9, 11, 3)
    block = KLBlock(V, H)
    out = block.V.for_items(kernels.mu, block.basis, np.zeros((9, 3)), np.zeros((9, 3)), block.c)
    np.testing.assert_allclose(out @ H.sum(axis=0), V.sum(axis=1), rtol=1e-12)


WRONG = {
    "a basis of another length": lambda V, H, W: kernels.gradient(
        V.data, kernels.basis(H[:-1].copy(), dense=False), W, 0, 5, np.empty(W.shape)
    ),
    "a factor of another rank": lambda V, H, W: kernels.gradient(
        V.data, kernels.basis(H, dense=False), W[:, :-1].copy(), 0, 5, np.empty((5, 2))
    ),
    "a range beyond the items": lambda V, H, W: kernels.gradient(
        V.data, kernels.basis(H, dense=False), W, 0, 6, np.empty(W.shape)
    ),
    "a result of another shape": lambda V, H, W: kernels.gradient(
        V.data, kernels.basis(H, dense=False), W, 0, 5, np.empty((4, 3))
    ),
    "a column index out of range": lambda V, H, W: kernels.Csr(
        np.array([0, 1]), np.array([9], np.int32), np.array([1.0]), 9
    ),
    "a negative column index": lambda V, H, W: kernels.Csr(
        np.array([0, 1]), np.array([-1], np.int32), np.array([1.0]), 9
    ),
    "a decreasing indptr": lambda V, H, W: kernels.Csr(
        np.array([0, 2, 1, 2]), np.array([0, 1], np.int32), np.ones(2), 9
    ),
    "an indptr beyond the values": lambda V, H, W: kernels.Csr(
        np.array([0, 3]), np.array([0, 1], np.int32), np.ones(2), 9
    ),
    "values of an unknown type": lambda V, H, W: kernels.Dense(np.ones((2, 2), np.int32)),
    "a dense kernel on a basis without tiles": lambda V, H, W: kernels.gradient(
        as_matrix(V.array.toarray()).data, kernels.basis(H, dense=False), W, 0, 5, np.empty(W.shape)
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_bindings_refuse(what):
    V = as_matrix(sp.csr_array(oracles.counts(5, 8)))
    W, H = oracles.factors(5, 8, 3)
    with pytest.raises((ValueError, TypeError)):
        WRONG[what](V, H, W)


@pytest.mark.parametrize(
    ("index", "columns", "fits"),
    [
        *((j, n, True) for j, n in ((0, 1), (5, 6), (2**31 - 2, 2**31 - 1))),
        *((j, n, False) for n in (0, 1, 6, 2**31 - 1) for j in (-(2**31), -1, n)),
        *((0, n, False) for n in (-1, 2**31, 2**32 + 1)),
    ],
)
def test_indices_at_the_ends_of_their_type(index, columns, fits):
    parts = np.array([0, 1]), np.array([index], np.int32), np.ones(1)
    with nullcontext() if fits else pytest.raises(ValueError, match=r"columns|out of range"):
        kernels.Csr(*parts, columns)


def test_an_array_without_elements_may_begin_anywhere():
    """As it does when Dask has moved rows without counts."""
    indices, values = (np.ndarray(0, kind, np.empty(32), 1) for kind in ("i4", "f8"))
    assert all(array.ctypes.data % array.itemsize for array in (indices, values))
    csr = kernels.Csr(np.zeros(3, np.int64), indices, values, 5)
    assert csr.row_sums().tolist() == [0, 0]


def test_an_unknown_order_of_coordinates_is_refused():
    V = as_matrix(oracles.counts(5, 8))
    W, H = oracles.factors(5, 8, 3)
    basis = kernels.basis(H, dense=True)
    rest = V.mass, 1, "rising", (0, 0), (0, 0, 0, 0)
    with pytest.raises(ValueError, match="order must be 'cyclic', 'active' or 'random'"):
        kernels.coordinate(V.data, basis, W, 0, 5, np.zeros_like(W), *rest)


def test_result_arrays_are_never_copies():
    """A result of the wrong type is refused, not converted and lost."""
    V = as_matrix(oracles.counts(5, 8))
    W, H = oracles.factors(5, 8, 3)
    basis = kernels.basis(H, dense=True)
    with pytest.raises(TypeError):
        kernels.gradient(V.data, basis, W, 0, 5, np.empty(W.shape, np.float32))
    with pytest.raises(TypeError):
        kernels.gradient(V.data, basis, W, 0, 5, np.empty((3, 5)).T)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_gives_back_every_array(layout, solver):
    counts = oracles.counts(300, 80).astype(float)
    V = counts if layout == "dense" else sp.csr_array(counts)
    data = V if layout == "dense" else V.data
    before = sys.getrefcount(data)
    KLNMF(3, solver=solver, random_state=0, tol=0, max_iter=3, n_jobs=2).fit(V)
    gc.collect()
    assert sys.getrefcount(data) == before
