# SPDX-License-Identifier: BSD-3-Clause
"""A full disk does not cost a fit: its space is held, its checkpoint kept, and it can go on."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.calls import call
from faults.full_disks import full_disk
from sipower._files import reserve_space
from sipower.cli import fit
from sipower.results import load_run

V = np.random.default_rng(0).poisson(1.0, (90, 60))
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What full_file_system.py has found on a file system of its own."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("a file system of its own needs unshare and mount, as Linux has them")
    probe = tmp_path_factory.mktemp("probe")
    mount = ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(probe))
    if subprocess.run([*NAMESPACE, *mount], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no mounts in a namespace of their own")
    script = Path(__file__).with_name("full_file_system.py")
    result = subprocess.run(
        [*NAMESPACE, sys.executable, script, tmp_path_factory.mktemp("full")],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_fit_that_cannot_be_saved_is_refused_before_it_starts(found):
    refused = found["refused"]
    assert refused["code"] == 2
    assert "round" not in refused["out"]
    assert re.fullmatch(
        r"sipower: \S+/run: the files of the run take 0\.2 MB, but the disk is full \(No space "
        r"left on device; of the disk 0\.\d MB are free\): make room, or choose a folder on "
        r"another disk with -o\.\n",
        refused["errors"],
    )
    assert refused["left"] == ["filler"]


def test_a_near_miss_is_only_noted(found):
    noted = found["noted"]
    assert noted["code"] == 0, noted["errors"]
    text = " ".join(noted["out"].split())
    assert "beside the run, its checkpoint, tables and report may take up to 0.6 MB" in text
    assert "and the disk has 0.2 MB free" in text


def test_space_that_others_fill_during_the_fit_was_held(found):
    held = found["held"]
    assert held["code"] == 0, held["errors"]
    assert held["digest"] == found["whole"]


def test_without_a_checkpoint_the_message_says_that_nothing_is_saved(found):
    lost = found["lost"]
    assert lost["code"] == 2
    assert re.fullmatch(
        r"sipower: \S+/lost/run\.json could not be written, because the disk is full "
        r"\(No space left on device\): make room; nothing of the fit is saved; with --resume, a "
        r"checkpoint would be kept\.\n",
        lost["errors"],
    )
    assert not lost["left"]


def test_the_checkpoint_is_kept_and_the_fit_goes_on_to_the_same_bits(found):
    kept = found["kept"]
    assert kept["code"] == 2
    assert re.fullmatch(
        r"sipower: \S+/kept/run\.json could not be written, because the disk is full "
        r"\(No space left on device\): make room; its checkpoint \S+/kept/checkpoint\.npz is safe, "
        r"and the same command with --resume continues\.\n",
        kept["errors"],
    )
    assert kept["left"] == ["checkpoint.npz"]
    assert found["resumed"]["code"] == 0, found["resumed"]["errors"]
    assert found["resumed"]["digest"] == found["whole"]


# ---- a limit of the size of files, which every Unix has -----------------------------------------


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", V)
    return ("fit", "counts.npy", "-k", 3, "--no-report", "--tol", 0, "--max-iter", 9)


def test_a_run_that_cannot_be_written_keeps_its_checkpoint(words, monkeypatch):
    call(*words, "-o", "whole")
    save_run = fit.save_run

    def save_on_full_disk(*arguments):
        with full_disk(1000):
            return save_run(*arguments)

    monkeypatch.setattr(fit, "save_run", save_on_full_disk)
    refused = call(*words, "-o", "run", "--resume", code=2).stderr
    assert refused == (
        "sipower: run/run.json could not be written, because the system allows no file of that "
        "size (File too large): make room; its checkpoint run/checkpoint.npz is safe, and the same "
        "command with --resume continues.\n"
    )
    assert os.listdir("run") == ["checkpoint.npz"]
    monkeypatch.setattr(fit, "save_run", save_run)
    call(*words, "-o", "run", "--resume")
    whole, resumed = load_run("whole"), load_run("run")
    assert resumed.W.tobytes() == whole.W.tobytes()
    assert resumed.H.tobytes() == whole.H.tobytes()


def test_a_run_that_is_larger_than_any_file_may_be_is_refused(words):
    with full_disk(1000):
        refused = call(*words, "-o", "run", code=2)
    assert "round" not in refused.stdout
    assert "run: the files of the run take 0.1 MB" in refused.stderr
    assert "the system allows no file of that size (File too large; of the" in refused.stderr
    assert not Path("run").exists()


def test_what_a_killed_process_held_is_removed(words):
    Path("run").mkdir()
    left = Path("run", ".factors.npz.0123456789abcdef.sipower-tmp")
    left.write_bytes(bytes(1000))
    call(*words, "-o", "run")
    assert not left.exists()


PHRASES = {
    ("transform", "whole", "counts.npy", "-o", "W.csv"): (1000, "W.csv", "nothing is saved"),
    ("report", "whole"): (8000, "whole/report.html", "nothing is saved"),
    ("consensus", "counts.npy", "-k", 3, "-o", "consensus", "--replicates", 2): (
        8000,
        "consensus/report.html",
        "finished fits are saved, and the same command continues",
    ),
    ("rank", "counts.npy", "-k", "1:2", "-o", "rank", "--replicates", 2): (
        8000,
        "rank/rank.png",
        "finished fits are saved, and the same command continues",
    ),
    ("convert", "counts.npy", "-o", "counts.sipower"): (1000, "counts.sipower", "nothing is saved"),
}


def test_other_commands_say_in_the_same_words_what_is_saved(words):
    call(*words, "-o", "whole")
    for command, (size, file, saved) in PHRASES.items():
        with full_disk(size):
            refused = call(*command, code=2).stderr
        assert refused == (
            f"sipower: {file} could not be written, because the system allows no file of that "
            f"size (File too large): make room; {saved}.\n"
        )
        call(*command)


@pytest.mark.parametrize("error", [AttributeError, OSError(errno.EOPNOTSUPP, "not here")])
def test_where_no_space_can_be_held_what_is_free_decides(tmp_path, monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    free = shutil.disk_usage(tmp_path).free
    with reserve_space(tmp_path / "run", free // 2):
        assert len(list(tmp_path.iterdir())) == 1
    with (
        pytest.raises(OSError, match=r"No space left on device: .*run"),
        reserve_space(tmp_path / "run", 2 * free),
    ):
        pytest.fail("it was held")
    assert list(tmp_path.iterdir()) == []
