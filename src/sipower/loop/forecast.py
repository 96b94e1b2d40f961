# SPDX-License-Identifier: BSD-3-Clause
"""Forecasts of the work that is left, from the trend of the gap in the trace of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sipower.loop.trace import Record

__all__ = ["forecast_passes", "format_duration"]

LAST_RECORDS = 3  # evaluated records from which the power law is fitted
MAX_LOG_GROWTH = math.log(50.0)  # further extrapolations than this are not used


def forecast_passes(records: Sequence[Record], tol: float) -> float | None:
    """Return the total number of passes at which the gap will probably reach `tol`, or None.

    It is the geometric mean of two extrapolations: log gap falls linearly in the passes at its mean
    rate so far, which is optimistic, and gap falls as a power of the passes as it did in the last
    records, which is often pessimistic. None means that the records show no trend.
    """
    finite = [r for r in records if 0 < r.gap < math.inf and r.passes > 0]
    known = list({r.passes: r for r in finite}.values())  # the last of equals
    if not known or not tol > 0:
        return None
    last = known[-1]
    if last.gap <= tol:
        return last.passes
    logs = [_at_mean_rate(known, tol), _along_power_law(known[-LAST_RECORDS:], tol)]
    growth = [log for log in logs if log is not None and log <= MAX_LOG_GROWTH]
    return last.passes * math.exp(sum(growth) / len(growth)) if growth else None


def _at_mean_rate(records: Sequence[Record], tol: float) -> float | None:
    """Return log(total passes / passes so far) if log gap falls linearly in the passes."""
    first, last = records[0], records[-1]
    if not first.gap > last.gap:
        return None
    return math.log(math.log(first.gap / tol) / math.log(first.gap / last.gap))


def _along_power_law(records: Sequence[Record], tol: float) -> float | None:
    """Return log(total passes / passes so far) if the gap falls as a power of the passes."""
    if len(records) < 2:
        return None
    passes, gaps = np.log([[r.passes for r in records], [r.gap for r in records]])
    centred = passes - passes.mean()
    slope = float(centred @ gaps / (centred @ centred))  # by least squares
    return math.log(tol / records[-1].gap) / slope if slope < 0 else None


def format_duration(seconds: float) -> str:
    """Format a duration, such as 0.3 s, 40 s, 12 min or 3.5 h."""
    if seconds < 1:
        return f"{max(seconds, 0):.1g} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
