# SPDX-License-Identifier: BSD-3-Clause
"""The verifier of finished fits, which shares no code with the solvers and their kernels."""

from sipower.verification.statement import ProblemStatement
from sipower.verification.verify import (
    RowCheck,
    Verification,
    check_rows,
    conclude,
    verify_factors,
    weighted_total,
)

__all__ = [
    "ProblemStatement",
    "RowCheck",
    "Verification",
    "check_rows",
    "conclude",
    "verify_factors",
    "weighted_total",
]
