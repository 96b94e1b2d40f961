# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of another run and damaged ones are refused, and other files are left alone."""

import json
import re
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from loop.resumable import V, model, same
from sipower import SciPi, SSciPi, Stop, as_matrix, nmf, solve
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Status
from sipower.problems import ICA, PCA, BurerMonteiro


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
    partial = solve(problem, SSciPi(), stop=Stop(1e-9, rounds=2), checkpoint=checkpoint)
    with np.load(path) as archive:
        parts = dict(archive)
    header = json.loads(parts["header"].tobytes())
    header["notes"]["records"][-1][3:5] = [1e3, 0.0]
    parts["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **parts)
    again = solve(problem, SSciPi(), stop=Stop(1e-9, rounds=2), checkpoint=checkpoint)
    assert again.status is Status.MAX_ROUNDS
    assert (again.value, again.residual) == (partial.value, partial.residual)


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
        with pytest.raises(ValueError, match="is in use by another process"):
            model(tmp_path / "run.npz").fit(V)
    finally:
        over.set()
        first.join()


def test_files_of_others_are_left_alone(tmp_path):
    foreign = [
        tmp_path / name for name in ("run.lock", ".run.local", ".run.npz.local", "run.npz.lock")
    ]
    for path in foreign:
        path.write_text("mine")
    (tmp_path / ".run.npz.folder").mkdir()
    for name in ("run.npz", "run", "run.k3", "fit.lock"):
        model(tmp_path / name).fit(V)
        assert model(tmp_path / name).fit(V).status_ == "converged"
    assert all(path.read_text() == "mine" for path in foreign)
    written = {"run.npz", "run", "run.k3", "fit.lock", ".run.npz.folder"}
    assert {p.name for p in tmp_path.iterdir()} == written | {p.name for p in foreign}


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_fit(tmp_path, monkeypatch):
    @contextmanager
    def full(path):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr("sipower.loop.checkpoint.atomic_write", full)
    with pytest.warns(RuntimeWarning, match=r"run.npz could not be written \(No space left"):
        result = model(tmp_path / "run.npz").fit(V)
    same(model().fit(V), result)


@pytest.mark.parametrize("rows_only", [False, True])
def test_other_layouts_of_the_same_data_are_another_run(tmp_path, rows_only):
    model(tmp_path / "run.npz", max_iter=3, tol=0).fit(V)
    other = as_matrix(V, rows_only=True) if rows_only else V.toarray()
    with pytest.raises(ValueError, match="checkpoint of another layout"):
        model(tmp_path / "run.npz", tol=0).fit(other)


@pytest.mark.parametrize(("path", "sentence"), [
    ("missing/run.npz", "folder .*missing' does not exist"),
    ("", "`checkpoint` must be a file, got the folder"),
    (".", "`checkpoint` must be a file, got the folder"),
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
