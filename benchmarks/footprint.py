# SPDX-License-Identifier: BSD-3-Clause
"""Measure the memory of a fit against its bound, and the time to import the package.

Run: python benchmarks/footprint.py

bound = two orientations of V + 4 copies of the factors + 4 bytes per nonzero + 32 MB
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sipower import Guarded, Stop, as_matrix, solve
from sipower.nmf import RULES, Alternating, Factorization

RANK = 20


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def resident_bytes() -> int:
    return (
        int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
        * resource.getpagesize()
    )


def write_counts(folder: Path, millions: int) -> None:
    """Write CSR counts with this many million nonzeros, 100 in each row."""
    rng = np.random.default_rng(0)
    rows, row_length = 10_000 * millions, 100
    indices = rng.integers(1, 50, (rows, row_length), dtype=np.int32).cumsum(axis=1, dtype=np.int32)
    np.save(folder / "indices.npy", indices.ravel())
    np.save(folder / "data.npy", rng.integers(1, 9, rows * row_length).astype(np.float32))
    np.save(folder / "indptr.npy", np.arange(rows + 1, dtype=np.int32) * row_length)


def fit(name: str, folder: Path) -> None:
    """Print the peak memory of one fit; this runs in a separate process."""
    parts = (np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr"))
    V = sp.csr_array(tuple(parts))
    orientation = V.data.nbytes + V.indices.nbytes + V.indptr.nbytes
    before = resident_bytes() - orientation  # the caller's V is one of the two orientations
    solve(
        Factorization(as_matrix(V), RANK),
        Guarded(Alternating(RULES[name]())),
        stop=Stop(0, rounds=3),
        trace="every",
    )
    used = peak_bytes() - before
    bound = 2 * orientation + 4 * sum(V.shape) * RANK * 4 + 4 * V.nnz + 32 * 2**20
    print(
        f"{name:9} {V.nnz / 1e6:5.1f} million nonzeros: {used / 2**20:7.1f} MB of "
        f"{bound / 2**20:7.1f} MB ({used / bound:.0%})",
        flush=True,
    )


def import_seconds(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def main() -> None:
    for millions in (1, 20):
        with tempfile.TemporaryDirectory() as folder:
            write_counts(Path(folder), millions)
            for name in RULES:
                subprocess.run([sys.executable, __file__, name, folder], check=True)
    best = {"sklearn": 9.9, "sipower": 9.9}
    for _ in range(7):
        for module, seconds in best.items():
            best[module] = min(seconds, import_seconds(module))
    extra = best["sipower"] - best["sklearn"]
    print(f"import: sklearn {best['sklearn']:.2f} s, sipower {extra:+.2f} s")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        fit(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
