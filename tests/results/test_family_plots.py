# SPDX-License-Identifier: BSD-3-Clause
"""Plots of merge trees, flows and programs draw the numbers that they show."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from sipower import KLNMF, consensus, pl
from sipower.datasets import poisson_topics
from sipower.selection import component_flows, merge_tree

V = poisson_topics(90, 60, 3, seed=0)
MODEL = KLNMF(6, random_state=0)
TREE = merge_tree(MODEL.fit_transform(V), MODEL.components_)


@pytest.fixture
def ax() -> Any:
    return Figure().add_subplot()


def test_tree_draws_a_line_per_merger_and_the_cut(ax: Any) -> None:
    *mergers, cut = pl.tree(TREE, ax).lines
    heights = np.maximum.accumulate(TREE.relative_bounds)
    assert_allclose([line.get_xdata()[1] for line in mergers], heights)
    assert TREE.suggested_rank == 3
    assert heights[2] < cut.get_xdata()[0] < heights[3]
    colours = [line.get_color() for line in mergers]
    assert set(colours[3:]) == {"#808080"}
    assert "#808080" not in colours[:3]
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert sorted(int(label.split()[0]) for label in labels) == list(range(6))
    order = [int(label.split()[0]) for label in labels]
    for family in TREE.families(3):  # the components of a family are adjacent
        places = sorted(order.index(k) for k in family)
        assert places == list(range(places[0], places[0] + len(places)))
    ax.figure.canvas.draw()


def test_tree_takes_names_and_a_number_of_families(ax: Any) -> None:
    pl.tree(TREE, ax, names=[f"$topic {k}$" for k in range(6)], k=2)
    assert ax.get_title() == "2 families of 6 components"
    assert {text.get_text() for text in ax.get_yticklabels()} == {
        rf"\$topic {k}\$" for k in range(6)
    }
    with pytest.raises(ValueError, match="`names` must have one name for each of the 6"):
        pl.tree(TREE, names=["a"])
    pl.tree(merge_tree(np.ones((3, 1)), np.ones((1, 2))), ax)


def test_flows_draw_a_line_per_shared_component(ax: Any) -> None:
    flows = component_flows(V, [KLNMF(k, random_state=0).fit(V) for k in (2, 3)])
    pl.flows(flows, ax)
    table = flows.flows[0]
    smaller = np.minimum(table.sum(axis=1)[:, None], table.sum(axis=0))
    assert len(ax.lines) == (table >= 0.02 * smaller).sum()
    assert max(line.get_linewidth() for line in ax.lines) == pytest.approx(
        30 * table.max() / table.sum()
    )
    assert [text.get_text() for text in ax.texts] == ["0", "1", "0", "1", "2"]
    with pytest.raises(ValueError, match=r"`names` must have \(2, 3\) names, got \(1,\)"):
        pl.flows(flows, names=[["a"]])


def test_programs_draw_usage_and_presence(ax: Any) -> None:
    result = consensus(V, KLNMF(3, random_state=0), groups=np.arange(90) % 2, replicates=2)
    pl.programs(result, ax)
    assert_allclose(ax.images[0].get_array(), result.usage)
    assert len(ax.patches) == result.presence.sum()
    assert [text.get_text() for text in ax.get_xticklabels()] == list(result.names)
