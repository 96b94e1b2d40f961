# SPDX-License-Identifier: BSD-3-Clause
"""The paper's convergence theorem made computable, and the local theory of KL."""

from sipower.theory.constants import Curvature, Local, Variance, curvature, local, variance
from sipower.theory.diagnosis import Diagnosis, diagnose
from sipower.theory.kl import KLSpectrum, kl_spectrum
from sipower.theory.theorem import Condition, Conditions, conditions, largest_delta

__all__ = [
    "Condition",
    "Conditions",
    "Curvature",
    "Diagnosis",
    "KLSpectrum",
    "Local",
    "Variance",
    "conditions",
    "curvature",
    "diagnose",
    "kl_spectrum",
    "largest_delta",
    "local",
    "variance",
]
