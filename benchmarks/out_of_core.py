# SPDX-License-Identifier: BSD-3-Clause
"""Data larger than memory: 400 million nonzeros under a limit of 1 GB, and the price of the disk.

    python benchmarks/out_of_core.py FOLDER [--nonzeros 400e6] [--fits 40e6]

1. Generates counts (rows of 2,000 nonzeros out of 30,000 features, as single cells have them),
   writes a store with both orientations into FOLDER, and fits it in a child process whose address
   space the system limits to 1 GB; its peak is printed.
2. On a size that fits both ways: seconds per pass from disk against memory, interleaved, best of 5.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sipower import KLNMF, as_matrix
from sipower.io import open_store
from sipower.problems.kl import KLBlock
from sipower.store import write_store

FEATURES, PER_ROW, TOPICS, ROWS = 30_000, 2_000, 20, 2_000


def blocks(nonzeros: float, seed: int = 0) -> Iterator[sp.csr_array]:
    """Rows of a topic model, about 2,000 nonzeros each."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.3, 1.0, (TOPICS, FEATURES)) * rng.gamma(0.5, 1.0, FEATURES)
    upto = np.cumsum(weights, axis=1)
    upto /= upto[:, -1:]
    for _ in range(max(1, round(nonzeros / PER_ROW / ROWS))):
        mixes = rng.dirichlet(np.full(TOPICS, 0.2), ROWS)
        of_topics = rng.multinomial(round(1.2 * PER_ROW), mixes)
        rows, columns = [], []
        for k in range(TOPICS):
            count = of_topics[:, k]
            rows.append(np.repeat(np.arange(ROWS, dtype=np.int32), count))
            columns.append(np.searchsorted(upto[k], rng.random(count.sum())))
        at = np.concatenate(rows), np.concatenate(columns)
        block = sp.csr_array((np.ones(len(at[0]), np.uint16), at), shape=(ROWS, FEATURES))
        block.sum_duplicates()
        yield block


def made(folder: Path, nonzeros: float) -> Path:
    """The store of a size, written unless it is there."""
    path = folder / f"counts-{nonzeros:.0f}.sipower"
    if not path.exists():
        started = time.monotonic()
        write_store(blocks(nonzeros), path)
        print(f"wrote {path.name} in {time.monotonic() - started:.0f} s", flush=True)
    return path


def limited(path: Path, rounds: int) -> None:
    """Fit under the limit; for the child process."""
    limit = 10**9
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    V = open_store(path, dtype="float32", memory_limit="150MB")
    started = time.monotonic()
    model = KLNMF(20, random_state=0, tol=0, max_iter=rounds, max_time=1200).fit(V)
    seconds = time.monotonic() - started
    peak = next(
        line.split()[1:] for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmPeak")
    )  # fmt: skip
    passes = model.trace_[-1].passes
    facts = {
        "shape": V.shape, "nonzeros": V.nnz, "windows": len(V.windows_of_blocks),
        "limit_bytes": limit, "peak_address_space": " ".join(peak),
        "peak_resident_kB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "rounds": model.n_iter_, "passes": passes, "seconds": round(seconds, 1),
        "first": model.trace_[0].objective, "last": model.kl_divergence_,
        "gap": model.kkt_residual_, "status": model.status_,
    }  # fmt: skip
    print(json.dumps(facts, indent=1))


def against_memory(path: Path) -> None:
    """Seconds of one pass over the rows and one over the columns, from disk and in memory."""
    stored = open_store(path, dtype="float32", memory_limit="64MB")
    whole = as_matrix(stored.rows(0, stored.shape[0]), dtype=np.float32)
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, 20), np.float32) for n in stored.shape)
    sides = {"disk": stored, "memory": whole}
    print(f"{stored.nnz:,} nonzeros, {len(stored.windows_of_blocks)} windows")
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(5):
        for where, V in sides.items():
            for side, block, point in (
                ("rows", KLBlock(V, H), W), ("columns", KLBlock(V.T, W), H),
            ):  # fmt: skip
                started = time.monotonic()
                block.ratio_sums(point)
                seconds.setdefault((side, where), []).append(time.monotonic() - started)
    for side in ("rows", "columns"):
        disk, memory = (min(seconds[side, where]) for where in ("disk", "memory"))
        both = " and ".join(f"{1e9 * s / stored.nnz:.2f}" for s in (disk, memory))
        print(f"{side}: {memory / disk:.0%} of the speed in memory ({both} ns a nonzero)")


def main() -> None:
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nonzeros", type=float, default=400e6)
    parser.add_argument("--fits", type=float, default=40e6)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--child", action="store_true")
    given = parser.parse_args()
    if given.child:
        limited(given.folder, given.rounds)
        return
    large = made(given.folder, given.nonzeros)
    # Address space counts what is only reserved, too: one heap for all threads, and no BLAS ones.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(large), "--child", "--rounds", str(given.rounds)]
    subprocess.run(command, check=True, env=environment)
    against_memory(made(given.folder, given.fits))


if __name__ == "__main__":
    main()
