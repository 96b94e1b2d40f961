# SPDX-License-Identifier: BSD-3-Clause
"""The random numbers: Philox as NumPy has it, and draws with the distribution they promise."""

import itertools
from collections import Counter

import numpy as np
import pytest

from sipower.kernels import Draw


def test_generator_is_numpys_philox():
    seed, stream, round_, side, inner = 12345, 7, 3, 1, 9
    # NumPy counts up before it draws; the first word is the block's number.
    counter = np.array([0, 0, round_, (side << 32) | inner], dtype=np.uint64)
    bits = np.random.Philox(key=np.array([seed, stream], np.uint64))
    state = bits.state
    state["state"]["counter"] = counter - np.array([1, 0, 0, 0], np.uint64)
    if counter[0] == 0:  # borrow of the 256-bit counter
        state["state"]["counter"] = np.array(
            [2**64 - 1, 2**64 - 1, round_ - 1, counter[3]], np.uint64
        )
    bits.state = state
    raw = bits.random_raw(10)
    ours = Draw(seed, stream, round_, side, inner).uniform(10)
    np.testing.assert_array_equal(ours, ((raw >> 11) + 0.5) * 2.0**-53)


def test_every_subset_is_equally_likely():
    n, s, draws = 5, 2, 20_000
    seen = Counter(tuple(sorted(Draw(1, round=r).batch(n, s).tolist())) for r in range(draws))
    assert set(seen) == set(itertools.combinations(range(n), s))
    expected = draws / 10
    chi_square = sum((count - expected) ** 2 / expected for count in seen.values())
    assert chi_square < 27.9  # 99.9 % quantile for 9 degrees of freedom


def test_distinct_draws_are_distinct_and_stateless():
    draw = Draw(3, inner=4)
    first = draw.batch(100, 60)
    assert len(set(first.tolist())) == 60
    Draw(3, inner=5).batch(100, 99)
    np.testing.assert_array_equal(first, draw.batch(100, 60))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_factors_are_unbiased(weighted, replace):
    """E[factor · 1{i drawn}] = 1 for every term, the whole point of a factor."""
    indptr = np.array([0, 6, 6, 10])
    weights = np.array([1, 2, 3, 4, 5, 60, 1, 1, 1, 5], float)
    total = np.zeros(10)
    draws = 40_000
    for r in range(draws):
        positions, factor = Draw(11, round=r).items(
            indptr, weights if weighted else None, 0.5, replace
        )
        np.add.at(total, positions, factor)
    np.testing.assert_allclose(total / draws, 1, atol=0.06)


def test_systematic_draws_take_heavy_terms_for_certain():
    weights = np.array([1, 1, 1, 1, 100.0])
    for r in range(50):
        positions, factor = Draw(2, round=r).items(np.array([0, 5]), weights, 0.4, False)
        assert factor[positions == 4] == pytest.approx(1)
        assert len(set(positions.tolist())) == len(positions) == 2
