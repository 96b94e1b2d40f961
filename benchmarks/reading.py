# SPDX-License-Identifier: BSD-3-Clause
"""Processor time to read Matrix Market files, of `sipower.io.read` against `scipy.io.mmread`.

    python benchmarks/reading.py [--entries 3e6]

Generates matrices of 4,000 x 15,000 in temporary files; both readers in turns, best of 5. `read`
also sorts the entries by rows, which `mmread` does not.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread, mmwrite

from sipower.io import read

SHAPE, REPEATS = (4_000, 15_000), 5


def write_files(folder: Path, entries: int) -> Iterator[Path]:
    """Write counts and decimals at random places, row after row, and a dense array."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(SHAPE[0] * SHAPE[1], entries, replace=False))
    counts, decimals = rng.integers(1, 100, entries), rng.gamma(0.5, 3.0, entries)
    for name, values in (("integer", counts), ("real", decimals), ("pattern", counts)):
        yield folder / f"{name}.mtx"
        matrix = sp.coo_array((values, np.divmod(places, SHAPE[1])), shape=SHAPE)
        mmwrite(folder / f"{name}.mtx", matrix, field=name)
    yield folder / "array.mtx"
    mmwrite(folder / "array.mtx", decimals.reshape(1000, -1))
    yield folder / "integer.mtx.gz"
    content = (folder / "integer.mtx").read_bytes()
    (folder / "integer.mtx.gz").write_bytes(gzip.compress(content, 1))


def seconds(action: Callable[[Path], object], file: Path) -> float:
    """Return the processor time of one reading, all threads together."""
    started = time.process_time()
    action(file)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=float, default=3e6)
    entries = int(parser.parse_args().entries)
    with tempfile.TemporaryDirectory() as folder:
        for file in list(write_files(Path(folder), entries)):
            rounds = [(seconds(mmread, file), seconds(read, file)) for _ in range(REPEATS)]
            scipy, ours = map(min, zip(*rounds, strict=True))
            print(f"{file.name:15} {entries:,} entries: mmread {scipy:.3f} s, read {ours:.3f} s, "
                  f"ratio {ours / scipy:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
