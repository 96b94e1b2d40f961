# SPDX-License-Identifier: BSD-3-Clause
"""The figures as plain data, computed from the results table alone; `draw.py` draws them.

Every figure has one row per data set, with the error against passes on the left and against
seconds on the right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sipower.experiments.budgets import BOXPLOTS, COMPARED_VARIANTS, TITLES
from sipower.experiments.compare import AXES, SUBPROBLEM_TOLERANCE
from sipower.experiments.curves import Curves, has_diverged
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row

AXIS_LABELS = {"passes": "passes over the data", "seconds": "seconds, one thread"}
LOWEST_DRAWN_ERROR = 1e-4
PAPER = ("s-sci-pi", "f-sci-pi", "mu", "ccd/scd", "pgd")
FIGURES = {  # title and methods
    "nmf": ("KL-NMF on real data, the paper’s methods", PAPER),
    "algorithm-1": (
        "KL-NMF on real data: Algorithm 1 tuned, its guarded form untuned, full gradients",
        ("s-sci-pi", "s-sci-pi guarded", "f-sci-pi"),
    ),
    "synthetic": ("KL-NMF on independent Poisson counts", PAPER),
    "subproblem": ("The convex subproblem: one factor given the other", (*PAPER, "newton")),
    "beyond": (
        "KL-NMF: what the paper does not compare",
        ("s-sci-pi", "s-sci-pi guarded", "f-sci-pi guarded", "ccd extrapolated", "auto"),
    ),
}
VARIANT_LOOKS = {  # label, colour, dash
    "dense": ("longer dimension (the paper)", "#D55E00", "solid"),
    "both sides": ("both dimensions", "#0072B2", "solid"),
    "sparse": ("elements, both dimensions (the paper)", "#D55E00", "solid"),
    "elements, one side": ("elements, longer dimension", "#CC79A7", "solid"),
    "vectors": ("vectors, both dimensions", "#0072B2", "solid"),
}
Look = tuple[str, str, str]


@dataclass(frozen=True)
class Curve:
    """A curve of the median over the seeds, with a band from the 10 % to the 90 % quantile."""

    label: str
    colour: str
    dash: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Box:
    """A box of a boxplot: the errors of the seeds of one method."""

    label: str
    colour: str
    values: list[float]


@dataclass(frozen=True)
class Panel:
    """A panel with a logarithmic error axis that contains curves or boxes."""

    title: str
    x_label: str
    curves: list[Curve] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    floor: float = LOWEST_DRAWN_ERROR

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and highest error on the axis."""
        values = [y for curve in self.curves for y in curve.y]
        values += [value for box in self.boxes for value in box.values]
        if not values:
            return self.floor, 1.0
        return max(self.floor, 0.7 * min(values)), max(1.3 * max(values), 2 * self.floor)


@dataclass(frozen=True)
class Figure:
    """A figure that consists of rows of panels."""

    name: str
    title: str
    rows: list[list[Panel]]


def figures(curves: Curves) -> list[Figure]:
    """Return every figure for which `curves` has runs, in the order of the page."""
    *comparisons, beyond = (_compare_methods(curves, name) for name in FIGURES)
    every = [*comparisons, _compare_batches(curves), _compare_variants(curves), beyond]
    return [figure for figure in every if figure.rows]


def label_heights(panel: Panel, spacing: float = 0.062) -> list[float]:
    """Return the heights of the curve labels, as fractions of the height of the panel.

    A label is at the end of its curve, moved just enough to keep labels `spacing` apart.
    """
    low, high = (math.log(v) for v in panel.limits)
    ends = [(math.log(max(c.y[-1], panel.limits[0])) - low) / (high - low) for c in panel.curves]
    order = sorted(range(len(ends)), key=ends.__getitem__)
    heights = [0.0] * len(ends)
    last = -spacing
    for i in order:
        last = heights[i] = max(ends[i], last + spacing, 0.02)
    above = 1.0 + spacing
    for i in reversed(order):  # move labels beyond the top down again
        above = heights[i] = min(heights[i], above - spacing)
    return heights


def _compare_methods(curves: Curves, name: str) -> Figure:
    title, methods = FIGURES[name]
    problem = "subproblem" if name == "subproblem" else "nmf"
    rows = []
    for dataset in curves.synthetic if name == "synthetic" else curves.real:
        runs: dict[Look, list[Row]] = {}
        for method in methods:
            look = METHODS[method].label, METHODS[method].colour, METHODS[method].dash
            runs[look] = list(curves.runs(problem, dataset, method).values())
        floor = SUBPROBLEM_TOLERANCE if problem == "subproblem" else LOWEST_DRAWN_ERROR
        rows.append(_pair_of_panels(curves, dataset, runs, floor))
    return Figure(name, title, [row for row in rows if row])


def _compare_variants(curves: Curves) -> Figure:
    rows = []
    for dataset in curves.real:
        paper = "dense" if "both sides" in COMPARED_VARIANTS[dataset] else "sparse"
        runs = {
            VARIANT_LOOKS[variant or paper]: list(
                curves.runs("nmf", dataset, "s-sci-pi", variant).values()
            )
            for variant in (None, *COMPARED_VARIANTS[dataset])
        }
        if sum(map(bool, runs.values())) > 1:
            rows.append(_pair_of_panels(curves, dataset, runs, LOWEST_DRAWN_ERROR))
    title = "What S-SCI-PI samples; every form tuned in the same way"
    return Figure("sampling", title, [row for row in rows if row])


def _pair_of_panels(
    curves: Curves, dataset: str, runs: Mapping[Look, list[Row]], floor: float
) -> list[Panel]:
    """Return two panels, the error against passes and against seconds; empty without runs."""
    panels = []
    for axis in AXES:
        lines, notes = [], []
        for (label, colour, dash), rows in runs.items():
            n_diverged = sum(map(has_diverged, rows))
            if n_diverged:
                notes.append(f"{label}: {n_diverged} of {len(rows)} diverged")
            quantiles = curves.quantiles(rows, axis)
            if quantiles:
                lines.append(Curve(label, colour, dash, *quantiles))
        if lines:
            label = AXIS_LABELS[axis]
            panels.append(Panel(TITLES[dataset], label, lines, notes=notes, floor=floor))
    return panels


def _compare_batches(curves: Curves) -> Figure:
    """Return boxplots of the errors over seeds for each (s/n, m) with its best step size."""
    figure_rows = []
    for dataset in BOXPLOTS:
        groups: dict[tuple[str, str], list[Row]] = {}
        for (batch, epoch), rows in curves.runs_by_pair(dataset).items():
            label = f"({batch:g}, {epoch}), η = {rows[0]['params']['step']:g}"
            groups[label, METHODS["s-sci-pi"].colour] = rows
        if not groups:
            continue
        for name in ("f-sci-pi", "mu"):
            method = METHODS[name]
            groups[method.label, method.colour] = list(curves.runs("nmf", dataset, name).values())
        panels = []
        for axis, limit in curves.error_limits(dataset).items():
            boxes = []
            for (label, colour), rows in groups.items():
                finite = [row for row in rows if not has_diverged(row)]
                n_diverged = len(rows) - len(finite)
                note = f"; {n_diverged} diverged" if n_diverged else ""
                errors = [curves.error_at(row, limit, axis) for row in finite]
                boxes.append(Box(label + note, colour, errors))
            unit = "passes" if axis == "passes" else "s"
            panels.append(Panel(f"{TITLES[dataset]} after {limit:.3g} {unit}", "", boxes=boxes))
        figure_rows.append(panels)
    title = "S-SCI-PI for several (s/n, m), each with its best step η"
    return Figure("robustness", title, figure_rows)
