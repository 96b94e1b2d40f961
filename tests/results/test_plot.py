# SPDX-License-Identifier: BSD-3-Clause
"""Plots return the Axes they are given and draw the numbers they claim to draw."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sipower.loop.solve import Record
from sipower.results import Run, plot
from sipower.results.describe import describe
from sipower.selection import Consensus, RankSelection

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")

RNG = np.random.default_rng(3)
TRACE = [Record(i, 2.0 * i, 0.5 * i, 100.0 + 2.0**-i, 10.0**-i, 1.0) for i in range(5)]
RUN = Run(
    RNG.gamma(0.3, size=(40, 4)), RNG.gamma(0.3, size=(4, 15)), TRACE,
    features=tuple(f"${i}$ " + "long " * 20 for i in range(15)),
)  # fmt: skip
SELECTION = RankSelection(
    (2, 4, 8), RNG.uniform(1, 2, (3, 5)), np.array([0.9, np.nan, 0.5]), 4, "Because.", "thinning"
)
CONSENSUS = Consensus(
    RUN.W,
    RUN.H,
    0,
    np.array([0.9, 0.8, 0.7, 0.6]),
    np.eye(3),
    np.ones(3),
    np.zeros(3),
    ("converged",) * 3,
)

# Machado, Oliveira and Fernandes 2009: how a screen looks without one kind of cones.
VISIONS = {
    "full": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998]],
    "no medium": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                  [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                 [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


@pytest.fixture
def ax() -> Iterator[Any]:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - optional

    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()  # what cannot be drawn fails here
    plt.close("all")


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot.convergence(RUN, ax),
        lambda ax: plot.structure(RUN, ax),
        lambda ax: plot.top_features(RUN, 1, ax),
        lambda ax: plot.rank_selection(SELECTION, ax),
        lambda ax: plot.consensus(CONSENSUS, ax),
    ],
)
def test_axes_given_are_returned_with_labels_and_new_ones_made(
    draw: Callable[[Any], Any], ax: Any
) -> None:
    assert draw(ax) is ax
    assert ax.get_xlabel()
    assert ax.get_ylabel() or len(ax.get_yticklabels())
    fresh = draw(None)
    assert fresh is not ax
    fresh.figure.canvas.draw()


def test_convergence_draws_excess_and_gap(ax: Any) -> None:
    excess, gap = plot.convergence(RUN, ax).lines
    total = (RUN.W @ RUN.H).sum()
    assert_allclose(gap.get_ydata(), [r.gap for r in TRACE])
    assert_allclose(excess.get_ydata(), [(r.objective - 100.0625) / total for r in TRACE[:-1]])
    assert_allclose(excess.get_xdata(), [r.seconds for r in TRACE[:-1]])
    assert ax.get_yscale() == "log"
    with pytest.raises(ValueError, match="`run` must have a trace"):
        plot.convergence(Run(RUN.W, RUN.H), ax)


def test_structure_stacks_memberships_to_one(ax: Any) -> None:
    bars = [bar.get_data() for bar in plot.structure(RUN, ax).patches]
    heights = np.array([bar.values - bar.baseline for bar in bars])
    memberships = describe(RUN.W, RUN.H).memberships
    assert_allclose(bars[-1].values, 1)
    assert_allclose(sorted(heights.T.tolist()), sorted(memberships.tolist()), atol=1e-15)


def test_structure_keeps_groups_together_and_draws_at_most(ax: Any) -> None:
    groups = np.array(["b", "a"])[np.arange(40) % 2]
    plot.structure(RUN, ax, groups=groups, max_samples=10)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a"]
    assert "10 of 40" in ax.get_xlabel()
    first = ax.patches[0].get_data()
    chosen = np.linspace(0, 39, 10).round().astype(int)
    of_b = chosen[groups[chosen] == "b"]
    shares = describe(RUN.W, RUN.H).memberships[of_b, 0]
    assert_allclose(sorted(first.values[: len(of_b)]), sorted(shares))


def test_groups_go_by_name_or_position_and_what_is_missing_is_one_group(ax: Any) -> None:
    groups = np.array(["b", "a"])[np.arange(40) % 2]
    plot.structure(RUN, ax, groups=groups)
    bars = ax.patches[0].get_data().values
    named = replace(RUN, samples=tuple(f"s{i}" for i in range(40)))
    turned = pd.Series(groups, named.samples)[::-1]
    for run, series in ((named, turned), (RUN, pd.Series(groups, dtype="category"))):
        again = plot.structure(run, ax.figure.add_subplot(), groups=series)
        assert_allclose(again.patches[0].get_data().values, bars)
        assert [label.get_text() for label in again.get_xticklabels()] == ["b", "a"]
    with pytest.raises(ValueError, match="`groups` has names of samples, but the run has none"):
        plot.structure(RUN, ax, groups=turned)
    holes = [None, np.nan, pd.NA, pd.NaT, *groups[4:]]
    again = plot.structure(RUN, ax.figure.add_subplot(), groups=holes)
    assert [label.get_text() for label in again.get_xticklabels()] == ["missing", "b", "a"]


def test_structure_refuses_what_does_not_fit(ax: Any) -> None:
    with pytest.raises(ValueError, match="got 3 for 40"):
        plot.structure(RUN, ax, groups="abc")
    with pytest.raises(ValueError, match="`max_samples` must be a positive integer, got 0"):
        plot.structure(RUN, ax, max_samples=0)


def test_top_features_are_the_most_probable_of_the_component_by_size(ax: Any) -> None:
    plot.top_features(RUN, 2, ax, n=4)
    about = describe(RUN.W, RUN.H)
    profile = np.sort(about.profiles[1])[::-1][:4]
    assert_allclose([bar.get_width() for bar in ax.patches], profile)
    lift = about.lift()[1][np.argsort(-about.profiles[1])[:4]]
    assert [text.get_text() for text in ax.texts] == [f"×{value:.3g}" for value in lift]
    with pytest.raises(ValueError, match="`component` must be an integer from 1 to 4, got 5"):
        plot.top_features(RUN, 5, ax)


def test_top_features_can_be_ranked_otherwise_and_excluded(ax: Any) -> None:
    names = tuple(f"gene{i}" for i in range(15))
    parts = {"by": "frex", "exclude": "^gene1.$", "n": 15}
    plot.top_features((RUN.W, RUN.H), 3, ax, features=names, **parts)
    scores = describe(RUN).frex()[2]
    expected = [f"gene{f}" for f in np.argsort(-scores[:10]) if scores[f] > 0]
    drawn = [label.get_text() for label in ax.get_yticklabels()]
    assert "gene1" in drawn
    assert sorted(drawn) == sorted(expected)
    assert_allclose(
        [scores[int(name.removeprefix("gene"))] for name in drawn], sorted(scores[:10])[::-1]
    )


def test_rank_selection_draws_means_stability_and_the_recommendation(ax: Any) -> None:
    mean, best = plot.rank_selection(SELECTION, ax).lines
    assert_allclose(mean.get_ydata(), SELECTION.deviance.mean(axis=1))
    assert_array_equal(best.get_xdata(), [4, 4])
    (twin,) = (other for other in ax.figure.axes if other is not ax)
    assert_allclose(twin.lines[0].get_ydata(), SELECTION.stability)


def test_consensus_draws_stability_by_size(ax: Any) -> None:
    plot.consensus(CONSENSUS, ax)
    order = describe(RUN.W, RUN.H).order
    assert_allclose([bar.get_height() for bar in ax.patches], CONSENSUS.stability[order])


def test_neighbouring_colours_differ_in_every_kind_of_vision() -> None:
    colours = plot.palette(64)
    assert len(set(colours)) == 64
    assert plot.palette(65)[-1] == colours[0]
    for vision in VISIONS.values():
        perceived = [_lab(colour, np.array(vision)) for colour in colours]
        assert (
            min(np.linalg.norm(a - b) for a, b in pairwise(perceived)) > 8
        )  # 2.3: just noticeable
        assert min(np.linalg.norm(a - b) for a, b in pairwise(perceived[:8])) > 29


def _lab(colour: str, vision: Any) -> Any:
    """CIELAB of a colour on a screen (sRGB, white point D65) as seen by someone."""
    screen = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(screen <= 0.04045, screen / 12.92, ((screen + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    xyz = np.array(to_xyz) @ np.clip(vision @ linear, 0, 1) / (0.95047, 1, 1.08883)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
