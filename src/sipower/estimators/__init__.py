# SPDX-License-Identifier: BSD-3-Clause
"""Estimators and functions with the interface of scikit-learn, and an estimate of their cost."""

from sipower.estimators.cost import Estimate, estimate
from sipower.estimators.function import non_negative_factorization
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.lp_pca import LpPCA
from sipower.estimators.verifying import verify

__all__ = ["KLNMF", "Estimate", "LpPCA", "estimate", "non_negative_factorization", "verify"]
