# SPDX-License-Identifier: BSD-3-Clause
"""The paper's claims, each held against the table: reproduced, not reproduced, or depends.

The rule was fixed before the runs. Two methods are compared seed by seed from the same start: the
claim that A beats B on a set is reproduced if A ends lower on at least four seeds of five, not
reproduced if on at most one of five, and depends otherwise. How much sooner A is: the seconds of
B's run over those that A needed to B's last error, the median over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from sipower.experiments.curves import best, comparable, diverged, error_at, relative_errors, select
from sipower.experiments.figures import TITLES
from sipower.experiments.methods import METHODS
from sipower.experiments.table import Row

__all__ = ["Verdict", "verdicts"]

MOST, FEW = 0.8, 0.2  # share of the seeds
SETS = ("wt", "nips", "kos", "mitf")
FAR = 1.5  # times sooner: "by far", "much", "remarkable"
EQUAL = 1.1  # times sooner or later, at most: "not significantly"


@dataclass(frozen=True)
class Verdict:
    """What became of one claim."""

    claim: str
    verdict: str
    numbers: str


class Duel(NamedTuple):
    """A against B over the seeds that both have."""

    share: float  # of the seeds, on which A ended lower
    sooner: float  # times
    seeds: int

    def __str__(self) -> str:
        seeds = f"{self.share * self.seeds:.0f} of {self.seeds} seeds"
        return f"lower on {seeds}, {self.sooner:.2g}x as soon"


class Table:
    """The rows with the few questions that claims ask."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = comparable(rows)

    def runs(self, experiment: str, dataset: str, method: str) -> dict[int, Row]:
        """The rows of a method by seed."""
        found = select(self.rows, experiment=experiment, dataset=dataset, method=method)
        return {row["seed"]: row for row in found}

    def lowest(self, row: Row) -> float:
        """f* of the row's problem."""
        convex = row["experiment"] == "subproblem"
        return best(self.rows, row["dataset"], row["seed"] if convex else None).value

    def duels(
        self, a: str, rivals: tuple[str, ...], sets: tuple[str, ...], experiment: str = "nmf"
    ) -> dict[tuple[str, str], Duel]:
        """A method against others, by set and rival, where the table has both."""
        found = {(d, b): self.duel(a, b, d, experiment) for d in sets for b in rivals}
        return {key: duel for key, duel in found.items() if duel is not None}

    def duel(self, a: str, b: str, dataset: str, experiment: str = "nmf") -> Duel | None:
        """Compare two methods from the same starts; None where there are none."""
        ours, theirs = (self.runs(experiment, dataset, name) for name in (a, b))
        seeds = sorted(ours.keys() & theirs.keys())
        lower, sooner = [], []
        for seed in seeds:
            first, second = ours[seed], theirs[seed]
            lowest = self.lowest(first)
            goal = relative_errors(second, lowest)[-1]
            lower.append(not diverged(first) and relative_errors(first, lowest)[-1] < goal)
            sooner.append(second["seconds"][-1] / _time_to(first, lowest, float(goal)))
        return Duel(sum(lower) / len(seeds), median(sooner), len(seeds)) if seeds else None


def _time_to(row: Row, lowest: float, goal: float) -> float:
    """Seconds to an error; twice the run's own where it never got there."""
    reached = np.flatnonzero(relative_errors(row, lowest) <= goal)
    seconds = row["seconds"][reached[0]] if len(reached) else 2 * row["seconds"][-1]
    return max(float(seconds), 1e-3)


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Every claim that the table has data for."""
    table = Table(rows)
    made: list[Verdict] = []
    for judge in JUDGES:
        made += judge(table)
    return made


def _word(share: float) -> str:
    return "reproduced" if share >= MOST else "not reproduced" if share <= FEW else "depends"


def _all(flags: list[bool]) -> str:
    return "reproduced" if all(flags) else "depends" if any(flags) else "not reproduced"


def _stochastic_against_full(table: Table) -> list[Verdict]:
    made = []
    for (dataset, _), duel in table.duels("s-sci-pi", ("f-sci-pi",), SETS).items():
        if dataset == "mitf":
            claim, share = "... but not on MITF, which has few columns", 1 - duel.share
        else:
            claim = f"S-SCI-PI converges faster than F-SCI-PI on {TITLES[dataset]}"
            share = duel.share
        made.append(Verdict(claim, _word(share), str(duel)))
    return made


def _power_against_mu(table: Table) -> list[Verdict]:
    duels = {
        f"{label} on {TITLES[d]}": duel
        for name, label in (("s-sci-pi", "S"), ("f-sci-pi", "F"))
        for (d, _), duel in table.duels(name, ("mu",), SETS).items()
    }
    if not duels:
        return []
    far = [duel.sooner >= FAR and duel.share >= MOST for duel in duels.values()]
    numbers = ", ".join(f"{where} {duel.sooner:.2g}x" for where, duel in duels.items())
    claim = "S-SCI-PI and F-SCI-PI converge much faster than MU/EM"
    return [Verdict(claim, _all(far), f"times as soon as MU: {numbers}")]


def _subproblem(table: Table) -> list[Verdict]:
    made, rivals = [], ("f-sci-pi", "mu", "ccd", "scd", "pgd")
    duels = table.duels("s-sci-pi", rivals, SETS, "subproblem")
    if duels:
        flags = [duel.share >= MOST for duel in duels.values()]
        lost = [
            f"{METHODS[rival].label} on {TITLES[d]} ({duel.sooner:.2g}x)"
            for (d, rival), duel in duels.items()
            if duel.share < MOST
        ]
        claim = "S-SCI-PI is the overall winner on the subproblem"
        made.append(Verdict(claim, _all(flags), f"not ahead of: {', '.join(lost) or 'nobody'}"))
    for d in ("nips", "kos"):
        if duel := duels.get((d, "f-sci-pi")):
            claim = f"... not significantly better than F-SCI-PI on {TITLES[d]}"
            word = "reproduced" if 1 / EQUAL <= duel.sooner <= EQUAL else "not reproduced"
            made.append(Verdict(claim, word, str(duel)))
    if duel := table.duel("ccd", "mu", "wt", "subproblem"):
        made.append(Verdict("CCD is faster than MU/EM on WT", _word(duel.share), str(duel)))
    for d in ("nips", "kos"):
        if duel := duels.get((d, "ccd")):
            word = _all([duel.share >= MOST, duel.sooner >= FAR])
            claim = f"CCD is much slower than S-SCI-PI on {TITLES[d]}: costly coordinate updates"
            made.append(Verdict(claim, word, f"S-SCI-PI {duel}"))
    return made


def _boxplots(table: Table) -> list[Verdict]:
    made = []
    for dataset in ("wt", "nips"):
        found = select(table.rows, experiment="robustness", dataset=dataset)
        full = list(table.runs("nmf", dataset, "f-sci-pi").values())
        if not (found and full):
            continue
        seconds, lowest = found[0]["seconds_allowed"], best(table.rows, dataset).value
        pairs: dict[str, list[float]] = {}
        for row in found:
            if not diverged(row):
                name = f"({row['params']['batch']:g}, {row['params']['epoch']})"
                pairs.setdefault(name, []).append(error_at(row, lowest, seconds))
        reference = median(error_at(row, lowest, seconds) for row in full)
        medians = {name: median(errors) for name, errors in pairs.items()}
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in medians.items())
        numbers = f"median error after {seconds:g} s: {numbers}; F-SCI-PI {reference:.2g}"
        if dataset == "wt":
            flags = [FAR * value <= reference for value in medians.values()]
            claim = "S-SCI-PI improves remarkably over F-SCI-PI on WT (boxplots)"
            made.append(Verdict(claim, _all(flags), numbers))
        spread = max(medians.values()) / min(medians.values())
        word = "reproduced" if spread <= 2 else "depends" if spread <= 5 else "not reproduced"
        claim = f"S-SCI-PI is robust to s/n and m on {TITLES[dataset]}, given a good step"
        made.append(Verdict(claim, word, f"largest over smallest {spread:.2g}; {numbers}"))
    return made


def _starts(table: Table) -> list[Verdict]:
    spreads = {}
    for d in SETS:
        runs = [row for row in table.runs("nmf", d, "s-sci-pi").values() if not diverged(row)]
        if len(runs) > 1:
            lowest = best(table.rows, d).value
            low, high = np.quantile([relative_errors(r, lowest)[-1] for r in runs], (0.1, 0.9))
            spreads[TITLES[d]] = float(high / low)
    if not spreads:
        return []
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in spreads.items())
    claim = "The solutions of S-SCI-PI are robust to the random start"
    flags = [value <= 2 for value in spreads.values()]
    return [Verdict(claim, _all(flags), f"90 % over 10 % quantile of the last error: {numbers}")]


def _sampling(table: Table) -> list[Verdict]:
    made = []
    for dataset, claim, scheme, sides, other in (
        ("kos", "On sparse data elements are better sampled in both dimensions than in one",
         "elements", "both", ("elements", "long")),
        ("kos", "... and element-wise sampling is better than vector-wise", "elements", "both",
         ("vectors", "both")),
        ("wt", "On dense data only the longer dimension is to be sampled", "vectors", "long",
         ("vectors", "both")),
    ):  # fmt: skip
        ours, theirs = _schemes(table, dataset, scheme, sides), _schemes(table, dataset, *other)
        seeds = sorted(ours.keys() & theirs.keys())
        if not seeds:
            continue
        lowest = best(table.rows, dataset).value
        pairs = [(_last(ours[seed], lowest), _last(theirs[seed], lowest)) for seed in seeds]
        share = sum(a < b for a, b in pairs) / len(pairs)
        a, b = (median(pair[i] for pair in pairs) for i in (0, 1))
        made.append(
            Verdict(
                f"{claim} ({TITLES[dataset]})",
                _word(share),
                f"median error {a:.3g} against {b:.3g}",
            )
        )
    return made + _threshold(table)


def _last(row: Row, lowest: float) -> float:
    return np.inf if diverged(row) else float(relative_errors(row, lowest)[-1])


def _schemes(table: Table, dataset: str, scheme: str, sides: str) -> dict[int, Row]:
    rows = select(table.rows, experiment="sampling", dataset=dataset, method="s-sci-pi")
    return {
        row["seed"]: row
        for row in rows
        if (row["params"]["scheme"], row["params"]["sides"]) == (scheme, sides)
        and "threshold" not in row["params"]
    }


def _threshold(table: Table) -> list[Verdict]:
    rows = select(table.rows, experiment="sampling", method="s-sci-pi")
    without = [row for row in rows if row["params"].get("threshold") == 0]
    if not without:
        return []
    with_it = [row for row in rows if "threshold" not in row["params"]]
    a, b = (sum(map(diverged, group)) for group in (with_it, without))
    fewer = a * len(without) < b * len(with_it)
    word = "reproduced" if a == 0 and b > 0 else "depends" if fewer else "not reproduced"
    numbers = f"diverged: {a} of {len(with_it)} with a threshold, {b} of {len(without)} without"
    claim = "A threshold is needed against negative variance-reduced gradients"
    return [Verdict(claim, word, numbers)]


def _cost(table: Table) -> list[Verdict]:
    ratios = {}
    for d in SETS:
        full, mu = (table.runs("nmf", d, name) for name in ("f-sci-pi", "mu"))
        seeds = full.keys() & mu.keys()
        if seeds:
            ratios[TITLES[d]] = median(_cost_of(full[s]) / _cost_of(mu[s]) for s in seeds)
    if not ratios:
        return []
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in ratios.items())
    flags = [1 / EQUAL <= value <= EQUAL for value in ratios.values()]
    claim = "A round of F-SCI-PI costs as much as one of MU/EM"
    return [Verdict(claim, _all(flags), f"seconds a pass, F-SCI-PI over MU: {numbers}")]


def _cost_of(row: Row) -> float:
    return float(row["seconds"][-1] / row["passes"][-1])


def _rate(table: Table) -> list[Verdict]:
    """A straight line of log error against passes over the last two thirds of the decades."""
    fits: dict[str, list[float]] = {}
    for d in SETS:
        for row in table.runs("subproblem", d, "s-sci-pi").values():
            errors = relative_errors(row, table.lowest(row))
            late = (errors < 0.1) & (errors > 1e-9)
            if late.sum() >= 5:
                x, y = np.array(row["passes"])[late], np.log(errors[late])
                fits.setdefault(TITLES[d], []).append(float(np.corrcoef(x, y)[0, 1] ** 2))
    if not fits:
        return []
    worst = {name: median(values) for name, values in fits.items()}
    numbers = ", ".join(f"{name} {value:.3f}" for name, value in worst.items())
    flags = [value >= 0.95 for value in worst.values()]
    claim = "S-SCI-PI converges linearly (subproblem)"
    return [Verdict(claim, _all(flags), f"R² of log error against passes: {numbers}")]


def _what_beats_it(table: Table) -> list[Verdict]:
    made = []
    for d in SETS:
        every = {name: table.duel(name, "s-sci-pi", d) for name in ("auto", "ccd ahead", "ccd")}
        duels = {METHODS[name].label: duel for name, duel in every.items() if duel is not None}
        if duels:
            flags = [duel.share <= FEW for duel in duels.values()]
            numbers = "; ".join(f"{name} {duel}" for name, duel in duels.items())
            claim = f"Nothing is faster than S-SCI-PI on {TITLES[d]}"
            made.append(Verdict(claim, _all(flags), numbers))
    return made


JUDGES: tuple[Callable[[Table], list[Verdict]], ...] = (
    _stochastic_against_full,
    _power_against_mu,
    _subproblem,
    _boxplots,
    _starts,
    _sampling,
    _cost,
    _rate,
    _what_beats_it,
)
