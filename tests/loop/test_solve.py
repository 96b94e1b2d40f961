# SPDX-License-Identifier: BSD-3-Clause
"""The loop: stopping, trace, callbacks, interrupts, checkpoints."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import oracles
from sipower import Guarded, Interrupted, SciPi, SSciPi, Status, Stop, load_state, save_state, solve
from sipower.loop.checkpoint import Checkpoint
from sipower.nmf import MU, Alternating, Factorization, Factors
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
    assert stop.reached(SimpleNamespace(round=3, passes=6.5), 2.0) is reached


@pytest.mark.parametrize("name", ["tol", "rounds", "passes", "seconds"])
def test_limits_are_numbers_of_at_least_zero(name):
    assert getattr(Stop(**{name: 0}), name) == 0
    no_limits = [] if name == "tol" else [None]
    for limit in no_limits:
        assert getattr(Stop(**{name: limit}), name) is None
    for limit in {-1, math.nan, "5", None}.difference(no_limits):
        with pytest.raises(
            ValueError, match=rf"^{name} is {limit}, expected a number of at least 0\.$"
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


def test_callback_sees_every_round_and_may_stop():
    seen = []

    def on_round(record):
        seen.append(record)
        return record.round == 5

    result = solve(Factorization(V, 3), Alternating(MU()), stop=Stop(0), on_round=on_round)
    assert result.status is Status.STOPPED
    assert [record.round for record in seen] == [1, 2, 3, 4, 5]
    assert any(math.isnan(record.gap) for record in seen)


def test_an_error_in_the_callback_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        solve(Factorization(V, 3), Alternating(MU()), on_round=lambda record: 1 / 0)


def test_ctrl_c_keeps_the_last_completed_round():
    def on_round(record):
        if record.round == 4:
            raise KeyboardInterrupt

    sentence = r"^interrupted; the result of the last completed round is in \.result$"
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


@pytest.mark.parametrize(
    ("problem", "solver"),
    [
        (PCA(A), SciPi()),
        (PCA(A), Guarded(SSciPi())),
        (Factorization(V, 3), Guarded(Alternating(MU()))),
    ],
    ids=["sci-pi", "guarded s-sci-pi", "guarded mu"],
)
def test_checkpoint_after_every_round_changes_no_bit(tmp_path, problem, solver):
    whole = solve(problem, solver, stop=Stop(0, rounds=12), seed=5)
    state = solver.init(problem, None, 5)
    for _ in range(12):
        state = solver.advance(problem, state)
        save_state(tmp_path / "s.npz", state)
        state = load_state(tmp_path / "s.npz", solver.init(problem, None, 5))
    left, right = np.asarray(whole.state.x[0]), np.asarray(state.x[0])
    assert left.tobytes() == right.tobytes()
    assert whole.state.passes == state.passes


def test_solve_goes_on_from_its_checkpoint(tmp_path):
    problem, solver, path = Factorization(V, 3), Alternating(MU()), tmp_path / "run.npz"
    whole = solve(problem, solver, stop=Stop(0, rounds=20), seed=1)
    solve(problem, solver, stop=Stop(0, rounds=9), seed=1, checkpoint=path)
    resumed = solve(problem, solver, stop=Stop(0, rounds=20), seed=1, checkpoint=path)
    assert resumed.state.round == 20
    assert resumed.x.W.tobytes() == whole.x.W.tobytes()
    assert not [p for p in tmp_path.iterdir() if p.name != "run.npz"]


def test_checkpoints_of_something_else_are_refused(tmp_path):
    problem, solver, path = Factorization(V, 3), Alternating(MU()), tmp_path / "run.npz"
    solve(problem, solver, stop=Stop(0, rounds=2), checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another"):
        solve(Factorization(V, 4), solver, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another problem"):
        solve(Factorization(V + 1, 3), solver, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint of another solver"):
        solve(problem, Guarded(solver), checkpoint=path)
    with pytest.raises(ValueError, match="another seed"):
        solve(problem, solver, seed=9, checkpoint=path)
    with pytest.raises(ValueError, match="another data"):
        solve(Factorization(V[:, ::-1], 3), solver, checkpoint=path)
    W, H = solver.init(problem, None, 0).x
    with pytest.raises(ValueError, match="another start"):
        solve(problem, solver, Factors(W, H), checkpoint=path)
    path.unlink()
    solve(problem, solver, Factors(W, H), stop=Stop(0, rounds=2), checkpoint=path)
    solve(problem, solver, Factors(W, H), stop=Stop(0, rounds=3), checkpoint=path)
    with pytest.raises(ValueError, match="another start"):
        solve(problem, solver, Factors(W, 2 * H), checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a checkpoint or is damaged"):
        solve(problem, solver, checkpoint=path)


def test_checkpoints_hold_no_pickle(tmp_path):
    state = Alternating(MU()).init(Factorization(V, 3), None, 0)
    save_state(tmp_path / "s.npz", state)
    with np.load(tmp_path / "s.npz", allow_pickle=False) as file:
        assert set(file.files) == {"header", "W", "H"}
        scalars = json.loads(file["header"].tobytes())["scalars"]
    assert scalars["seed"] == 0


def test_a_failed_write_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    state = Alternating(MU()).init(Factorization(V, 3), None, 0)
    path = tmp_path / "s.npz"
    save_state(path, state)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        save_state(path, state)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s.npz"]


@pytest.mark.parametrize(("lasts", "times"), [(30, [30, 60, 90, 120]), (29.5, [59, 118])])
def test_a_minute_is_at_risk_unless_asked_otherwise(tmp_path, monkeypatch, set_clock, lasts, times):
    """Saved where another round as long as the last would make more than 60 s."""
    now, saved = [0.0], []
    set_clock(lambda: now[0])
    monkeypatch.setattr(Checkpoint, "save", lambda self, state, notes: saved.append(now[0]))

    def on_round(record):
        now[0] += lasts

    solve(
        PCA(A), SciPi(), stop=Stop(0, rounds=4), on_round=on_round, checkpoint=tmp_path / "run.npz"
    )
    assert saved == times


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError(28, "No space left"), "No space left"), (OSError("a bad day"), "a bad day")],
)
def test_a_checkpoint_that_cannot_be_written_is_told_and_the_run_goes_on(
    tmp_path, monkeypatch, error, said
):
    def fails(self, state, notes):
        raise error

    monkeypatch.setattr(Checkpoint, "save", fails)
    sentence = rf"^The checkpoint .*run\.npz could not be written \({said}\): .* still there\.$"
    with pytest.warns(RuntimeWarning, match=sentence):
        result = solve(PCA(A), SciPi(), stop=Stop(0, rounds=4), checkpoint=tmp_path / "run.npz")
    assert result.state.round == 4


def test_ctrl_c_writes_the_last_completed_round(tmp_path):
    def on_round(record):
        if record.round == 4:
            raise KeyboardInterrupt

    problem, path, stop = Factorization(V, 3), tmp_path / "run.npz", Stop(0, rounds=9)
    with pytest.raises(Interrupted):
        solve(problem, Alternating(MU()), stop=stop, on_round=on_round, checkpoint=path)
    assert load_state(path, Alternating(MU()).init(problem, None, 0)).round == 4
    done = []
    resumed = solve(
        problem,
        Alternating(MU()),
        stop=stop,
        checkpoint=path,
        on_round=lambda r: done.append(r.round),
    )
    assert done == [5, 6, 7, 8, 9]  # nothing is done twice
    whole = solve(problem, Alternating(MU()), stop=stop)
    assert resumed.x.W.tobytes() == whole.x.W.tobytes()
    assert [r.round for r in resumed.trace] == [r.round for r in whole.trace]
