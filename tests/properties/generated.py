# SPDX-License-Identifier: BSD-3-Clause
"""Decorator for properties over generated cases: few in every run, many under stress."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

TRIVIAL_CASES = 2  # hypothesis begins with one or two trivial cases


class Fits:
    """A counter of fits."""

    number = 0


def generated(cases, kinds, *, share, stress):
    """Return a decorator that turns a property into a test of generated cases.

    `cases(kind)` is the strategy of its argument for a strategy of one of the kinds. Every run has
    `share` cases, divided evenly among the kinds; under stress, each kind has `stress` cases.
    """
    each = TRIVIAL_CASES + max(share // len(kinds), 1)
    # Different seeds, so that the kinds do not share the same few matrices.
    quick = [(kind, each, 1000 * share + place) for place, kind in enumerate(kinds)]
    parts = [
        pytest.param(quick, id="all"),
        *(pytest.param([(k, stress, stress)], id=str(k), marks=pytest.mark.stress) for k in kinds),
    ]

    def decorate(holds):
        @pytest.mark.parametrize("runs", parts)
        @functools.wraps(holds)
        def test(runs, record_property):
            before = Fits.number
            try:
                for kind, number, first in runs:
                    draw_cases(holds, cases(st.just(kind)), number, first)()
            finally:
                record_property("fits", Fits.number - before)

        del test.__wrapped__  # pytest would look for the arguments there
        return test

    return decorate


def draw_cases(holds, cases, number, first):
    """Return the property as a function without arguments that draws cases from a seed."""
    run = settings(
        max_examples=number,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return run(seed(first)(given(cases)(holds)))
