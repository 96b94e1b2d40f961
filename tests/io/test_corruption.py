# SPDX-License-Identifier: BSD-3-Clause
"""Damaged files end in one sentence or in valid counts: never in a crash, a hang or much memory.

Each reader gets its damaged files in a process of its own, which `tests/damage.py` is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from good_files import WRITERS
from sipower.io import ReadError, read
from systems import linux_only

# HDF5 trusts lengths of texts in a file: where one is damaged, h5py can crash.
KINDS = [kind for kind in WRITERS if not kind.endswith("h5ad")]
# A plain table may be cut between two lines; all others notice each lost byte.
NOTICING = sorted(set(WRITERS) - {"csv", "long_csv"})


@linux_only
@pytest.mark.parametrize("kind", KINDS)
def test_400_damaged_files(kind: str, tmp_path: Path) -> None:
    assert_survives(kind, tmp_path, 400)


def assert_survives(kind: str, folder: Path, variants: int) -> None:
    script = Path(__file__).parents[1] / "damage.py"
    command = [sys.executable, "-X", "faulthandler", script, WRITERS[kind](folder), str(variants)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads(run.stdout)
    assert report["refused"] >= variants / 8  # those cut short, at the least
    assert report["slowest"] < 10
    assert report["peak"] < 2 << 30


@linux_only
def test_some_damaged_h5ad(tmp_path: Path) -> None:
    assert_survives("h5ad", tmp_path, 64)


@pytest.mark.parametrize("kind", NOTICING)
def test_every_cut_is_noticed(kind: str, tmp_path: Path) -> None:
    file = WRITERS[kind](tmp_path)
    good = file.read_bytes()
    last_line = good.rstrip().rfind(b"\n") + 1
    ends = {len(good) - cut for cut in range(1, 20)}
    for end in sorted(ends | set(range(1, len(good), max(1, len(good) // 40)))):
        file.write_bytes(good[:end])
        try:
            table = read(file)
        except ReadError:
            continue
        # Digits of the very last count may be gone: a plain text cannot tell, so the user is told.
        assert file.suffix in (".mtx", ".txt")
        assert end > last_line
        assert "does not end" in table.remarks[0]
