# SPDX-License-Identifier: BSD-3-Clause
"""Compare fits on local Dask workers with fits in one process.

    python benchmarks/cluster.py FOLDER goal        time to a gap of 1e-2, on a store
    python benchmarks/cluster.py FOLDER rounds      measure rounds on 1 to 8 workers
    python benchmarks/cluster.py FOLDER model       compare them with the estimates
    python benchmarks/cluster.py FOLDER overhead    what Dask adds to a round on small data
    python benchmarks/cluster.py FOLDER processors  processor time of a round with 1 and 4 workers
    python benchmarks/cluster.py FOLDER kill        bits of a fit whose workers are killed

FOLDER holds a store of 300,000 x 20,000 topic counts with about 33 million nonzeros, which is
written at first use.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
import scipy.sparse as sp
from distributed import Client, LocalCluster
from scipy.optimize import nnls

import sipower
from sipower.dask import KLNMF, Files
from sipower.dask.cost import Cluster, Constants, Size, amounts, round_cost
from sipower.datasets import poisson_topics
from sipower.io import open_on_disk
from sipower.store import write_store

CORES = len(os.sched_getaffinity(0))
RANK, GOAL, REPEATS = 15, 1e-2, 3
# The first rows and columns of the store, and K. The constants of `sipower.dask.cost` were fitted
# to the first FITTED sizes with 1, 4 and 8 workers; all else was only used to check them.
SIZES = (
    (120_000, 20_000, 15), (30_000, 20_000, 30), (300_000, 2_000, 10), (150_000, 5_000, 25),
    (200_000, 10_000, 20), (60_000, 8_000, 12),
)  # fmt: skip
FITTED = 4
WORKERS, SOLVERS = (1, 2, 4, 8), ("auto", "rows")


@contextmanager
def local_workers(count: int) -> Iterator[Client]:
    """Start worker processes of one thread each."""
    cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.wait_for_workers(count)
        yield client


def ensure_store(folder: Path) -> Path:
    """Return the store of 300,000 x 20,000 counts; write it unless it exists."""
    path = folder / "V.sipower"
    if not path.exists():
        write_store(poisson_topics(300_000, 20_000, RANK, length=115, seed=0), path)
    return path


def time_to_goal(model: Any, X: Any) -> str:
    """Fit until the gap is at most GOAL and describe the fit."""
    started = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - started
    return f"{seconds:.1f} s, {model.n_iter_} rounds, gap {model.kkt_residual_:.4f}"


def compare_goals(folder: Path) -> None:
    """Print the time to the goal in one process and on two workers, interleaved."""
    store, settings = ensure_store(folder), {"tol": GOAL, "random_state": 0, "dtype": "float32"}
    with local_workers(2) as client:
        for _ in range(REPEATS):
            alone = sipower.KLNMF(RANK, n_jobs=2, **settings)
            print("one process, store    ", time_to_goal(alone, open_on_disk(store)), flush=True)
            for solver in SOLVERS:
                model = KLNMF(RANK, client=client, solver=solver, **settings)
                print(f"two workers, {solver:9}", time_to_goal(model, Files([store])), flush=True)


# ---- rounds ------------------------------------------------------------------------------------


def draw_data(rows: int, columns: int, length: int) -> sp.csr_array:
    """Return counts at random places; the cost of a round hardly depends on their values."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.integers(0, columns, (rows, length), np.int32), axis=1)
    indptr = np.arange(0, rows * length + 1, length)
    table = sp.csr_array((np.ones(rows * length, np.float32), places.ravel(), indptr))
    table.sum_duplicates()
    return table


def persist_rows(client: Client, V: sp.csr_array, workers: int) -> da.Array:
    """Return the data on the workers, one chunk of rows each."""
    chunks = -(-V.shape[0] // workers)
    array: da.Array = client.persist(da.from_array(V, chunks=(chunks, -1), asarray=False))
    return array


def time_rounds(client: Client, X: Any, rank: int, solver: str, rounds: int = 10) -> float:
    """Return the median seconds of a round; rounds that also compute a certificate are few."""
    times: list[float] = []
    model = KLNMF(
        rank, client=client, solver=solver, init="sample", tol=0, max_iter=rounds, random_state=0,
        on_round=lambda _: times.append(time.perf_counter()),
    )  # fmt: skip
    model.fit(X)
    return float(np.median(np.diff(times)[1:]))


def measure_rounds(folder: Path) -> None:
    """Append the seconds of rounds to FOLDER/rounds.jsonl."""
    store = open_on_disk(ensure_store(folder))
    for size in SIZES:
        V = sp.csr_array(store.rows(0, size[0])[:, : size[1]]).astype(np.float32)
        for workers in WORKERS:
            with local_workers(workers) as client:
                X = persist_rows(client, V, workers)
                for solver in SOLVERS:
                    seconds = time_rounds(client, X, size[2], solver)
                    row = [*size[:2], V.nnz, size[2], workers, solver, seconds]
                    with (folder / "rounds.jsonl").open("a") as file:
                        file.write(json.dumps(row) + "\n")


def compare_rounds(folder: Path) -> None:
    """Print measured and estimated seconds, and constants fitted to the first half of the sizes."""
    rows = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    best: dict[tuple[Any, ...], float] = {}  # of all runs
    for *key, seconds in rows:
        best[tuple(key)] = min(seconds, best.get(tuple(key), np.inf))
    for solver in SOLVERS:
        fitted, seconds = [], []
        for (n, m, nnz, rank, workers, name), value in best.items():
            size, cluster = Size(n, m, nnz, rank), Cluster(workers, min(workers, CORES))
            cost = round_cost(size, cluster, solver)
            is_fitted = (n, m, rank) in SIZES[:FITTED] and workers != 2
            if name != solver:
                continue
            if is_fitted:
                fitted.append(amounts(size, cluster, solver))
                seconds.append(value)
            print(
                f"| {n:,} x {m:,} | {nnz:,} | {rank} | {workers} | {solver} | {value * 1e3:.0f} | "
                f"{cost.seconds * 1e3:.0f} | {cost.seconds / value - 1:+.0%} | {cost.bottleneck} | "
                f"{'fitted' if is_fitted else 'checked'} |"
            )
        relative = np.array(fitted) / np.array(seconds)[:, None]
        print(solver, Constants(*nnls(relative, np.ones(len(relative)))[0]))


def compare_overhead() -> None:
    """Print the seconds that Dask adds to a round: its time less that of a worker's share of it."""
    for columns, rank, length in ((2_000, 20, 20), (30_000, 50, 60)):
        V = draw_data(4_000, columns, length)
        for solver in SOLVERS:
            alone = time_local_round(V[:2_000], rank, solver)
            with local_workers(2) as client:
                X = persist_rows(client, V, 2)
                seconds = min(time_rounds(client, X, rank, solver) for _ in range(REPEATS))
            print(
                f"H {columns:,} x {rank}, {solver}: a round {seconds * 1e3:.0f} ms, its local work "
                f"{alone * 1e3:.0f} ms, so {(seconds - alone) * 1e3:.0f} ms for Dask",
                flush=True,
            )


def time_local_round(V: sp.csr_array, rank: int, solver: str, rounds: int = 12) -> float:
    """Return the median seconds of a round in this process, with one thread."""
    times: list[float] = []
    sipower.KLNMF(
        rank, n_jobs=1, solver=solver, init="random", tol=0, max_iter=rounds, random_state=0,
        on_round=lambda _: times.append(time.perf_counter()),
    ).fit(V)  # fmt: skip
    return float(np.median(np.diff(times)[1:]))


def compare_processors(folder: Path) -> None:
    """Print the processor time of a round with one and with four workers."""
    V = draw_data(60_000, 5_000, 100)
    for solver in SOLVERS:
        used = {}
        for workers in (1, 4):
            with local_workers(workers) as client:
                X = client.persist(
                    da.from_array(V, chunks=(-(-len(V.indptr) // workers), -1), asarray=False)
                )
                time_rounds(client, X, 15, solver, 2)
                before = _processor_seconds(client)
                time_rounds(client, X, 15, solver, 12)
                used[workers] = _processor_seconds(client) - before
        print(f"{solver}: {used[1]:.1f} s with 1 worker, {used[4]:.1f} s with 4: efficiency "
              f"{used[1] / used[4]:.2f}")  # fmt: skip


def _processor_seconds(client: Client) -> float:
    """Return the processor time of the client, with its scheduler, and of all workers."""
    pids = [os.getpid(), *client.run(os.getpid).values()]
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def compare_killed() -> None:
    """Print whether fits whose workers are killed have the bits of an undisturbed fit."""
    V = draw_data(20_000, 2_000, 50)
    for solver in SOLVERS:
        with local_workers(2) as client:
            X = da.from_array(V, chunks=(5_000, -1), asarray=False)
            settings = {"client": client, "solver": solver, "tol": 0, "max_iter": 25}
            calm = KLNMF(8, random_state=0, **settings).fit(X)
            for seed in range(5):
                moments = random.Random(seed)
                at, delay, which = moments.randrange(1, 22), moments.random() * 0.2, seed % 2
                moment = at, delay, which

                def kill(record: Any, moment: tuple[int, float, int] = moment) -> None:
                    at, delay, which = moment
                    if record.round == at:
                        pid = sorted(client.run(os.getpid).values())[which]
                        threading.Timer(delay, os.kill, (pid, signal.SIGKILL)).start()

                hurt = KLNMF(8, random_state=0, on_round=kill, **settings).fit(X)
                same = hurt.components_.tobytes() == calm.components_.tobytes()
                values = [[r.objective for r in fit.trace_] for fit in (hurt, calm)]
                same_values = np.array_equal(*values, equal_nan=True)
                print(f"{solver}, killed after round {at}: bits {same}, trace {same_values}")


def main() -> None:
    warnings.simplefilter("ignore")
    folder, what = Path(sys.argv[1]), sys.argv[2]
    if what == "goal":
        compare_goals(folder)
    elif what == "rounds":
        measure_rounds(folder)
    elif what == "model":
        compare_rounds(folder)
    elif what == "overhead":
        compare_overhead()
    elif what == "processors":
        compare_processors(folder)
    else:
        compare_killed()


if __name__ == "__main__":
    main()
