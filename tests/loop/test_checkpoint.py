# SPDX-License-Identifier: BSD-3-Clause
"""Fits that are stopped or interrupted go on to the same bits."""

import signal
import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from loop.resumable import V, model, same
from sipower import Interrupted, SSciPi, Stop, consensus, nmf, solve
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Status
from sipower.problems import PCA


class Killed(BaseException):
    """Ends a fit without any of its cleaning up, as a kill does."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_a_fit_that_dies_after_any_round_goes_on_to_the_same_bits(tmp_path, solver):
    settings = {"solver": solver, "max_iter": 12, "tol": 1e-4, "checkpoint_every": 0}
    if solver in ("auto", "ccd"):
        settings |= {"max_iter": 400, "tol": 1e-7}
    whole = model(None, **settings).fit(V)
    for at in {1, 4, whole.n_iter_ - 1}:
        path = tmp_path / f"{solver}-{at}.npz"

        def dies(record, at=at):
            if record.round == at:
                raise Killed

        with pytest.raises(Killed):
            model(path, on_round=dies, **settings).fit(V)
        same(whole, model(path, **settings).fit(V))


@pytest.mark.parametrize(("solver", "seed"), [("auto", 932), ("s-sci-pi", 0), ("mu", 2)])
def test_loops_after_the_first_go_on_to_the_same_bits(tmp_path, solver, seed):
    """Where the exact rows open the gap again, with and without a kill."""
    data = np.random.default_rng(seed).poisson(0.5, (30, 20))
    settings = {
        "solver": solver,
        "n_components": 3,
        "random_state": 0,
        "tol": 1e-2,
        "init": "random",
    }
    settings |= {"checkpoint_every": 0}
    whole = model(None, **settings).fit(data)
    rounds = [record.round for record in whole.trace_]
    last = max(a for a, b in pairwise(rounds) if a == b and a < whole.n_iter_)  # loop's last round
    same(whole, model(tmp_path / "never.npz", **settings).fit(data))
    for at in (last - 1, last, last + 1, last + 2):

        def dies(record, at=at):
            if record.round == at:
                raise Killed

        with pytest.raises(Killed):
            model(tmp_path / f"{at}.npz", on_round=dies, **settings).fit(data)
        same(whole, model(tmp_path / f"{at}.npz", **settings).fit(data))


def test_a_finished_fit_is_only_read_again(tmp_path):
    first = model(tmp_path / "run.npz").fit(V)
    rounds = []
    again = model(tmp_path / "run.npz", on_round=rounds.append).fit(V)
    same(first, again)
    assert rounds == []


def test_a_larger_limit_goes_on_as_if_it_had_been_the_first(tmp_path):
    whole = model(None, max_iter=30, tol=0).fit(V)
    for rounds in (7, 8, 30):
        result = model(tmp_path / "run.npz", max_iter=rounds, tol=0).fit(V)
    assert result.components_.tobytes() == whole.components_.tobytes()
    assert result.n_iter_ == 30
    assert [r.objective for r in result.trace_] == [r.objective for r in whole.trace_]


def test_an_evaluation_that_a_limit_asked_for_decides_nothing_later(tmp_path):
    """At round 56 the loop's own gap is small enough, but it is not evaluated before round 59."""
    rng = np.random.default_rng(51)
    data = rng.poisson(rng.gamma(0.4, 2.0, (30, 20)))
    settings = {"n_components": 3, "solver": "s-sci-pi", "tol": 1e-2, "random_state": 0}
    whole = model(None, **settings).fit(data)
    for rounds in (20, 56, 57, 400):
        result = model(tmp_path / "run.npz", max_iter=rounds, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result.fit(data)
    same(whole, result)


def test_seconds_add_up_and_limits_of_seconds_begin_anew(tmp_path):
    first = model(tmp_path / "run.npz", tol=0, max_iter=5).fit(V)
    second = model(tmp_path / "run.npz", tol=0, max_iter=9, max_time=60).fit(V)
    assert second.trace_[-1].seconds > first.trace_[-2].seconds
    assert all(
        a.seconds <= b.seconds for a, b in zip(second.trace_, second.trace_[1:], strict=False)
    )


def test_ctrl_c_leaves_a_checkpoint_of_the_last_round(tmp_path):
    def interrupt(record):
        if record.round == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted):
        model(tmp_path / "run.npz", on_round=interrupt, checkpoint_every=1e9).fit(V)
    going_on = model(tmp_path / "run.npz").fit(V)
    same(model().fit(V), going_on)


def test_only_a_seed_can_go_on(tmp_path):
    with pytest.raises(ValueError, match="`random_state` must be an integer if `checkpoint`"):
        model(tmp_path / "run.npz", random_state=None).fit(V)


def test_no_more_than_asked_is_at_risk(tmp_path, monkeypatch):
    """A save comes before another round as long as the last would go beyond the limit."""
    now, saved = [0.0], []
    monkeypatch.setattr("sipower.loop.trace.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Checkpoint, "save", lambda self, state, notes: saved.append(now[0]))

    def ten_seconds(record):
        now[0] += 10

    solve(
        PCA(np.random.default_rng(0).normal(size=(60, 5))), SSciPi(), stop=Stop(0, rounds=20),
        on_round=ten_seconds, checkpoint=tmp_path / "run.npz", checkpoint_every=35,
    )  # fmt: skip
    assert max(np.diff([0.0, *saved])) <= 35
    assert len(saved) <= 9


def test_status_of_a_resumed_run_is_that_of_the_whole(tmp_path):
    problem = PCA(np.random.default_rng(0).normal(size=(60, 5)) * np.arange(1, 6))
    whole = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=500))
    part = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=3), checkpoint=tmp_path / "s.npz")
    assert part.status is Status.MAX_ROUNDS
    result = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=500), checkpoint=tmp_path / "s.npz")
    assert (result.status, result.state.round) == (whole.status, whole.state.round)
    assert result.x.tobytes() == whole.x.tobytes()


def test_replicates_have_no_use_for_a_checkpoint(tmp_path):
    result = consensus(V, model(tmp_path / "run.npz", tol=1e-2), replicates=2)
    assert result.H.shape == (4, 80)
    assert not (tmp_path / "run.npz").exists()
