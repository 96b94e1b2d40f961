# SPDX-License-Identifier: BSD-3-Clause
"""The figures as plain data, made of nothing but the table; `draw` turns them into files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sipower.experiments.curves import Curves, Summary, diverged, select
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row

__all__ = ["Boxes", "Curve", "Figure", "Panel", "figures"]

TITLES = {
    "wt": "WT",
    "nips": "NIPS",
    "kos": "KOS",
    "mitf": "MITF",
    "pois1": "Pois1",
    "pois2": "Pois2",
    "pois3": "Pois3",
    "docstrings": "docstrings",
}
AXES = {"seconds": "seconds of one thread", "passes": "passes over the data"}
ERROR = "relative error (f − f*)/(f₀ − f*)"
Look = tuple[str, str, str]  # label, colour, dash


@dataclass(frozen=True)
class Curve:
    """A line, with a band where it has one."""

    label: str
    colour: str
    dash: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None


@dataclass(frozen=True)
class Boxes:
    """Values of several seeds, one box a label."""

    labels: list[str]
    colours: list[str]
    values: list[list[float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes; y is logarithmic."""

    title: str
    x_label: str
    curves: list[Curve] = field(default_factory=list)
    boxes: Boxes | None = None
    y_label: str = ERROR
    notes: list[str] = field(default_factory=list)
    least: float = 1e-5  # errors are drawn down to this


@dataclass(frozen=True)
class Figure:
    """Panels in rows."""

    name: str
    title: str
    rows: list[list[Panel]]


def figures(rows: list[Row]) -> list[Figure]:
    """Every figure that the table has data for."""
    curves, made = Curves(rows), []
    for experiment, what in (
        ("nmf", "KL-NMF, one step a half, real data"),
        ("synthetic", "KL-NMF, one step a half, independent Poisson counts"),
        ("subproblem", "One factor given the other: the convex subproblem"),
    ):
        if select(curves.rows, experiment=experiment):
            made += [_convergence(curves, experiment, what, how) for how in ("median", "mean")]
    if select(curves.rows, experiment="robustness"):
        made.append(_robustness(curves))
    if select(curves.rows, experiment="sampling"):
        made.append(_sampling(curves))
    return made


def _convergence(curves: Curves, experiment: str, what: str, how: str) -> Figure:
    groups: dict[str, dict[Look, list[Row]]] = {}
    for dataset in TITLES:
        for name, method in METHODS.items():
            found = list(curves.runs(experiment, dataset, name).values())
            if found and name not in ("reference", "exact"):
                look = method.label, method.colour, method.dash
                groups.setdefault(dataset, {})[look] = found
    over = "mean over the seeds" if how == "mean" else "median over the seeds, band of 10 to 90 %"
    least = 1e-8 if experiment == "subproblem" else 1e-5
    return Figure(f"{experiment}-{how}", f"{what}: {over}", _panels(curves, groups, how, least))


def _sampling(curves: Curves) -> Figure:
    groups: dict[str, dict[Look, list[Row]]] = {}
    for row in select(curves.rows, experiment="sampling"):
        groups.setdefault(row["dataset"], {}).setdefault(_scheme(row), []).append(row)
    panels = _panels(curves, groups, "median", 1e-5)
    return Figure("sampling", "How batches are drawn: median over the seeds", panels)


def _panels(
    curves: Curves, groups: dict[str, dict[Look, list[Row]]], how: str, least: float
) -> list[list[Panel]]:
    """Relative error against seconds (above) and passes (below), a column for each data set."""
    grid = []
    for axis, x_label in AXES.items():
        panels = []
        for dataset, looks in groups.items():
            lines, notes = [], []
            for (label, colour, dash), found in looks.items():
                lost = sum(map(diverged, found))
                if lost:
                    notes.append(f"{label}: {lost} of {len(found)} diverged")
                made = curves.summary(found, axis)
                if made is not None:
                    lines.append(_curve(label, colour, dash, made, how))
            panels.append(Panel(TITLES[dataset], x_label, lines, notes=notes, least=least))
        grid.append(panels)
    return grid


def _curve(label: str, colour: str, dash: str, made: Summary, how: str) -> Curve:
    x = made.x.tolist()
    if how == "mean":
        return Curve(label, colour, dash, x, made.mean.tolist())
    low, high = made.low.tolist(), made.high.tolist()
    return Curve(label, colour, dash, x, made.median.tolist(), low, high)


def _robustness(curves: Curves) -> Figure:
    """Errors of the seeds after the time that the runs had, for each (s/n, m)."""
    panels = []
    for dataset, title in TITLES.items():
        found = select(curves.rows, experiment="robustness", dataset=dataset)
        if not found:
            continue
        seconds = found[0]["seconds_allowed"]
        groups: dict[tuple[str, str], list[Row]] = {}
        for name in ("mu", "f-sci-pi"):
            method = METHODS[name]
            seeds = curves.runs("nmf", dataset, name)
            groups[method.label, method.colour] = list(seeds.values())
        for row in sorted(found, key=lambda row: (row["params"]["batch"], row["params"]["epoch"])):
            p = row["params"]
            label = f"S-SCI-PI ({p['batch']:g}, {p['epoch']}), η = {p['step']:g}"
            groups.setdefault((label, METHODS["s-sci-pi"].colour), []).append(row)
        boxes = Boxes([], [], [])
        for (label, colour), group in groups.items():
            kept = [curves.error_at(row, seconds) for row in group if not diverged(row)]
            lost = len(group) - len(kept)
            boxes.labels.append(label + (f"; {lost} of {len(group)} diverged" if lost else ""))
            boxes.colours.append(colour)
            boxes.values.append(kept)
        panels.append(Panel(f"{title} after {seconds:g} s", "", boxes=boxes))
    return Figure("robustness", "S-SCI-PI (s/n, m), each with its best step η", [panels])


SCHEME_COLOURS = {
    "vectors": "#0072B2",
    "stratified": "#D55E00",
    "weighted": "#009E73",
    "elements": "#CC79A7",
}


def _scheme(row: Row) -> Look:
    params: dict[str, Any] = row["params"]
    if row["method"] == "vanilla":
        return METHODS["vanilla"].label, METHODS["vanilla"].colour, "solid"
    one = params["sides"] == "long"
    where = "longer dimension" if one else "both dimensions"
    scheme = params["scheme"]
    return f"{scheme}, {where}", SCHEME_COLOURS[scheme], "dash" if one else "solid"
