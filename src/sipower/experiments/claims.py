# SPDX-License-Identifier: BSD-3-Clause
"""The paper's claims in the order of the page, each with what was found."""

from __future__ import annotations

from sipower.experiments.claims_on_robustness import CLAIMS_ON_RATES, CLAIMS_ON_ROBUSTNESS
from sipower.experiments.claims_on_speed import CLAIMS_ON_SAMPLING, CLAIMS_ON_SPEED
from sipower.experiments.curves import Curves
from sipower.experiments.rules import Claim

__all__ = ["judge_claims"]


def judge_claims(curves: Curves) -> list[Claim]:
    """Return every claim that the table has data for."""
    makers = (*CLAIMS_ON_SPEED, *CLAIMS_ON_ROBUSTNESS, *CLAIMS_ON_SAMPLING, *CLAIMS_ON_RATES)
    claims = [make(curves) for make in makers]
    return [claim for claim in claims if claim.findings]
