# SPDX-License-Identifier: BSD-3-Clause
"""Atomic replacement of files, and locks."""

import errno
import os

import pytest

from sipower._files import atomic_write, file_lock


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(TypeError), atomic_write(target) as file:
        file.writelines([b"half", "no bytes"])
    assert target.read_text() == "old"
    with atomic_write(target) as file:
        file.write(b"new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_files_are_for_others_too(tmp_path):
    mask = os.umask(0o022)
    try:
        with atomic_write(tmp_path / "file") as file:
            file.write(b"x")
    finally:
        os.umask(mask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_worked_on(tmp_path, monkeypatch, number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("sipower._files.fcntl.flock", flock)
    with file_lock(tmp_path / "run"):
        pass
    assert not list(tmp_path.iterdir())
