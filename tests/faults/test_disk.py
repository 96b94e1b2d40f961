# SPDX-License-Identifier: BSD-3-Clause
"""Disks that are full and folders that nobody may write to, for everything that is written."""

import atexit
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from faults.full_disks import FAULTS, content, full_disk, read_only
from sipower import KLNMF, consensus, nmf, rank_selection, save_state
from sipower._files import atomic_write
from sipower.experiments.table import append, read
from sipower.io import convert
from sipower.loop.solve import Record
from sipower.report import write_report
from sipower.results import Run, save_run
from sipower.results.annotations import AnnDataFile
from sipower.results.export import export, write_weights
from sipower.selection import RankSelection
from sipower.selection.outcome import save_outcome
from sipower.store import write_store

V = np.random.default_rng(0).poisson(1.0, (90, 60))
MODEL = KLNMF(3, random_state=0, max_iter=2, tol=0)

assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN  # Python sees to it: a full disk is EFBIG


@pytest.fixture
def folder():
    """A folder that others may read; those of pytest are for their owner alone."""
    with TemporaryDirectory() as path:
        Path(path).chmod(0o755)
        yield Path(path)


def a_run(seed):
    rng = np.random.default_rng(seed)
    facts = {"status": "converged", "divergence": 1.0, "certified_gap": 0.1, "rounds": 3}
    trace = [Record(i, 1.0 * i, 0.1 * i, 1.5, 0.25, 1.0) for i in range(40)]
    names = tuple(f"sample {i} of {seed}" for i in range(90))
    return Run(rng.gamma(1.0, size=(90, 3)), rng.gamma(1.0, size=(3, 60)), trace, facts, names)


def a_state(seed):
    return nmf.Alternating(nmf.MU()).init(nmf.Factorization(V, 3), None, seed)


def a_selection(seed):
    errors = np.random.default_rng(seed).uniform(1, 2, (3, 60))
    return RankSelection((2, 3, 5), errors, np.array([0.9, 0.8, 0.7]), 3, "why", "thinning")


def two_tables(seed):
    return a_run(seed).W, a_run(seed).W


@cache
def an_anndata_file():
    folder = TemporaryDirectory()
    Path(folder.name).chmod(0o755)
    atexit.register(folder.cleanup)
    file = Path(folder.name, "cells.h5ad")
    pytest.importorskip("anndata").AnnData(V.astype(np.float32)).write_h5ad(file)
    file.chmod(0o644)
    return file


WRITERS = {
    "state": lambda folder, seed: save_state(folder / "state.npz", a_state(seed)),
    "run": lambda folder, seed: save_run(a_run(seed), folder / "run"),
    "report": lambda folder, seed: write_report(a_run(seed), folder / "report.html"),
    "csv": lambda folder, seed: export(a_run(seed), folder, "csv"),
    "parquet": lambda folder, seed: export(a_run(seed), folder, "parquet"),
    "h5ad": lambda folder, seed: export(a_run(seed), folder, "h5ad"),
    "copied h5ad": lambda folder, seed: export(
        a_run(seed), folder, "h5ad", origin=AnnDataFile(an_anndata_file())
    ),
    "npz": lambda folder, seed: write_weights(folder / "W.npz", *two_tables(seed), None),
    "tsv": lambda folder, seed: write_weights(folder / "W.tsv", *two_tables(seed), None),
    "store": lambda folder, seed: write_store(V + seed, folder / "v.sipower", force=True),
    "rows alone": lambda folder, seed: write_store(
        V + seed, folder / "v.sipower", force=True, rows_only=True
    ),
    "outcome": lambda folder, seed: save_outcome(a_selection(seed), folder / "rank.json"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_what_cannot_be_written_is_named_and_leaves_what_was_there(folder, write, fault):
    pytest.importorskip("anndata")
    write(folder, 0)
    before = content(folder)
    with FAULTS[fault](folder), pytest.raises(OSError, match=r"too large|denied") as caught:
        write(folder, 1)
    assert str(folder) in str(caught.value.filename)
    assert "\n" not in str(caught.value)
    assert content(folder) == before
    write(folder, 1)  # the disk has room again
    assert content(folder) != before


@pytest.mark.parametrize("name", ["factors.npz", "names.json", "trace.csv", "run.json"])
def test_a_run_is_replaced_by_a_whole_one_or_not_at_all(folder, name):
    """Whichever of its files finds no room."""
    save_run(a_run(0), folder)
    before = content(folder)
    new = a_run(1)
    too_long = {
        "factors.npz": {"W": np.ones((2000, 3)), "samples": None},
        "names.json": {"samples": tuple(f"sample {i}".zfill(200) for i in range(90))},
        "trace.csv": {"trace": new.trace * 20},
        "run.json": {"facts": new.facts | {"command": "x" * 16_000}},
    }[name]
    with full_disk(15_000), pytest.raises(OSError, match=name):
        save_run(replace(new, **too_long), folder)
    assert content(folder) == before
    save_run(replace(new, **too_long), folder)
    assert set(content(folder)) == set(before)


def test_a_file_is_on_the_disk_before_it_takes_its_place(folder, monkeypatch):
    """Else a failure of power could leave an empty file where a whole one was."""
    path, calls = folder / "run.json", []
    fsync, replace = os.fsync, Path.replace

    def synced(handle):
        fsync(handle)
        calls.append(("fsync", os.fstat(handle).st_ino, os.fstat(handle).st_size))

    def replaced(self, target):
        calls.append(("replace", self.stat().st_ino, self.stat().st_size))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    with atomic_write(path) as file:
        file.write(b"whole")
    number = path.stat().st_ino
    assert calls == [("fsync", number, 5), ("replace", number, 5)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_cannot_be_converted_leaves_the_older_one(folder, fault):
    for seed in range(2):
        np.save(folder / f"counts{seed}.npy", V + seed)
    convert(folder / "counts0.npy", folder / "v.sipower")
    before = content(folder)
    with FAULTS[fault](folder), pytest.raises(OSError, match=r"v\.sipower"):
        convert(folder / "counts1.npy", folder / "v.sipower", force=True)
    assert content(folder) == before


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    "repeat",
    [
        lambda folder: consensus(V, MODEL, replicates=2, folder=folder / "fits"),
        lambda folder: rank_selection(V, [1, 2], MODEL, replicates=2, folder=folder / "fits"),
    ],
    ids=["consensus", "rank"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_replicates_that_cannot_be_kept_are_an_error_and_go_on_later(folder, repeat, fault):
    (folder / "fits").mkdir()
    with FAULTS[fault](folder), pytest.raises(OSError, match="fits"):
        repeat(folder)
    assert not [path for path in content(folder) if path.name.startswith(".")]
    repeat(folder)


@pytest.mark.parametrize("size", [0, 100])
def test_a_row_of_the_table_is_written_whole_or_is_an_error(folder, size):
    row = {
        "problem": "e", "dataset": "d", "method": "m", "params": {}, "seed": 0,
        "max_passes": 1.0, "max_seconds": 1.0, "trace": list(range(100)),
    }  # fmt: skip
    with full_disk(size), pytest.raises(OSError, match=r"(No space|too large).*runs\.jsonl"):
        append(folder / "runs.jsonl", row)
    append(folder / "runs.jsonl", row)
    assert read(folder / "runs.jsonl") == [row]


# ---- checkpoints -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_a_full_disk_costs_checkpoints_with_a_warning_and_not_the_fit(folder, solver):
    """By a real refusal of the system, for the states of all solvers."""
    settings = {"solver": solver, "random_state": 0, "max_iter": 4, "tol": 0}
    whole = KLNMF(3, **settings).fit(V)
    path = folder / "run.npz"
    model = KLNMF(3, **settings, checkpoint=path, checkpoint_every=0)
    with full_disk(300), pytest.warns(RuntimeWarning, match=r"run\.npz could not be written") as w:
        model.fit(V)
    assert len(w) == 4  # one a round
    assert model.components_.tobytes() == whole.components_.tobytes()
    assert content(folder) == {}


def test_a_checkpoint_in_a_read_only_folder_is_refused_before_the_fit(folder):
    records = []
    model = KLNMF(3, random_state=0, checkpoint=folder / "run.npz", on_round=records.append)
    with read_only(folder), pytest.raises(PermissionError, match=r"run\.npz"):
        model.fit(V)
    assert records == []


# ---- what is no file ---------------------------------------------------------------------------


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    """As root, renaming a file to /dev/null would take the device away from everybody."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with (
            pytest.raises(ValueError, match="exists and is not a file"),
            atomic_write(tmp_path / name),
        ):
            pytest.fail("it was opened")
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_in_the_place_of_the_folder_is_named_and_left_alone(tmp_path, write):
    pytest.importorskip("anndata")
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(OSError, match="file"):
        write(file, 0)
    assert content(tmp_path) == {file: b"mine"}
