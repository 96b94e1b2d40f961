# SPDX-License-Identifier: BSD-3-Clause
"""Matplotlib plots of the differences between components; each takes and returns an Axes.

Differences are the result of `sipower.differential`, the path of a table that `sipower
differential` has written, or an AnnData object after `sipower.tl.differential`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sipower.inference import Differences
from sipower.inference.differences import SIGNIFICANT
from sipower.results.as_differences import DifferencesLike, as_differences
from sipower.results.plot import BLUE, ORANGE, as_axes, palette, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["intervals", "leading_features", "volcano"]

GREY = "#b5b5b5"
MIN_LFSR = 1e-50  # smaller rates are drawn at this one, as triangles
MAX_VECTOR_POINTS = 2000  # with more points, a vector graphic holds them as one image
MIN_SPAN, MIN_HEIGHT = 0.5, 1.6  # of the axes, so that plots without hits look empty
INCH_PER_FEATURE, INCH_PER_LETTER = 0.22, 0.075
LABEL_LENGTH = 24  # of names inside a plot
Indices = NDArray[np.intp]


def volcano(
    differences: DifferencesLike,
    contrast: int | str = 0,
    ax: Axes | None = None,
    *,
    y: str = "lfsr",
    n_labels: int = 10,
    features: Sequence[Any] | None = None,
    max_lfsr: float = SIGNIFICANT,
    key: str = "nmf",
) -> Axes:
    """Draw the changes of all features against how certain their signs are.

    A change is the posterior mean of the log2 fold change. Features whose local false sign rate is
    at most `max_lfsr` have a colour. If the check on independent counts finds that the components
    fit noise, the title says so.

    Parameters
    ----------
    differences
        The result of `sipower.differential`; the path of a table that `sipower differential` wrote;
        or an AnnData object after `sipower.tl.differential`.
    contrast
        Position of the contrast, from 0, or its label, such as "component 2".
    ax
        Axes to draw on; None creates a new figure.
    y : {"lfsr", "z"}
        Vertical axis: −log10 of the local false sign rate, at most 50, or the absolute z-score of
        the estimate before shrinkage.
    n_labels
        Number of features to name: those with a colour whose product of both axes is largest.
    features
        Names, or positions if there are none, of the features to name instead.
    max_lfsr
        Largest local false sign rate of a feature with a colour.
    key
        Name of the results in an AnnData object.

    Examples
    --------
    >>> from sipower import KLNMF, differential, pl
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(300, 100, 3, seed=0)
    >>> differences = differential(V, KLNMF(3, random_state=0).fit(V))
    >>> pl.volcano(differences, "component 2").get_title()
    'component 2'
    """
    differences = as_differences(differences, key)
    row, ax = _contrast(differences, contrast), as_axes(ax)
    change, rate = differences.posterior_mean[row], differences.lfsr[row]
    height, is_cut = _heights(differences, row, y)
    is_hit = rate <= max_lfsr
    _scatter(ax, change, height, is_hit, is_cut)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    if y == "lfsr":
        ax.axhline(-np.log10(max_lfsr), color="#808080", linewidth=0.8, linestyle="--", zorder=1)
    ax.margins(x=0.12, y=0.08)
    left, right = ax.get_xlim()
    ax.set_xlim(min(left, -MIN_SPAN), max(right, MIN_SPAN))
    ax.set_ylim(0, max(ax.get_ylim()[1], MIN_HEIGHT))
    texts = {"lfsr": "−log10 of the local false sign rate", "z": "absolute z-score"}
    ax.set(xlabel=f"log2 fold change {_versus(differences, row)}", ylabel=texts[y])
    _set_title(ax, differences, row, pad=22)
    if features is None:
        named = _outermost(change, height, is_hit, n_labels)
    else:
        named = _positions(differences, features)
    _name_points(ax, np.stack([change, height], axis=1), named, is_hit, differences)
    return ax


def _scatter(ax: Axes, change: Any, height: Any, is_hit: Any, is_cut: Any) -> None:
    """Draw the points: hits in the colour of their sign, and triangles where the axis ends."""
    for sign, colour, label in ((0, GREY, ""), (1, BLUE, "more"), (-1, ORANGE, "less")):
        chosen = (is_hit & (np.sign(change) == sign)) if sign else ~is_hit | (change == 0)
        for marker, part in (("o", chosen & ~is_cut), ("^", chosen & is_cut)):
            ax.scatter(
                change[part], height[part], s=12 if sign else 6, c=colour, marker=marker,
                linewidths=0, rasterized=len(change) > MAX_VECTOR_POINTS,
            )  # fmt: skip
        if sign:
            entry = f"{label} frequent: {int(chosen.sum()):,}"
            ax.scatter([], [], s=12, c=colour, label=entry, linewidths=0)
    ax.legend(
        fontsize="small", frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2,
        borderaxespad=0.2, handletextpad=0.2,
    )  # fmt: skip


def _heights(differences: Differences, row: int, y: str) -> tuple[Any, Any]:
    """Return the vertical positions, and which of them are cut off."""
    if y not in ("lfsr", "z"):
        raise ValueError(f"`y` must be 'lfsr' or 'z', got {y!r}.")
    if y == "z":
        return np.abs(differences.z[row]), np.zeros(len(differences.counts), dtype=bool)
    rate = differences.lfsr[row]
    return -np.log10(np.maximum(rate, MIN_LFSR)), rate < MIN_LFSR


def _outermost(change: Any, height: Any, is_hit: Any, n: int) -> Indices:
    """Return the n features with a colour whose product of change and height is largest."""
    product = np.where(is_hit, np.abs(change) * height, 0)
    order = np.argsort(-product, kind="stable")[: max(n, 0)]
    return np.asarray(order[product[order] > 0])


def _name_points(
    ax: Axes, points: Any, named: Indices, is_hit: Any, differences: Differences
) -> None:
    from sipower.results.label_placement import add_labels  # noqa: PLC0415 - imports matplotlib

    texts = [short_name(str(differences.feature_names[j]), LABEL_LENGTH) for j in named]
    add_labels(ax, points[named], texts, points[is_hit], fontsize="small")


def intervals(
    differences: DifferencesLike,
    features: Sequence[Any] | None = None,
    contrast: int | str = 0,
    ax: Axes | None = None,
    *,
    n: int = 20,
    max_lfsr: float = SIGNIFICANT,
    key: str = "nmf",
) -> Axes:
    """Draw the changes of some features with their intervals.

    A dot is the posterior mean of the log2 fold change, and the line through it the interval of the
    analysis. The dot is hollow if the local false sign rate is above `max_lfsr`. If the check on
    independent counts finds that the components fit noise, the title says so.

    Parameters
    ----------
    differences, contrast, ax, max_lfsr, key
        As for `volcano`.
    features
        Names, or positions if there are none, of the features to draw, from top to bottom. None
        draws those with the largest significant increases; for pairs of components, with the
        largest changes.
    n
        Largest number of features if `features` is None.

    Examples
    --------
    >>> from sipower import KLNMF, differential, pl
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(300, 100, 3, seed=0)
    >>> differences = differential(V, KLNMF(3, random_state=0).fit(V))
    >>> ax = pl.intervals(differences, features=[7, 42])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['7', '42']
    """
    differences = as_differences(differences, key)
    row = _contrast(differences, contrast)
    if features is None:
        top = leading_features(differences, row, n)
    else:
        top = _positions(differences, features)
    names = [short_name(str(differences.feature_names[j])) for j in top]
    ax = as_axes(ax, _size(names))
    mean, places = differences.posterior_mean[row, top], np.arange(len(top))
    ends = [mean - differences.lower[row, top], differences.upper[row, top] - mean]
    colour = palette(int(differences.pairs[row, 0]) + 1)[-1]
    ax.axvline(0, color="black", linewidth=0.8)
    ax.errorbar(mean, places, xerr=np.maximum(ends, 0), fmt="none", ecolor=colour, elinewidth=1.4)
    is_hit = differences.lfsr[row, top] <= max_lfsr
    faces = [colour if hit else "white" for hit in is_hit]
    ax.scatter(mean, places, 24, faces, edgecolors=colour, zorder=3)
    ax.set_yticks(places, names)
    ax.set_ylim(max(len(top), 1) - 0.4, -0.6)
    level = f"{100 * differences.level:.3g}%"
    ax.set_xlabel(f"log2 fold change, {level} interval\n{_versus(differences, row)}")
    ax.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    if not len(top):
        ax.set_xlim(-1, 1)
        text = f"no feature with a local false sign rate of at most {max_lfsr:g}"
        ax.text(
            0.5,
            0.5,
            text,
            transform=ax.transAxes,
            ha="center",
            va="center",
            backgroundcolor="white",
        )
    _set_title(ax, differences, row)
    return ax


def _size(names: Sequence[str]) -> tuple[float, float]:
    """Return the size of a figure in inches that has room for the names."""
    longest = max(map(len, names), default=0)
    return 4.5 + INCH_PER_LETTER * longest, 1.4 + INCH_PER_FEATURE * max(len(names), 3)


def leading_features(
    differences: Differences, contrast: int, n: int, excluded: Any = None
) -> Indices:
    """Return the features with the largest significant changes, in decreasing order of them.

    For pairs of components changes of both signs count, otherwise increases. Features for which
    `excluded` is true are left out.
    """
    mean = differences.posterior_mean[contrast]
    size = np.abs(mean) if differences.contrast == "pairwise" else mean
    is_hit = differences.lfsr[contrast] <= SIGNIFICANT
    if excluded is not None:
        is_hit &= ~np.asarray(excluded)
    order = np.argsort(-np.where(is_hit, size, -np.inf), kind="stable")[:n]
    chosen = order[is_hit[order] & (size[order] > 0)]
    return np.asarray(chosen[np.argsort(-mean[chosen], kind="stable")])


def _contrast(differences: Differences, contrast: int | str) -> int:
    """Return the position of a contrast that is given by position or label."""
    labels = [differences.label(row) for row in range(len(differences.lfsr))]
    if isinstance(contrast, str) and contrast in labels:
        return labels.index(contrast)
    if isinstance(contrast, str) or not 0 <= contrast < len(labels):
        raise ValueError(
            f"`contrast` must be an integer from 0 to {len(labels) - 1} or a label such as "
            f"{labels[0]!r}, got {contrast!r}."
        )
    return int(contrast)


def _positions(differences: Differences, features: Sequence[Any]) -> Indices:
    """Return the positions of features that are given by name."""
    place = {str(name): at for at, name in reversed(list(enumerate(differences.feature_names)))}
    missing = next((name for name in features if str(name) not in place), None)
    if missing is not None:
        raise ValueError(f"`features` must be names of features, got {missing!r}, which is none.")
    return np.array([place[str(name)] for name in features], dtype=np.intp)


def _versus(differences: Differences, row: int) -> str:
    """Return what the component is compared with."""
    other = differences.pairs[row, 1]
    if other >= 0:
        return f"over {short_name(differences.components[other])}"
    return "over all data" if differences.contrast == "null" else "over the most similar component"


def _set_title(ax: Axes, differences: Differences, row: int, pad: float | None = None) -> None:
    """Set the label of the contrast as the title, with a warning if the check found noise."""
    title = " vs ".join(
        short_name(differences.components[k]) for k in differences.pairs[row] if k >= 0
    )
    if differences.replication.is_supported is False:
        ax.set_title(
            f"{title}\nnot supported by independent counts: do not interpret", color=ORANGE, pad=pad
        )
    else:
        ax.set_title(title, pad=pad)
