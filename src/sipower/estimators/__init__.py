# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's faces of the library."""

from sipower.estimators.function import non_negative_factorization
from sipower.estimators.klnmf import KLNMF

__all__ = ["KLNMF", "non_negative_factorization"]
