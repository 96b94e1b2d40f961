# SPDX-License-Identifier: BSD-3-Clause
"""S-SCI-PI of KL-NMF, solver and kernels, against a transcription of Algorithm 1.

Batches are the same, and one epoch agrees to 1e-10 at quiet and at noisy settings, where iterates
leave their anchor and the factor α pulls them back.
"""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from oracles import direction
from sipower import Stop, as_matrix, solve
from sipower.data.sampling import draw_positions
from sipower.kernels import Draw, batch_size
from sipower.nmf import Half, OnBlock, SSciPiRule
from sipower.nmf.rule import HalfStep
from sipower.problems import KLBlock

SEED, ROUND, SIDE = 3, 2, 1


def counts(density):
    """Items with 60 terms each, or with few nonzeros among them, one of them a single one."""
    rng = np.random.default_rng(4)
    V = rng.poisson(rng.gamma(0.4, 2.0, (12, 3)) @ rng.gamma(0.4, 2.0, (3, 60)) * 3 * density) * 1.0
    V[0] = 0
    V[1] = 0
    V[1, 7] = 5
    V[2:, 0] += 1
    return V


BASIS = np.random.default_rng(5).gamma(0.5, 1.0, (60, 4)) + 1e-3
START = np.random.default_rng(6).gamma(0.5, 1.0, (12, 4)) + 1e-2


def item_by_the_paper(V, j, scheme, rule):
    """The terms of an item and the terms that every inner step draws."""
    L = BASIS / BASIS.sum(axis=0)
    draws = [Draw(SEED, 0, ROUND, SIDE, t) for t in range(rule.epoch)]
    if scheme == "vectors":  # rows of the basis, the same for all items
        n = V.shape[1]
        size = batch_size(rule.batch, n)
        return oracles.kl_terms(V[j], L), [d.batch(n, size, replace=rule.replace) for d in draws]
    matrix, at = as_matrix(sp.csr_array(V)), V[j] > 0
    v, L = V[j, at], L[at]
    if scheme == "elements":  # nonzeros of all items
        mine = matrix.indptr[j] + np.arange(len(v))
        batches = [draw_positions(matrix.nnz, rule.batch, d, rule.replace) for d in draws]
        return oracles.kl_terms(v, L, mine, matrix.nnz), batches
    # Nonzeros of the item: of a batch the values are known, each drawn one as often as it counts.
    parts = [matrix.sample(scheme, rule.batch, d, replace=rule.replace).matrix for d in draws]
    size = batch_size(rule.batch, len(v))
    times = [np.rint(part.row(j)[at] / v * size / len(v)).astype(int) for part in parts]
    return oracles.kl_terms(v, L), [np.repeat(np.arange(len(v)), often) for often in times]


def items_by_the_paper(V, h, scheme, rule):
    """Every item on the simplex after an epoch, and the smallest cosine that any of them met."""
    X, smallest = np.zeros_like(h), 1.0
    for j in np.flatnonzero(V.any(axis=1)):
        terms, batches = item_by_the_paper(V, j, scheme, rule)
        y0 = np.sqrt(oracles.simplex(V, BASIS, h)[j])
        y, cosines = oracles.algorithm_1(terms, 0, y0, rule.step, batches, rule.threshold)
        X[j], smallest = direction(y) ** 2, min(smallest, cosines.min())
    return X, smallest


def update_items(V, h, layout, rule, round_=ROUND):
    """Every item on the simplex after the rule's update."""
    block = KLBlock(layout(V), BASIS)
    half_step = HalfStep(rule.step, SEED, round_, SIDE)
    result = rule.update(block, h, half_step)
    return result, result * block.d / np.where(block.c > 0, block.c, 1)[:, None]


KINDS = [
    ("vectors", np.asarray),
    ("vectors", sp.csr_array),  # the generic solver
    ("elements", np.asarray),
    ("elements", sp.csr_array),
    ("stratified", sp.csr_array),
]


# 0.995 and more: the threshold may bind where an item meets no element, and steps are taken one by
# one; below it the items wait.
@pytest.mark.parametrize(
    ("setting", "noisy"),  # step, batch, epoch
    [
        ((0.1, 0.5, 10), False),
        ((0.01, 0.05, 60), False),
        ((0.1, 0.01, 100), True),
        ((0.7, 0.02, 30), True),
        ((0.995, 0.02, 20), True),
        ((1.0, 0.02, 20), True),
        ((1.7, 0.1, 12), True),
    ],
)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("scheme", "layout"), KINDS)
def test_an_epoch_of_the_kernels_is_algorithm_1(scheme, layout, replace, setting, noisy):
    V = counts(1.0 if layout is np.asarray else 0.4)
    rule = SSciPiRule(*setting, scheme, replace, shortest=0)
    expected, smallest = items_by_the_paper(V, START, scheme, rule)
    np.testing.assert_allclose(
        update_items(V, START, layout, rule)[1], expected, rtol=0, atol=1e-10
    )
    if scheme != "stratified":  # its batches have a term of every item
        assert (smallest < 0.5) == noisy


@pytest.mark.parametrize(("scheme", "layout"), KINDS)
def test_epochs_of_the_kernels_in_a_row_are_algorithm_1(scheme, layout):
    """Quiet ones, from anchors of their own."""
    V = counts(1.0 if layout is np.asarray else 0.4)
    rule = SSciPiRule(0.1, 0.5, 8, scheme, shortest=0)
    h = by_the_paper = START
    for _ in range(5):
        h, X = update_items(V, h, layout, rule)
        expected = items_by_the_paper(V, by_the_paper, scheme, rule)[0]
        by_the_paper = oracles.factor(V, BASIS, expected)
        h[0] = by_the_paper[0] = 1.0  # an item without counts is zero, and no start
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("step", [0.6, 0.9, 1.0])
@pytest.mark.parametrize("threshold", [1e-3, 0.3])
def test_the_threshold_is_a_floor_under_every_step(threshold, step):
    V = counts(0.4)
    rule = SSciPiRule(step, 0.05, 15, "elements", threshold=threshold, shortest=0)
    expected = items_by_the_paper(V, START, "elements", rule)[0]
    result = update_items(V, START, sp.csr_array, rule)[1]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("scheme", ["vectors", "elements", "stratified"])
def test_without_a_threshold_nothing_but_zeros_is_lost(scheme):
    """Negative entries become zero, and no point that shares nothing with its anchor is lost."""
    V = counts(0.4)
    rule = SSciPiRule(1.0, 0.02, 40, scheme, threshold=0, shortest=0)
    for layout in (np.asarray, sp.csr_array):
        result = update_items(V, START, layout, rule)[1][V.any(axis=1)]
        assert (result >= 0).all()
        np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-9)


# ---- items that meet no element -----------------------------------------------------------------


@pytest.mark.parametrize("step", [1e-3, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0, 1.3])
@pytest.mark.parametrize("epoch", [2, 17, 400])
def test_an_item_without_elements_follows_its_anchor(step, epoch):
    """Carried along by one number, it is where steps one by one lead; at last that is g/‖g‖."""
    V = np.vstack([counts(0.4)[3:7], np.full(60, 1e4)])  # nearly all draws fall into the last item
    V = np.repeat(V, [1, 1, 1, 1, 400], axis=0)
    h = np.repeat(START[3:8], [1, 1, 1, 1, 400], axis=0)
    rule = SSciPiRule(step, 1e-9, epoch, "elements", shortest=0)  # one element a step
    matrix = as_matrix(sp.csr_array(V))
    draws = (Draw(SEED, 0, ROUND, SIDE, t) for t in range(1, epoch))
    positions = np.array([draw_positions(matrix.nnz, rule.batch, d, False)[0] for d in draws])
    result = update_items(V, h, sp.csr_array, rule)[1]
    owners = np.searchsorted(matrix.indptr, positions, side="right") - 1
    waiting = set(range(4)) - set(owners)
    assert waiting
    for j in waiting:
        at = V[j] > 0
        terms = oracles.kl_terms(V[j, at], (BASIS / BASIS.sum(axis=0))[at])
        y0 = np.sqrt(oracles.simplex(V[:5], BASIS, h[:5])[j])
        y = oracles.algorithm_1(terms, 0, y0, step, [[]] * epoch, rule.threshold)[0]
        np.testing.assert_allclose(result[j], direction(y) ** 2, rtol=0, atol=1e-11)


# ---- what is not sampled ------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_what_is_not_sampled_takes_the_full_step(layout, step):
    """The short side, and items with few terms, take F-SCI-PI's step whatever η is."""
    V = counts(0.4)
    G = oracles.multiplier(V, BASIS, oracles.simplex(V, BASIS, START))
    full = oracles.simplex(V, BASIS, START) * G**2
    full /= np.maximum(full.sum(axis=1, keepdims=True), 1e-300)
    short = SSciPiRule(step, 0.2, 9, sides="long")
    tall, h = np.repeat(V, 20, axis=0), np.repeat(START, 20, axis=0)  # more items than terms
    result = update_items(tall, h, layout, short)[1]
    np.testing.assert_allclose(result[::20][V.any(axis=1)], full[V.any(axis=1)], rtol=1e-10)
    short_epoch = SSciPiRule(step, 0.2, 9, "stratified", shortest=10)
    result = update_items(V, START, sp.csr_array, short_epoch)[1]
    left_out = (V > 0).sum(axis=1) < 10
    assert left_out[1]
    alive = left_out & V.any(axis=1)
    np.testing.assert_allclose(result[alive], full[alive], rtol=1e-10, atol=1e-14)
    assert np.abs(result[~left_out] - full[~left_out]).max() > 1e-3


def test_either_side_may_have_a_batch_and_an_epoch_of_its_own():
    """The first of a pair is for the side with the longer sums."""
    wide = as_matrix(np.ones((10, 50)))
    rule = SSciPiRule(batch=(0.1, 0.5), epoch=(7, 3))
    assert rule.plan(wide, 4)[:2] == (0.1, 7)
    assert rule.plan(wide.T, 4)[:2] == (0.5, 3)
    assert SSciPiRule(batch=0.2, epoch=(7, 3)).plan(wide.T, 4)[:2] == (0.2, 3)
    for wrong in ({"batch": (0.1, 0.0)}, {"epoch": (3, 0)}, {"batch": (2.0, 0.1)}):
        with pytest.raises(
            ValueError, match=r"`(batch|epoch|scheme|threshold|sides|step)` must be"
        ):
            SSciPiRule(**wrong)
    with pytest.raises(ValueError, match=r"^`batch` must be a number or a pair, got 3 values\.$"):
        SSciPiRule(batch=(0.1, 0.1, 0.1))


def test_the_default_batch_grows_with_unevenness():
    """s = 0.7 K for equal terms; m = n/s, at most 100; too few steps are none."""
    rng = np.random.default_rng(0)
    even = SSciPiRule().plan(as_matrix(np.ones((3, 2000))), 10)
    assert even[:2] == (pytest.approx(7 / 2000), 100)
    assert SSciPiRule().plan(as_matrix(np.ones((3, 70))), 10)[:2] == (pytest.approx(0.1), 10)
    assert not SSciPiRule().plan(as_matrix(np.ones((3, 27))), 10).is_sampled
    V = as_matrix(rng.gamma(0.2, 1.0, (40, 2000)))
    uneven = SSciPiRule().plan(V, 10)
    assert uneven.batch == pytest.approx(even.batch * V.unevenness)
    assert uneven.epoch == min(int(1 / uneven.batch), 100)
    assert V.unevenness > 3


# ---- convergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_fixed_steps_have_no_noise_floor(layout):
    """A convex half falls linearly to rounding: the variance vanishes with the anchor's error."""
    rng = np.random.default_rng(7)
    B = rng.gamma(0.5, 1.0, (3000, 6)) + 1e-3
    V = rng.poisson(20 * rng.gamma(0.5, 1.0, (4, 6)) @ B.T) + 1.0
    rule = SSciPiRule(
        1.0, 0.02, 40, "vectors" if layout is np.asarray else "stratified", shortest=0
    )
    half = Half(KLBlock(layout(V), B))
    start = rng.random((4, 6)) + 0.1
    result = solve(half, OnBlock(rule), start, stop=Stop(0, rounds=25), trace="every")
    gaps = np.array([record.gap for record in result.trace])
    assert gaps[-1] <= 1e-11
    assert gaps[10] <= 1e-3 * gaps[1]
