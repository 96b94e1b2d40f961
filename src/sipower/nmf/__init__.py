# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF: the problem, the alternating driver and one file per update rule."""

from typing import Any

from sipower.nmf.alternating import Alternating, NMFState
from sipower.nmf.auto import Auto
from sipower.nmf.coordinate import CCD, SCD
from sipower.nmf.extrapolated import Extrapolated
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.mu import MU
from sipower.nmf.newton import Newton
from sipower.nmf.pgd import PGD
from sipower.nmf.power_search import PowerSearch
from sipower.nmf.row_rounds import RowRounds
from sipower.nmf.rule import Half, OnBlock, Rule
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.nmf.shared_newton import SharedNewton
from sipower.nmf.vanilla import Vanilla
from sipower.solvers import Guarded

RULES: dict[str, type[Rule]] = {
    "s-sci-pi": SSciPiRule,
    "sci-pi": SciPiRule,
    "power-search": PowerSearch,
    "vanilla": Vanilla,
    "mu": MU,
    "ccd": CCD,
    "scd": SCD,
    "pgd": PGD,
    "newton": Newton,
    "shared-newton": SharedNewton,
}
SOLVERS = ("auto", *RULES, "rows")


def make_solver(
    name: str, *, near: bool = False, surplus: bool = False, sample: bool = False
) -> Any:
    """Return the KL-NMF solver with the given name.

    A rule that may raise the objective is wrapped in `Guarded`, which undoes such rounds.

    Parameters
    ----------
    name
        One of `SOLVERS`.
    near
        Whether the start is near a solution; "auto" and "rows" then skip power steps.
    surplus
        Whether "auto" also fits a start with surplus components, which are then merged, and
        continues with the better of its two starts.
    sample
        Whether "auto" takes its first H from a sample of the rows.

    Examples
    --------
    >>> from sipower import Stop, solve
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.nmf import Factorization, make_solver
    >>> V = poisson_topics(200, 100, 3, seed=0)
    >>> result = solve(Factorization(V, 3), make_solver("mu"), stop=Stop(tol=1e-2))
    >>> str(result.status), result.x.W.shape
    ('converged', (200, 3))
    """
    if name == "auto":
        return Auto(near, surplus, sample)
    if name == "rows":
        return RowRounds(near)
    alternating = Alternating(RULES[name]())
    return alternating if alternating.rule.monotone else Guarded(alternating)


__all__ = [
    "CCD",
    "MU",
    "PGD",
    "RULES",
    "SCD",
    "SOLVERS",
    "Alternating",
    "Auto",
    "Extrapolated",
    "Factorization",
    "Factors",
    "Half",
    "NMFState",
    "Newton",
    "OnBlock",
    "PowerSearch",
    "RowRounds",
    "Rule",
    "SSciPiRule",
    "SciPiRule",
    "SharedNewton",
    "Vanilla",
    "make_solver",
]
