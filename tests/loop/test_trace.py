# SPDX-License-Identifier: BSD-3-Clause
"""The loop's trace: when it is evaluated, and what that costs."""

import oracles
from sipower import Status, Stop, solve
from sipower.nmf import MU, Alternating, Factorization

V = oracles.counts(40, 30)


def test_trace_takes_at_most_a_tenth_of_the_passes():
    problem = Factorization(V, 3)
    result = solve(problem, Alternating(MU()), stop=Stop(tol=0, rounds=1000))
    inner = result.trace[1:-1]  # start and end are always known
    assert len(inner) > 10
    assert len(inner) * problem.evaluation_passes <= 0.1 * result.passes
    rounds = [record.round for record in result.trace]
    assert rounds == sorted(set(rounds))
    objectives = [record.objective for record in result.trace]
    assert objectives == sorted(objectives, reverse=True)


def test_trace_of_every_round():
    result = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0, rounds=20), trace="every")
    assert [record.round for record in result.trace] == list(range(21))
    assert [record.passes for record in result.trace] == [2.0 * r for r in range(21)]


def test_an_early_trace_grows_from_the_first_round_on():
    """Each record has at least 1.15 times the passes of the one before."""
    result = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0, rounds=20), trace="early")
    assert [record.round for record in result.trace] == [*range(8), 9, 11, 13, 15, 18, 20]


def test_evaluations_are_off_the_clock(set_clock):
    """On a clock that moves in evaluations only, the solver takes no time but the wall does."""
    now = 0.0
    set_clock(lambda: now)

    class Slow(Factorization):
        def residual(self, x):
            nonlocal now
            now += 1.0
            return super().residual(x)

    result = solve(Slow(V, 3), Alternating(MU()), stop=Stop(0, rounds=20), trace="every")
    assert result.seconds == 0
    assert now == 21
    limited = solve(Slow(V, 3), Alternating(MU()), stop=Stop(0, seconds=5), trace="every")
    assert limited.status is Status.MAX_SECONDS
    assert limited.state.round == 5
