# SPDX-License-Identifier: BSD-3-Clause
"""The methods that the experiments compare: a label, a colour, and a solver made of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    Vanilla,
    make_solver,
)

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """How a method is called and drawn, and what it runs.

    Parameters
    ----------
    label, colour, dash
        In every picture; colours are Okabe and Ito's, which the colour-blind can tell apart.
    rule
        The update of one factor, from the parameters of a run: makes it a method of subproblems,
        and by plain alternation one of KL-NMF.
    solver
        The solver of KL-NMF where it is not that.
    of_paper
        Whether the paper compares it.
    whole
        Whether it is run on KL-NMF.
    """

    label: str
    colour: str
    dash: str = "solid"
    rule: Callable[..., Rule] | None = None
    solver: Callable[[], Any] | None = None
    of_paper: bool = False
    whole: bool = True

    def make(self, params: dict[str, Any]) -> Any:
        """The solver of KL-NMF."""
        if self.solver is not None:
            return self.solver()
        assert self.rule is not None
        return Alternating(self.rule(**params))


METHODS: dict[str, Method] = {
    "s-sci-pi": Method("S-SCI-PI", "#D55E00", rule=SSciPiRule, of_paper=True),
    "f-sci-pi": Method("F-SCI-PI", "#E69F00", rule=SciPiRule, of_paper=True),
    "mu": Method("MU/EM", "#56B4E9", rule=MU, of_paper=True),
    "ccd": Method("CCD", "#0072B2", rule=CCD, of_paper=True),
    "scd": Method("SCD", "#0072B2", "dot", rule=SCD, of_paper=True),
    "pgd": Method("PGD", "#CC79A7", rule=PGD, of_paper=True),
    "s-sci-pi guarded": Method(
        "S-SCI-PI guarded, untuned", "#D55E00", "dash", solver=lambda: make_solver("s-sci-pi")
    ),
    "f-sci-pi guarded": Method(
        "F-SCI-PI guarded", "#E69F00", "dash", solver=lambda: make_solver("sci-pi")
    ),
    "ccd ahead": Method("CCD with extrapolation", "#009E73", solver=lambda: Extrapolated(CCD())),
    "auto": Method("auto", "#000000", solver=Auto),
    "newton": Method("Newton", "#000000", rule=Newton, whole=False),
    "vanilla": Method("vanilla, no variance reduction", "#999999", rule=Vanilla, whole=False),
    "reference": Method("auto, four times as long", "#000000", "dot", solver=Auto, whole=False),
    "exact": Method("certified solution", "#000000", "dot", whole=False),
}
