# SPDX-License-Identifier: BSD-3-Clause
"""Draw the picture of docs/howto/dask.md: python docs/images/cluster.py.

Left: the fit of that page, on a cluster of two workers on this machine. Right: the certified gap
after each round on the cluster and in memory, from the same random start.
"""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import matplotlib as mpl
import scipy.sparse as sp
from distributed import Client, LocalCluster

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

import sipower
from sipower import pl
from sipower.dask import KLNMF
from sipower.datasets import poisson_topics

V = poisson_topics(2000, 300, 5, length=100, seed=0)


def draw_shares(ax: Axes, X: da.Array) -> None:
    """Draw the shares of the components in the samples, from the W of the cluster."""
    model = KLNMF(5, random_state=0, tol=1e-2)
    W = model.fit_transform(X).compute()
    pl.structure(model.to_local(), ax, W=W)
    ax.set(title="Shares of five components in 2,000 samples")


def draw_gaps(ax: Axes, X: da.Array) -> None:
    """Draw the certified gap after each round, on the cluster and in memory."""
    settings = {"init": "random", "random_state": 0, "tol": 1e-3}
    cluster = KLNMF(5, **settings).fit(X)
    local = sipower.KLNMF(5, solver="rows", **settings).fit(V)
    for model, label, style, colour in (
        (cluster, "on the cluster", "-", "#D55E00"),
        (local, "in memory", "o", "#0072B2"),
    ):
        records = [record for record in model.trace_ if record.round > 0 and record.gap > 0]
        rounds, gaps = zip(*((record.round, record.gap) for record in records), strict=True)
        ax.loglog(rounds, gaps, style, color=colour, label=label, ms=5)
    ax.set(title="The same gap as in memory", xlabel="round", ylabel="certified gap")
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.legend()


def main() -> None:
    """Start the cluster and write the picture."""
    X = da.from_array(V.toarray(), chunks=(500, -1)).map_blocks(sp.csr_array)
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers),
    ):
        draw_shares(axes[0], X)
        draw_gaps(axes[1], X)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
