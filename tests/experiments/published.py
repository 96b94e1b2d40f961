# SPDX-License-Identifier: BSD-3-Clause
"""The published page, its table of runs, and an independent implementation of the rules."""

import json
import re
import runpy
from importlib.resources import files
from pathlib import Path

import numpy as np

from sipower.experiments.methods import METHODS

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
MAKE = runpy.run_path(str(FOLDER / "make.py"))
ROWS = MAKE["published_rows"]()
PAGE = (FOLDER / "index.md").read_text(encoding="utf-8")
NAMES = {method.label: name for name, method in METHODS.items()}
BEST_KNOWN = json.loads((files("sipower.experiments") / "best_known.json").read_text("utf-8"))
SEEDS, FINALISTS, STARTS, SCREENING = 10, 6, 3, 0.15


def tables(title):
    """Return the cells of the tables under a heading, row by row."""
    (text,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def claims():
    """Return the rows of the table of every claim, by title."""
    titles = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
    return {title: tables(title) for title in titles if title != "Rules"}


# ---- the rules ----------------------------------------------------------------------------------


def lowest(dataset):
    values = [v for r in ROWS if (r["problem"], r["dataset"]) == ("nmf", dataset)
              for v in r["objective"] if v is not None]  # fmt: skip
    return min(*values, BEST_KNOWN[dataset]["value"])


LOWEST = {name: lowest(name) for name in {row["dataset"] for row in ROWS}}
MINIMA = {(r["dataset"], r["seed"]): r["objective"][0] for r in ROWS if r["method"] == "exact"}


def has_diverged(row):
    last = row["objective"][-1]
    return row["status"] == "not_finite" or last is None or last > row["objective"][0]


def errors(row):
    f = np.array(row["objective"], float)
    best = LOWEST[row["dataset"]]
    if row["problem"] == "subproblem":
        best = MINIMA[row["dataset"], row["seed"]]
    return np.maximum(np.abs(f - best) / abs(f[0] - best), 1e-15)


def error(row, at, axis):
    if has_diverged(row):
        return np.inf
    return np.exp(np.interp(at, row[axis], np.log(errors(row))))


def speed(a, b, axis):
    """Return the speed of rule 2, by a grid of 100,000 costs instead of a formula."""
    if has_diverged(a) or has_diverged(b):
        return 1.0 if has_diverged(a) and has_diverged(b) else 0.0 if has_diverged(a) else np.inf
    end = min(a[axis][-1], b[axis][-1])
    last = [error(row, end, axis) for row in (a, b)]
    goal = max(*last, 1e-8 if a["problem"] == "subproblem" else 0.0)
    costs = []
    for row, at_end in zip((a, b), last, strict=True):
        grid = np.unique(np.concatenate([np.linspace(0, end, 100_000), np.array(row[axis])]))
        grid = grid[grid <= end]
        above = grid[error(row, grid, axis) > goal * (1 + 1e-12)]
        costs.append(end if at_end >= goal else above.max(initial=0.0))
    return costs[1] / max(costs[0], 1e-9)


# ---- the runs behind a row ----------------------------------------------------------------------


def horizon(problem, dataset):
    rows = [
        r for r in ROWS if (r["problem"], r["dataset"], r["method"]) == (problem, dataset, "mu")
    ]
    return rows[0]["max_passes"]


def chosen_settings(dataset, problem, label, form="the paper's"):
    """Return the parameters that the page says were chosen, for methods that are tuned."""
    for line in tables("Tuning and its cost"):
        if (line[0].lower(), line[1], line[2], line[3]) == (dataset, problem, label, form):
            return line[-1]
    return ""


def settings(row):
    p = row["params"]
    if "form" in p:
        return p["form"].upper()
    if "batch" not in p:
        return ""
    batch, epoch = (tuple(v) if isinstance(v, list) else v for v in (p["batch"], p["epoch"]))
    return f"s/n = {batch}, m = {epoch}, η = {p['step']}"


FORMS = {
    "the paper's": {("vectors", "long"), ("elements", "both")},
    "both sides": {("vectors", "both")},
    "elements, one side": {("elements", "long")},
    "vectors": {("vectors", "both")},
}


def runs(dataset, problem, label, form="the paper's", chosen=None):
    """Return the runs to the horizon by seed, with the given or the chosen settings."""
    chosen = chosen_settings(dataset, problem, label, form) if chosen is None else chosen
    return {
        row["seed"]: row
        for row in ROWS
        if (row["problem"], row["dataset"], row["method"]) == (problem, dataset, NAMES[label])
        and row["max_passes"] == horizon(problem, dataset)
        and settings(row) == chosen
        and ("scheme" not in row["params"]
             or (row["params"]["scheme"], row["params"]["sides"]) in FORMS[form])
    }  # fmt: skip
