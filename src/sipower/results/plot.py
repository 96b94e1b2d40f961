# SPDX-License-Identifier: BSD-3-Clause
"""Matplotlib plots of fits and selections; each function takes and returns an Axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from sipower.data.names import Items, arrange
from sipower.results import describe
from sipower.results.as_run import RunLike, RunParts, as_run
from sipower.selection import Consensus, RankSelection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours with grey instead of black, ordered so that adjacent ones differ most.
HUES = ("0072B2", "E69F00", "009E73", "D55E00", "CC79A7", "F0E442", "56B4E9", "808080")
TINTS = (0, 0.55, -0.45, 0.3, -0.25, 0.75, -0.65, 0.15)  # towards white, or black if negative
BLUE, ORANGE = f"#{HUES[0]}", f"#{HUES[3]}"
LEGEND_ENTRIES = 20
NAME_LENGTH = 40


def palette(n: int) -> list[str]:
    """Return n colours as "#rrggbb" that people with a colour vision deficiency can tell apart.

    The eight colours of Okabe and Ito come first, then lighter and darker shades of them; after 64
    the list repeats. Adjacent colours differ clearly with any colour vision, others may look alike.

    Examples
    --------
    >>> from sipower import pl
    >>> pl.palette(2)
    ['#0072b2', '#e69f00']
    """
    colours = [_shade(hue, tint) for tint in TINTS for hue in HUES]
    return [colours[k % len(colours)] for k in range(n)]


def _shade(hue: str, tint: float) -> str:
    parts = (int(hue[at : at + 2], 16) for at in (0, 2, 4))
    mixed = (part + (255 - part) * tint if tint > 0 else part * (1 + tint) for part in parts)
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def convergence(run: RunLike, ax: Axes | None = None, **parts: Unpack[RunParts]) -> Axes:
    """Draw the certified gap and the excess objective against seconds, on log scales.

    The excess is the objective minus its lowest value. Both are relative to the sum of the counts.
    The point with excess 0 is not drawn. `run` and `parts` are as for `structure`.

    Examples
    --------
    >>> from sipower import KLNMF, pl
    >>> V, model = [[3, 1], [2, 4], [5, 0]], KLNMF(1)
    >>> pl.convergence(model.fit(V), W=model.transform(V)).get_xlabel()
    'time (seconds)'
    """
    run, ax = as_run(run, **parts), as_axes(ax)
    if not run.trace:
        raise ValueError("`run` must have a trace: without one there is no curve to draw.")
    curves = describe.convergence(run)
    for name, label, style, colour in (
        ("excess", "KL divergence above its lowest value", "o-", BLUE),
        ("gap", "certified gap", "s--", ORANGE),
    ):
        finite = np.isfinite(curves[name])
        points = curves["seconds"][finite], curves[name][finite]
        ax.plot(*points, style, label=label, color=colour, ms=4)
    ax.set(xlabel="time (seconds)", ylabel="share of the sum of the counts", yscale="log")
    ax.grid(visible=True, color="#dddddd", linewidth=0.6)
    ax.legend()
    return ax


def structure(
    run: RunLike,
    ax: Axes | None = None,
    groups: Sequence[Any] | None = None,
    max_samples: int = 1000,
    **parts: Unpack[RunParts],
) -> Axes:
    """Draw memberships as a stacked bar per sample; the legend names the 20 largest components.

    Parameters
    ----------
    run
        A run, a fitted `KLNMF` with `W`, AnnData after `sipower.tl.nmf`, or a pair (W, H).
    ax
        Axes to draw on; None creates a new figure.
    groups
        Labels of the samples: bars are ordered by group, as they first occur, then by similarity.
        A Series is matched by the names of the samples.
    max_samples
        Largest number of samples to draw; if there are more, evenly spaced ones are drawn.
    **parts
        ``W``: result of `fit_transform` or `transform`, required with a fitted model. ``samples``,
        ``features``: names. ``key``: name of the results in AnnData, ``"nmf"`` by default.

    Examples
    --------
    >>> from sipower import pl
    >>> pl.structure(([[3, 0], [1, 2]], [[0.5, 0.5], [0, 1]])).get_xlabel()
    'samples (2)'
    """
    run = as_run(run, **parts)
    if max_samples < 1:
        raise ValueError(f"`max_samples` must be a positive integer, got {max_samples}.")
    items = Items("sample", len(run.W), run.samples, None, "the run", "`samples`")
    groups = arrange("groups", groups, items)
    if groups is not None and len(groups) != len(run.W):
        raise ValueError(
            f"`groups` must have one label per sample, got {len(groups)} for {len(run.W)}."
        )
    labels = None if groups is None else _labels(groups)
    ax = as_axes(ax)
    chosen = describe.choose_evenly(len(run.W), max_samples)
    about = describe.describe(run)
    memberships, names = about.memberships[chosen], about.components
    blocks: dict[str, list[int]] = {}
    for at, sample in enumerate(chosen):
        blocks.setdefault("" if labels is None else labels[sample], []).append(at)
    order = np.concatenate(
        [np.array(block)[describe.order_by_similarity(memberships[block])]
         for block in blocks.values()]
    )  # fmt: skip
    edges = np.arange(len(order) + 1)
    base = np.zeros(len(order))
    for k, (colour, part) in enumerate(
        zip(palette(memberships.shape[1]), memberships[order].T, strict=True), start=1
    ):
        label = short_name(names[k - 1]) if k <= LEGEND_ENTRIES else None
        ax.stairs(base + part, edges, baseline=base, fill=True, color=colour, label=label)
        base = base + part
    _label_samples(ax, blocks, len(order), len(run.W))
    if labels is None:
        ax.set_xticks([])
    return ax


def _labels(groups: Sequence[Any]) -> list[str]:
    """Return the labels by position; missing labels form one group."""
    return ["missing" if str(g) in ("None", "nan", "<NA>", "NaT") else str(g) for g in groups]


def _label_samples(ax: Axes, blocks: dict[str, list[int]], drawn: int, samples: int) -> None:
    ends = np.cumsum([0, *map(len, blocks.values())])
    ax.set_xticks((ends[:-1] + ends[1:]) / 2, [short_name(group) for group in blocks])
    for end in ends[1:-1]:
        ax.axvline(float(end), color="black", linewidth=1)
    which = f"samples ({drawn:,})" if drawn == samples else f"samples ({drawn:,} of {samples:,})"
    ax.set(xlim=(0, drawn), ylim=(0, 1), xlabel=which, ylabel="share of the sample's counts")
    ax.legend(
        title="component", fontsize="small", frameon=False, reverse=True,
        loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0,
    )  # fmt: skip


def top_features(
    run: RunLike,
    component: int | str,
    ax: Axes | None = None,
    n: int = 10,
    *,
    by: str = "probability",
    exclude: describe.Exclude = None,
    **parts: Unpack[RunParts],
) -> Axes:
    """Draw n features of a component with their probability and lift.

    A black line marks the overall probability; the lift is the ratio of both probabilities.

    Parameters
    ----------
    run, ax, **parts
        As for `structure`.
    component
        Number of the component, 1 is the largest, or its name.
    n
        Largest number of features.
    by : {"probability", "frex", "lift", "information"}
        Score by which the features are chosen and ordered, see `Description.scores`.
    exclude
        Features to leave out: a regular expression such as ``"^RP[LS]"``, or a list of names.

    Examples
    --------
    >>> from sipower import pl
    >>> pl.top_features(([[3, 0], [1, 2]], [[0.5, 0.5], [0, 1]]), component=1).get_title()
    'component 1: 66.7% of the counts'
    """
    facts = describe.describe(run, **parts)
    component = _component_number(component, facts.components)
    label = facts.components[component - 1]
    excluded, names = describe.is_excluded(facts.features, exclude), facts.features
    top = describe.largest(np.where(excluded, 0, facts.scores(by)[component - 1]), n)
    ax = as_axes(ax)
    profile, size = facts.profiles[component - 1], facts.sizes[component - 1]
    places = np.arange(len(top))
    ax.barh(places, profile[top], color=palette(component)[-1])
    ax.vlines(facts.overall[top], places - 0.4, places + 0.4, color="black", label="overall")
    for place, feature in zip(places, top, strict=True):
        lift = profile[feature] / facts.overall[feature]
        ax.annotate(
            f"×{lift:.3g}", (max(profile[feature], facts.overall[feature]), place),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    ax.set_yticks(places, [short_name(names[feature]) for feature in top])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlim(left=0)
    ax.set(
        title=f"{_title(label, component)}: {size:.1%} of the counts",
        xlabel="probability of the feature in the component (×: lift over all)",
    )
    if len(top):
        ax.legend(loc="lower right", frameon=False)
    return ax


def _component_number(component: int | str, names: Sequence[str]) -> int:
    """Return the number of a component that is given by number or name."""
    if isinstance(component, str) and component in names:
        return names.index(component) + 1
    if isinstance(component, str) or not 1 <= component <= len(names):
        named = ", ".join(map(repr, (n for k, n in enumerate(names, 1) if n != str(k))))
        also = f" or one of {named}" if named else ""
        raise ValueError(
            f"`component` must be an integer from 1 to {len(names)}{also}, got {component!r}."
        )
    return int(component)


def _title(label: str, number: int) -> str:
    return f"component {number}" if label == str(number) else short_name(label)


def rank_selection(selection: RankSelection, ax: Axes | None = None) -> Axes:
    """Draw the held-out deviance (mean and range over replicates) and stability by rank.

    Examples
    --------
    >>> from sipower import pl, rank_selection
    >>> pl.rank_selection(rank_selection([[3, 1], [2, 4], [5, 0]], [1, 2])).get_xlabel()
    'number of components'
    """
    ax = as_axes(ax)
    ranks, deviance = selection.ranks, selection.deviance
    middle = deviance.mean(axis=1)
    ax.fill_between(ranks, deviance.min(axis=1), deviance.max(axis=1), color=BLUE, alpha=0.2, lw=0)
    (first,) = ax.plot(ranks, middle, "o-", color=BLUE, label="held-out deviance")
    twin = ax.twinx()
    (second,) = twin.plot(ranks, selection.stability, "s--", color=ORANGE, label="stability")
    best = ax.axvline(selection.best, color="#808080", label=f"recommended: {selection.best}")
    ax.set(xlabel="number of components", ylabel="held-out KL divergence per count")
    ax.locator_params(axis="x", integer=True)
    twin.set(ylabel="mean cosine of matched components", ylim=(0, 1.03))
    ax.legend(
        handles=[first, second, best], fontsize="small", frameon=False,
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3,
    )  # fmt: skip
    return ax


def consensus(consensus: Consensus, ax: Axes | None = None) -> Axes:
    """Draw the stability of each component over the replicates; components are in order of size.

    Examples
    --------
    >>> from sipower import KLNMF, consensus, pl
    >>> pl.consensus(consensus([[3, 1], [2, 4], [5, 0]], KLNMF(1), replicates=2)).get_title()
    'stability over 2 replicates'
    """
    ax = as_axes(ax)
    order = describe.describe(consensus.W, consensus.H).order
    numbers = np.arange(1, len(order) + 1)
    ax.bar(numbers, consensus.stability[order], color=BLUE)
    ax.locator_params(axis="x", integer=True)
    ax.set(
        ylim=(0, 1),
        xlabel="component, by size",
        ylabel="mean cosine with its partners",
        title=f"stability over {consensus.is_kept.sum()} replicates",
    )
    return ax


def as_axes(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the axes or, for None, those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - optional
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "sipower[report]".') from None
    return plt.subplots(layout="constrained", figsize=size)[1]


def short_name(name: str, max_length: int = NAME_LENGTH) -> str:
    """Shorten a long name, and escape dollar signs, which matplotlib would read as mathematics."""
    return describe.readable(name, max_length).replace("$", r"\$")
