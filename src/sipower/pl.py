# SPDX-License-Identifier: BSD-3-Clause
"""Plots of fitted models, of selections and of differences, drawn with matplotlib.

A fit is a run, a fitted model with its W, an AnnData object after `sipower.tl.nmf`, or a pair of
arrays (W, H). Components are numbered from 1 in decreasing order of size; no plot
identifies them by colour alone.
"""

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
