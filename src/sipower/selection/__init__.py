# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the number of components, and stability of the components."""

from sipower.selection.consensus import consensus
from sipower.selection.matching import cosines, match, merge
from sipower.selection.outcome import Consensus, RankSelection, load_outcome, save_outcome
from sipower.selection.rank import estimated_seconds, rank_selection

__all__ = [
    "Consensus",
    "RankSelection",
    "consensus",
    "cosines",
    "estimated_seconds",
    "load_outcome",
    "match",
    "merge",
    "rank_selection",
    "save_outcome",
]
