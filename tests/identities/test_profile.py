# SPDX-License-Identifier: BSD-3-Clause
"""Rows profiled out: the sums are those of the definition, and batches of rows estimate them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Stop, as_matrix, solve
from sipower.datasets import poisson_topics
from sipower.kernels import Draw, Stream
from sipower.nmf import Auto, Factorization, Factors, Profiled, online
from sipower.nmf.rows import feature_gap, profile
from sipower.problems.kl import KLBlock

V = oracles.counts(300, 60, density=0.6)
LAYOUTS = {"csr": sp.csr_array, "dense": np.asarray}


def basis(seed=0, rank=4):
    return oracles.factors(V.shape[0], V.shape[1], rank, seed)[1]


def divide(counts, model):
    return np.divide(counts, model, out=np.zeros(counts.shape), where=counts > 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows_only", [False, True])
def test_the_profile_is_what_its_definition_says(layout, rows_only):
    H = basis()
    result = profile(as_matrix(LAYOUTS[layout](V), rows_only=rows_only), H)
    quotient = divide(V, result.W @ H.T)
    np.testing.assert_allclose(result.g, quotient.T @ result.W, rtol=1e-10)
    np.testing.assert_allclose(result.d, result.W.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(result.value, oracles.divergence(V, result.W, H), rtol=1e-10)
    for row in (0, 17, 299):
        _, best = oracles.best_item(V[row], H)
        one = oracles.divergence(V[row : row + 1], result.W[row : row + 1], H)
        assert one <= oracles.divergence(V[row : row + 1], best[None, :], H) + 1e-6 * V[row].sum()
    assert result.gap <= 1e-6 * V.sum()


def test_the_gap_of_the_features_needs_no_look_at_the_data():
    H = basis(3)
    matrix = as_matrix(sp.csr_array(V))
    result = profile(matrix, H)
    expected = KLBlock(matrix.T, result.W).gaps(H).sum()
    np.testing.assert_allclose(feature_gap(H, result, matrix.column_mass), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounds_never_raise_the_divergence_and_end_certified(dtype):
    problem = Factorization(as_matrix(sp.csr_array(V), dtype=dtype, rows_only=True), 4)
    result = solve(problem, Profiled(), stop=Stop(1e-4, rounds=300), trace="every")
    values = [record.objective for record in result.trace]
    slack = problem.rounding(values[0])
    assert all(after <= before + slack for before, after in pairwise(values))
    assert str(result.status) == "converged"
    assert problem.residual(result.x) <= 1e-4


def test_w_is_a_function_of_h_alone():
    problem = Factorization(as_matrix(sp.csr_array(V)), 4)
    result = solve(problem, Profiled(), stop=Stop(0, rounds=5))
    again = profile(as_matrix(sp.csr_array(V), rows_only=True), result.x.H)
    assert again.W.tobytes() == result.x.W.tobytes()


def test_a_feature_without_counts_stays_zero():
    empty = V.copy()
    empty[:, 7] = 0
    result = solve(
        Factorization(as_matrix(sp.csr_array(empty)), 4), Profiled(), stop=Stop(0, rounds=3)
    )
    assert not result.x.H[7].any()
    assert np.isfinite(result.value)


# ---- batches of rows -------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_hold_every_row_once_and_add_up_to_the_whole(layout, monkeypatch):
    monkeypatch.setattr(online, "ROWS_PER_GROUP", 7)
    monkeypatch.setattr(online, "MAX_BATCH_ROWS", 28)
    matrix, H = as_matrix(LAYOUTS[layout](V)), basis()
    rows, total = [], np.zeros(H.shape)
    for batch_rows, part in online.batches(matrix, Draw(1, Stream.ONLINE)):
        rows.extend(batch_rows)
        block = part.array if part.dense else part.array.toarray()
        np.testing.assert_array_equal(block, V[batch_rows])
        total += H * KLBlock(part.columns, KLBlock(part, H).solution(1e-9)[0]).ratio_sums(H)
    assert sorted(rows) == list(range(300))
    assert rows != sorted(rows)
    whole = KLBlock(matrix, H).solution(1e-9)[0]
    np.testing.assert_allclose(total, H * (divide(V, whole @ H.T).T @ whole), rtol=1e-7)


def test_long_rows_come_in_smaller_batches(monkeypatch):
    monkeypatch.setattr(online, "ROWS_PER_GROUP", 4)
    matrix = as_matrix(sp.csr_array(V))
    for max_entries in (500, 2000, 10**9):
        monkeypatch.setattr(online, "MAX_BATCH_NONZEROS", max_entries)
        sizes = [part.shape[0] for _, part in online.batches(matrix, Draw(0, Stream.ONLINE))]
        assert sum(sizes) == 300
        assert max(sizes) * matrix.nnz / 300 <= max(max_entries, 4 * matrix.nnz / 300)


def test_an_anchored_epoch_stays_at_a_solution_and_an_averaged_pass_does_not(monkeypatch):
    """The variance of the anchored estimate vanishes there; that of a plain batch does not."""
    monkeypatch.setattr(online, "ROWS_PER_GROUP", 5)
    monkeypatch.setattr(online, "MAX_BATCH_ROWS", 20)
    monkeypatch.setattr(online, "ANCHORED_ROW_TOL", 1e-9)
    matrix = as_matrix(sp.csr_array(V))
    H = solve(Factorization(matrix, 4), Auto(), stop=Stop(1e-9, rounds=800)).x.H
    H = H / H.sum(axis=0)
    at = profile(matrix, H)
    anchored = online.run_anchored_epoch(matrix, Factors(at.W, H), at.g, 0, 1)
    averaged = online.run_averaged_pass(matrix, H, 0)
    best = profile(matrix, H).value
    assert profile(matrix, anchored).value - best <= 1e-7 * V.sum()
    assert profile(matrix, averaged).value - best > 1e-4 * V.sum()


def test_tall_data_have_a_good_model_after_one_pass():
    tall = as_matrix(poisson_topics(66_000, 120, 5, length=30, seed=1))
    assert online.is_tall(tall)
    problem = Factorization(tall, 5)
    first = solve(problem, Auto(), stop=Stop(0, rounds=1), trace="every")
    rows_only = Factorization(as_matrix(tall.array, rows_only=True), 5)
    second = solve(rows_only, Auto(), stop=Stop(0, rounds=1), trace="every")
    best = solve(problem, Auto(near=True), first.x, stop=Stop(1e-4, rounds=60))
    start = first.trace[0].objective
    for result in (first, second):
        assert result.value - best.value <= 0.03 * (start - best.value)


def test_a_start_that_is_given_is_kept():
    """A pass over batches would replace it."""
    tall = as_matrix(poisson_topics(66_000, 120, 5, length=30, seed=1))
    problem = Factorization(tall, 5)
    best = solve(problem, Auto(), stop=Stop(1e-3, rounds=60))
    for solver in (Auto(), Profiled()):
        result = solve(problem, solver, best.x, stop=Stop(0, rounds=1))
        assert result.value <= best.value + 1e-6 * tall.total


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(online, "MAX_BATCH_ROWS", 128)
    matrices = [as_matrix(sp.csr_array(V), n_jobs=threads) for threads in (1, 2)]
    first, second = (online.run_averaged_pass(matrix, basis(), 4) for matrix in matrices)
    assert first.tobytes() == second.tobytes()
