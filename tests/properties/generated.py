# SPDX-License-Identifier: BSD-3-Clause
"""Runs a property over generated cases: a fixed share in every run, many more under stress."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st


class Fits:
    """How many fits there were."""

    number = 0


def generated(cases, kinds, *, share, stress):
    """Decorator of a property.

    `cases(kind)` is the strategy of its argument for a strategy of one of the kinds. Every run has
    `share` cases of all kinds, stress so many of each kind.
    """
    parts = [
        pytest.param(st.sampled_from(kinds), share, id="all"),
        *(pytest.param(st.just(k), stress, id=str(k), marks=pytest.mark.stress) for k in kinds),
    ]

    def decorate(holds):
        @pytest.mark.parametrize(("kind", "number"), parts)
        @functools.wraps(holds)
        def test(kind, number, record_property):
            before = Fits.number
            run = settings(
                max_examples=number,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )(seed(number)(given(cases(kind))(holds)))
            try:
                run()
            finally:
                record_property("fits", Fits.number - before)

        del test.__wrapped__  # pytest would look for the arguments there
        return test

    return decorate
