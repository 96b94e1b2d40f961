# SPDX-License-Identifier: BSD-3-Clause
"""Plots of fitted models, of selections and of differences, drawn with matplotlib."""

from sipower.results.plot import (
    consensus,
    convergence,
    palette,
    rank_selection,
    structure,
    top_features,
)
from sipower.results.plot_differences import intervals, volcano

__all__ = [
    "consensus",
    "convergence",
    "intervals",
    "palette",
    "rank_selection",
    "structure",
    "top_features",
    "volcano",
]
