# SPDX-License-Identifier: BSD-3-Clause
"""Hard cases: each of these once ended in a wrong answer, a false claim, a hang or a crash."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Guarded, SciPi, Status, Stop, as_matrix, kernels, solve
from sipower.nmf import (
    MU,
    Alternating,
    Factorization,
    Factors,
    SciPiRule,
    SSciPiRule,
    Vanilla,
)
from sipower.nmf.rule import HalfStep
from sipower.problems import PCA, KLBlock

V = np.random.default_rng(0).poisson(5.0, (50, 40)).astype(float)


@pytest.mark.parametrize("rule", [MU(), SciPiRule(), SSciPiRule()])
def test_rank_one_is_solved_not_declared_solved(rule):
    """At K = 1 every G is 1: only the masses tell a solution from a random start."""
    best = oracles.divergence(V, V.sum(1)[:, None], V.sum(0)[:, None] / V.sum())
    result = solve(Factorization(V, 1), Guarded(Alternating(rule)))
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(best, rel=1e-9)


def test_a_scaled_solution_is_not_optimal():
    factors = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(1e-4, rounds=20_000)).x
    problem = Factorization(V, 3)
    assert problem.residual(factors) <= 1e-4
    gap = problem.value(Factors(factors.W, 2 * factors.H)) - problem.value(factors)
    assert problem.residual(Factors(factors.W, 2 * factors.H)) * V.sum() >= gap


def test_zero_data_and_zero_rows_are_not_optimal_at_ones():
    result = solve(
        Factorization(np.zeros((3, 4)), 2), Alternating(MU()), (np.ones((3, 2)), np.ones((4, 2)))
    )
    assert result.status is Status.CONVERGED
    assert (result.x.W == 0).all()
    assert result.value == 0


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_exact_alternation_fits_masses_and_zero_rows(tol):
    data = oracles.counts(30, 20)
    W, H = solve(Factorization(data, 3), Alternating(MU(), tol=tol), stop=Stop(0, rounds=3)).x
    assert (W[data.sum(1) == 0] == 0).all()
    assert (H[data.sum(0) == 0] == 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_guard_breaks_cycles_in_float32(seed):
    """Two points whose objectives differ by less than rounding must not alternate for ever."""
    data = np.random.default_rng(seed).poisson(0.05, (60, 97)).astype(np.float32)
    solver = Guarded(Alternating(SSciPiRule()))
    stop = Stop(1e-3, rounds=6000)
    result = solve(Factorization(sp.csr_array(data), 20), solver, stop=stop, seed=1)
    assert result.status is Status.CONVERGED


def test_integer_start_is_not_truncated():
    A = np.random.default_rng(1).normal(size=(50, 3)) * [3, 2, 1]
    result = solve(PCA(A), SciPi(), np.array([[1, 1, 1]]), stop=Stop(1e-9))
    assert abs(result.x[0] @ np.linalg.svd(A)[2][0]) > 1 - 1e-12


def test_guard_takes_over_from_an_unguarded_state():
    problem, guarded = Factorization(V, 3), Guarded(Alternating(SciPiRule()))
    state = Alternating(SciPiRule()).init(problem, None, 0)
    for _ in range(3):
        state = Alternating(SciPiRule()).advance(problem, state)
    assert np.isnan(state.value)
    assert guarded.advance(problem, state).value < problem.value(state.x)


def test_exact_halves_use_the_step_in_force():
    problem = Factorization(V, 3)
    solver = Alternating(SciPiRule(1.0), tol=1e-12, max_updates=1)
    state = solver.init(problem, None, 0)
    long, short = (
        solver.advance(problem, type(state)(**{**state.__dict__, "step": s})).H for s in (1.0, 0.1)
    )
    assert np.abs(long - short).max() > 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noisy_rules_do_not_drift_out_of_range(dtype):
    data = sp.csr_array(np.random.default_rng(0).poisson(0.05, (60, 97)).astype(dtype))
    result = solve(
        Factorization(data, 20), Alternating(Vanilla(1.0, 0.3, 12)), stop=Stop(0, rounds=400)
    )
    assert result.status is Status.MAX_ROUNDS
    W, H = result.x
    w, h = W.sum(axis=0), H.sum(axis=0)
    both = (w > 0) & (h > 0)
    assert np.abs(np.log2(w[both] / h[both])).max() < 40


def test_large_finite_factors_are_finite():
    big = Factors(np.full((40, 2), 3e37, np.float32), np.ones((30, 2), np.float32))
    assert Factorization(np.ones((40, 30), np.float32), 2).is_finite(big)


def test_data_whose_sum_overflows_are_refused():
    with pytest.raises(ValueError, match="sum of the data is too large"):
        as_matrix(np.full((3, 3), 1e308))
    with pytest.raises(ValueError, match="sum of the data is too large for float32"):
        as_matrix(np.full((3, 3), 2e38, np.float32))


@pytest.mark.parametrize(
    "layout", [np.asarray, sp.csr_array, lambda v: as_matrix(v, rows_only=True)]
)
@pytest.mark.parametrize("rule", [MU(), SSciPiRule(1.0, 0.5, 3, "vectors")])
def test_a_start_with_zeros_against_counts_is_lifted(layout, rule):
    """z = 0 under a count is an infinite divergence; the run must leave it, not end in NaN."""
    data = np.array([[5.0, 5.0], [3.0, 1.0]])
    x0 = (np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]]))
    result = solve(Factorization(layout(data), 2), Guarded(Alternating(rule)), x0, stop=Stop(1e-6))
    assert np.isfinite(result.residual)
    assert result.value < 1


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_bad_starts_are_refused(bad):
    with pytest.raises(ValueError, match="finite and non-negative"):
        solve(Factorization(V, 2), Alternating(MU()), (np.full((50, 2), bad), np.ones((40, 2))))


def test_a_failure_before_the_first_sum_does_not_hang():
    """The thread that holds block 0 fails while others wait for it."""
    started = threading.Event()

    def partial(block, out):
        if block == 0:
            started.wait(1)
            raise MemoryError("block 0")
        started.set()

    with pytest.raises(MemoryError, match="block 0"):
        kernels.sum_blocks(8, partial, np.zeros(2), 3)


def test_a_thread_that_outlives_the_main_one_still_solves():
    code = (
        "import threading, time, numpy as np\n"
        "from sipower import *; from sipower.nmf import *\n"
        "V = as_matrix(np.random.default_rng(0).poisson(1.0, (900, 900)), n_jobs=2)\n"
        "def fit():\n"
        "    time.sleep(0.5)\n"
        "    print(solve(Factorization(V, 5), Alternating(MU()), stop=Stop(0, rounds=3)).status)\n"
        "threading.Thread(target=fit).start()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "max_rounds", result.stderr


def test_indices_that_would_wrap_are_refused():
    damaged = sp.csr_array((np.array([3.0, 1]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    damaged.indices = np.array([0, 2**32 + 1])
    damaged.indptr = damaged.indptr.astype(np.int64)
    with pytest.raises(ValueError, match="column index is out of range"):
        as_matrix(damaged)


@pytest.mark.parametrize(
    "rule", [SSciPiRule(scheme="elements", epoch=3, batch=0.5), Vanilla(scheme="elements")]
)
def test_elements_of_nothing(rule):
    result = solve(Factorization(sp.csr_array((4, 3)), 2), Alternating(rule))
    assert result.value == 0


def test_seeds_of_any_integer_type():
    a, b = (
        solve(Factorization(V, 2), Alternating(SSciPiRule()), stop=Stop(0, rounds=2), seed=s).value
        for s in (3, np.int64(3))
    )
    assert a == b
    with pytest.raises(TypeError):
        solve(Factorization(V, 2), Alternating(MU()), seed=1.5)


def test_items_without_mass_are_zero_in_every_form():
    data, B = np.array([[1.0, 2], [3, 4], [0, 0]]), np.array([[1.0, 0], [1, 0]])
    half_step = HalfStep(1.0, 0, 0, 0)
    rows = MU().update(KLBlock(data, B), np.ones((3, 2)), half_step)
    by_sums = KLBlock(as_matrix(np.ascontiguousarray(data.T), rows_only=True).columns, B)
    np.testing.assert_allclose(MU().update(by_sums, np.ones((3, 2)), half_step), rows)
    assert (rows[2] == 0).all()


def test_the_converging_round_reaches_the_callback():
    records = []
    result = solve(Factorization(V, 2), Alternating(MU()), stop=Stop(1e-2), on_round=records.append)
    assert result.status is Status.CONVERGED
    assert records[-1].round == result.state.round


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: Factorization(V, 2.7), "`rank` must be a positive integer, got 2.7"),
        (lambda: Alternating("mu"), "`rule` must be an update rule"),
        (lambda: as_matrix([[1, 2], [3]]), "rows differ in length"),
        (lambda: SSciPiRule(threshold=5), r"`threshold` must be a number in \[0, 1\), got 5"),
    ],
)
def test_one_sentence_for_misuse(action, message):
    with pytest.raises((ValueError, TypeError), match=message):
        action()


def test_small_weights_keep_their_factor():
    """A weight far below the others is drawn with its own factor, not one lost to rounding."""
    weights = np.array([1e17, 1.0, 1e17, 3.0])
    data = as_matrix(sp.csr_array((weights, np.arange(4), np.array([0, 4])), shape=(1, 4)))
    for r in range(40):
        part = data.sample("weighted", 1.0, kernels.Draw(0, round=r)).matrix.array
        assert (part.data > 0).all()
        assert np.isfinite(part.data).all()
