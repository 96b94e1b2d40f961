# SPDX-License-Identifier: BSD-3-Clause
"""The guard, case by case: what becomes of a round, of the step and of the passes."""

import math
from dataclasses import dataclass, replace

import pytest

from sipower import Guarded


@dataclass(frozen=True)
class Place:
    x: float
    step: float
    round: int = 3
    passes: float = 10.0
    value: float = math.nan


@dataclass(frozen=True)
class Line:
    """The objective is x itself, or −x to be minimised, known to a rounding of 1/16."""

    maximise: bool = True
    value_passes: float = 0.25

    def value(self, x):
        assert math.isfinite(x)  # nobody asks for the objective of another point
        return (x if self.maximise else -x) if x < 100 else math.nan

    def quick_value(self, x):
        return self.value(x)

    def rounding(self, value):
        return 1 / 16

    def is_finite(self, x):
        return math.isfinite(x)


@dataclass(frozen=True)
class Jump:
    """Moves by its length times the step, and has a safe one with a length of its own."""

    length: float
    safe_length: float = 0.0

    def init(self, problem, x0, seed):
        return Place(x0, step=float(seed))

    def advance(self, problem, state):
        moved = state.x + self.length * state.step
        return replace(state, x=moved, round=state.round + 1, passes=state.passes + 1, value=7.0)

    def largest_step(self, problem):
        return 2.0

    def safe(self):
        return Jump(self.safe_length)


GUARD = {  # length, safe length, step; then x, step and passes afterwards
    "gain": (1, 0, 1.0, 6, 1.1, 11.25),
    "gain, up to the largest step": (1, 0, 1.9, 6.9, 2.0, 11.25),
    "gain, beyond the largest step": (1, 0, 3.0, 8, 3.0, 11.25),
    "no gain": (0, 9, 3.0, 5, 1.5, 11.25),
    "no gain, down to a half": (0, 9, 0.75, 5, 0.5, 11.25),
    "no gain, already below a half": (0, 9, 0.25, 5, 0.25, 11.25),
    "a loss that rounding explains": (-1 / 16, 9, 1.0, 5 - 1 / 16, 0.5, 11.25),
    "a loss, then a safe gain": (-1, 2, 1.0, 6, 0.5, 12.5),
    "a loss, then a safe step of at most 1": (-1, 2, 4.0, 7, 2.0, 12.5),
    "a loss, then one of rounding": (-1, -1 / 8, 1.0, 5 - 1 / 16, 0.5, 12.5),
    "two losses": (-1, -1, 1.0, 5, 0.5, 12.5),
    "two losses below a half": (-1, -1, 0.25, 5, 0.125, 12.5),
    "not a number": (math.nan, 2, 1.0, 6, 0.5, 12.5),
    "not even safe": (math.inf, math.nan, 1.0, 5, 0.5, 12.5),
    "an objective that is not a number": (200, 2, 1.0, 6, 0.5, 12.5),
}


@pytest.mark.parametrize("value_is_known", [True, False])
@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("case", GUARD)
def test_a_guard_takes_damps_or_undoes_a_round(case, maximise, value_is_known):
    length, safe_length, step, x, new_step, passes = GUARD[case]
    line = Line(maximise)
    state = Place(5.0, step, value=line.value(5.0) if value_is_known else math.nan)
    new = Guarded(Jump(length, safe_length)).advance(line, state)
    assert new == Place(x, pytest.approx(new_step), 4, passes, line.value(x))


def test_a_guard_has_factors_of_its_own():
    state = Place(5.0, 1.0, value=5.0)
    for length, step in ((1, 1.5), (0, 0.5), (-1, 0.25)):
        new = Guarded(Jump(length, 1), shrink=0.25, grow=1.5).advance(Line(), state)
        assert new.step == step


def test_a_guard_knows_the_objective_from_the_start_and_sooner_where_it_can():
    class Quick(Line):
        def quick_value(self, x):
            return -x

    assert Guarded(Jump(1)).init(Line(), 5.0, 2) == Place(5.0, 2.0, value=5.0)
    assert Guarded(Jump(1)).init(Quick(), 5.0, 2) == Place(5.0, 2.0, value=-5.0)
    new = Guarded(Jump(1, -4)).advance(Quick(), Place(5.0, 1.0, value=-5.0))
    assert (new.x, new.value) == (3.0, -3.0)
