# SPDX-License-Identifier: BSD-3-Clause
"""How far a fit has come: a live bar on a terminal, lines elsewhere, JSON for machines."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

from sipower.cli.common import Speaker, console
from sipower.loop.solve import Record

__all__ = ["Counter", "FitProgress"]

LINE_EVERY = 5.0  # seconds between plain lines


class _Live:
    """A bar that is drawn on terminals alone."""

    def __init__(self, speaker: Speaker, text: str, *columns: ProgressColumn) -> None:
        self.speaker, self.started = speaker, time.monotonic()
        live = console.is_terminal and not speaker.as_json
        described = TextColumn("{task.description}", markup=False)
        self.bar = Progress(described, *columns, console=console, disable=not live)
        self.task = self.bar.add_task(text, total=1.0, left="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.bar.disable:  # some versions of rich end even what was never drawn by a line
            self.bar.stop()


class FitProgress(_Live):
    """Called after every round; shows objective, gap, passes and the time left.

    The bar is the share of the way from the first gap to `tol` on a logarithmic scale, or of the
    seconds allowed, whichever is further.
    """

    def __init__(self, speaker: Speaker, tol: float, max_time: float | None) -> None:
        super().__init__(
            speaker, "starting", BarColumn(bar_width=24), TextColumn("{task.fields[left]}")
        )
        self.tol, self.max_time, self.spoken = tol, max_time, -math.inf
        self.first: Record | None = None
        self.last: Record | None = None

    def __call__(self, record: Record) -> None:
        """After a round."""
        if not math.isnan(record.gap):
            self.first = self.first or record
            self.last = record
            self.speaker.event("round", **record.__dict__)
        if self.last is None:
            return
        share, left = self._share(), self._left()
        text = (
            f"round {record.round}  passes {record.passes:.0f}  KL {self.last.objective:.6g}  "
            f"gap {self.last.gap:.1e} (tol {self.tol:.0e})"
        )
        self.bar.update(self.task, description=text, completed=share, left=left)
        now = time.monotonic()
        if not console.is_terminal and now - self.spoken >= LINE_EVERY and record is self.last:
            self.spoken = now
            self.speaker.say(f"{now - self.started:6.1f} s  {text}  {left}")

    def _share(self) -> float:
        spent = time.monotonic() - self.started
        shares = [spent / self.max_time] if self.max_time else []
        if self.first and self.last and self.first.gap > self.tol > 0:
            way = math.log(self.first.gap / self.tol)
            shares.append(math.log(self.first.gap / max(self.last.gap, self.tol)) / way)
        return min(max(shares, default=0.0), 1.0)

    def _left(self) -> str:
        share, spent = self._share(), time.monotonic() - self.started
        if share < 0.02:
            return ""
        seconds = spent * (1 - share) / share
        if self.max_time:
            seconds = min(seconds, max(self.max_time - spent, 0.0))
        return f"about {duration(seconds)} left"


class Counter(_Live):
    """Finished fits of many."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, "fitting", BarColumn(bar_width=32))
        self.before: int | None = None  # fits of an earlier session

    def __call__(self, done: int, total: int) -> None:
        """After a fit."""
        if self.before is None:
            self.before = done - 1
        fresh, spent = done - self.before, time.monotonic() - self.started
        left = duration(spent / fresh * (total - done))
        text = f"{done} of {total} fits, about {left} left"
        self.bar.update(self.task, description=text, completed=done, total=total)
        self.speaker.event("fit", done=done, total=total)
        if not console.is_terminal:
            self.speaker.say(text)


def duration(seconds: float) -> str:
    """A time to be read: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
