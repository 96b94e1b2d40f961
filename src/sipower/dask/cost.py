# SPDX-License-Identifier: BSD-3-Clause
"""`round_cost`: an estimate of the time of one round on workers, from sizes alone.

    seconds = work of the threads + traffic + tasks

A round of "auto" updates H and W once each. The client sends one factor to all workers and the
items of the other one to those that hold them, and gets these back. A round of "rows" sweeps over W
where it is, sends H to the workers and gets sums over the rows back: g, and curvatures Q as long as
they are at most MAX_CURVATURES numbers. Workers pass a large factor on, and add large sums in a
tree (`dask.collective`), so the client handles these once. docs/scaling.md compares the estimates
with measured rounds and plans larger fits with them.

======  ==================================================================  ===============
symbol  meaning                                                             unit
======  ==================================================================  ===============
p       workers; `threads` is the number of their threads in all
n, m    rows and columns of V
client  bytes that the client sends and receives                            bytes
passed  bytes that workers send each other, one after the other             bytes
======  ==================================================================  ===============
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from sipower.dask.collective import FAN, MIN_SHARED
from sipower.nmf.newton import MAX_COMPONENTS
from sipower.nmf.row_rounds import MAX_CURVATURES

__all__ = [
    "CONSTANTS",
    "Cluster",
    "Constants",
    "Method",
    "RoundCost",
    "Size",
    "amounts",
    "round_cost",
]

Method = Literal["auto", "rows"]
SUM_BYTES = 8  # sums are float64
# Tasks of a worker in a round: updates of H and of W; an update of W, its rows and its sums.
TASKS: dict[Method, int] = {"auto": 2, "rows": 3}


@dataclass(frozen=True)
class Size:
    """The size of a factorisation: rows n, columns m, nonzeros, components K, bytes per number."""

    rows: int
    columns: int
    nonzeros: int
    rank: int
    itemsize: int = 4

    @property
    def curvatures(self) -> int:
        """The numbers of curvatures that rounds of "rows" use: m K (K + 1)/2, or none."""
        count = self.columns * self.rank * (self.rank + 1) // 2
        return count if count <= MAX_CURVATURES and self.rank <= MAX_COMPONENTS else 0


@dataclass(frozen=True)
class Cluster:
    """The workers, their threads in all, and the bytes per second of their connections.

    None stands for the connections of one machine, for which the constants were fitted.
    """

    workers: int
    threads: int
    bandwidth: float | None = None


class Constants(NamedTuple):
    """Seconds for each unit of `amounts`, in its order."""

    number: float  # a number of W or H
    entry: float  # a nonzero
    product: float  # a nonzero and component
    client_byte: float
    passed_byte: float
    task: float


# Fitted to rounds with 1, 4 and 8 workers on the first sizes of `benchmarks/cluster.py rounds`, by
# their relative errors; 2 workers and the other sizes were only used to check them. The time of a
# task was set by hand, so that small data get the right kind of rounds.
CONSTANTS: dict[Method, Constants] = {
    "auto": Constants(0, 4.6e-9, 0.7e-9, 3.0e-9, 0, 10e-3),
    "rows": Constants(35e-9, 21e-9, 2.7e-9, 1.5e-9, 1.3e-9, 4e-3),
}


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


def amounts(size: Size, cluster: Cluster, method: Method) -> Constants:
    """Return how many of each unit a round has, on the longest path through the cluster."""
    share = size.nonzeros / cluster.threads
    client, passed = _bytes(size, cluster, method)
    tasks = TASKS[method] * cluster.workers
    numbers = (size.rows + size.columns) * size.rank / cluster.threads
    return Constants(numbers, share, share * size.rank, client, passed, tasks)


def _bytes(size: Size, cluster: Cluster, method: Method) -> tuple[float, float]:
    """Return the bytes of the client, in both directions, and those passed on by workers."""
    W, H = (count * size.rank * size.itemsize for count in (size.rows, size.columns))
    if method == "auto":  # the items of both factors go there and back, with the D of every row
        client, passed = 2.0 * W + 2 * H + 8 * size.rows, 0.0
    else:
        client, passed = _sums(size, cluster)
    for factor in (W, H) if method == "auto" else (H,):
        is_shared = factor >= MIN_SHARED and cluster.workers > 1
        client += factor if is_shared else factor * cluster.workers
        copies = min(cluster.workers - 1, FAN * _levels(cluster.workers))
        passed += factor * copies if is_shared else 0.0
    return client, passed


def _sums(size: Size, cluster: Cluster) -> tuple[float, float]:
    """Return the bytes of the sums of "rows", those of the client and those passed on."""
    sums = float(SUM_BYTES) * (size.columns * size.rank + size.curvatures)
    if sums < MIN_SHARED:
        return sums * cluster.workers, 0.0
    left, one_after_another = cluster.workers, 0
    while left > 1:
        one_after_another += min(left, FAN) - 1
        left = -(-left // FAN)
    return sums, sums * one_after_another


def _levels(workers: int) -> int:
    """Return the levels of a tree in which every node has FAN others below it."""
    levels, reached = 0, 1
    while reached < workers:
        levels, reached = levels + 1, reached * FAN
    return levels


def round_cost(size: Size, cluster: Cluster, method: Method) -> RoundCost:
    """Return the estimated cost of a round."""
    amount, each = amounts(size, cluster, method), CONSTANTS[method]
    parts = Constants(*(a * b for a, b in zip(amount, each, strict=True)))
    traffic = parts.client_byte + parts.passed_byte
    if cluster.bandwidth is not None:
        traffic += (amount.client_byte + amount.passed_byte) / cluster.bandwidth
    work = parts.number + parts.entry + parts.product
    return RoundCost(work, traffic, parts.task)
