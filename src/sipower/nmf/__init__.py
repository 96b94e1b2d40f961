# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF: the problem, the alternating driver and one file per update rule."""

from sipower.nmf.alternating import Alternating, Factorization, Factors, NMFState
from sipower.nmf.auto import Auto
from sipower.nmf.coordinate import CCD, SCD
from sipower.nmf.mu import MU
from sipower.nmf.pgd import PGD
from sipower.nmf.rule import Half, OnBlock, Rule
from sipower.nmf.s_sci_pi import SSciPiRule
from sipower.nmf.sci_pi import SciPiRule
from sipower.nmf.vanilla import Vanilla

RULES: dict[str, type[Rule]] = {
    "auto": Auto,
    "s-sci-pi": SSciPiRule,
    "sci-pi": SciPiRule,
    "vanilla": Vanilla,
    "mu": MU,
    "ccd": CCD,
    "scd": SCD,
    "pgd": PGD,
}

__all__ = [
    "CCD",
    "MU",
    "PGD",
    "RULES",
    "SCD",
    "Alternating",
    "Auto",
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
