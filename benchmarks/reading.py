# SPDX-License-Identifier: BSD-3-Clause
"""Seconds to read a Matrix Market file, of `sipower.io.read` against `scipy.io.mmread`.

    python benchmarks/reading.py [--entries 3e6]

Generates counts of 4,000 x 15,000 in a temporary file; both readers in turns, best of 5.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread, mmwrite

from sipower.io import read

SHAPE, REPEATS = (4_000, 15_000), 5


def write_counts(file: Path, entries: int) -> None:
    """Write counts at random places, row after row."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(SHAPE[0] * SHAPE[1], entries, replace=False))
    values = rng.integers(1, 100, entries)
    mmwrite(file, sp.coo_array((values, np.divmod(places, SHAPE[1])), shape=SHAPE))


def seconds(action: Callable[[Path], object], file: Path) -> float:
    """Return the wall time of one reading."""
    started = time.perf_counter()
    action(file)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=float, default=3e6)
    entries = int(parser.parse_args().entries)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts.mtx"
        write_counts(file, entries)
        rounds = [(seconds(mmread, file), seconds(read, file)) for _ in range(REPEATS)]
    scipy, ours = map(min, zip(*rounds, strict=True))
    print(f"{entries:,} entries: mmread {scipy:.3f} s, read {ours:.3f} s, ratio {ours / scipy:.2f}")


if __name__ == "__main__":
    main()
