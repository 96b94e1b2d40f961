# SPDX-License-Identifier: BSD-3-Clause
"""The tests are found on systems without the modules of Unix."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_no_module_of_unix_is_needed_to_collect_the_tests():
    words = ["-p", "without_unix", "-p", "no:cacheprovider", "--collect-only", "-q", "tests"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert "full_disks.py" in result.stdout  # skipped, because `resource` is missing
