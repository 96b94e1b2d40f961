# SPDX-License-Identifier: BSD-3-Clause
"""Rounds on rows alone: sums, Newton steps and descent, and starts from batches of rows."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Stop, as_matrix, solve
from sipower.datasets import poisson_topics
from sipower.kernels import Draw, Stream
from sipower.nmf import (
    Auto,
    Factorization,
    Factors,
    RowRounds,
    feature_step,
    row_rounds,
    row_sample,
    rows,
)
from sipower.problems.item_terms import Terms

V = oracles.counts(300, 60, density=0.6)
LAYOUTS = {"csr": sp.csr_array, "dense": np.asarray}


def basis(seed=0, rank=4):
    return oracles.factors(V.shape[0], V.shape[1], rank, seed)[1]


def divide(counts, model):
    return np.divide(counts, model, out=np.zeros(counts.shape), where=counts > 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows_only", [False, True])
def test_the_sums_are_what_their_definition_says(layout, rows_only, monkeypatch):
    monkeypatch.setattr(rows, "MAX_SLAB", 3000)  # several groups of rows are transposed
    matrix, (W, H) = as_matrix(LAYOUTS[layout](V), rows_only=rows_only), oracles.factors(300, 60, 4)
    W[W < 0.3] = 0
    W[:, 0] += 0.1
    Z, pairs = W @ H.T, np.triu_indices(4)
    Q = np.einsum("ij,ik,il->jkl", divide(V, Z**2), W, W)[:, *pairs]
    g = divide(V, Z).T @ W
    for curvatures in (False, True):
        sums, _ = rows.sum_rows(matrix, Factors(W, H), curvatures=curvatures)
        np.testing.assert_allclose(sums.g, g, rtol=1e-10)
        np.testing.assert_allclose(sums.rows.d, W.sum(axis=0), rtol=1e-12)
        assert len(sums.Q) == (60 if curvatures else 0)
    np.testing.assert_allclose(sums.Q, Q, rtol=1e-10)
    point = rows.evaluate_rows(matrix, Factors(W, H))
    assert point.value == pytest.approx(oracles.divergence(V, W, H), rel=1e-10)
    np.testing.assert_allclose(point.sums.g, g, rtol=1e-10)


def test_curvatures_have_the_same_bits_for_any_number_of_threads():
    W, H = oracles.factors(300, 60, 4)
    parts = [as_matrix(sp.csr_array(V), n_jobs=n, rows_only=n > 2) for n in (1, 2, 3)]
    bits = {rows.sum_rows(V, Factors(W, H), curvatures=True)[0].Q.tobytes() for V in parts}
    assert len(bits) == 1


def test_float32_curvatures_of_long_columns():
    """More nonzeros than are added in the working type at a time."""
    tall = np.random.default_rng(0).poisson(2.0, (2500, 6)).astype(np.float32)
    W, H = oracles.factors(2500, 6, 3)
    x = Factors(W.astype(np.float32), H.astype(np.float32))
    Q = np.einsum("ij,ik,il->jkl", divide(tall, (W @ H.T) ** 2), W, W)[:, *np.triu_indices(3)]
    for data in (tall, sp.csr_array(tall)):
        sums, _ = rows.sum_rows(as_matrix(data), x, curvatures=True)
        np.testing.assert_allclose(sums.Q, Q, rtol=2e-5)


def test_the_certificate_is_that_of_the_factors():
    """The features need no look at the data, and rows only their own."""
    matrix, x = as_matrix(sp.csr_array(V)), Factors(*oracles.factors(300, 60, 4))
    problem, point = Factorization(matrix, 4), rows.evaluate_rows(matrix, x)
    gap = point.gap + rows.feature_gap(x.H, point.sums, matrix.column_mass)
    assert gap == pytest.approx(problem.residual(x) * V.sum(), rel=1e-9)


# ---- steps of H from sums ----------------------------------------------------------------------


def plain_direction(r, Q, h, sweeps):
    """min r·p + ½ p·Qp over h + p ≥ 0, one coordinate after another."""
    p = np.zeros(len(h))
    for _ in range(sweeps):
        for k in range(len(h)):
            slope = r[k] + Q[k] @ p
            p[k] = max(-h[k], p[k] - slope / Q[k, k]) if Q[k, k] > 0 else -h[k]
    return p


def test_a_newton_step_is_that_of_the_formula():
    matrix, (W, H) = as_matrix(sp.csr_array(V)), oracles.factors(300, 60, 4)
    sums, _ = rows.sum_rows(matrix, Factors(W, H), curvatures=True)
    safe = feature_step.newton_step(H, sums, Terms(sums.rows.d), safe=True)
    longer = feature_step.newton_step(H, sums, Terms(sums.rows.d), safe=False)
    d, Z = W.sum(axis=0), W @ H.T
    for j in range(60):
        Q = np.einsum("i,ik,il->kl", divide(V[:, j], Z[:, j] ** 2), W, W)
        r = d - W.T @ divide(V[:, j], Z[:, j])
        p = plain_direction(r, Q, H[j], feature_step.MODEL_SWEEPS)
        s, kappa, m = -r @ p, p @ Q @ p, max(np.max(-p / H[j]), 0)
        t = min(s / (kappa + m * s), 1)
        np.testing.assert_allclose(safe[j], H[j] + t * p, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(longer[j], H[j] + max(t, 0.9) * p, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_safe_newton_step_never_raises_the_divergence(seed, scale):
    """From anywhere: far from the solution and with entries over many orders of magnitude."""
    W, H = oracles.factors(300, 60, 4, seed)
    H = scale * H * 10.0 ** np.random.default_rng(seed).integers(-8, 3, H.shape)
    matrix = as_matrix(sp.csr_array(V))
    for _ in range(3):
        sums, _ = rows.sum_rows(matrix, Factors(W, H), curvatures=True)
        new = feature_step.newton_step(H, sums, Terms(sums.rows.d), safe=True)
        before, after = oracles.divergence(V, W, H), oracles.divergence(V, W, new)
        assert after <= before + 1e-12 * (before + V.sum())
        H = np.maximum(new, 1e-15 * new.max(axis=0))


# ---- rounds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounds_never_raise_the_divergence_and_end_certified(dtype):
    problem = Factorization(as_matrix(sp.csr_array(V), dtype=dtype, rows_only=True), 4)
    result = solve(problem, RowRounds(), stop=Stop(1e-4, rounds=300), trace="every")
    values = [record.objective for record in result.trace]
    slack = problem.rounding(values[0])
    assert all(after <= before + slack for before, after in pairwise(values))
    assert str(result.status) == "converged"
    assert problem.residual(result.x) <= 1e-4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rounds_need_the_rows_alone(layout):
    """Every round has the same objective whether the columns are there or not."""
    traces = []
    for rows_only in (False, True):
        problem = Factorization(as_matrix(LAYOUTS[layout](V), rows_only=rows_only), 4)
        result = solve(problem, RowRounds(), stop=Stop(0, rounds=30), trace="every")
        traces.append([record.objective for record in result.trace])
    np.testing.assert_allclose(*traces, rtol=1e-9)


def test_without_room_for_curvatures_first_order_steps_go_on(monkeypatch):
    monkeypatch.setattr(row_rounds, "MAX_CURVATURES", 0)
    problem = Factorization(as_matrix(sp.csr_array(V), rows_only=True), 4)
    result = solve(problem, RowRounds(), stop=Stop(1e-2, rounds=300), trace="every")
    assert result.state.phase == "first order"
    assert str(result.status) == "converged"
    values = [record.objective for record in result.trace]
    assert all(b <= a + problem.rounding(a) for a, b in pairwise(values))


def test_a_feature_without_counts_stays_zero():
    empty = V.copy()
    empty[:, 7] = 0
    result = solve(
        Factorization(as_matrix(sp.csr_array(empty)), 4), RowRounds(), stop=Stop(0, rounds=3)
    )
    assert not result.x.H[7].any()
    assert np.isfinite(result.value)


# ---- batches of rows -------------------------------------------------------------------------


def test_batches_hold_every_row_once(monkeypatch):
    monkeypatch.setattr(row_sample, "ROWS_PER_GROUP", 7)
    monkeypatch.setattr(row_sample, "MAX_BATCH_ROWS", 28)
    matrix = as_matrix(sp.csr_array(V))
    numbers = np.concatenate(list(row_sample._draw_batches(matrix, Draw(1, Stream.ONLINE))))
    assert sorted(numbers) == list(range(300))
    assert numbers.tolist() != sorted(numbers)


def test_long_rows_come_in_smaller_batches(monkeypatch):
    monkeypatch.setattr(row_sample, "ROWS_PER_GROUP", 4)
    matrix = as_matrix(sp.csr_array(V))
    for max_entries in (500, 2000, 10**9):
        monkeypatch.setattr(row_sample, "MAX_BATCH_NONZEROS", max_entries)
        sizes = [len(rows) for rows in row_sample._draw_batches(matrix, Draw(0, Stream.ONLINE))]
        assert sum(sizes) == 300
        assert max(sizes) * matrix.nnz / 300 <= max(max_entries, 4 * matrix.nnz / 300)


def test_tall_data_have_a_good_model_after_one_round():
    tall = as_matrix(poisson_topics(66_000, 120, 5, length=30, seed=1))
    assert row_sample.is_tall(tall)
    problem = Factorization(tall, 5)
    first = solve(problem, Auto(), stop=Stop(0, rounds=1), trace="every")
    rows_only = Factorization(as_matrix(tall.array, rows_only=True), 5)
    second = solve(rows_only, Auto(), stop=Stop(0, rounds=1), trace="every")
    best = solve(problem, Auto(near=True), first.x, stop=Stop(1e-4, rounds=60))
    start = first.trace[0].objective
    for result in (first, second):
        assert result.value - best.value <= 0.03 * (start - best.value)


def test_a_start_that_is_given_is_kept():
    """A sample would replace it."""
    tall = as_matrix(poisson_topics(66_000, 120, 5, length=30, seed=1))
    problem = Factorization(tall, 5)
    best = solve(problem, Auto(), stop=Stop(1e-3, rounds=60))
    for solver in (Auto(), RowRounds()):
        result = solve(problem, solver, best.x, stop=Stop(0, rounds=1))
        assert result.value <= best.value + 1e-6 * tall.total


def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(row_sample, "MAX_BATCH_ROWS", 24)
    matrices = [as_matrix(sp.csr_array(V), n_jobs=threads) for threads in (1, 2)]
    first, second = (row_sample.fit_sample(matrix, 4, 4) for matrix in matrices)
    assert first.tobytes() == second.tobytes()
