# SPDX-License-Identifier: BSD-3-Clause
"""`round_cost`: an estimate of the time of one round on workers, from sizes alone.

    seconds = a · nnz · K / threads  +  b · bytes through the client  +  c · tasks

A round of "auto" (two sweeps of each factor) sends W and H to the workers that hold rows and
columns, and gets both back. A round of "rows" (a sweep of W, a Newton step of H) sends H and gets
sums back. docs/scaling.md compares the estimates with measured rounds.

======  ============================================================  ===================
symbol  meaning                                                       unit
======  ============================================================  ===================
a       work of one thread                                            s / nonzero / K
b       serialising, sending and handling the factors, both ways      s / byte
c       scheduling a task and waiting for it                          s / task
======  ============================================================  ===================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Cluster", "RoundCost", "Size", "round_cost"]

Method = Literal["auto", "rows"]

# Fitted to rounds of `benchmarks/cluster.py model` with 1 and 4 workers on 2 cores; 2 and 8 workers
# were looked at once.
SECONDS_PER_ENTRY: dict[Method, float] = {"auto": 2.4e-9, "rows": 2.4e-9}
SECONDS_PER_BYTE = 4e-9
SECONDS_PER_TASK = 3e-3
SUM_BYTES = 8  # sums are float64
CALLS = 2  # kernels that a round of "auto" runs on all items: a step of H, a step of W with D


@dataclass(frozen=True)
class Size:
    """The size of a factorisation: rows n, columns m, nonzeros, components K, bytes per number."""

    rows: int
    columns: int
    nonzeros: int
    rank: int
    itemsize: int = 4


@dataclass(frozen=True)
class Cluster:
    """The workers, their threads in all, and how much faster the connection is than a local one."""

    workers: int
    threads: int
    speed: float = 1.0


@dataclass(frozen=True)
class RoundCost:
    """The estimated seconds of the parts of a round."""

    work: float
    traffic: float
    tasks: float

    @property
    def seconds(self) -> float:
        """The estimated seconds of the round."""
        return self.work + self.traffic + self.tasks

    @property
    def bottleneck(self) -> str:
        """The largest part."""
        return max(("work", "traffic", "tasks"), key=lambda name: getattr(self, name))


def client_bytes(size: Size, workers: int, method: Method) -> float:
    """Return the bytes of a round that go through the client, in both directions."""
    W, H = (count * size.rank * size.itemsize for count in (size.rows, size.columns))
    if method == "auto":
        return 3 * W + 3 * H + 8 * size.rows  # sent whole and in parts, and back; D of every row
    sums = size.columns * size.rank * SUM_BYTES * (1 + (size.rank + 1) / 2)
    return workers * (H + sums)


def round_cost(size: Size, cluster: Cluster, method: Method) -> RoundCost:
    """Return the estimated cost of a round."""
    work = SECONDS_PER_ENTRY[method] * size.nonzeros * size.rank / cluster.threads
    sent = client_bytes(size, cluster.workers, method)
    tasks = (CALLS * (cluster.workers + 1)) if method == "auto" else 3 * cluster.workers
    return RoundCost(work, SECONDS_PER_BYTE * sent / cluster.speed, SECONDS_PER_TASK * tasks)
