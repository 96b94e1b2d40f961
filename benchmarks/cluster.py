# SPDX-License-Identifier: BSD-3-Clause
"""What a round costs on a Dask cluster of two worker processes, beside the local one.

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

# Features, rank, nonzeros of a row; milliseconds of a round that was no more than a gradient,
# measured earlier for the same way of working with factors in float32, and of the gradient alone.
CASES = ((2_000, 20, 20, 83, 13), (30_000, 50, 60, 305, 53))
ROWS, ROUNDS = 2_000, 12


def counted_bytes(client: Any) -> int:
    """What all processes have written to their connections since they were first asked."""

    def written() -> int:
        from distributed.comm import tcp  # noqa: PLC0415 - in the workers

        if not hasattr(tcp, "written"):
            tcp.written, write = 0, tcp.TCP.write

            async def counted(self: Any, *arguments: Any, **options: Any) -> int:
                size: int = await write(self, *arguments, **options)
                tcp.written += size
                return size

            tcp.TCP.write = counted
        return int(tcp.written)

    return written() + sum(client.run(written).values())


def data(features: int, row_length: int) -> sp.csr_array:
    """Counts at random places: what a round costs does not depend on their meaning."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, features, (2 * ROWS, row_length))
    rows = np.repeat(np.arange(2 * ROWS), row_length)
    return sp.csr_array((np.ones(rows.size), (rows, columns.ravel())), (2 * ROWS, features))


def local_round(V: sp.csr_array, rank: int) -> float:
    """Seconds of a round on one worker's share of the rows, with one thread."""
    matrix = as_matrix(V[:ROWS], n_jobs=1, rows_only=True)
    start = Factors(*initial_factors(matrix, rank, 0))
    result = solve(Factorization(matrix, rank), Profiled(), start, stop=Stop(0, rounds=ROUNDS))
    return result.seconds / ROUNDS


def cluster_round(client: Client, V: sp.csr_array, rank: int) -> tuple[float, float]:
    """Median seconds of a round, and bytes that it sends over all connections."""
    X = da.from_array(V, chunks=(ROWS, -1), asarray=False)
    times: list[float] = []
    bytes_of: list[int] = []
    for rounds in (2, 2 + ROUNDS):
        before = counted_bytes(client)
        model = KLNMF(
            rank, client=client, tol=0, max_iter=rounds, random_state=0,
            on_round=lambda _: times.append(time.perf_counter()),
        )  # fmt: skip
        model.fit(X)
        bytes_of.append(counted_bytes(client) - before)
    return float(np.median(np.diff(times[-ROUNDS:]))), (bytes_of[1] - bytes_of[0]) / ROUNDS


def main() -> None:
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        counted_bytes(client)
        for features, rank, row_length, earlier, gradient in CASES:
            V = data(features, row_length)
            alone = local_round(V, rank)
            seconds, sent = cluster_round(client, V, rank)
            formula = 8 * features * rank * (2 + 2)
            print(
                f"H {features:,} x {rank}: a round {seconds * 1e3:.0f} ms, its local work "
                f"{alone * 1e3:.0f} ms, so {(seconds - alone) * 1e3:.0f} ms for Dask (measured "
                f"earlier for the same way of working, with half the bytes: {earlier - gradient} "
                f"of {earlier} ms); {sent / 1e6:.2f} MB over both connections on the way, client, "
                f"scheduler, worker and back: {sent / formula:.2f} times the formula of one"
            )
    scaled()


def scaled() -> None:
    """Seconds of a round against workers of one thread each, for 3 million nonzeros."""
    V = sp.csr_array(sp.vstack([data(5_000, 200)] * 4, format="csr"))
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            seconds, _ = cluster_round(client, V, 20)
            print(f"{workers} worker(s), {V.nnz:,} nonzeros, K = 20: {seconds:.2f} s a round")


if __name__ == "__main__":
    main()
