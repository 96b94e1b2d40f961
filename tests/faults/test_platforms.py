# SPDX-License-Identifier: BSD-3-Clause
"""Systems without what Linux has: other encodings, spawned processes, missing functions."""

import errno
import math
import multiprocessing
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sipower import KLNMF, _files, io
from sipower._files import atomic_write, file_lock
from sipower.cli import console
from sipower.estimators import memory
from sipower.kernels import count_threads
from sipower.results import load_run, provenance
from sipower.store import layout
from systems import unix_only

V = sp.csr_array(np.random.default_rng(0).poisson(1.0, (90, 60)))


def fit(data=V):
    model = KLNMF(3, random_state=0, tol=1e-2, n_jobs=2)
    return model.fit_transform(data).tobytes() + model.components_.tobytes()


# ---- text ----------------------------------------------------------------------------------------

COMMANDS = """
import sys, warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"sipower(\\.|$)")
from sipower.cli.application import app
from sipower.cli import main
for words in (
    "fit counts.csv -k 2 -o run --also csv --report --seed 0 --max-iter 5",
    "transform run counts.csv -o W.csv",
    "convert counts.csv -o store.sipower",
    "report run",
    "fit texts -k 2 -o words --max-iter 5",
    "differential run counts.csv",
    "rank counts.csv -k 1:2 -o rank --replicates 2",
):
    sys.argv = ["sipower", *words.split(" ")]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, 4, None), (words, end.code)
"""


def test_names_survive_where_ascii_is_the_encoding_of_the_system(tmp_path):
    """No file is opened without an encoding, and none depends on the locale."""
    names = ["Größe", "日本", "naïve", "λ"]
    counts = np.random.default_rng(0).poisson(3.0, (40, 4))
    rows = [
        "sample," + ",".join(names),
        *(f"s{i}," + ",".join(map(str, r)) for i, r in enumerate(counts)),
    ]
    (tmp_path / "counts.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "texts").mkdir()
    for i in range(6):
        text = " ".join(np.random.default_rng(i).choice(names, 30))
        (tmp_path / "texts" / f"{i}.txt").write_text(text, encoding="utf-8")
    environment = {
        **os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "cp1252",
    }  # fmt: skip
    options = ["-X", "utf8=0", "-X", "warn_default_encoding"]
    result = subprocess.run(
        [sys.executable, *options, "-c", COMMANDS],
        cwd=tmp_path, env=environment, capture_output=True, encoding="cp1252", check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert load_run(tmp_path / "run").features == tuple(names)
    assert "日本" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "\\u65e5\\u672c" in result.stdout  # escaped on a terminal of Windows


# ---- processes -----------------------------------------------------------------------------------


def test_a_spawned_process_fits_to_the_same_bits():
    """The only way to start processes on Windows, and the usual one on macOS."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(fit, (V,)) == fit()


def test_all_cores_are_used_where_no_affinity_is_known(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert count_threads(None) == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert count_threads(None) == 1


# ---- files ---------------------------------------------------------------------------------------


def test_without_locks_of_any_kind_files_are_still_written(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "fcntl", None)
    monkeypatch.setattr(_files, "msvcrt", None)
    with file_lock(tmp_path / "a"), atomic_write(tmp_path / "a") as file:
        file.write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_store_is_read_to_the_same_bits_without_positioned_reads(tmp_path, monkeypatch):
    """Windows has no preadv: threads take turns to seek and read."""
    io.write_store(V, tmp_path / "store")
    expected = fit(io.open_on_disk(tmp_path / "store"))
    monkeypatch.delattr(os, "preadv", raising=False)
    assert fit(io.open_on_disk(tmp_path / "store")) == expected


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="counts calls of preadv")
def test_arrays_are_read_in_pieces_that_every_system_allows(tmp_path, monkeypatch):
    """macOS refuses to read 2 GB at once; here the limit is 1,000 bytes."""
    numbers = np.random.default_rng(0).random(5000)
    np.save(tmp_path / "numbers.npy", numbers)
    array = layout.OpenArray(tmp_path / "numbers.npy", 5000, (np.dtype("<f8"),))
    largest, preadv = [], os.preadv

    def record(file, buffers, at):
        largest.append(len(buffers[0]))
        return preadv(file, buffers, at)

    monkeypatch.setattr(os, "preadv", record)
    monkeypatch.setattr(layout, "_READ_AT_ONCE", 1000)
    read = np.empty(4000)
    array.read(500, read)
    assert read.tobytes() == numbers[500:4500].tobytes()
    assert max(largest) == 1000


def test_two_threads_that_share_a_position_read_their_own_bytes(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "preadv", raising=False)
    numbers = np.arange(200_000, dtype="<f8")
    np.save(tmp_path / "numbers.npy", numbers)
    array = layout.OpenArray(tmp_path / "numbers.npy", len(numbers), (np.dtype("<f8"),))
    wrong = []

    def read(first):
        part = np.empty(1000)
        for start in range(first, len(numbers) - 1000, 997):
            array.read(start, part)
            if not np.array_equal(part, numbers[start : start + 1000]):
                wrong.append(start)

    threads = [threading.Thread(target=read, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- output --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "error", "is_failure"),
    [
        ("linux", BrokenPipeError(errno.EPIPE, "Broken pipe"), False),
        ("win32", OSError(errno.EINVAL, "Invalid argument"), False),
        ("linux", OSError(errno.EINVAL, "Invalid argument"), True),
        ("win32", OSError(errno.ENOSPC, "No space left on device"), True),
    ],
)
def test_a_reader_of_the_output_that_ends_is_no_failure(monkeypatch, platform, error, is_failure):
    def fail(text):
        raise error

    replaced = []
    monkeypatch.setattr(console.sys, "platform", platform)
    monkeypatch.setattr(console.sys.stdout, "fileno", lambda: 1, raising=False)
    monkeypatch.setattr(console.os, "dup2", lambda null, number: replaced.append(number))
    monkeypatch.setattr(console.typer, "echo", fail)
    monkeypatch.setattr(console, "_failures", [])
    console._print("W.csv")
    assert replaced == [1]  # what is printed later goes nowhere
    assert console._failures == ([error] if is_failure else [])


# ---- facts of the machine ------------------------------------------------------------------------


class Missing:
    """A path of /proc on a system that has none."""

    def __init__(self, *parts):
        pass

    def is_file(self):
        return False


@unix_only
def test_memory_is_known_without_proc(monkeypatch):
    before = memory.free_memory()
    monkeypatch.setattr(memory, "Path", Missing)
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory.free_memory() == installed / 2
    assert 0 < before <= installed
    monkeypatch.delattr(os, "sysconf")
    assert memory.free_memory() == math.inf


@pytest.mark.parametrize(("kilobytes", "expected"), [(8 << 20, 4 << 30), (0, math.inf)])
def test_memory_is_asked_of_windows(monkeypatch, kilobytes, expected):
    def installed(pointer):
        pointer._obj.value = kilobytes
        return kilobytes > 0

    kernel32 = SimpleNamespace(GetPhysicallyInstalledSystemMemory=installed)
    monkeypatch.setattr(memory.ctypes, "windll", SimpleNamespace(kernel32=kernel32), raising=False)
    monkeypatch.setattr(memory, "Path", Missing)
    monkeypatch.setattr(memory.sys, "platform", "win32")
    assert memory.free_memory() == expected


def test_the_processor_has_a_name_without_proc(monkeypatch):
    monkeypatch.setattr(provenance, "Path", Missing)
    assert provenance._processor()
