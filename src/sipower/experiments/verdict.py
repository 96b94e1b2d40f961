# SPDX-License-Identifier: BSD-3-Clause
"""The paper's claims, each held against the table: reproduced, not reproduced, or depends.

The rules were fixed before the runs. Two methods are compared seed by seed from the same start, at
the worse of their two errors after the time that both had (on the convex subproblem at 1e-8 at the
least, where certificates end): A is sooner by the ratio of the seconds that the two needed to that
error. A claim that A beats B is reproduced if A is sooner on at least four seeds of five, not
reproduced if on at most one of five, and depends otherwise. A run that diverged has lost.

One more claim, that the number of samples is decoupled from the eigen-gap, is about PCA: the page
on the theory holds it against power iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from sipower.experiments.curves import Curves, diverged, select
from sipower.experiments.duel import CERTIFIED, duel, duels
from sipower.experiments.figures import TITLES
from sipower.experiments.methods import METHODS
from sipower.experiments.protocol import REAL
from sipower.experiments.table import Row

__all__ = ["Verdict", "verdicts"]

MOST, FEW = 0.8, 0.2  # share of the seeds
FAR = 1.5  # times sooner: "by far", "much", "remarkable"
EQUAL = 1.1  # times sooner, at most: "not significantly"
SPREAD = 2.0  # largest over smallest error, at most: "robust"


@dataclass(frozen=True)
class Verdict:
    """What became of one claim."""

    claim: str
    verdict: str
    numbers: str


def verdicts(rows: list[Row]) -> list[Verdict]:
    """Every claim that the table has data for."""
    curves = Curves(rows)
    return [verdict for judge in JUDGES for verdict in judge(curves)]


def _word(share: float) -> str:
    return "reproduced" if share >= MOST else "not reproduced" if share <= FEW else "depends"


def _all(flags: list[bool]) -> str:
    return "reproduced" if all(flags) else "depends" if any(flags) else "not reproduced"


def _stochastic_against_full(curves: Curves) -> list[Verdict]:
    made = []
    for (d, _), found in duels(curves, "s-sci-pi", ("f-sci-pi",)).items():
        if d == "mitf":
            claim, share = "... but not on MITF, which has few columns", 1 - found.share
        else:
            claim = f"S-SCI-PI converges faster than F-SCI-PI on {TITLES[d]}"
            share = found.share
        made.append(Verdict(claim, _word(share), str(found)))
    return made


def _power_against_mu(curves: Curves) -> list[Verdict]:
    found = {
        f"{label} on {TITLES[d]}": one
        for name, label in (("s-sci-pi", "S"), ("f-sci-pi", "F"))
        for (d, _), one in duels(curves, name, ("mu",)).items()
    }
    if not found:
        return []
    far = [one.sooner >= FAR and one.share >= MOST for one in found.values()]
    numbers = ", ".join(f"{where} {one.sooner:.2g}x" for where, one in found.items())
    claim = "S-SCI-PI and F-SCI-PI converge much faster than MU/EM"
    return [Verdict(claim, _all(far), f"as soon as MU: {numbers}")]


def _subproblem(curves: Curves) -> list[Verdict]:
    rivals = ("f-sci-pi", "mu", "ccd", "scd", "pgd")
    found = duels(curves, "s-sci-pi", rivals, "subproblem")
    made = []
    if found:
        lost = [
            f"{METHODS[rival].label} on {TITLES[d]} ({one.sooner:.2g}x as soon)"
            for (d, rival), one in found.items()
            if one.share < MOST
        ]
        claim = "S-SCI-PI is the overall winner on the subproblem"
        flags = [one.share >= MOST for one in found.values()]
        made.append(Verdict(claim, _all(flags), f"not ahead of: {', '.join(lost) or 'nobody'}"))
    for d in ("nips", "kos"):
        if one := found.get((d, "f-sci-pi")):
            claim = f"... not significantly better than F-SCI-PI on {TITLES[d]}"
            word = "reproduced" if one.sooner <= EQUAL else "not reproduced"
            made.append(Verdict(claim, word, str(one)))
    for name in ("ccd", "scd"):
        label = METHODS[name].label
        against_mu = duels(curves, name, ("mu",), "subproblem")
        if one := against_mu.get(("wt", "mu")):
            made.append(Verdict(f"{label} is faster than MU/EM on WT", _word(one.share), str(one)))
        for d in ("nips", "kos"):
            if one := found.get((d, name)):
                word = _all([one.share >= MOST, one.sooner >= FAR])
                claim = f"{label} is much slower than S-SCI-PI on {TITLES[d]}"
                made.append(Verdict(claim, word, f"S-SCI-PI {one}"))
    return made


def _boxplots(curves: Curves) -> list[Verdict]:
    made = []
    for d in ("wt", "nips"):
        found = select(curves.rows, experiment="robustness", dataset=d)
        full = curves.runs("nmf", d, "f-sci-pi").values()
        if not (found and full):
            continue
        seconds = found[0]["seconds_allowed"]
        pairs: dict[str, list[float]] = {}
        for row in found:  # a run that diverged has the error ∞
            name = f"({row['params']['batch']:g}, {row['params']['epoch']})"
            pairs.setdefault(name, []).append(curves.error_at(row, seconds))
        reference = median(curves.error_at(row, seconds) for row in full)
        medians = {name: median(errors) for name, errors in pairs.items()}
        lost = sum(map(diverged, found))
        numbers = ", ".join(f"{name} {value:.2g}" for name, value in medians.items())
        numbers = f"median error after {seconds:g} s: {numbers}; F-SCI-PI {reference:.2g}"
        numbers += f"; {lost} of {len(found)} diverged"
        if d == "wt":
            flags = [FAR * value <= reference for value in medians.values()]
            claim = "S-SCI-PI improves remarkably over F-SCI-PI on WT (boxplots)"
            made.append(Verdict(claim, _all(flags), numbers))
        spread = max(medians.values()) / min(medians.values())
        claim = f"S-SCI-PI is robust to s/n and m on {TITLES[d]}, given a good step"
        numbers = f"largest over smallest {spread:.2g}; {numbers}"
        made.append(Verdict(claim, _robust(spread), numbers))
    return made


def _robust(spread: float) -> str:
    return (
        "reproduced" if spread <= SPREAD else "depends" if spread <= 5 else "not reproduced"
    )  # NaN (everything diverged) is not reproduced


def _starts(curves: Curves) -> list[Verdict]:
    spreads = {}
    for d in REAL:
        runs = curves.runs("nmf", d, "s-sci-pi").values()
        if len(runs) > 1:
            errors = [curves.error_at(row, row["seconds_allowed"]) for row in runs]
            low, high = np.quantile(errors, (0.1, 0.9), method="nearest")
            spreads[TITLES[d]] = float(high / low)
    if not spreads:
        return []
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in spreads.items())
    claim = "The solutions of S-SCI-PI are robust to the random start"
    flags = [value <= SPREAD for value in spreads.values()]
    return [Verdict(claim, _all(flags), f"90 % over 10 % quantile of the last error: {numbers}")]


def _sampling(curves: Curves) -> list[Verdict]:
    """At equal passes: the code for sparse vectors is not fused, seconds would judge that."""
    made = []
    for d, claim, ours, theirs in (
        ("kos", "On sparse data elements are better sampled in both dimensions than in one",
         ("elements", "both"), ("elements", "long")),
        ("kos", "... and elements better than vectors", ("elements", "both"), ("vectors", "both")),
        ("wt", "On dense data only the longer dimension is to be sampled", ("vectors", "long"),
         ("vectors", "both")),
    ):  # fmt: skip
        found = duel(curves, _schemes(curves, d, *ours), _schemes(curves, d, *theirs), "passes")
        if found is not None:
            numbers = f"in passes, both with what was tuned for the former: {found}"
            made.append(Verdict(f"{claim} ({TITLES[d]})", _word(found.share), numbers))
    return made


def _schemes(curves: Curves, dataset: str, scheme: str, sides: str) -> dict[int, Row]:
    rows = select(curves.rows, experiment="sampling", dataset=dataset, method="s-sci-pi")
    wanted = scheme, sides
    return {r["seed"]: r for r in rows if (r["params"]["scheme"], r["params"]["sides"]) == wanted}


def _threshold(curves: Curves) -> list[Verdict]:
    shares = {
        TITLES[d]: median(row["objective"][0] for row in found)
        for d in REAL
        if (found := select(curves.rows, experiment="gradients", dataset=d))
    }
    if not shares:
        return []
    numbers = ", ".join(f"{100 * value:.2g} % on {name}" for name, value in shares.items())
    claim = "Variance-reduced gradients have negative entries, which a threshold prevents"
    flags = [value > 0 for value in shares.values()]
    return [Verdict(claim, _all(flags), f"negative entries a full step from the anchor: {numbers}")]


def _cost(curves: Curves) -> list[Verdict]:
    ratios = {}
    for d in REAL:
        full, mu = (curves.runs("nmf", d, name) for name in ("f-sci-pi", "mu"))
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


def _rate(curves: Curves) -> list[Verdict]:
    """Over three decades at least, log error is straighter in the passes than in their log."""
    fits: dict[str, list[tuple[float, float]]] = {}
    for d in REAL:
        for row in curves.runs("subproblem", d, "s-sci-pi").values():
            errors, passes = curves.errors(row), np.array(row["passes"])
            late = (errors < 0.1) & (errors > CERTIFIED) & (passes > 0)
            if late.sum() >= 5 and errors[late].max() >= 1e3 * errors[late].min():
                x, y = passes[late], np.log(errors[late])
                linear, power = (np.corrcoef(axis, y)[0, 1] ** 2 for axis in (x, np.log(x)))
                fits.setdefault(TITLES[d], []).append((float(linear), float(power)))
    if not fits:
        return []
    middle = {
        name: tuple(median(f[i] for f in found) for i in (0, 1)) for name, found in fits.items()
    }
    numbers = ", ".join(f"{name} {a:.3f} and {b:.3f}" for name, (a, b) in middle.items())
    flags = [a >= 0.95 and a > b for a, b in middle.values()]
    claim = "S-SCI-PI converges linearly (subproblem)"
    return [
        Verdict(claim, _all(flags), f"R² of log error against passes, and their log: {numbers}")
    ]


def _what_beats_it(curves: Curves) -> list[Verdict]:
    made = []
    for d in REAL:
        found = {
            METHODS[name].label: one
            for name in ("auto", "ccd ahead", "ccd")
            if (one := duels(curves, name, ("s-sci-pi",)).get((d, "s-sci-pi")))
        }
        if found:
            beaten = any(one.share >= MOST for one in found.values())
            clear = all(one.share <= FEW for one in found.values())
            word = "not reproduced" if beaten else "reproduced" if clear else "depends"
            numbers = "; ".join(f"{name} {one}" for name, one in found.items())
            made.append(Verdict(f"Nothing is faster than S-SCI-PI on {TITLES[d]}", word, numbers))
    return made


JUDGES: tuple[Callable[[Curves], list[Verdict]], ...] = (
    _stochastic_against_full,
    _power_against_mu,
    _subproblem,
    _boxplots,
    _starts,
    _sampling,
    _threshold,
    _cost,
    _rate,
    _what_beats_it,
)
