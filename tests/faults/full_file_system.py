# SPDX-License-Identifier: BSD-3-Clause
"""Fits whose run folder is on a file system that becomes full: a script for a mount of its own.

It is started where it may mount a small tmpfs, which ends with it, and prints what the commands
said, what was left on the file system, and the bytes of W and H.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from sipower import cli
from sipower.cli import fit, run_folder
from sipower.results import load_run

SIZE = 1_000_000
V = np.random.default_rng(0).poisson(1.0, (400, 60))  # W and H of rank 20 take 73.6 kB


def call(*words: object) -> dict[str, object]:
    """Run a command; return its exit code and its outputs."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            cli.app([str(word) for word in words])
        except SystemExit as end:
            code = end.code
    return {"code": code, "out": out.getvalue(), "errors": errors.getvalue()}


def fill(folder: Path, free: int = 0) -> None:
    """Fill the file system until so many bytes are free."""
    with (folder / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        left = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        while left > free:
            left -= file.write(bytes(min(4096, left - free)))


def digest(folder: Path) -> str:
    run = load_run(folder)
    return hashlib.sha256(run.W.tobytes() + run.H.tobytes()).hexdigest()


def fit_words(folder: Path, *more: object) -> tuple[object, ...]:
    words = ("fit", folder.parent.parent / "counts.npy", "-k", 20, "-o", folder, "--max-iter", 12)
    return (*words, "--tol", 0, "--no-report", *more)


def fill_before_saving(disk: Path) -> None:
    """Have the next run find no room, although it was held until then."""
    save_run = fit.save_run

    def save_on_full_disk(*arguments: object) -> object:
        fit.save_run = save_run
        fill(disk)
        return save_run(*arguments)

    fit.save_run = save_on_full_disk


def fill_after_fitting(disk: Path) -> None:
    """Have somebody else fill the disk during the next fit."""
    fit_model = run_folder.fit_model

    def fit_while_others_write(*arguments: object) -> object:
        run_folder.fit_model = fit_model
        fill(disk)
        return fit_model(*arguments)

    run_folder.fit_model = fit_while_others_write


def main(place: Path) -> None:
    disk, found = place / "disk", {}
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=True)
    np.save(place / "counts.npy", V)
    (place / "there").mkdir()
    call(*fit_words(place / "there" / "whole"))
    found["whole"] = digest(place / "there" / "whole")

    fill(disk, free=50_000)
    found["refused"] = call(*fit_words(disk / "run", "--json"))
    found["refused"]["left"] = sorted(path.name for path in disk.iterdir())
    (disk / "filler").unlink()

    fill(disk, free=400_000)
    found["noted"] = call(*fit_words(disk / "run", "--also", "csv"))
    (disk / "filler").unlink()

    fill_after_fitting(disk)
    found["held"] = call(*fit_words(disk / "held"))
    found["held"]["digest"] = digest(disk / "held")
    (disk / "filler").unlink()

    fill_before_saving(disk)
    found["lost"] = call(*fit_words(disk / "lost"))
    found["lost"]["left"] = (disk / "lost").exists()
    (disk / "filler").unlink()

    fill_before_saving(disk)
    found["kept"] = call(*fit_words(disk / "kept", "--resume"))
    found["kept"]["left"] = sorted(path.name for path in (disk / "kept").iterdir())
    (disk / "filler").unlink()
    found["resumed"] = call(*fit_words(disk / "kept", "--resume"))
    found["resumed"]["digest"] = digest(disk / "kept")
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
