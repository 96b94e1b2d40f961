# SPDX-License-Identifier: BSD-3-Clause
"""Whether a run has stalled: its objective no longer falls although its gap is open."""

from __future__ import annotations

from collections.abc import Sequence

from sipower.loop.trace import Record

__all__ = ["STALL_ROUNDS", "is_stalled"]

STALL_ROUNDS = 200  # least number of rounds without progress
STALL_SHARE = 0.5  # least share of all rounds without progress
MIN_FALL = 0.25  # relative fall of the gap that is progress


def is_stalled(records: Sequence[Record], rounding: float) -> bool:
    """Return whether a run has made no progress in the second half of its rounds.

    The objective has not fallen by more than `rounding`, and the gap has not fallen by a quarter.
    The gap is compared because it is linear in the error of the factors, while the objective is
    quadratic: it still falls when the objective no longer changes by more than its rounding error.

    Parameters
    ----------
    records
        Records with objective and gap.
    rounding
        Rounding error of the objective.
    """
    last = records[-1]
    latest = min(last.round - STALL_ROUNDS, STALL_SHARE * last.round)
    before = next((record for record in reversed(records) if record.round <= latest), None)
    if before is None:
        return False
    has_fallen = before.objective - last.objective > rounding
    return not has_fallen and last.gap > (1 - MIN_FALL) * before.gap
