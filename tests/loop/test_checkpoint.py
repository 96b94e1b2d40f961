# SPDX-License-Identifier: BSD-3-Clause
"""Fits that are killed, stopped or interrupted go on to the same bits."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import oracles
from sipower import KLNMF, Interrupted, SciPi, SSciPi, Stop, as_matrix, consensus, nmf, solve
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Status
from sipower.problems import ICA, PCA, BurerMonteiro

V = sp.csr_array(oracles.counts(120, 80, density=0.5))


def model(path=None, **more):
    settings = {"n_components": 4, "random_state": 1, "tol": 1e-6, "max_iter": 400}
    settings |= {"checkpoint_every": 1e9}
    return KLNMF(checkpoint=path, **(settings | more))


def same(a, b):
    assert a.components_.tobytes() == b.components_.tobytes()
    assert (a.kl_divergence_, a.kkt_residual_, a.n_iter_, a.status_) == (
        b.kl_divergence_, b.kkt_residual_, b.n_iter_, b.status_,
    )  # fmt: skip
    for one, other in zip(a.trace_, b.trace_, strict=True):
        assert (one.round, one.passes, one.objective) == (
            other.round,
            other.passes,
            other.objective,
        )


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


@pytest.mark.parametrize(("solver", "seed"), [("auto", 712), ("s-sci-pi", 0), ("mu", 2)])
def test_loops_after_the_first_go_on_to_the_same_bits(tmp_path, solver, seed):
    """Where the exact rows open the gap again, with and without a kill."""
    data = np.random.default_rng(seed).poisson(0.5, (30, 20))
    settings = {"solver": solver, "n_components": 3, "random_state": 0, "tol": 1e-2}
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
        found = model(tmp_path / "run.npz", max_iter=rounds, tol=0).fit(V)
    assert found.components_.tobytes() == whole.components_.tobytes()
    assert found.n_iter_ == 30
    assert [r.objective for r in found.trace_] == [r.objective for r in whole.trace_]


def test_an_evaluation_that_a_limit_asked_for_decides_nothing_later(tmp_path):
    """At round 56 the loop's own gap is small enough, but it is not evaluated before round 59."""
    rng = np.random.default_rng(51)
    data = rng.poisson(rng.gamma(0.4, 2.0, (30, 20)))
    settings = {"n_components": 3, "solver": "s-sci-pi", "tol": 1e-2, "random_state": 0}
    whole = model(None, **settings).fit(data)
    for rounds in (20, 56, 57, 400):
        found = model(tmp_path / "run.npz", max_iter=rounds, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.fit(data)
    same(whole, found)


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


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"n_components": 5}, "rank"),
        ({"solver": "mu"}, "solver"),
        ({"init": "nndsvda"}, "init"),
        ({"random_state": 2}, "random_state"),
        ({"dtype": np.float32}, "dtype"),
        ({"tol": 1e-5}, "tol"),
    ],
)
def test_checkpoints_of_other_parameters_are_refused(tmp_path, change, what):
    model(tmp_path / "run.npz").fit(V)
    before = (tmp_path / "run.npz").read_bytes()
    with pytest.raises(ValueError, match=f"checkpoint of another {what} "):
        model(tmp_path / "run.npz").set_params(**change).fit(V)
    assert (tmp_path / "run.npz").read_bytes() == before


def test_solve_refuses_checkpoints_of_data_that_look_alike(tmp_path):
    """The same shape, the same sum: other columns, other starts."""
    rng = np.random.default_rng(0)
    data, signals = rng.poisson(2.0, (30, 20)), rng.normal(size=(200, 4))
    edges = sp.random_array((12, 12), density=0.4, random_state=1)
    for make, one, other in (
        (lambda X: nmf.Factorization(X, 3), data, data[:, ::-1]),
        (ICA, signals, signals**3),
        (BurerMonteiro, edges + edges.T, (edges + edges.T)[::-1][:, ::-1]),
    ):
        problem, path = make(one), tmp_path / "run.npz"
        rule = nmf.Alternating(nmf.SciPiRule()) if one is data else SciPi()
        first = solve(problem, rule, stop=Stop(1e-3, 50), checkpoint=path)
        with pytest.raises(ValueError, match=r"checkpoint of another (start|data)"):
            solve(make(other), rule, stop=Stop(1e-3, 50), checkpoint=path)
        with pytest.raises(ValueError, match="checkpoint of another start"):
            solve(problem, rule, first.x, stop=Stop(1e-3, 50), checkpoint=path)
        path.unlink()


def test_another_rounding_is_not_another_problem(tmp_path, monkeypatch):
    """Sums of a BLAS depend on its threads."""
    problem = PCA(np.random.default_rng(0).normal(size=(60, 5)))
    solve(problem, SciPi(), stop=Stop(1e-12, rounds=3), checkpoint=tmp_path / "run.npz")
    value = PCA.value
    monkeypatch.setattr(PCA, "value", lambda self, x: value(self, x) * (1 + 1e-14))
    again = solve(
        problem, SciPi(), stop=Stop(1e-12, 5), seed=np.int64(0), checkpoint=tmp_path / "run.npz"
    )
    assert again.state.round == 5


@pytest.mark.parametrize("data", [["a", "b"], [10**400, 0], [1e308, 1.0], [[], {}], "x", [1.0]])
def test_odd_facts_of_a_run_are_another_run(tmp_path, data):
    problem, path = PCA(np.random.default_rng(0).normal(size=(60, 5))), tmp_path / "run.npz"
    solve(problem, SciPi(), stop=Stop(1e-12, rounds=2), checkpoint=path)
    with np.load(path) as archive:
        parts = dict(archive)
    header = json.loads(parts["header"].tobytes())
    header["run"]["data"] = data
    parts["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **parts)
    with pytest.raises(ValueError, match="checkpoint of another data"):
        solve(problem, SciPi(), stop=Stop(1e-12, rounds=3), checkpoint=path)


def test_no_certificate_is_taken_from_a_file(tmp_path):
    """The notes of a checkpoint say that a point has converged: it is evaluated again."""
    problem, path = PCA(np.random.default_rng(0).normal(size=(60, 5))), tmp_path / "run.npz"
    checkpoint = Checkpoint(path, 0)
    begun = solve(problem, SSciPi(), stop=Stop(1e-9, rounds=2), checkpoint=checkpoint)
    with np.load(path) as archive:
        parts = dict(archive)
    header = json.loads(parts["header"].tobytes())
    header["notes"]["records"][-1][3:5] = [1e3, 0.0]
    parts["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **parts)
    again = solve(problem, SSciPi(), stop=Stop(1e-9, rounds=2), checkpoint=checkpoint)
    assert again.status is Status.MAX_ROUNDS
    assert (again.value, again.residual) == (begun.value, begun.residual)


def test_checkpoints_of_other_data_or_starts_are_refused(tmp_path):
    model(tmp_path / "run.npz").fit(V)
    other = V.copy()
    other.data[[0, 1]] = other.data[[1, 0]] + np.array([1, -1])  # the same sum
    other.data = np.maximum(other.data, 1)
    with pytest.raises(ValueError, match="checkpoint of another data "):
        model(tmp_path / "run.npz").fit(other)
    W, H = np.ones((120, 4)), np.ones((4, 80))
    model(tmp_path / "custom.npz", init="custom").fit(V, W=W + np.eye(120, 4), H=H)
    with pytest.raises(ValueError, match="checkpoint of another init "):
        model(tmp_path / "custom.npz", init="custom").fit(V, W=W, H=H + np.eye(4, 80))


def test_a_torn_or_foreign_file_is_refused_wherever_it_is_torn(tmp_path):
    path = tmp_path / "run.npz"
    model(path).fit(V)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for size in rng.integers(0, len(content) - 1, 40):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="not a checkpoint or is damaged"):
            model(path).fit(V)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a checkpoint or is damaged"):
        model(path).fit(V)


@contextmanager
def suppress_refusal():
    try:
        yield
    except ValueError as refusal:
        if "checkpoint" not in str(refusal):
            raise


def test_a_flipped_byte_is_never_taken_for_data(tmp_path):
    path = tmp_path / "run.npz"
    whole = model(path).fit(V)
    content = path.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(content), 60):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with suppress_refusal():  # unless the byte of the archive carries no data
            same(whole, model(path).fit(V))


def test_two_sessions_do_not_share_a_checkpoint(tmp_path):
    inside, over = threading.Event(), threading.Event()

    def wait(record):
        inside.set()
        over.wait(30)

    first = threading.Thread(target=model(tmp_path / "run.npz", on_round=wait).fit, args=(V,))
    first.start()
    inside.wait(30)
    try:
        with pytest.raises(ValueError, match="Another session is at work"):
            model(tmp_path / "run.npz").fit(V)
    finally:
        over.set()
        first.join()


def test_only_a_seed_can_go_on(tmp_path):
    with pytest.raises(ValueError, match="needs a number as random_state"):
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


CODE = textwrap.dedent("""
    import sys
    import numpy as np
    from sipower import KLNMF
    rng = np.random.default_rng(0)
    V = rng.poisson(rng.gamma(0.3, 1, (500, 6)) @ rng.gamma(0.3, 1, (6, 200)))
    print("ready", flush=True)
    model = KLNMF(6, random_state=0, tol=1e-9, max_iter=3000, n_jobs=1,
                  checkpoint=sys.argv[1], checkpoint_every=float(sys.argv[3]))
    W = model.fit_transform(V)
    np.savez(sys.argv[2], W=W, H=model.components_, rounds=model.n_iter_)
""")


def run(folder, name, every, seconds=None):
    """A fit in a process of its own, killed so many seconds after it has begun."""
    files = [str(folder / f"{name}{part}.npz") for part in ("", "-factors")]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *files, str(every)], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        return process.wait()
    finally:
        process.stdout.close()


def factors(folder, name):
    with np.load(folder / f"{name}-factors.npz") as found:
        return {key: found[key].tobytes() for key in ("W", "H", "rounds")}


def test_killed_at_random_moments_the_fit_ends_with_the_same_bits(tmp_path):
    assert run(tmp_path, "whole", 0.02) == 0
    kills, rng = 0, np.random.default_rng(1)
    while (code := run(tmp_path, "killed", 0.02, float(rng.uniform(0.1, 0.8)))) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        assert kills < 60
    assert kills >= 1
    assert factors(tmp_path, "whole") == factors(tmp_path, "killed")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.stress
def test_twenty_runs_killed_once_lose_no_more_than_they_may(tmp_path):
    every, rng = 0.3, np.random.default_rng(2)
    started = time.monotonic()
    assert run(tmp_path, "whole", every) == 0
    length = time.monotonic() - started
    for number in range(20):
        name = f"killed{number}"
        run(tmp_path, name, every, float(rng.uniform(every, max(length / 2, 2 * every))))
        if (tmp_path / f"{name}.npz").exists() and not (tmp_path / f"{name}-factors.npz").exists():
            lost = time.time() - (tmp_path / f"{name}.npz").stat().st_mtime
            assert lost <= every + 0.2  # of which 0.2 for the system to bury the process
        assert run(tmp_path, name, every) == 0
        assert factors(tmp_path, "whole") == factors(tmp_path, name)


def test_status_of_a_resumed_run_is_that_of_the_whole(tmp_path):
    problem = PCA(np.random.default_rng(0).normal(size=(60, 5)) * np.arange(1, 6))
    whole = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=500))
    part = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=3), checkpoint=tmp_path / "s.npz")
    assert part.status is Status.MAX_ROUNDS
    found = solve(problem, SSciPi(), stop=Stop(1e-8, rounds=500), checkpoint=tmp_path / "s.npz")
    assert (found.status, found.state.round) == (whole.status, whole.state.round)
    assert found.x.tobytes() == whole.x.tobytes()


# ---- what a reviewer broke -------------------------------------------------------------------


def test_files_of_others_are_left_alone(tmp_path):
    others = [
        tmp_path / name for name in ("run.lock", ".run.local", ".run.npz.local", "run.npz.lock")
    ]
    for path in others:
        path.write_text("mine")
    (tmp_path / ".run.npz.folder").mkdir()
    for name in ("run.npz", "run", "run.k3", "fit.lock"):
        model(tmp_path / name).fit(V)
        assert model(tmp_path / name).fit(V).status_ == "converged"
    assert all(path.read_text() == "mine" for path in others)
    made = {"run.npz", "run", "run.k3", "fit.lock", ".run.npz.folder"}
    assert {p.name for p in tmp_path.iterdir()} == made | {p.name for p in others}


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    @contextmanager
    def full(path):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr("sipower.loop.checkpoint.atomic_write", full)
    with pytest.warns(RuntimeWarning, match=r"run.npz could not be written \(No space left"):
        found = model(tmp_path / "run.npz").fit(V)
    same(model().fit(V), found)


@pytest.mark.parametrize("transposable", [True, False])
def test_other_layouts_of_the_same_data_are_another_run(tmp_path, transposable):
    model(tmp_path / "run.npz", max_iter=3, tol=0).fit(V)
    other = V.toarray() if transposable else as_matrix(V, transposable=False)
    with pytest.raises(ValueError, match="checkpoint of another layout"):
        model(tmp_path / "run.npz", tol=0).fit(other)


@pytest.mark.parametrize(("path", "sentence"), [
    ("missing/run.npz", "folder .*missing does not exist"), ("", "is a folder, expected a file"),
    (".", "is a folder, expected a file"),
])  # fmt: skip
def test_paths_that_cannot_be(tmp_path, monkeypatch, path, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        model(path).fit(V)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    model(tmp_path / "link.npz").fit(V)
    assert (tmp_path / "link.npz").is_symlink()
    assert (tmp_path / "real.npz").is_file()


def test_a_header_of_another_kind_is_damage(tmp_path):
    header = np.frombuffer(b'{"format": 2, "run": [], "scalars": 3}', np.uint8)
    np.savez(tmp_path / "run.npz", header=header)
    with pytest.raises(ValueError, match="not a checkpoint or is damaged"):
        model(tmp_path / "run.npz").fit(V)


@pytest.mark.parametrize("value", ['"a"', "null", "[1]", "1.5", "true", "9" * 400])
def test_a_scalar_of_another_kind_is_damage(tmp_path, value):
    model(tmp_path / "run.npz", max_iter=2, tol=0).fit(V)
    with np.load(tmp_path / "run.npz") as archive:
        arrays = dict(archive)
    text = arrays.pop("header").tobytes().decode()
    changed = re.sub(r'"round": \d+', f'"round": {value}', text)
    assert changed != text
    np.savez(tmp_path / "run.npz", header=np.frombuffer(changed.encode(), np.uint8), **arrays)
    with pytest.raises(ValueError, match="not a checkpoint or is damaged"):
        model(tmp_path / "run.npz", max_iter=4, tol=0).fit(V)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_factors_that_cannot_be_are_damage(tmp_path, solver, value):
    """Each array of each state: none may be negative, NaN or infinite."""
    path = tmp_path / "fit.npz"
    settings = {"solver": solver, "max_iter": 2, "tol": 0.0}
    model(path, **settings).fit(V)
    parts = dict(np.load(path))
    for name in parts.keys() - {"header"}:
        changed = parts[name].copy()
        changed.flat[0] = value
        np.savez(path, **(parts | {name: changed}))
        with pytest.raises(ValueError, match="is damaged"):
            model(path, **settings).fit(V)


def test_replicates_have_no_use_for_a_checkpoint(tmp_path):
    found = consensus(V, model(tmp_path / "run.npz", tol=1e-2), replicates=2)
    assert found.H.shape == (4, 80)
    assert not (tmp_path / "run.npz").exists()
