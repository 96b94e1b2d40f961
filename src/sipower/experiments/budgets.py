# SPDX-License-Identifier: BSD-3-Clause
"""Data sets, horizons and grids of the experiments, and how much of them each budget runs."""

from __future__ import annotations

from dataclasses import dataclass

EXPERIMENTS = ("table1", "nmf", "synthetic", "subproblem", "robustness", "sampling", "signs")
REAL, SYNTHETIC = ("wt", "nips", "kos", "mitf"), ("pois1", "pois2", "pois3")
DENSE = ("wt", "mitf", "pois1")
BOXPLOTS = ("wt", "nips", "docstrings")  # the paper's two, and their substitute
TITLES = {
    "wt": "WT", "nips": "NIPS", "kos": "KOS", "mitf": "MITF",
    "pois1": "Pois1", "pois2": "Pois2", "pois3": "Pois3", "docstrings": "docstrings",
}  # fmt: skip
SCREENING = 0.15  # share of the horizon for the first run of every grid point
STEPS_PER_PAIR = 2  # number of finalists (values of η) if (s/n, m) is fixed

# The paper's grid of s/n, m and η.
GRID = ((1e-4, 1e-3, 0.01, 0.1, 1.0), (10, 100, 1000), (0.01, 0.1, 1.0))
# For sampling in both dimensions of dense data: (s/n, m) of the shorter dimension, and the points
# of the longer one to combine them with. The combinations are about as many as the points of GRID.
SHORT_SIDE = ((0.05, 10), (0.05, 20), (0.1, 10))
LONG_SIDE = ((1e-4, 10), (1e-4, 100), (1e-3, 10), (1e-3, 100), (0.01, 10), (0.01, 100))
PAIRS = (
    (1e-4, 10), (1e-4, 100), (1e-4, 1000), (1e-3, 10), (1e-3, 100), (0.01, 10), (0.01, 100),
    (0.1, 10), (0.1, 100),
)  # fmt: skip
# Variants of S-SCI-PI: the paper's choices for dense and for sparse data, and the alternatives.
VARIANTS = {
    "dense": {"scheme": "vectors", "sides": "long"},
    "sparse": {"scheme": "elements", "sides": "both"},
    "both sides": {"scheme": "vectors", "sides": "both"},
    "elements, one side": {"scheme": "elements", "sides": "long"},
    "vectors": {"scheme": "vectors", "sides": "both"},
}
COMPARED_VARIANTS = {  # the alternatives to the paper's variant, by data set
    "wt": ("both sides",),
    "mitf": ("both sides",),
    "kos": ("elements, one side", "vectors"),
    "nips": ("elements, one side",),
    "docstrings": ("elements, one side",),
}


@dataclass(frozen=True)
class Horizon:
    """The limits of runs on a data set: passes for KL-NMF and for the subproblem, and seconds."""

    nmf: float
    subproblem: float
    seconds: float


HORIZONS = {
    "wt": Horizon(300, 120, 15),
    "nips": Horizon(500, 300, 12),
    "kos": Horizon(600, 300, 9),
    "mitf": Horizon(600, 300, 9),
    "docstrings": Horizon(500, 300, 4),
    "pois1": Horizon(250, 120, 6),
    "pois2": Horizon(250, 120, 6),
    "pois3": Horizon(250, 120, 6),
}


@dataclass(frozen=True)
class Budget:
    """A budget: how much of the protocol is run.

    Parameters
    ----------
    scale
        Factor by which all horizons are multiplied.
    replicates
        Number of seeds for the paper's methods and the untuned S-SCI-PI.
    other_replicates
        Number of seeds for methods that the paper does not compare.
    finalists
        Number of grid points that run to the horizon. None means all, without screening.
    starts
        Number of starts from which each finalist is run.
    grid
        Values of s/n, m and η.
    pairs
        Pairs (s/n, m) of the boxplots.
    datasets
        Names of the data sets; those that are not present are left out.
    """

    scale: float
    replicates: int
    other_replicates: int
    finalists: int | None
    starts: int
    grid: tuple[tuple[float, ...], tuple[int, ...], tuple[float, ...]] = GRID
    pairs: tuple[tuple[float, int], ...] = PAIRS
    datasets: tuple[str, ...] = REAL + SYNTHETIC


BUDGETS = {
    "quick": Budget(0.25, 3, 1, 2, 1, ((1e-3, 0.01, 0.1), (10, 100), (0.1, 1.0)), PAIRS[3:7]),
    "standard": Budget(1.0, 10, 4, 6, 3),
    "full": Budget(4.0, 10, 10, None, 10),
}
