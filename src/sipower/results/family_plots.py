# SPDX-License-Identifier: BSD-3-Clause
"""Matplotlib plots of families of components: merge trees, flows between ranks, programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sipower.results.plot import as_axes, palette, short_name
from sipower.selection import ComponentFlows, GroupConsensus, MergeTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle

__all__ = ["flows", "programs", "tree"]

Numbers = NDArray[np.float64]
GREY = "#808080"
MAX_DECADES = 6  # of the axis of bounds
MIN_FLOW = 0.02  # share of a component; smaller flows are not drawn
LINE_WIDTH = 30.0  # of all counts, in points


def tree(
    tree: MergeTree,
    ax: Axes | None = None,
    *,
    names: Sequence[str] | None = None,
    k: int | None = None,
) -> Axes:
    """Draw a merge tree with its families in colours, and the cut as a dashed line.

    Parameters
    ----------
    tree
        The result of `sipower.selection.merge_tree`.
    ax
        Axes to draw on; None creates a new figure.
    names
        Names of the components, such as their top features, in the order of the factors. None:
        their positions in `components_`, counted from 0, and their shares of the counts.
    k
        Number of families; None: the suggested rank, or no cut if there is none.

    Examples
    --------
    >>> from sipower import KLNMF, pl
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.selection import merge_tree
    >>> V = poisson_topics(300, 200, 4, seed=0)
    >>> model = KLNMF(8, random_state=0)
    >>> pl.tree(merge_tree(model.fit_transform(V), model.components_)).get_title()
    '4 families of 8 components'
    """
    labels = _leaf_labels(tree, names)
    k = tree.suggested_rank if k is None else k
    family = tree.cut(tree.rank if k is None else k)
    ax = as_axes(ax)
    heights = _heights(tree)
    base = float(heights.min(initial=1.0)) / 2
    leaves = _leaf_order(tree)
    place = {leaf: float(at) for at, leaf in enumerate(leaves)}
    reach = dict.fromkeys(range(tree.rank), base)
    colours = palette(int(family.max()) + 1)
    for i, (a, b) in enumerate(tree.mergers):
        node, own = tree.rank + i, {int(family[leaf]) for leaf in tree.members[tree.rank + i]}
        colour = colours[own.pop()] if k is not None and len(own) == 1 else GREY
        x = [reach[a], heights[i], heights[i], reach[b]]
        ax.plot(x, [place[a], place[a], place[b], place[b]], color=colour, linewidth=1.6)
        place[node], reach[node] = (place[a] + place[b]) / 2, float(heights[i])
    if k is not None and 1 < k <= tree.rank and tree.rank > 1:
        at = tree.rank - k  # mergers made
        before = heights[at - 1] if at else base
        ax.axvline(float(np.sqrt(before * heights[at])), color="black", linestyle="--", linewidth=1)
        ax.set_title(f"{k} families of {tree.rank} components")
    ax.set_xscale("log")
    ax.set_xlim(left=base)
    ax.set_yticks(range(tree.rank), [labels[leaf] for leaf in leaves])
    ax.invert_yaxis()
    ax.set_xlabel("bound on the increase of D (nats per count)")
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _leaf_labels(tree: MergeTree, names: Sequence[str] | None) -> list[str]:
    if names is None:
        shares = tree.masses / max(float(tree.masses.sum()), np.finfo(float).tiny)
        return [f"{k}  ({share:.1%})" for k, share in enumerate(shares)]
    if len(names) != tree.rank:
        raise ValueError(
            f"`names` must have one name for each of the {tree.rank} components, got {len(names)}."
        )
    return [short_name(str(name)) for name in names]


def _heights(tree: MergeTree) -> Numbers:
    """Return the bounds per count, so that no merger is left of one that was made before it."""
    heights = np.maximum.accumulate(tree.relative_bounds)
    top = float(heights.max(initial=0.0))
    return np.maximum(heights, top / 10**MAX_DECADES if top > 0 else 1.0)


def _leaf_order(tree: MergeTree) -> list[int]:
    """Return the components in an order without crossing lines, larger families first."""
    order: list[int] = []
    stack = [2 * tree.rank - 2]
    while stack:
        node = stack.pop()
        if node < tree.rank:
            order.append(node)
            continue
        pair = tree.mergers[node - tree.rank]
        stack += sorted(pair, key=lambda child: tree.masses[list(tree.members[child])].sum())
    return order


def flows(
    flows: ComponentFlows, ax: Axes | None = None, *, names: Sequence[Sequence[str]] | None = None
) -> Axes:
    """Draw the components of fits with different K as columns, and shared counts as lines.

    Components are ordered so that lines cross little, and have the colour of their largest
    ancestor in the first fit. Lines that hold less than 2 % of both components are not drawn.

    Parameters
    ----------
    flows
        The result of `sipower.selection.component_flows`.
    ax
        Axes to draw on; None creates a new figure.
    names
        Names of the components of each fit; None: their positions in `components_`, from 0.

    Examples
    --------
    >>> from sipower import KLNMF, pl
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.selection import component_flows
    >>> V = poisson_topics(300, 200, 4, seed=0)
    >>> ax = pl.flows(component_flows(V, [KLNMF(k, random_state=0).fit(V) for k in (3, 4)]))
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['K = 3', 'K = 4']
    """
    if names is not None and tuple(map(len, names)) != flows.ranks:
        raise ValueError(f"`names` must have {flows.ranks} names, got {tuple(map(len, names))}.")
    ax = as_axes(ax)
    total = max(float(flows.flows[0].sum()), np.finfo(float).tiny)
    places, colours = _flow_places(flows)
    for fit, table in enumerate(flows.flows):
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        for a, b in np.ndindex(table.shape):
            if table[a, b] < MIN_FLOW * min(rows[a], columns[b]):
                continue
            ends = places[fit][a], places[fit + 1][b]
            width = LINE_WIDTH * float(table[a, b]) / total
            colour = colours[fit][a]
            ax.plot([fit, fit + 1], ends, color=colour, linewidth=max(width, 0.3), alpha=0.5)
    for fit, rank in enumerate(flows.ranks):
        for k in range(rank):
            label = str(k) if names is None else short_name(str(names[fit][k]))
            box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": colours[fit][k]}
            ax.text(
                fit, places[fit][k], label, ha="center", va="center", fontsize="small", bbox=box
            )
    ax.set_xticks(range(len(flows.ranks)), [f"K = {rank}" for rank in flows.ranks])
    ax.set_xlim(-0.3, len(flows.ranks) - 0.7)
    ax.set_yticks([])
    ax.invert_yaxis()
    for side in ("left", "right", "top", "bottom"):
        ax.spines[side].set_visible(False)
    return ax


def _flow_places(flows: ComponentFlows) -> tuple[list[Numbers], list[list[str]]]:
    """Return the height, from 0 to 1, and the colour of every component of every fit."""
    first = flows.ranks[0]
    places = [np.empty(first)]
    places[0][np.argsort(-flows.masses(0), kind="stable")] = (np.arange(first) + 0.5) / first
    colours = [palette(first)]
    for fit, table in enumerate(flows.flows):
        weights = np.maximum(table.sum(axis=0), np.finfo(float).tiny)
        centre = places[fit] @ table / weights
        order = np.argsort(centre, kind="stable")
        own = np.empty(len(order))
        own[order] = (np.arange(len(order)) + 0.5) / len(order)
        places.append(own)
        colours.append([colours[fit][parent] for parent in flows.parents(fit)])
    return places, colours


def programs(programs: GroupConsensus, ax: Axes | None = None) -> Axes:
    """Draw the share of the counts of each group that each program explains, as a table.

    A frame marks the groups in which a program was found; shared programs are left of the line.

    Parameters
    ----------
    programs
        The result of `sipower.consensus` with groups.
    ax
        Axes to draw on; None creates a new figure.

    Examples
    --------
    >>> from sipower import KLNMF, consensus, pl
    >>> from sipower.datasets import poisson_topics
    >>> V, donors = poisson_topics(200, 100, 3, length=200, seed=0), ["first", "second"] * 100
    >>> found = consensus(V, KLNMF(3, random_state=0), groups=donors, replicates=3)
    >>> pl.programs(found).get_title()
    '3 shared programs, 0 specific ones'
    """
    ax = as_axes(ax)
    image = ax.imshow(programs.usage, cmap="Blues", vmin=0, aspect="auto")
    for group, program in zip(*np.nonzero(programs.presence), strict=True):
        corner = program - 0.46, group - 0.46
        ax.add_patch(_frame(corner))
    count = int(programs.shared.sum())
    if 0 < count < len(programs.shared):
        ax.axvline(count - 0.5, color="black", linewidth=1.2)
    ax.set_xticks(
        range(len(programs.shared)), [short_name(name) for name in programs.names],
        rotation=60, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    ax.set_yticks(range(len(programs.groups)), [short_name(name) for name in programs.groups])
    ax.set_title(f"{count} shared programs, {len(programs.shared) - count} specific ones")
    ax.figure.colorbar(image, ax=ax, label="share of the counts of the group")
    return ax


def _frame(corner: tuple[float, float]) -> Rectangle:
    from matplotlib import patches  # noqa: PLC0415 - optional

    return patches.Rectangle(corner, 0.92, 0.92, fill=False, edgecolor="#D55E00", linewidth=1.5)
