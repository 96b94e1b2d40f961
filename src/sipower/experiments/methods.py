# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the experiments compare: label, colour, and a solver made of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sipower.nmf import (
    CCD,
    MU,
    PGD,
    SCD,
    Alternating,
    Auto,
    Extrapolated,
    Newton,
    Rule,
    SciPiRule,
    SSciPiRule,
    make_solver,
)

__all__ = ["METHODS", "Method", "Params"]

Params = tuple[tuple[str, Any], ...]
PLAIN: Params = ()


@dataclass(frozen=True)
class Method:
    """A method of the experiments.

    Parameters
    ----------
    label, colour, dash
        Used in every picture. The colours are those of Okabe and Ito (2008), which people with a
        colour vision deficiency can tell apart.
    rule
        The update of one factor, made of the parameters of a run. It solves subproblems, and
        KL-NMF by plain alternation.
    solver
        The solver of KL-NMF where it is not that.
    forms
        Parameters that the protocol chooses from; S-SCI-PI has a grid instead.
    in_nmf
        Whether the method runs on KL-NMF.
    all_seeds
        Whether it runs on all replicates.
    """

    label: str
    colour: str
    dash: str = "solid"
    rule: Callable[..., Rule] | None = None
    solver: Callable[[], Any] | None = None
    forms: list[Params] = field(default_factory=lambda: [PLAIN])
    in_nmf: bool = True
    all_seeds: bool = False

    def make_solver(self, params: dict[str, Any]) -> Any:
        """Return the solver of KL-NMF."""
        if self.solver is not None:
            return self.solver()
        assert self.rule is not None
        return Alternating(self.rule(**params))


def _coordinate_descent(form: str) -> Rule:
    """The paper's CCD/SCD: Hsieh and Dhillon (2011), or Lin and Boutros (2020)."""
    return CCD() if form == "ccd" else SCD()


METHODS: dict[str, Method] = {
    "s-sci-pi": Method("S-SCI-PI", "#D55E00", rule=SSciPiRule, all_seeds=True),
    "f-sci-pi": Method("F-SCI-PI", "#E69F00", rule=SciPiRule, all_seeds=True),
    "mu": Method("MU/EM", "#56B4E9", rule=MU, all_seeds=True),
    "ccd/scd": Method(
        "CCD/SCD",
        "#0072B2",
        rule=_coordinate_descent,
        forms=[(("form", "ccd"),), (("form", "scd"),)],
        all_seeds=True,
    ),
    "pgd": Method("PGD", "#CC79A7", rule=PGD, all_seeds=True),
    "s-sci-pi guarded": Method(
        "S-SCI-PI, guarded, untuned",
        "#D55E00",
        "dash",
        solver=lambda: make_solver("s-sci-pi"),
        all_seeds=True,
    ),
    "f-sci-pi guarded": Method(
        "F-SCI-PI, guarded", "#E69F00", "dash", solver=lambda: make_solver("sci-pi")
    ),
    "ccd extrapolated": Method(
        "CCD, extrapolated", "#0072B2", "dash", solver=lambda: Extrapolated(CCD())
    ),
    "auto": Method("auto", "#000000", solver=Auto),
    "newton": Method("Newton", "#009E73", rule=Newton, in_nmf=False),
    "exact": Method("certified solution", "#000000", "dot", in_nmf=False),
}
