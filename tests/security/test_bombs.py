# SPDX-License-Identifier: BSD-3-Clause
"""Small files that promise or unpack to enormous ones are refused within the memory there is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by Linux's means")
def test_small_files_that_become_enormous_get_a_sentence(tmp_path):
    script = Path(__file__).parent / "bombs.py"
    words = [sys.executable, script, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said) == 9
    for name, sentence in said.items():
        assert sentence != "was read", name
        assert str(tmp_path) in sentence
        assert "\n" not in sentence
    assert all("promises" in said[f"claims.{ending}"] for ending in ("npy", "npz", "mtx", "txt"))
    assert "is longer than" in said["line.csv.gz"]
