# SPDX-License-Identifier: BSD-3-Clause
"""Whether a run has stalled: its objective no longer falls although its gap is open."""

from __future__ import annotations

from collections.abc import Sequence

from sipower.loop.trace import Record

__all__ = ["STALL_ROUNDS", "is_stalled"]

STALL_ROUNDS = 50  # rounds without progress


def is_stalled(records: Sequence[Record], rounding: float) -> bool:
    """Return whether a run has made no progress in the last `STALL_ROUNDS` rounds or more.

    The objective has not fallen by more than `rounding`, and the gap has not halved.

    Parameters
    ----------
    records
        Records with objective and gap.
    rounding
        Rounding error of the objective.
    """
    last = records[-1]
    before = next((r for r in reversed(records) if r.round <= last.round - STALL_ROUNDS), None)
    if before is None:
        return False
    return before.objective - last.objective <= rounding and last.gap > before.gap / 2
