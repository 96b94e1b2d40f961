# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF: the problem, the alternating driver and one file per update rule."""

from sipower.nmf.alternating import Alternating, Factorization, Factors, NMFState
from sipower.nmf.mu import MU
from sipower.nmf.rule import Half, OnBlock, Rule
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.nmf.vanilla import Vanilla

RULES: dict[str, type[Rule]] = {
    "s-sci-pi": SSciPiRule,
    "sci-pi": SciPiRule,
    "vanilla": Vanilla,
    "mu": MU,
}

__all__ = [
    "MU",
    "RULES",
    "Alternating",
    "Factorization",
    "Factors",
    "Half",
    "NMFState",
    "OnBlock",
    "Rule",
    "SSciPiRule",
    "SciPiRule",
    "Vanilla",
]
