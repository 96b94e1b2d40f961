# SPDX-License-Identifier: BSD-3-Clause
"""The loop's checkpoints: no bit changes, no pickle, no torn file."""

import json

import numpy as np
import pytest

import oracles
from sipower import Guarded, Interrupted, SciPi, SSciPi, Stop, load_state, save_state, solve
from sipower.loop.checkpoint import Checkpoint
from sipower.nmf import MU, Alternating, Factorization, Factors
from sipower.problems import PCA

A = np.random.default_rng(0).normal(size=(60, 5)) * [3, 2.8, 1, 1, 1]
V = oracles.counts(40, 30)


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
    ("error", "message"),
    [(OSError(28, "No space left"), "No space left"), (OSError("a bad day"), "a bad day")],
)
def test_a_checkpoint_that_cannot_be_written_is_told_and_the_run_goes_on(
    tmp_path, monkeypatch, error, message
):
    def fails(self, state, notes):
        raise error

    monkeypatch.setattr(Checkpoint, "save", fails)
    written = rf"^The checkpoint .*run\.npz could not be written \({message}\)"
    sentence = rf"{written}: its previous content is kept\.$"
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
    rounds = []
    resumed = solve(
        problem,
        Alternating(MU()),
        stop=stop,
        checkpoint=path,
        on_round=lambda r: rounds.append(r.round),
    )
    assert rounds == [5, 6, 7, 8, 9]  # nothing is done twice
    whole = solve(problem, Alternating(MU()), stop=stop)
    assert resumed.x.W.tobytes() == whole.x.W.tobytes()
    assert [r.round for r in resumed.trace] == [r.round for r in whole.trace]
