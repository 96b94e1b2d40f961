# SPDX-License-Identifier: BSD-3-Clause
"""Fit 400 million nonzeros with 1 GB of memory, and compare a pass from disk with one in memory.

    python benchmarks/out_of_core.py FOLDER [--nonzeros 400e6] [--fits 40e6]

1. Draw counts with about 2,000 nonzeros a row and 30,000 features, like single cells, write a
   store with both orientations into FOLDER, and fit it until the certified gap is at most 1e-2, in
   a child process whose address space is limited to 1 GB; print its peak, and its time in passes:
   gradients of both factors, halved, also in wall time and in processor time.
2. On data that fit in memory: seconds per pass from disk and in memory, interleaved, best of 5.
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
from sipower.data.on_disk import StoredMatrix
from sipower.io import open_on_disk
from sipower.problems.kl import KLBlock
from sipower.store import write_store

FEATURES, PER_ROW, TOPICS, ROWS = 30_000, 2_000, 20, 2_000


def draw_blocks(nonzeros: float, seed: int = 0) -> Iterator[sp.csr_array]:
    """Yield blocks of rows of a topic model with about 2,000 nonzeros each."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.3, 1.0, (TOPICS, FEATURES)) * rng.gamma(0.5, 1.0, FEATURES)
    upto = np.cumsum(weights, axis=1)
    upto /= upto[:, -1:]
    for _ in range(max(1, round(nonzeros / PER_ROW / ROWS))):
        mixes = rng.dirichlet(np.full(TOPICS, 0.2), ROWS)
        topic_counts = rng.multinomial(round(1.2 * PER_ROW), mixes)
        rows, columns = [], []
        for k in range(TOPICS):
            count = topic_counts[:, k]
            rows.append(np.repeat(np.arange(ROWS, dtype=np.int32), count))
            columns.append(np.searchsorted(upto[k], rng.random(count.sum())))
        at = np.concatenate(rows), np.concatenate(columns)
        block = sp.csr_array((np.ones(len(at[0]), np.uint16), at), shape=(ROWS, FEATURES))
        block.sum_duplicates()
        yield block


def ensure_store(folder: Path, nonzeros: float) -> Path:
    """Return the path of the store of a size; write it unless it exists."""
    path = folder / f"counts-{nonzeros:.0f}.sipower"
    if not path.exists():
        started = time.monotonic()
        write_store(draw_blocks(nonzeros), path)
        print(f"wrote {path.name} in {time.monotonic() - started:.0f} s", flush=True)
    return path


def time_pass(V: StoredMatrix) -> tuple[float, float]:
    """Return the mean seconds of a gradient of W and one of H, in wall and in processor time."""
    rng = np.random.default_rng(0)
    W, H = (rng.random((n, 20), np.float32) for n in V.shape)
    started, used = time.monotonic(), time.process_time()
    KLBlock(V, H).ratio_sums(W)
    KLBlock(V.T, W).ratio_sums(H)
    return (time.monotonic() - started) / 2, (time.process_time() - used) / 2


def fit_in_limited_memory(path: Path, rounds: int) -> None:
    """Fit within 1 GB of address space; this runs in the child process."""
    limit = 10**9
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    V = open_on_disk(path, dtype="float32", memory_limit="150MB")
    pass_wall, pass_cpu = time_pass(V)
    started, used = time.monotonic(), time.process_time()
    model = KLNMF(20, random_state=0, tol=1e-2, max_iter=rounds, max_time=1200).fit(V)
    seconds, cpu = time.monotonic() - started, time.process_time() - used
    peak = next(
        line.split()[1:]
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        if line.startswith("VmPeak")
    )
    passes = model.trace_[-1].passes
    facts = {
        "shape": V.shape, "nonzeros": V.nnz, "windows": len(V.windows_of_blocks),
        "limit_bytes": limit, "peak_address_space": " ".join(peak),
        "peak_resident_kB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "rounds": model.n_iter_, "passes": passes, "seconds": round(seconds, 1),
        "first": model.trace_[0].objective, "last": model.kl_divergence_,
        "gap": model.kkt_residual_, "status": model.status_,
        "pass_seconds": round(pass_wall, 2), "time_in_passes": round(seconds / pass_wall, 1),
        "processor_time_in_passes": round(cpu / pass_cpu, 1),
        "gaps": [(r.round, round(r.seconds, 1), r.gap) for r in model.trace_ if r.gap == r.gap],
    }  # fmt: skip
    print(json.dumps(facts, indent=1))


def compare_with_memory(path: Path) -> None:
    """Print the seconds of a pass over the rows and over the columns, from disk and in memory."""
    stored = open_on_disk(path, dtype="float32", memory_limit="64MB")
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
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nonzeros", type=float, default=400e6)
    parser.add_argument("--fits", type=float, default=40e6)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        fit_in_limited_memory(options.folder, options.rounds)
        return
    large = ensure_store(options.folder, options.nonzeros)
    # The limit counts reserved addresses too: use one heap for all threads, and no BLAS threads.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(large), "--child", "--rounds", str(options.rounds)]
    subprocess.run(command, check=True, env=environment)
    compare_with_memory(ensure_store(options.folder, options.fits))


if __name__ == "__main__":
    main()
