# SPDX-License-Identifier: BSD-3-Clause
"""What sipower is built, run and tested with is pinned by version and hash, and free to pass on."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements" / "locked.txt"
pytestmark = pytest.mark.skipif(not LOCK.is_file(), reason="the lock is not part of the wheel")


def audit(*words, root=ROOT):
    command = [sys.executable, root / "tools/audit.py", "--offline", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_lock_has_every_requirement_and_licences_allow_it():
    result = audit()
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_lock_that_lacks_a_hash_or_a_package_is_found(tmp_path):
    for name in ("tools/audit.py", "pyproject.toml", "requirements/locked.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"))
    text = LOCK.read_text("utf-8")
    changes = {"": "scipy>=1.15 has no matching pin", "\nscipy==1.16.0": "scipy has no hash"}
    for change, message in changes.items():
        changed = re.sub(r"\nscipy==(.|\n)*?(?=\n\w)", change, text)
        (tmp_path / "requirements/locked.txt").write_text(changed)
        result = audit(root=tmp_path)
        assert result.returncode == 1
        assert message in result.stdout


def test_the_lock_names_no_server():
    assert "://" not in LOCK.read_text("utf-8")
    assert "--index" not in LOCK.read_text("utf-8")
