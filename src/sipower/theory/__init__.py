# SPDX-License-Identifier: BSD-3-Clause
"""The constants, conditions and rate of the paper's convergence theorem, and local rates of KL."""

from sipower.theory.constants import (
    Curvature,
    LocalSpectrum,
    Variance,
    curvature,
    local_spectrum,
    variance,
)
from sipower.theory.diagnosis import Diagnosis, diagnose
from sipower.theory.kl import KLSpectrum, kl_spectrum
from sipower.theory.theorem import Condition, Conditions, conditions, largest_delta

__all__ = [
    "Condition",
    "Conditions",
    "Curvature",
    "Diagnosis",
    "KLSpectrum",
    "LocalSpectrum",
    "Variance",
    "conditions",
    "curvature",
    "diagnose",
    "kl_spectrum",
    "largest_delta",
    "local_spectrum",
    "variance",
]
