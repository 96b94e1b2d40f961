# SPDX-License-Identifier: BSD-3-Clause
"""Progress of long tasks: a live bar on a terminal, lines elsewhere, JSON for programs."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn

from sipower._files import printable
from sipower.cli.console import Console, terminal
from sipower.estimators import KLNMF
from sipower.loop.forecast import forecast_passes, format_duration
from sipower.loop.solve import Record

GROWTH = 0.2  # lines are at least this share of the time so far apart
EVALUATIONS = 1.1  # time of a round with the evaluations for the trace, relative to the round alone


class ProgressBar:
    """A progress bar on a terminal; elsewhere a few lines, at least `interval` seconds apart."""

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

    def show(self, text: str, share: float = 0.0) -> None:
        """Show the progress of the task, of which a share is done."""
        self._bar.update(self._task, description=text, completed=share)
        if not self._is_live and self._is_line_due(share):
            self._last_line = time.monotonic()
            self.console.say(text)

    def _is_line_due(self, share: float) -> bool:
        """Return whether to print a line where no bar can be drawn."""
        now = time.monotonic()
        pause = max(self._interval, GROWTH * (now - self.started))
        return now - self._last_line >= pause


class FitProgress(ProgressBar):
    """A callback for each round of a fit that shows objective, gap, passes and the time left.

    The time left is extrapolated from the measured rounds and the trend of the gap. If a limit will
    probably be reached first, the time to the limit is shown instead.
    """

    def __init__(self, console: Console, model: KLNMF) -> None:
        super().__init__(console, "starting", interval=5.0)
        self.tol, self.max_time, self.max_iter = model.tol, model.max_time, model.max_iter
        self.records: list[Record] = []  # the evaluated rounds

    def __call__(self, record: Record) -> None:
        """Show a round; the gap is not evaluated in every round."""
        if not math.isnan(record.gap):
            self.records.append(record)
            self.console.event("round", **record.__dict__)
        if not self.records:
            return
        spent, last = time.monotonic() - self.started, self.records[-1]
        left, words = self.time_left(record, spent)
        text = (
            f"{spent:6.1f} s  round {record.round}  passes {record.passes:.0f}  "
            f"KL {last.objective:.6g}  gap {last.gap:.1e} (tol {self.tol:.0e})"
        )
        if left is not None:
            text += f"  {words.format(format_duration(left))}"
        self.show(text, 0.0 if left is None else spent / max(spent + left, 1e-9))

    def on_stage(self, text: str) -> None:
        """Show what is done before the first round."""
        self.console.event("loading", text=text)
        self._bar.update(self._task, description=text)
        if not self._is_live:
            self.console.say(text)

    def time_left(self, record: Record, spent: float) -> tuple[float | None, str]:
        """Return the seconds until the fit will probably end, or None, and the words for it.

        As long as the gap shows no trend, the time to the limit is called the most it can take.
        """
        per_pass = EVALUATIONS * record.seconds / max(record.passes, 1.0)
        total = forecast_passes(self.records, self.tol)
        is_known = total is not None or self.tol == 0
        words = "about {} left until" if is_known else "at most {} left, the limit of"
        ends: list[tuple[float, str]] = []
        if total is not None:
            ends.append((max(total - record.passes, 0.0) * per_pass, "about {} left"))
        if self.max_time is not None:
            ends.append((max(self.max_time - spent, 0.0), f"{words} --max-time"))
        if len(self.records) > 1:
            before, last = self.records[-2:]
            per_round = (last.passes - before.passes) / max(last.round - before.round, 1)
            rounds = max(self.max_iter - record.round, 0)
            ends.append((rounds * per_round * per_pass, f"{words} --max-iter"))
        return min(ends, default=(None, ""))


class FitCounter(ProgressBar):
    """A callback for each of many fits that shows how many are finished.

    Parameters
    ----------
    console
        Where to show it.
    jobs
        Number of fits that run at a time; on average they are half finished.
    costs
        Expected costs of the fits relative to each other, in the order in which they will finish;
        None: all cost the same.
    """

    LINES = 4  # printed where no bar can be drawn, after the first fit

    def __init__(
        self, console: Console, jobs: int = 1, costs: Sequence[float] | None = None
    ) -> None:
        super().__init__(console, "fitting")
        self.jobs, self.costs = jobs, costs
        self.finished_before: float | None = None  # share that earlier commands finished
        self._lines = 0

    def __call__(self, done: int, total: int) -> None:
        """Show the number of finished fits."""
        costs = [1.0] * total if self.costs is None else self.costs
        running = sum(costs[done : done + self.jobs - 1]) / 2
        share = (sum(costs[:done]) + running) / sum(costs)
        if self.finished_before is None:
            self.finished_before = sum(costs[: done - 1]) / sum(costs)
        spent = time.monotonic() - self.started
        left = format_duration(spent * (1 - share) / (share - self.finished_before))
        self.console.event("fit", done=done, total=total)
        self.show(f"{done} of {total} fits, about {left} left", done / total)

    def _is_line_due(self, share: float) -> bool:
        if self._lines > 0 and share * self.LINES < self._lines:
            return False
        self._lines = int(share * self.LINES) + 1
        return True


class ConversionProgress(ProgressBar):
    """A callback for each block of a conversion."""

    def __init__(self, console: Console, source: Path) -> None:
        super().__init__(console, f"reading {printable(str(source))}", interval=5.0)

    def __call__(self, kind: str, items: int, nonzeros: int) -> None:
        """Show how many entries, rows or columns are written."""
        self.console.event("block", of=kind, items=items, nonzeros=nonzeros)
        more = "" if kind == "entries" else f", {nonzeros:,} nonzeros"
        self.show(f"{items:,} {kind}{more}")


class StageProgress(ProgressBar):
    """A callback for each stage of a task that says what begins.

    Parameters
    ----------
    console
        Where to show it.
    stages
        Number of stages.
    """

    def __init__(self, console: Console, stages: int) -> None:
        super().__init__(console, "starting")
        self.stages, self._begun = stages, 0

    def __call__(self, text: str) -> None:
        """Show the stage that begins."""
        self.console.event("stage", number=self._begun + 1, total=self.stages, text=text)
        self.show(f"{self._begun + 1} of {self.stages}: {text}", self._begun / self.stages)
        self._begun += 1

    def _is_line_due(self, share: float) -> bool:
        return True
