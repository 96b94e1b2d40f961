# SPDX-License-Identifier: BSD-3-Clause
"""The loop: stopping, callbacks, interrupts, guards."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import oracles
from sipower import Guarded, Interrupted, SciPi, Status, Stop, solve
from sipower.nmf import MU, Alternating, Factorization
from sipower.problems import PCA

A = np.random.default_rng(0).normal(size=(60, 5)) * [3, 2.8, 1, 1, 1]
V = oracles.counts(40, 30)


def test_converged_is_said_only_with_the_certificate():
    result = solve(PCA(A), SciPi(), stop=Stop(tol=1e-9))
    assert result.status is Status.CONVERGED
    assert result.residual <= 1e-9
    assert PCA(A).residual(result.x) == result.residual
    assert result.value == pytest.approx(np.linalg.svd(A)[1][0] ** 2 / 120, rel=1e-12)


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (Stop(tol=0, rounds=7), Status.MAX_ROUNDS),
        (Stop(tol=0, passes=12), Status.MAX_PASSES),
        (Stop(tol=0, seconds=0.0), Status.MAX_SECONDS),
    ],
)
def test_limits(stop, status):
    result = solve(Factorization(V, 3), Alternating(MU()), stop=stop)
    assert result.status is status
    assert result.state.round == {Status.MAX_ROUNDS: 7, Status.MAX_PASSES: 6}.get(status, 0)
    assert result.value == pytest.approx(oracles.divergence(V, *result.x), rel=1e-12)


@pytest.mark.parametrize(
    ("stop", "reached"),
    [
        (Stop(rounds=3), Status.MAX_ROUNDS),
        (Stop(rounds=4), None),
        (Stop(rounds=None, passes=6.5), Status.MAX_PASSES),
        (Stop(rounds=None, passes=6.6), None),
        (Stop(rounds=None, seconds=2.0), Status.MAX_SECONDS),
        (Stop(rounds=None, seconds=2.1), None),
        (Stop(rounds=3, passes=6.5, seconds=2.0), Status.MAX_ROUNDS),
        (Stop(rounds=4, passes=6.5, seconds=2.0), Status.MAX_PASSES),
        (Stop(rounds=None), None),
    ],
)
def test_a_limit_is_reached_where_it_is_and_not_before(stop, reached):
    assert stop.reached_limit(SimpleNamespace(round=3, passes=6.5), 2.0) is reached


@pytest.mark.parametrize("name", ["tol", "rounds", "passes", "seconds"])
def test_limits_are_numbers_of_at_least_zero(name):
    assert getattr(Stop(**{name: 0}), name) == 0
    no_limits = [] if name == "tol" else [None]
    for limit in no_limits:
        assert getattr(Stop(**{name: limit}), name) is None
    for limit in {-1, math.nan, "5", None}.difference(no_limits):
        with pytest.raises(
            ValueError, match=rf"^`{name}` must be a non-negative number, got {limit}\.$"
        ):
            Stop(**{name: limit})


def test_the_certificate_speaks_before_the_callback_and_the_callback_before_the_limits():
    def status(tol):
        stop = Stop(tol, rounds=1)
        return solve(PCA(A), SciPi(), stop=stop, on_round=lambda record: True, trace="every").status

    first = solve(PCA(A), SciPi(), stop=Stop(0, rounds=1)).residual
    assert status(first) is Status.CONVERGED
    assert status(first / 2) is Status.STOPPED
    quiet = solve(PCA(A), SciPi(), stop=Stop(0, rounds=1), on_round=lambda record: None)
    assert quiet.status is Status.MAX_ROUNDS


def test_at_a_limit_the_certificate_is_asked_for_whatever_the_schedule():
    reached = solve(PCA(A), SciPi(), stop=Stop(0, rounds=7))
    assert [record.round for record in reached.trace] == [0, 7]
    again = solve(PCA(A), SciPi(), stop=Stop(reached.residual, rounds=7))
    assert (again.status, again.state.round) == (Status.CONVERGED, 7)


def test_a_start_within_the_tolerance_is_returned():
    start = PCA(A).start(5)
    result = solve(PCA(A), SciPi(), start, stop=Stop(PCA(A).residual(start)))
    assert (result.status, result.state.round) == (Status.CONVERGED, 0)
    np.testing.assert_allclose(result.x, start, rtol=1e-15)
    assert solve(PCA(A), SciPi(), start, stop=Stop(1e300, rounds=0)).status is Status.CONVERGED


def test_a_result_is_that_of_its_state():
    result = solve(PCA(A), SciPi(), stop=Stop(0, rounds=7))
    assert result.x is result.state.x
    assert (result.passes, result.state.round, result.state.seed) == (7, 7, 0)
    assert result.value == PCA(A).value(result.x) == result.trace[-1].objective
    assert result.residual == PCA(A).residual(result.x) == result.trace[-1].gap
    assert (result.trace[0].round, result.trace[-1].round) == (0, 7)


def test_seeds_are_whole_numbers():
    first, again, other = (
        solve(PCA(A), SciPi(), seed=s, stop=Stop(0, rounds=1)) for s in (0, np.int64(0), 1)
    )
    assert first.x.tobytes() == again.x.tobytes()
    assert first.x.tobytes() == solve(PCA(A), SciPi(), stop=Stop(0, rounds=1)).x.tobytes()
    assert first.x.tobytes() != other.x.tobytes()
    assert type(again.state.seed) is int
    with pytest.raises(TypeError, match="float"):
        solve(PCA(A), SciPi(), seed=1.5)


def test_callback_sees_every_round_and_may_stop():
    records = []

    def on_round(record):
        records.append(record)
        return record.round == 5

    result = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0), on_round=on_round)
    assert result.status is Status.STOPPED
    assert [record.round for record in records] == [1, 2, 3, 4, 5]
    assert any(math.isnan(record.gap) for record in records)


def test_an_error_in_the_callback_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        solve(Factorization(V, 3), Alternating(MU()), on_round=lambda record: 1 / 0)


def test_ctrl_c_keeps_the_last_completed_round():
    def on_round(record):
        if record.round == 4:
            raise KeyboardInterrupt

    sentence = r"^Interrupted: `result` holds the last completed round\.$"
    with pytest.raises(KeyboardInterrupt, match=sentence) as caught:
        solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0), on_round=on_round)
    assert isinstance(caught.value, Interrupted)
    result = caught.value.result
    assert result.status is Status.INTERRUPTED
    expected = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0, rounds=4))
    np.testing.assert_array_equal(result.x.W, expected.x.W)
    assert result.value == expected.value


def test_a_solver_that_diverges_is_caught():
    class Broken(SciPi):
        def advance(self, problem, state):
            state = super().advance(problem, state)
            return replace(state, x=state.x * np.nan) if state.round == 3 else state

    result = solve(PCA(A), Broken(), stop=Stop(tol=0))
    assert result.status is Status.NOT_FINITE
    assert result.state.round == 2  # the last finite one
    assert np.isfinite(result.x).all()


def test_guard_undoes_a_bad_round():
    class Wild(SciPi):
        """Every third round jumps to a bad place."""

        def advance(self, problem, state):
            new = super().advance(problem, state)
            bad = problem.normalise(np.eye(1, 5, 4))
            return replace(new, x=bad) if state.step >= 1 and new.round % 3 == 0 else new

    plain = solve(PCA(A), Wild(), stop=Stop(0, rounds=30), trace="every")
    guarded = solve(PCA(A), Guarded(Wild()), stop=Stop(0, rounds=30), trace="every")
    values = [record.objective for record in guarded.trace]
    assert np.diff([record.objective for record in plain.trace]).min() < 0
    assert np.diff(values).min() >= -PCA(A).rounding(values[-1])


def test_guard_is_not_fooled_by_nan():
    class Broken(SciPi):
        def advance(self, problem, state):
            new = super().advance(problem, state)
            return replace(new, x=new.x * np.nan) if new.round == 2 else new

        def safe(self):
            return SciPi()

    result = solve(PCA(A), Guarded(Broken()), stop=Stop(1e-8))
    assert result.status is Status.CONVERGED
