# SPDX-License-Identifier: BSD-3-Clause
"""The constants, conditions and rate of the paper's convergence theorem, and local rates of KL."""

from sipower.theory.diagnosis import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
