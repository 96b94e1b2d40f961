# SPDX-License-Identifier: BSD-3-Clause
"""The rules of Windows for files in use: what is open is not removed, moved or replaced."""

import os
import sys
import types
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

fcntl = pytest.importorskip("fcntl", reason="emulates Windows by the locks of Unix")
if not os.path.exists("/proc/self/fd"):
    pytest.skip("reads the open files from /proc", allow_module_level=True)
_active = False


def _in_use():
    """Yield the regular files that this process has open or mapped."""
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if os.path.isfile(path):
                yield path
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")
        if path[1]:
            yield "/" + path[2]


def _refuse(event, arguments):
    if not _active or event not in ("os.remove", "os.rename", "os.rmdir"):
        return
    is_move = event == "os.rename"
    paths, folders = arguments[: 1 + is_move], arguments[1 + is_move :]
    open_files = list(_in_use())
    for path, folder in zip(paths, folders, strict=True):
        base = os.readlink(f"/proc/self/fd/{folder}") if folder >= 0 else os.getcwd()
        full = os.path.join(base, os.fsdecode(path))
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if any(file == full or file.startswith(full + os.sep) for file in open_files):
            raise PermissionError(13, "The process cannot access the file", full)


sys.addaudithook(_refuse)  # hooks stay until the process ends


@contextmanager
def rules_of_windows():
    """Refuse to remove, move or replace files that are open or mapped."""
    global _active  # noqa: PLW0603 - a hook has no other state
    _active = True
    try:
        yield
    finally:
        _active = False


def emulate_msvcrt():
    """Return a module that locks as `msvcrt` does, by locks of open files."""

    def locking(number, mode, size):
        assert (mode, size) == (module.LK_NBLCK, 1)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    module = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
    return module
