# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the number of components, stability, and families of components."""

from sipower.selection.consensus import consensus
from sipower.selection.edit import EditedFit, edit_components
from sipower.selection.flows import ComponentFlows, component_flows
from sipower.selection.group_consensus import GroupConsensus
from sipower.selection.matching import cosines, match, merge
from sipower.selection.merge_tree import MergeTree, merge_tree
from sipower.selection.outcome import Consensus, RankSelection, load_outcome, save_outcome
from sipower.selection.rank import estimated_seconds, rank_selection

__all__ = [
    "ComponentFlows",
    "Consensus",
    "EditedFit",
    "GroupConsensus",
    "MergeTree",
    "RankSelection",
    "component_flows",
    "consensus",
    "cosines",
    "edit_components",
    "estimated_seconds",
    "load_outcome",
    "match",
    "merge",
    "merge_tree",
    "rank_selection",
    "save_outcome",
]
