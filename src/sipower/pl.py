# SPDX-License-Identifier: BSD-3-Clause
"""Plots of fitted models and of selections, drawn with matplotlib."""

from sipower.results.plot import (
    consensus,
    convergence,
    palette,
    rank_selection,
    structure,
    top_features,
)

__all__ = ["consensus", "convergence", "palette", "rank_selection", "structure", "top_features"]
