# SPDX-License-Identifier: BSD-3-Clause
"""Examples of the files that hold results of several fits."""

import shutil

import numpy as np
import pandas as pd

from files.small_data import BATCHES, Example, counts, small_model
from sipower.results import Run, load_run, save_run
from sipower.results.export import export_programs, export_selection
from sipower.results.folder import load_consensus
from sipower.selection import (
    ComponentFlows,
    Consensus,
    MergeTree,
    RankSelection,
    component_flows,
    consensus,
    load_outcome,
    merge_tree,
    rank_selection,
    save_outcome,
)


def write_rank(folder):
    result = rank_selection(counts(), [1, 2], small_model(), replicates=2, folder=folder / "fits")
    export_selection(result, folder)
    (folder / "rank.png").unlink()  # a picture, not a format
    return result


def read_rank(folder):
    return load_outcome(RankSelection, folder / "rank.json")


def rewrite_rank(source, target):
    shutil.copytree(source / "fits", target / "fits")
    export_selection(read_rank(source), target)
    (target / "rank.png").unlink()


def write_consensus(folder):
    model = small_model()
    result = consensus(counts(), model, replicates=3, folder=folder / "fits")
    run = Run(result.W, result.H, facts={"replicates": 3, "status": "converged"})
    save_run(run, folder)
    save_outcome(result, folder / "consensus.json")
    return load_consensus(run, folder)


def read_consensus(folder):
    return load_consensus(load_run(folder), folder)


def rewrite_consensus(source, target):
    run = load_run(source)
    save_run(run, target)
    kept = load_outcome(Consensus, source / "consensus.json", W=run.W, H=run.H)
    save_outcome(kept, target / "consensus.json")
    shutil.copytree(source / "fits", target / "fits")


def write_programs(folder):
    labels = np.array(BATCHES)
    result = consensus(counts(), small_model(), groups=labels, replicates=2, min_cosine=0.1)
    export_programs(result, folder)
    return {"names": list(result.names), "groups": list(result.groups)}


def read_programs(folder):
    table = pd.read_csv(folder / "programs.csv")
    groups = [c.removeprefix("share of ") for c in table.columns if c.startswith("share of ")]
    return {"names": list(table["program"]), "groups": groups}


def write_tree(folder):
    W, H = np.arange(1.0, 25).reshape(8, 3) % 7, np.arange(1.0, 19).reshape(3, 6) % 5
    tree = merge_tree(W, H)
    save_outcome(tree, folder / "tree.json")
    return tree


def read_tree(folder):
    return load_outcome(MergeTree, folder / "tree.json")


def write_flows(folder):
    pairs = [(np.ones((12, k)), np.arange(1.0, 8 * k + 1).reshape(k, 8)) for k in (1, 2)]
    flows = component_flows(counts(), pairs)
    save_outcome(flows, folder / "flows.json")
    return flows


def read_flows(folder):
    return load_outcome(ComponentFlows, folder / "flows.json")


SEVERAL_FITS = {
    "rank": Example(write_rank, read_rank, rewrite_rank),
    "consensus": Example(write_consensus, read_consensus, rewrite_consensus),
    "programs": Example(write_programs, read_programs),
    "tree": Example(
        write_tree, read_tree, lambda a, b: save_outcome(read_tree(a), b / "tree.json")
    ),
    "flows": Example(
        write_flows, read_flows, lambda a, b: save_outcome(read_flows(a), b / "flows.json")
    ),
}
