# SPDX-License-Identifier: BSD-3-Clause
"""Progress of long tasks: a live bar on a terminal, lines elsewhere, JSON for programs."""

import math
import time
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn

from sipower.cli.console import Console, terminal
from sipower.loop.solve import Record


class ProgressBar:
    """A progress bar on a terminal; elsewhere, lines at least `interval` seconds apart."""

    def __init__(self, console: Console, text: str, interval: float = 0.0) -> None:
        self.console, self.started = console, time.monotonic()
        self._interval, self._last_line = interval, -math.inf
        self._is_live = terminal.is_terminal and not console.as_json
        columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=24)
        self._bar = Progress(*columns, console=terminal, disable=not self._is_live)
        self._task = self._bar.add_task(text, total=1.0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:  # some versions of rich print a line even if no bar was drawn
            self._bar.stop()

    def show(self, text: str, completed: float = 0.0, total: float = 1.0) -> None:
        """Show the progress of the task."""
        self._bar.update(self._task, description=text, completed=completed, total=total)
        now = time.monotonic()
        if not self._is_live and now - self._last_line >= self._interval:
            self._last_line = now
            self.console.say(text)


class FitProgress(ProgressBar):
    """A callback for each round of a fit that shows objective, gap, passes and the time left.

    The bar shows the progress from the first gap to `tol` on a logarithmic scale, or the share of
    `max_time` that has passed, whichever is larger.
    """

    def __init__(self, console: Console, tol: float, max_time: float | None) -> None:
        super().__init__(console, "starting", interval=5.0)
        self.tol, self.max_time = tol, max_time
        self.first: Record | None = None
        self.last: Record | None = None

    def __call__(self, record: Record) -> None:
        """Show a round; the gap is not evaluated in every round."""
        if not math.isnan(record.gap):
            self.first, self.last = self.first or record, record
            self.console.event("round", **record.__dict__)
        if self.first is None or self.last is None:
            return
        spent = time.monotonic() - self.started
        share = spent / self.max_time if self.max_time else 0.0
        if self.first.gap > self.tol > 0:
            done = math.log(self.first.gap / max(self.last.gap, self.tol))
            share = max(share, done / math.log(self.first.gap / self.tol))
        share = min(share, 1.0)
        left = f"  about {duration(spent * (1 - share) / share)} left" if share >= 0.02 else ""
        text = (
            f"{spent:6.1f} s  round {record.round}  passes {record.passes:.0f}  "
            f"KL {self.last.objective:.6g}  gap {self.last.gap:.1e} (tol {self.tol:.0e}){left}"
        )
        self.show(text, share)


class FitCounter(ProgressBar):
    """A callback for each of many fits that shows how many are finished."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, "fitting")
        self.finished_before: int | None = None  # number of fits that earlier commands finished

    def __call__(self, done: int, total: int) -> None:
        """Show the number of finished fits."""
        if self.finished_before is None:
            self.finished_before = done - 1
        spent = time.monotonic() - self.started
        left = duration(spent / (done - self.finished_before) * (total - done))
        self.console.event("fit", done=done, total=total)
        self.show(f"{done} of {total} fits, about {left} left", done, total)


def duration(seconds: float) -> str:
    """Format a duration, such as 40 s, 12 min or 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
