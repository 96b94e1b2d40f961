# SPDX-License-Identifier: BSD-3-Clause
"""Locks and files on Windows, where no file that is open can be removed, moved or replaced."""

import gc
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

import open_files
from sipower import KLNMF, _files, io
from sipower._files import atomic_write, file_lock
from sipower.cli import app
from sipower.results import load_run

V = sp.csr_array(np.random.default_rng(0).poisson(1.0, (90, 60)))


@pytest.fixture(autouse=True)
def _windows(monkeypatch):
    monkeypatch.setattr(_files, "fcntl", None)
    monkeypatch.setattr(_files, "msvcrt", open_files.emulate_msvcrt())
    with open_files.rules_of_windows():
        yield


def call(*words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CliRunner().invoke(app, [str(word) for word in words])
    gc.collect()  # a command is a process of its own, which closes its files at the end
    assert result.exit_code in (0, 4), (result.output, result.stderr, result.exception)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_the_rules_hold(tmp_path):
    """What the other tests rely on: open files stay, also within a folder that is moved."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder" / "b").write_bytes(b"new")
    moves = [
        (tmp_path / "a").unlink,
        lambda: (tmp_path / "folder" / "b").replace(tmp_path / "a"),
        lambda: (tmp_path / "folder").rename(tmp_path / "other"),
    ]
    with (tmp_path / "a").open("rb"), (tmp_path / "folder" / "b").open("rb"):
        for move in moves:
            with pytest.raises(PermissionError):
                move()
    moves[1]()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_lock_keeps_others_out_and_leaves_no_file(tmp_path):
    file = tmp_path / "counts"
    with file_lock(file):
        with (
            pytest.raises(ValueError, match=r"counts is in use by another process"),
            file_lock(file),
        ):
            pytest.fail("two hold the lock")
        assert names(tmp_path) == [".counts.sipower-lock"]
    assert names(tmp_path) == []


def test_waiting_for_a_lock_ends_when_it_is_released(tmp_path):
    order, is_waiting = [], threading.Event()

    def wait():
        is_waiting.set()
        with file_lock(tmp_path / "counts", wait=True):
            order.append("second")

    thread = threading.Thread(target=wait)
    with file_lock(tmp_path / "counts"):
        thread.start()
        assert is_waiting.wait(60)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert names(tmp_path) == []


def test_a_lock_file_that_another_process_has_open_stays_and_can_be_locked(tmp_path):
    with (tmp_path / ".counts.sipower-lock").open("ab"):
        with file_lock(tmp_path / "counts"):
            pass
        assert names(tmp_path) == [".counts.sipower-lock"]
    with file_lock(tmp_path / "counts"):
        pass
    assert names(tmp_path) == []


def test_a_file_that_is_open_elsewhere_stays_and_is_named(tmp_path):
    target = tmp_path / "W.csv"
    target.write_bytes(b"old")
    with (
        target.open("rb"),
        pytest.raises(PermissionError, match=r"W\.csv"),
        atomic_write(target) as f,
    ):
        f.write(b"new")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["W.csv"]
    with atomic_write(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


def test_a_checkpoint_is_replaced_while_the_fit_runs_and_resumes_to_the_same_bits(tmp_path):
    def fit(rounds):
        options = {"checkpoint": tmp_path / "state", "checkpoint_every": 0}
        model = KLNMF(3, random_state=0, max_iter=rounds, tol=0, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(V)
        return model.components_.tobytes()

    fit(3)
    assert [name for name in names(tmp_path) if "lock" in name or "tmp" in name] == []
    resumed = fit(6)
    (tmp_path / "state").unlink()
    assert resumed == fit(6)


def test_commands_replace_what_they_wrote_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIPOWER_CACHE", str(tmp_path / "cache"))
    scipy.io.mmwrite("counts.mtx", V)
    for _ in range(2):
        call("fit", "counts.mtx", "-k", 2, "-o", "run", "--force", "--also", "csv")
        call("fit", "counts.mtx", "-k", 2, "-o", "disk", "--force", "--memory-limit", "1MB")
        call("convert", "counts.mtx", "-o", "counts.sipower", "--force")
        call("transform", "run", "counts.mtx", "-o", "W.csv")
        call("report", "run")
    call("cache", "clear", "--all", "--yes")
    assert load_run("run").W.tobytes() == load_run("disk").W.tobytes()
    assert [name for name in names(".") if name.startswith(".")] == []


def test_a_store_that_is_open_is_not_replaced_and_stays_readable(tmp_path):
    store = tmp_path / "counts.sipower"
    io.write_store(V, store)
    opened = io.open_on_disk(store)
    with pytest.raises(PermissionError, match=r"in use by another program.*counts\.sipower"):
        io.write_store(V, store, force=True)
    assert names(tmp_path) == ["counts.sipower"]
    assert opened.total == V.sum()
    del opened
    io.write_store(V[:50], store, force=True)
    assert io.open_on_disk(store).shape == (50, 60)
