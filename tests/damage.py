# SPDX-License-Identifier: BSD-3-Clause
"""Read damaged variants of a file, as many as asked: a script for a process of its own.

It prints how many were refused, the seconds of the slowest and the most memory used. Each other
must be valid counts; anything else ends the process with an error.
"""

from __future__ import annotations

import faulthandler
import gzip
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from sipower.io import ReadError, Table, read
from systems import limit_memory

SECONDS, MEMORY = 10, 2 << 30
DIGITS = np.frombuffer(b"0123456789-+.eE \t\n,nan", np.uint8)


def damage_file(good: bytes, number: int) -> bytes:
    """Variant of a file, the same for the same number."""
    rng = np.random.default_rng(number)
    lines = good.splitlines(keepends=True)
    first, second = rng.integers(0, len(lines), 2)
    start, end = rng.integers(0, len(good), 2)
    match number % 8:
        case 0:
            return good[:start]
        case 1:
            return good[:start] + good[end:]
        case 2:
            del lines[first]
            return b"".join(lines)
        case 3:
            lines[first], lines[second] = lines[second], lines[first]
            return b"".join(lines)
    return with_other_bytes(good, number, rng)


def with_other_bytes(good: bytes, number: int, rng: np.random.Generator) -> bytes:
    raw = np.frombuffer(good, np.uint8).copy()
    at = rng.integers(0, len(raw), rng.integers(1, 9))
    match number % 4:
        case 0:
            raw[at] ^= (1 << rng.integers(0, 8, len(at))).astype(np.uint8)
        case 1:
            raw[at] = rng.integers(0, 256, len(at))
        case 2:  # numbers of a text become others
            raw[at] = rng.choice(DIGITS, len(at))
        case 3:  # sizes of a binary format become large
            raw[at[0] : at[0] + 4] = rng.choice([0x00, 0x7F, 0xFF])
    return raw.tobytes()


def assert_valid(file: Path, table: Table) -> None:
    assert_counts(table)
    head = promised_shape(file)
    assert head is None or head == table.counts.shape


def assert_counts(table: Table) -> None:
    counts = table.counts
    values = counts if isinstance(counts, np.ndarray) else counts.data
    assert values.dtype.kind in "iuf"
    assert values.size == 0 or (values.min() >= 0 and values.max() < np.inf)
    if not isinstance(counts, np.ndarray):
        counts.check_format(full_check=True)
        assert counts.has_canonical_format
    for names, size in zip((table.samples, table.features), counts.shape, strict=True):
        assert size > 0
        assert names is None or len(names) == size


def promised_shape(file: Path) -> tuple[int, ...] | None:
    """Shape that the head of a file tells, read as simply as can be."""
    if file.suffix == ".npy":
        return np.load(file, mmap_mode="r").shape
    content = file.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    content = content.removeprefix(b"\xef\xbb\xbf")
    if ".mtx" in file.name:
        lines = content.split(b"\n")[1:]  # a carriage return ends no line
        content = next(line for line in lines if line.strip() and not line.startswith(b"%"))
    elif not file.name.startswith("docword"):
        return None
    return tuple(map(int, content.split()[:2]))


def try_variants(file: Path, count: int) -> dict[str, float]:
    good = file.read_bytes()
    read(file)  # imports the libraries, whose memory does not count
    limit_memory(MEMORY)
    messages, slowest = [], 0.0
    for number in range(count):
        file.write_bytes(damage_file(good, number))
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        started = time.perf_counter()
        try:
            assert_valid(file, read(file))
        except ReadError as problem:
            messages.append(str(problem))
        except BaseException:
            sys.stderr.write(f"variant {number}\n")
            raise
        slowest = max(slowest, time.perf_counter() - started)
    faulthandler.cancel_dump_traceback_later()
    assert all(text.startswith(str(file)) and text.endswith(".") for text in messages)
    assert not any("\n" in text or "more memory" in text for text in messages)
    import resource  # noqa: PLC0415 - Unix only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"refused": len(messages), "slowest": slowest, "peak": peak}


if __name__ == "__main__":
    warnings.simplefilter("error")
    sys.stdout.write(json.dumps(try_variants(Path(sys.argv[1]), int(sys.argv[2]))))
