# SPDX-License-Identifier: BSD-3-Clause
"""The figures as plain data, made of the table alone; `draw` turns them into files.

Every figure has a row for each data set, with the error against passes on the left and against
seconds on the right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sipower.experiments.budgets import BOXPLOTS, RIVALS, TITLES
from sipower.experiments.claims_on_robustness import error_limits
from sipower.experiments.compare import AXES
from sipower.experiments.curves import Curves, diverged
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row

__all__ = ["Boxes", "Curve", "Figure", "Panel", "figures", "label_heights"]

AXIS_LABELS = {"passes": "passes over the data", "seconds": "seconds, one thread"}
PAPER = ("s-sci-pi", "f-sci-pi", "mu", "ccd/scd", "pgd")
ALGORITHM_1 = ("s-sci-pi", "s-sci-pi guarded", "f-sci-pi")
BEYOND = ("s-sci-pi", "s-sci-pi guarded", "f-sci-pi guarded", "ccd extrapolated", "auto")
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
    """A line: the median over the seeds, with a band from the 10 % to the 90 % quantile."""

    label: str
    colour: str
    dash: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Boxes:
    """Errors of the seeds, one box for each label."""

    labels: list[str]
    colours: list[str]
    values: list[list[float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes; the error is logarithmic."""

    title: str
    x_label: str
    curves: list[Curve] = field(default_factory=list)
    boxes: Boxes | None = None
    notes: list[str] = field(default_factory=list)
    floor: float = 1e-4  # errors are drawn down to this

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest error that is drawn."""
        values = [y for curve in self.curves for y in curve.y]
        if self.boxes is not None:
            values = [v for box in self.boxes.values for v in box]
        if not values:
            return self.floor, 1.0
        return max(self.floor, 0.7 * min(values)), max(1.3 * max(values), 2 * self.floor)


@dataclass(frozen=True)
class Figure:
    """Panels in rows."""

    name: str
    title: str
    rows: list[list[Panel]]


def figures(curves: Curves) -> list[Figure]:
    """Return every figure that the table has data for."""
    real, synthetic = curves.real, curves.synthetic
    made = [
        _methods(curves, "nmf", "KL-NMF on real data, the paper’s methods", "nmf", real, PAPER),
        _methods(
            curves,
            "algorithm-1",
            "KL-NMF on real data: Algorithm 1 tuned, its guarded form untuned, full gradients",
            "nmf",
            real,
            ALGORITHM_1,
        ),
        _methods(
            curves, "synthetic", "KL-NMF on independent Poisson counts", "nmf", synthetic, PAPER
        ),
        _methods(
            curves,
            "subproblem",
            "The convex subproblem: one factor given the other",
            "subproblem",
            real,
            (*PAPER, "newton"),
        ),
        _boxplots(curves),
        _variants(curves),
        _methods(curves, "beyond", "KL-NMF: what the paper does not compare", "nmf", real, BEYOND),
    ]
    return [figure for figure in made if figure.rows]


def label_heights(panel: Panel, spacing: float = 0.062) -> list[float]:
    """Return where the labels of the curves go, as shares of the height, in the curves' order.

    Every label is at the end of its curve, moved as little as keeps labels `spacing` apart.
    """
    low, high = (math.log(v) for v in panel.limits)
    ends = [(math.log(max(c.y[-1], panel.limits[0])) - low) / (high - low) for c in panel.curves]
    order = sorted(range(len(ends)), key=ends.__getitem__)
    heights = [0.0] * len(ends)
    last = -spacing
    for i in order:
        last = heights[i] = max(ends[i], last + spacing, 0.02)
    above = 1.0 + spacing
    for i in reversed(order):  # those that were pushed out at the top come back down
        above = heights[i] = min(heights[i], above - spacing)
    return heights


def _methods(
    curves: Curves,
    name: str,
    title: str,
    problem: str,
    datasets: Iterable[str],
    methods: Iterable[str],
) -> Figure:
    rows = []
    for dataset in datasets:
        runs: dict[Look, list[Row]] = {}
        for method in methods:
            look = METHODS[method].label, METHODS[method].colour, METHODS[method].dash
            runs[look] = list(curves.runs(problem, dataset, method).values())
        rows.append(_pair_of_panels(curves, dataset, runs, 1e-8 if name == "subproblem" else 1e-4))
    return Figure(name, title, [row for row in rows if row])


def _variants(curves: Curves) -> Figure:
    rows = []
    for dataset in curves.real:
        paper = "dense" if "both sides" in RIVALS[dataset] else "sparse"
        runs = {VARIANT_LOOKS[paper]: list(curves.runs("nmf", dataset, "s-sci-pi").values())}
        for variant in RIVALS[dataset]:
            found = curves.runs("nmf", dataset, "s-sci-pi", variant)
            runs[VARIANT_LOOKS[variant]] = list(found.values())
        if sum(map(bool, runs.values())) > 1:
            rows.append(_pair_of_panels(curves, dataset, runs, 1e-4))
    title = "What S-SCI-PI samples; every form tuned in the same way"
    return Figure("sampling", title, [row for row in rows if row])


def _pair_of_panels(
    curves: Curves, dataset: str, runs: Mapping[Look, list[Row]], floor: float
) -> list[Panel]:
    """Error against passes and against seconds; none where there are no runs."""
    panels = []
    for axis in AXES:
        lines, notes = [], []
        for (label, colour, dash), rows in runs.items():
            lost = sum(map(diverged, rows))
            if lost:
                notes.append(f"{label}: {lost} of {len(rows)} diverged")
            summary = curves.summary(rows, axis)
            if summary is not None:
                values = (v.tolist() for v in summary)
                lines.append(Curve(label, colour, dash, *values))
        if lines:
            panels.append(
                Panel(TITLES[dataset], AXIS_LABELS[axis], lines, notes=notes, floor=floor)
            )
    return panels


def _boxplots(curves: Curves) -> Figure:
    """Errors of the seeds for each (s/n, m) with its best step."""
    rows = []
    for dataset in BOXPLOTS:
        groups: dict[tuple[str, str], list[Row]] = {}
        for pair in curves.protocol.pairs(dataset):
            found = list(curves.runs("nmf", dataset, "s-sci-pi", pair=pair).values())
            if found:
                step = found[0]["params"]["step"]
                label = f"({pair[0]:g}, {pair[1]}), η = {step:g}"
                groups[label, METHODS["s-sci-pi"].colour] = found
        if not groups or not curves.runs("nmf", dataset, "f-sci-pi"):
            continue
        for name in ("f-sci-pi", "mu"):
            method = METHODS[name]
            groups[method.label, method.colour] = list(curves.runs("nmf", dataset, name).values())
        panels = []
        for axis, limit in error_limits(curves, dataset).items():
            boxes = Boxes([], [], [])
            for (label, colour), found in groups.items():
                lost = sum(map(diverged, found))
                boxes.labels.append(label + (f"; {lost} diverged" if lost else ""))
                boxes.colours.append(colour)
                errors = (curves.error_at(row, limit, axis) for row in found if not diverged(row))
                boxes.values.append(list(errors))
            unit = "passes" if axis == "passes" else "s"
            panels.append(Panel(f"{TITLES[dataset]} after {limit:.3g} {unit}", "", boxes=boxes))
        rows.append(panels)
    return Figure("robustness", "S-SCI-PI for several (s/n, m), each with its best step η", rows)
