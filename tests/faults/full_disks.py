# SPDX-License-Identifier: BSD-3-Clause
"""Disks that are full and folders that nobody may write to."""

import os
from contextlib import contextmanager

import pytest

resource = pytest.importorskip("resource", reason="limits the size of files, as Unix can")
NOBODY = 65534


@contextmanager
def full_disk(size):
    """No file becomes longer than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only(folder):
    """No file is made or changed in a folder, even by root, who is somebody else meanwhile."""
    places = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    root = os.geteuid() == 0
    for place in places:
        place.chmod(0o555)
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for place in places:
            place.chmod(0o755)


FAULTS = {
    "full from the first byte on": lambda folder: full_disk(0),
    "full in the head of a file": lambda folder: full_disk(100),
    "full within a file": lambda folder: full_disk(700),
    "read-only": read_only,
}


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
