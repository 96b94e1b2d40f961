# SPDX-License-Identifier: BSD-3-Clause
"""The cache folder: interruptions, locks, full disks, and what is never removed."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from cached_files import FILES, V, stamp, write_anndata
from sipower._files import file_lock
from sipower.io import convert, on_disk, open_on_disk
from sipower.io.cache import CacheEntry, cache_entries, cache_folder, remove_entry
from systems import unix_only

IS_ROOT = hasattr(os, "getuid") and os.getuid() == 0

# Of anndata, about what Zarr files will be like in its next versions.
pytestmark = pytest.mark.filterwarnings("ignore:.*[zZ]arr:UserWarning")


# ---- interruptions, locks, full disks ------------------------------------------------------------

SLOW = """
import sys, time
from sipower.io import open_on_disk
def wait(*now):
    print(now[0], flush=True)
    time.sleep(float(sys.argv[3]))
V = open_on_disk(sys.argv[1], cache=sys.argv[2], on_block=wait)
print("total", V.total, flush=True)
"""


def start(file, cache, seconds):
    words = [sys.executable, "-W", "ignore", "-c", SLOW, str(file), str(cache), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@unix_only
def test_a_killed_conversion_leaves_nothing_that_is_used(file, cache):
    process = start(file, cache, 60)
    assert process.stdout.readline() == "rows\n"
    process.kill()
    process.communicate()
    (entry,) = cache_entries(cache)
    assert entry.status == "unfinished"
    assert [p.name for p in entry.folder.iterdir() if p.name.startswith(".counts.sipower.")]
    assert open_on_disk(file, cache=cache).total == V.sum()
    stamp(cache)
    assert {path.name for path in entry.folder.iterdir()} == {"counts.sipower", "source.json"}


@unix_only
def test_of_two_processes_one_converts_and_the_other_waits(file, cache):
    first = start(file, cache, 1)
    assert first.stdout.readline() == "rows\n"
    second = start(file, cache, 0)
    with pytest.warns(UserWarning, match=r"cells\.h5ad is being converted by another process"):
        assert open_on_disk(file, cache=cache).total == V.sum()
    outputs = [process.communicate()[0].split("\n") for process in (first, second)]
    assert [lines[-2] for lines in outputs] == [f"total {V.sum()}"] * 2
    assert outputs[1] == [f"total {V.sum()}", ""]  # it converted nothing
    stamp(cache)
    assert not list(cache.glob(".*"))


def test_an_entry_that_is_being_made_is_not_removed(file, cache):
    open_on_disk(file, cache=cache)
    (entry,) = cache_entries(cache)
    with file_lock(entry.folder), pytest.raises(ValueError, match="in use by another process"):
        remove_entry(entry)
    stamp(cache)
    remove_entry(entry)
    assert [p.name for p in cache.iterdir()] == ["CACHEDIR.TAG"]


def test_a_lock_is_waited_for(tmp_path):
    order = []

    def other():
        with file_lock(tmp_path / "x"):
            entered.set()
            time.sleep(0.2)
            order.append("first")

    entered, thread = threading.Event(), threading.Thread(target=other)
    thread.start()
    entered.wait()
    with file_lock(tmp_path / "x", wait=True):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize("act", [open_on_disk, convert])
def test_a_disk_without_space_is_noticed_before_the_conversion(file, tmp_path, monkeypatch, act):
    told, usage = [], namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    target = {"cache": tmp_path / "cache"} if act is open_on_disk else {"target": tmp_path / "v"}
    with pytest.raises(ValueError, match=r"needs about \S+ kB .*the disk has 1 kB left") as caught:
        act(file, **target, on_block=lambda *now: told.append(now))
    assert told == []
    assert ("SIPOWER_CACHE" in str(caught.value)) == (act is open_on_disk)
    assert list(cache_entries(tmp_path / "cache")) == []
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize("name", FILES)
def test_the_space_that_is_asked_for_is_about_what_is_taken(tmp_path, name, monkeypatch):
    """Between the bytes of the finished store and four times as many."""
    asked = []
    monkeypatch.setattr(
        "sipower.store.workspace.Workspace.check_space", lambda _, size: asked.append(size)
    )
    FILES[name](tmp_path / name)
    convert(tmp_path / name, tmp_path / "v.sipower")
    parts = ("indices", "values")
    arrays = [tmp_path / "v.sipower" / s / f"{p}.npy" for s in ("rows", "columns") for p in parts]
    written = sum(file.stat().st_size - 128 for file in arrays)
    assert written <= asked[0] <= 4 * written


def test_a_full_disk_during_the_conversion(file, cache, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", str(cache))

    monkeypatch.setattr(on_disk, "convert", fail)
    with pytest.raises(
        ValueError, match=r"cache folder .* is full: choose another .*SIPOWER_CACHE"
    ):
        open_on_disk(file, cache=cache)
    assert list(cache_entries(cache)) == []


@unix_only
@pytest.mark.skipif(IS_ROOT, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written_can_be_read(file, cache):
    open_on_disk(file, cache=cache)
    (entry,) = cache_entries(cache)
    for folder in (entry.folder, cache):
        folder.chmod(0o500)
    try:
        assert open_on_disk(file, cache=cache).total == V.sum()
        write_anndata(file, sp.csr_matrix(3 * V.astype(np.float32)))
        with pytest.raises(ValueError, match="cannot be written: choose another folder"):
            open_on_disk(file, cache=cache)
    finally:
        for folder in (cache, entry.folder):
            folder.chmod(0o700)


def test_a_cache_of_somebody_else_is_read_and_not_written(file, cache, monkeypatch):
    """The same for root, who may write anywhere."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    open_on_disk(file, cache=cache)
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(on_disk, "file_lock", refuse)
    assert open_on_disk(file, cache=cache).total == V.sum()
    write_anndata(file, sp.csr_matrix(3 * V.astype(np.float32)))
    with pytest.raises(ValueError, match="cannot be written: choose another folder"):
        open_on_disk(file, cache=cache)


def test_a_cache_that_is_a_file_is_an_error(file, tmp_path):
    (tmp_path / "plain").write_text("mine")
    with pytest.raises(ValueError, match="cannot be written: choose another folder"):
        open_on_disk(file, cache=tmp_path / "plain")
    assert (tmp_path / "plain").read_text() == "mine"


# ---- what is removed, and where it is ------------------------------------------------------------


def test_files_of_others_in_the_cache_are_left_alone(file, cache):
    cache.mkdir()
    (cache / "notes-0123456789abcdef").mkdir()
    (cache / "notes-0123456789abcdef" / "mine.txt").write_text("mine")
    (cache / "link-0123456789abcdef").symlink_to(cache / "notes-0123456789abcdef")
    open_on_disk(file, cache=cache)
    assert not (cache / "CACHEDIR.TAG").exists()  # a folder that was there is not marked
    (entry,) = cache_entries(cache)
    (entry.folder / "thesis.txt").write_text("mine")
    assert list(cache_entries(cache)) == []
    write_anndata(file, sp.csr_matrix(3 * V.astype(np.float32)))
    for act in (lambda: open_on_disk(file, cache=cache), lambda: remove_entry(entry)):
        with pytest.raises(ValueError, match=r"thesis\.txt is not part of the cache: move it"):
            act()
    assert (entry.folder / "thesis.txt").exists()
    assert (cache / "notes-0123456789abcdef" / "mine.txt").exists()


def test_links_in_the_cache_are_not_followed(file, cache, tmp_path):
    open_on_disk(file, cache=cache)
    (entry,) = cache_entries(cache)
    precious = tmp_path / "precious"
    entry.store.rename(precious)
    entry.store.symlink_to(precious)
    (precious / "inner").symlink_to(tmp_path)
    remove_entry(entry)
    assert (precious / "store.json").exists()
    linked = CacheEntry.of_file(file, None, cache)
    linked.folder.symlink_to(precious)
    with pytest.raises(ValueError, match="is a symbolic link"):
        remove_entry(linked)
    assert (precious / "store.json").exists()


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("SIPOWER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    expected = {"linux": ".cache/sipower", "darwin": "Library/Caches/sipower",
                "win32": "AppData/Local/sipower/Cache"}  # fmt: skip
    for platform, place in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / place
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, says the specification
    assert cache_folder() == tmp_path / ".cache/sipower"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg/sipower"
    monkeypatch.setenv("SIPOWER_CACHE", str(tmp_path / "lab"))
    assert cache_folder() == tmp_path / "lab"
    assert cache_folder("~/x").name == "x"
    assert cache_folder(tmp_path / "own") == tmp_path / "own"


@pytest.mark.parametrize("remarks", [1.5, {"a": 1}, None, "text"])
def test_damaged_remarks_are_left_out(file, cache, remarks):
    assert open_on_disk(file, cache=cache).total == V.sum()
    (entry,) = cache_entries(cache)
    label = entry.label | {"remarks": remarks}
    (entry.folder / "source.json").write_text(json.dumps(label))
    assert entry.remarks == ()
    assert entry.status == "current"
