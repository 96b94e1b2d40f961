# SPDX-License-Identifier: BSD-3-Clause
"""Print the estimated time of a round for three large data sets on 1, 16 and 256 nodes.

    python benchmarks/plan.py

The estimates are those of `sipower.dask.cost`, whose constants were fitted on one machine with two
cores; nothing here is measured. A node is a worker process with 16 threads; nodes are connected by
10 Gbit/s. The tables of docs/scaling.md are made by this script.
"""

from __future__ import annotations

from sipower.dask.cost import Cluster, Method, Size, round_cost

DATA = {
    "PubMed": Size(8_200_000, 141_043, 483_450_157, 100),
    "1.3 million cells": Size(1_300_000, 30_000, 2_600_000_000, 20),
    "100 million rows": Size(100_000_000, 100_000, 10_000_000_000, 50),
}
NODES, THREADS, BANDWIDTH = (1, 16, 256), 16, 1.25e9
SOLVERS: tuple[Method, ...] = ("auto", "rows")
ENTRY_BYTES = 8  # index and value of a nonzero


def gigabytes(size: Size, nodes: int, method: Method) -> tuple[float, float]:
    """Return the memory of a worker and of the client in GB: data and factors."""
    W, H = (count * size.rank * size.itemsize for count in (size.rows, size.columns))
    if method == "auto":  # both orientations; factors, their last values and extrapolations
        return (2 * ENTRY_BYTES * size.nonzeros / nodes + W + H) / 1e9, 6 * (W + H) / 1e9
    sums = 8 * (size.columns * size.rank + size.curvatures)
    return ((ENTRY_BYTES * size.nonzeros + 4 * W) / nodes + 2 * sums) / 1e9, 3 * sums / 1e9


def show(number: float) -> str:
    """Return a number with two significant digits."""
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def main() -> None:
    print(
        "| data | nodes | rounds | work | traffic | tasks | a round | GB of a node, of the client "
        "| bottleneck |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, size in DATA.items():
        for nodes in NODES:
            for method in SOLVERS:
                bandwidth = BANDWIDTH if nodes > 1 else None
                cost = round_cost(size, Cluster(nodes, THREADS * nodes, bandwidth), method)
                parts = " | ".join(show(s) for s in (cost.work, cost.traffic, cost.tasks))
                node, client = gigabytes(size, nodes, method)
                print(
                    f"| {name} | {nodes} | {method} | {parts} | {show(cost.seconds)} s | "
                    f"{show(node)}, {show(client)} | {cost.bottleneck} |"
                )


if __name__ == "__main__":
    main()
