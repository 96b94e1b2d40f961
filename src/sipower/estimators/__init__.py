# SPDX-License-Identifier: BSD-3-Clause
"""Estimators and functions with the interface of scikit-learn."""

from sipower.estimators.function import non_negative_factorization
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.lp_pca import LpPCA

__all__ = ["KLNMF", "LpPCA", "non_negative_factorization"]
