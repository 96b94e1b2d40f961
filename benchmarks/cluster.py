# SPDX-License-Identifier: BSD-3-Clause
"""Measure the cost of a round on a Dask cluster of two worker processes and locally.

Run: python benchmarks/cluster.py
"""

from __future__ import annotations

import time
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

from sipower import Stop, as_matrix, solve
from sipower.dask import KLNMF
from sipower.nmf import Factorization, Factors, Profiled
from sipower.nmf.init import initial_factors

# Features, rank, nonzeros of a row; then the milliseconds of a round that computes one gradient,
# measured earlier with the same communication and factors in float32, and of the gradient alone.
CASES = ((2_000, 20, 20, 83, 13), (30_000, 50, 60, 305, 53))
ROWS, ROUNDS = 2_000, 12


def count_bytes(client: Any) -> int:
    """Return the bytes that all processes have sent since the first call."""

    def count_in_process() -> int:
        from distributed.comm import tcp  # noqa: PLC0415 - in the workers

        if not hasattr(tcp, "written"):
            tcp.written, write = 0, tcp.TCP.write

            async def write_and_count(self: Any, *arguments: Any, **options: Any) -> int:
                size: int = await write(self, *arguments, **options)
                tcp.written += size
                return size

            tcp.TCP.write = write_and_count
        return int(tcp.written)

    return count_in_process() + sum(client.run(count_in_process).values())


def draw_data(features: int, row_length: int) -> sp.csr_array:
    """Return counts at random places; the cost of a round does not depend on their values."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, features, (2 * ROWS, row_length))
    rows = np.repeat(np.arange(2 * ROWS), row_length)
    return sp.csr_array((np.ones(rows.size), (rows, columns.ravel())), (2 * ROWS, features))


def time_local_round(V: sp.csr_array, rank: int) -> float:
    """Return the seconds of a round on one worker's share of the rows, with one thread."""
    matrix = as_matrix(V[:ROWS], n_jobs=1, rows_only=True)
    start = Factors(*initial_factors(matrix, rank, 0))
    result = solve(Factorization(matrix, rank), Profiled(), start, stop=Stop(0, rounds=ROUNDS))
    return result.seconds / ROUNDS


def time_cluster_round(client: Client, V: sp.csr_array, rank: int) -> tuple[float, float]:
    """Return the median seconds of a round, and the bytes that it sends over all connections."""
    X = da.from_array(V, chunks=(ROWS, -1), asarray=False)
    times: list[float] = []
    sent: list[int] = []
    for rounds in (2, 2 + ROUNDS):
        before = count_bytes(client)
        model = KLNMF(
            rank, client=client, tol=0, max_iter=rounds, random_state=0,
            on_round=lambda _: times.append(time.perf_counter()),
        )  # fmt: skip
        model.fit(X)
        sent.append(count_bytes(client) - before)
    return float(np.median(np.diff(times[-ROUNDS:]))), (sent[1] - sent[0]) / ROUNDS


def main() -> None:
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        count_bytes(client)
        for features, rank, row_length, earlier, gradient in CASES:
            V = draw_data(features, row_length)
            alone = time_local_round(V, rank)
            seconds, sent = time_cluster_round(client, V, rank)
            formula = 8 * features * rank * (2 + 2)
            print(
                f"H {features:,} x {rank}: a round {seconds * 1e3:.0f} ms, its local work "
                f"{alone * 1e3:.0f} ms, so {(seconds - alone) * 1e3:.0f} ms for Dask (measured "
                f"earlier with half the bytes: {earlier - gradient} of {earlier} ms); "
                f"{sent / 1e6:.2f} MB sent from client to scheduler to workers and back, "
                f"{sent / formula:.2f} times the formula for one of these connections"
            )
    time_scaling()


def time_scaling() -> None:
    """Print the seconds of a round with one and with two workers, for 3 million nonzeros."""
    V = sp.csr_array(sp.vstack([draw_data(5_000, 200)] * 4, format="csr"))
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            seconds, _ = time_cluster_round(client, V, 20)
            print(f"{workers} worker(s), {V.nnz:,} nonzeros, K = 20: {seconds:.2f} s a round")


if __name__ == "__main__":
    main()
