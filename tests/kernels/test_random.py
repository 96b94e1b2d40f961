# SPDX-License-Identifier: BSD-3-Clause
"""The random numbers: Philox as NumPy has it, and draws with the distribution they promise."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from sipower import as_matrix
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
    counts = Counter(tuple(sorted(Draw(1, round=r).batch(n, s).tolist())) for r in range(draws))
    assert set(counts) == set(itertools.combinations(range(n), s))
    expected = draws / 10
    chi_square = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_square < 27.9  # 99.9 % quantile for 9 degrees of freedom


def test_distinct_draws_are_distinct_and_stateless():
    draw = Draw(3, inner=4)
    first = draw.batch(100, 60)
    assert len(set(first.tolist())) == 60
    Draw(3, inner=5).batch(100, 99)
    np.testing.assert_array_equal(first, draw.batch(100, 60))


def ones_by_weight(weights, indptr):
    """CSR with the given values, one column a term: a batch's value / weight is its factor."""
    indices = np.arange(len(weights), dtype=np.int32)
    return sp.csr_array((weights, indices, indptr), shape=(len(indptr) - 1, len(weights)))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scheme", ["stratified", "weighted"])
def test_factors_are_unbiased(scheme, replace):
    """E[factor · 1{i drawn}] = 1 for every term, the whole point of a factor."""
    weights = np.array([1, 2, 3, 4, 5, 60, 1, 1, 1, 5], float)
    V = as_matrix(ones_by_weight(weights, np.array([0, 6, 6, 10])))
    total = np.zeros(10)
    draws = 20_000
    for r in range(draws):
        part = V.sample(scheme, 0.5, Draw(11, round=r), replace=replace).matrix.array
        np.add.at(total, part.indices, part.data)
    np.testing.assert_allclose(total / draws / weights, 1, atol=0.08)


def test_systematic_draws_take_heavy_terms_for_certain():
    weights = np.array([1, 1, 1, 1, 100.0])
    V = as_matrix(ones_by_weight(weights, np.array([0, 5])))
    for r in range(50):
        part = V.sample("weighted", 0.4, Draw(2, round=r)).matrix.array
        assert part.data[part.indices == 4] == pytest.approx(100)
        assert len(set(part.indices.tolist())) == part.nnz == 2
