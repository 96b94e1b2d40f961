# SPDX-License-Identifier: BSD-3-Clause
"""Runs a property over generated cases: a fixed share in every run, many more under stress."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

SIMPLEST = 2  # hypothesis begins with a case or two as simple as can be, which tell little


class Fits:
    """How many fits there were."""

    number = 0


def generated(cases, kinds, *, share, stress):
    """Decorator of a property.

    `cases(kind)` is the strategy of its argument for a strategy of one of the kinds. Every run has
    `share` cases, spread evenly so that no kind is left out, stress so many of each kind.
    """
    each = SIMPLEST + max(share // len(kinds), 1)
    # Seeds of their own: else every kind would have the same few matrices.
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
                    given_cases(holds, cases(st.just(kind)), number, first)()
            finally:
                record_property("fits", Fits.number - before)

        del test.__wrapped__  # pytest would look for the arguments there
        return test

    return decorate


def given_cases(holds, cases, number, first):
    """The property as a function without arguments that draws so many cases from a seed."""
    run = settings(
        max_examples=number,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    return run(seed(first)(given(cases)(holds)))
