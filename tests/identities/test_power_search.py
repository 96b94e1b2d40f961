# SPDX-License-Identifier: BSD-3-Clause
"""The searched power step against its formula, and the line search against its optimality."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import kl_div

import oracles
from identities.kl_examples import HALF_STEP, positive
from sipower import as_matrix
from sipower.nmf import Newton, PowerSearch, SharedNewton
from sipower.problems.kl import KLBlock

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}


def searched_lengths(block, V, h, new, exponent):
    """Return t, φ'(0), φ'(t) and the direction of every item, all from the formulas."""
    x = block.scale_to_mass(h)
    G = block.multiplier(h)
    power = x * G**exponent
    p = power * (block.c / (power @ block.d))[:, None] - x
    t = ((new - x) * p).sum(axis=1) / (p * p).sum(axis=1)
    e = (p @ block.B.T) / (x @ block.B.T)
    slopes = [(V * e / (1 + length[:, None] * e)).sum(axis=1) for length in (0 * t, t)]
    return t, slopes, x + t[:, None] * p


def item_divergences(V, h, B):
    """Return D of every item, in float64."""
    return kl_div(V, h.astype(np.float64) @ B.T).sum(axis=1)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("exponent", [1, 2, 3, 8, 13])
def test_the_step_is_a_searched_step_to_the_power(layout, exponent):
    V, B, h = positive(23, 41, 5)
    block = KLBlock(LAYOUTS[layout](V), B)
    new = PowerSearch(exponent).update(block, h, HALF_STEP)
    t, (first, last), expected = searched_lengths(block, V, h, new, exponent)
    np.testing.assert_allclose(new, expected, rtol=1e-9, atol=1e-12)
    assert (t > 0).all()
    assert (last >= -1e-9 * first).all()  # never beyond the maximum
    at_limit = (new < 0.011 * block.scale_to_mass(h)).any(axis=1) | (t > 99)
    assert ((last <= 0.1001 * first) | at_limit).all()


@pytest.mark.parametrize(
    "rule", [PowerSearch(), PowerSearch(64), Newton(), SharedNewton()], ids=repr
)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_no_item_rises(rule, layout, dtype, seed):
    """Also from factors with tiny entries, whose multipliers are huge."""
    V = oracles.counts(60, 50, density=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    B = rng.random((50, 7)) ** 8 + 1e-12
    h = 10.0 ** rng.uniform(-9, 2, (60, 7))
    block = KLBlock(as_matrix(LAYOUTS[layout](V), dtype=dtype), B.astype(dtype))
    alive = V.sum(axis=1) > 0
    h = block.scale_to_mass(h.astype(dtype)).astype(dtype)
    for _ in range(5):
        new = rule.update(block, h, HALF_STEP)
        before, after = (item_divergences(V, x, B) for x in (h, new))
        rounding = 50 * np.finfo(dtype).eps * (V.sum(axis=1) + before)
        assert (after[alive] <= (before + rounding)[alive]).all()
        h = new


def test_disjoint_supports_do_not_cycle():
    """L = I: undamped SCI-PI cycles for ever, the searched step is optimal after a few."""
    block = KLBlock(np.array([[0.8, 0.2]]), np.eye(2))
    h = np.array([[0.5, 0.5]])
    for _ in range(60):
        h = PowerSearch().update(block, h, HALF_STEP)
    assert block.gaps(h).sum() < 1e-6


@pytest.mark.parametrize("exponent", [0, 65])
def test_exponents_out_of_range_are_refused(exponent):
    with pytest.raises(ValueError, match="`exponent` must be between 1 and 64"):
        PowerSearch(exponent)


@pytest.mark.parametrize("exponent", [8, 64])
def test_huge_multipliers_do_not_stop_a_step(exponent):
    V, B = np.array([[1.0, 1.0, 1e4]]), np.array([[1.0, 0.0], [1.0, 0.0], [1e-9, 1.0]])
    block, h = KLBlock(V, B), np.array([[1.0, 1e-9]])
    for _ in range(60):
        h = PowerSearch(exponent).update(block, h, HALF_STEP)
    assert block.gaps(h).sum() < 1e-3


def test_a_newton_step_leaves_no_positive_entry_without_a_component():
    """The entry 1e-7 depends on the second component alone, which the model sets to zero."""
    V, B = np.array([[100.0, 100.0, 1e-7]]), np.array([[1.0, 1.0], [1.0, 2.0], [0.0, 0.1]])
    h = Newton().update(KLBlock(V, B), np.array([[60.0, 20.0]]), HALF_STEP)
    assert (h @ B.T > 0).all()


def test_rows_with_tiny_entries_are_solved_exactly():
    V, H = np.array([[2.0, 2e-7, 300.0]]), np.array([[1.5, 0.5, 1.5], [1.5, 0.0, 1.5]])
    solution = KLBlock(V, H.T).solution(1e-6)
    assert solution.gaps.max() <= 1e-6
    np.testing.assert_allclose(solution.h, [[4e-7, 302 / 3]], rtol=1e-2)
