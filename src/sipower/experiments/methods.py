# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the experiments compare: their solvers, and their style in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sipower import nmf

Params = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Method:
    """A method that the experiments compare.

    Parameters
    ----------
    label, colour, dash
        Style in all figures. The colours are those of Okabe and Ito (2008), which people with a
        colour vision deficiency can tell apart.
    rule
        Function that takes the parameters of a run and returns the update rule of one factor. The
        rule solves the subproblem and, applied to both factors in turn, KL-NMF.
    solver
        Function that returns the solver of KL-NMF, for methods that do not just apply `rule` to
        both factors in turn.
    forms
        Parameter sets that the protocol chooses from; S-SCI-PI has a grid instead.
    in_nmf
        Whether the method runs on KL-NMF.
    all_seeds
        Whether the method runs on all seeds of the budget.
    """

    label: str
    colour: str
    dash: str = "solid"
    rule: Callable[..., nmf.Rule] | None = None
    solver: Callable[[], Any] | None = None
    forms: list[Params] = field(default_factory=lambda: [()])
    in_nmf: bool = True
    all_seeds: bool = False

    def make_solver(self, params: dict[str, Any]) -> Any:
        """Return a solver of KL-NMF with these parameters."""
        if self.solver is not None:
            return self.solver()
        assert self.rule is not None
        return nmf.Alternating(self.rule(**params))


def _make_coordinate_descent(form: str) -> nmf.Rule:
    """Return CCD of Hsieh and Dhillon (2011) or SCD of Lin and Boutros (2020)."""
    return nmf.CCD() if form == "ccd" else nmf.SCD()


METHODS: dict[str, Method] = {
    "s-sci-pi": Method("S-SCI-PI", "#D55E00", rule=nmf.SSciPiRule, all_seeds=True),
    "f-sci-pi": Method("F-SCI-PI", "#E69F00", rule=nmf.SciPiRule, all_seeds=True),
    "mu": Method("MU/EM", "#56B4E9", rule=nmf.MU, all_seeds=True),
    "ccd/scd": Method(
        "CCD/SCD",
        "#0072B2",
        rule=_make_coordinate_descent,
        forms=[(("form", "ccd"),), (("form", "scd"),)],
        all_seeds=True,
    ),
    "pgd": Method("PGD", "#CC79A7", rule=nmf.PGD, all_seeds=True),
    "s-sci-pi guarded": Method(
        "S-SCI-PI, guarded, untuned",
        "#D55E00",
        "dash",
        solver=partial(nmf.make_solver, "s-sci-pi"),
        all_seeds=True,
    ),
    "f-sci-pi guarded": Method(
        "F-SCI-PI, guarded", "#E69F00", "dash", solver=partial(nmf.make_solver, "sci-pi")
    ),
    "ccd extrapolated": Method(
        "CCD, extrapolated", "#0072B2", "dash", solver=lambda: nmf.Extrapolated(nmf.CCD())
    ),
    "auto": Method("auto", "#000000", solver=nmf.Auto),
    "newton": Method("Newton", "#009E73", rule=nmf.Newton, in_nmf=False),
    "exact": Method("certified solution", "#000000", "dot", in_nmf=False),
}
