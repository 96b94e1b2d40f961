# SPDX-License-Identifier: BSD-3-Clause
"""How a run is sampled and when it ends: the base of all solvers, and the stopping criterion."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import StoppingCriterion
from threadpoolctl import threadpool_limits

MIN_GAIN = 1e-4  # share of the decrease of D
MIN_POINTS = 20


class EnoughTime(StoppingCriterion):
    """End a run when the solver has used its seconds, or hardly lowers D any more.

    Seconds are those of the solver, without the evaluations of D: of the processor for one thread,
    else wall time. Hardly means: the second half of the time lowered D by less than `MIN_GAIN`
    times the decrease since the start.
    """

    def check_convergence(self, curve: list[dict[str, Any]]) -> tuple[bool, float]:
        """Return whether the run ends, and the share of its seconds that is used."""
        clock = "objective_cpu_seconds" if self.solver.threads == 1 else "time"
        first, last = curve[0], curve[-1]
        seconds, value = last[clock], last["objective_value"]
        if not math.isfinite(value):
            return True, 1.0
        half = curve[max(bisect(curve, seconds / 2, key=lambda point: point[clock]) - 1, 0)]
        gain, decrease = half["objective_value"] - value, first["objective_value"] - value
        is_flat = len(curve) > MIN_POINTS and gain < MIN_GAIN * decrease
        max_time = self.solver.max_time
        return seconds >= max_time or is_flat, min(seconds / max_time, 1.0)


class Round(NamedTuple):
    """The factors after a round.

    Parameters
    ----------
    W, H
        Factors, (n, K) and (K, m).
    rounds
        Rounds so far.
    passes
        Passes over the data so far, NaN if unknown.
    """

    W: np.ndarray
    H: np.ndarray
    rounds: int
    passes: float = np.nan


class CurveSolver(BaseSolver):
    """A solver that yields its factors round by round; a subclass writes `iterate_rounds`."""

    sampling_strategy = "callback"

    def set_objective(
        self,
        V: Any,
        W: np.ndarray,
        H: np.ndarray,
        threads: int,
        seed: int,
        max_time: float,
    ) -> None:
        """Store data, start, threads, seed and seconds."""
        self.V, self.W, self.H = V, W, H
        self.threads, self.seed, self.max_time = threads, seed, max_time
        self.prepare()

    def prepare(self) -> None:
        """Convert the data to what the package reads; off the clock."""

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the factors after every round, first those of the start."""
        raise NotImplementedError

    def run(self, callback: Callable[[], bool]) -> None:
        """Advance round by round until the callback returns false."""
        self.cpu_seconds = 0.0
        with threadpool_limits(self.threads):
            before = process_time()
            for self.last in self.iterate_rounds():  # noqa: B020 - an attribute, no variable
                self.cpu_seconds += process_time() - before
                if not callback():
                    break
                before = process_time()

    def get_next(self, stop_val: int) -> int:
        """Return the next round whose D is evaluated: every round at first, then 5 % apart."""
        return max(stop_val + 1, int(1.05 * stop_val))

    def get_result(self) -> dict[str, Any]:
        """Return factors and counters of the last round."""
        return {**self.last._asdict(), "cpu_seconds": self.cpu_seconds}
