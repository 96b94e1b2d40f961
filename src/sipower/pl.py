# SPDX-License-Identifier: BSD-3-Clause
"""Plots of fitted models, of selections and of differences, drawn with matplotlib."""

from sipower.results.family_plots import flows, programs, tree
from sipower.results.plot import (
    consensus,
    convergence,
    palette,
    rank_selection,
    structure,
    top_features,
)
from sipower.results.plot_differences import intervals, volcano
from sipower.results.plot_signatures import signatures

__all__ = [
    "consensus",
    "convergence",
    "flows",
    "intervals",
    "palette",
    "programs",
    "rank_selection",
    "signatures",
    "structure",
    "top_features",
    "tree",
    "volcano",
]
