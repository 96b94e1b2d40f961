# SPDX-License-Identifier: BSD-3-Clause
"""The figures as plain data, made of nothing but the table; `draw` turns them into files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sipower.experiments.curves import (
    Summary,
    best,
    comparable,
    diverged,
    error_at,
    select,
    summary,
)
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
    least: float = 1e-5  # errors are drawn down to this


@dataclass(frozen=True)
class Figure:
    """Panels in rows."""

    name: str
    title: str
    rows: list[list[Panel]]


def figures(rows: list[Row]) -> list[Figure]:
    """Every figure that the table has data for."""
    rows, made = comparable(rows), []
    for experiment, what in (
        ("nmf", "KL-NMF, one step a half, real data"),
        ("synthetic", "KL-NMF, one step a half, independent Poisson counts"),
        ("subproblem", "One factor given the other: the convex subproblem"),
    ):
        part = select(rows, experiment=experiment)
        if part:
            made += [_convergence(rows, part, experiment, what, how) for how in ("median", "mean")]
    if select(rows, experiment="robustness"):
        made.append(_robustness(rows))
    if select(rows, experiment="sampling"):
        made.append(_sampling(rows))
    return made


def _convergence(rows: list[Row], part: list[Row], experiment: str, what: str, how: str) -> Figure:
    """Relative error against seconds (above) and passes (below), a column for each data set."""
    datasets = [name for name in TITLES if select(part, dataset=name)]
    grid = []
    for axis, x_label in AXES.items():
        panels = []
        for dataset in datasets:
            curves = []
            for name, method in METHODS.items():
                found = select(part, dataset=dataset, method=name)
                if found and name not in ("reference", "exact"):
                    made = summary(found, lambda row: _lowest(rows, row), axis)
                    if made is not None:
                        curves.append(_curve(method.label, method.colour, method.dash, made, how))
            least = 1e-10 if experiment == "subproblem" else 1e-5
            panels.append(Panel(TITLES[dataset], x_label, curves, least=least))
        grid.append(panels)
    over = "mean over the seeds" if how == "mean" else "median over the seeds, band of 10 to 90 %"
    return Figure(f"{experiment}-{how}", f"{what}: {over}", grid)


def _lowest(rows: list[Row], row: Row) -> float:
    seed = row["seed"] if row["experiment"] == "subproblem" else None
    return best(rows, row["dataset"], seed).value


def _curve(label: str, colour: str, dash: str, made: Summary, how: str) -> Curve:
    if made.diverged:
        label = f"{label} ({made.diverged} of {made.runs} diverged)"
    x = made.x.tolist()
    if how == "mean":
        return Curve(label, colour, dash, x, made.mean.tolist())
    return Curve(
        label, colour, dash, x, made.median.tolist(), made.low.tolist(), made.high.tolist()
    )


def _robustness(rows: list[Row]) -> Figure:
    """Errors of ten seeds after the time that the runs had, for each (s/n, m)."""
    panels = []
    for dataset, title in TITLES.items():
        found = select(rows, experiment="robustness", dataset=dataset)
        if not found:
            continue
        seconds = found[0]["seconds_allowed"]
        groups: dict[tuple[str, str], list[Row]] = {}
        for name in ("mu", "f-sci-pi"):
            method = METHODS[name]
            groups[method.label, method.colour] = select(
                rows, experiment="nmf", dataset=dataset, method=name
            )
        for row in sorted(found, key=lambda row: (row["params"]["batch"], row["params"]["epoch"])):
            p = row["params"]
            label = f"S-SCI-PI ({p['batch']:g}, {p['epoch']}), η = {p['step']:g}"
            groups.setdefault((label, METHODS["s-sci-pi"].colour), []).append(row)
        boxes = Boxes([], [], [])
        lowest = best(rows, dataset).value
        for (label, colour), group in groups.items():
            kept = [error_at(row, lowest, seconds) for row in group if not diverged(row)]
            lost = len(group) - len(kept)
            boxes.labels.append(label + (f"\n{lost} of {len(group)} diverged" if lost else ""))
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


def _sampling(rows: list[Row]) -> Figure:
    """Four schemes in one or both dimensions, against passes and seconds."""
    part = select(rows, experiment="sampling")
    datasets = [name for name in TITLES if select(part, dataset=name)]
    grid = []
    for axis, x_label in AXES.items():
        panels = []
        for dataset in datasets:
            groups: dict[tuple[str, str, str], list[Row]] = {}
            for row in select(part, dataset=dataset):
                groups.setdefault(_scheme(row), []).append(row)
            curves = []
            for (label, colour, dash), group in groups.items():
                made = summary(group, lambda row: _lowest(rows, row), axis)
                if made is not None:
                    curves.append(_curve(label, colour, dash, made, "median"))
            panels.append(Panel(TITLES[dataset], x_label, curves))
        grid.append(panels)
    return Figure("sampling", "How batches are drawn: median over the seeds", grid)


def _scheme(row: Row) -> tuple[str, str, str]:
    params: dict[str, Any] = row["params"]
    if row["method"] == "vanilla":
        return METHODS["vanilla"].label, METHODS["vanilla"].colour, "solid"
    if params.get("threshold") == 0:
        return "no threshold", "#000000", "dot"
    one = params["sides"] == "long"
    where = "longer dimension" if one else "both dimensions"
    scheme = params["scheme"]
    return f"{scheme}, {where}", SCHEME_COLOURS[scheme], "dash" if one else "solid"
