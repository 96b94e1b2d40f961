# SPDX-License-Identifier: BSD-3-Clause
"""Batches of the KL block: S-SCI-PI's epochs, and means over all batches by enumeration."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from identities.kl_examples import HALF_STEP, positive
from sipower import SciPi, SSciPi, as_matrix
from sipower.data.sampling import SCHEMES
from sipower.kernels import Draw
from sipower.nmf import (
    SSciPiRule,
)
from sipower.problems import KLBlock, Sampling
from sipower.problems.item_problem import Terms
from sipower.solvers.state import PointState

# ---- S-SCI-PI ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_full_batch_is_the_full_method(step):
    """s = N: an epoch of m steps is m (damped) SCI-PI steps, for any anchor."""
    V, H, W = positive()
    block = KLBlock(V, H)
    state = PointState(block.to_sphere(W), step=step, seed=0)
    epoch = SSciPi(step, batch=1.0, epoch=6, threshold=0).advance(block, state)
    expected = state
    for _ in range(6):
        expected = SciPi(step).advance(block, expected)
    np.testing.assert_allclose(epoch.x, expected.x, rtol=1e-10)
    for layout, scheme in itertools.product((np.asarray, sp.csr_array), (None, "stratified")):
        rule = SSciPiRule(step, batch=1.0, epoch=6, threshold=0, shortest=0, scheme=scheme)
        fused = rule.update(KLBlock(layout(V), H), W, HALF_STEP._replace(step=step))
        np.testing.assert_allclose(fused, block.from_sphere(expected.x), rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_one_inner_step_does_not_depend_on_the_batch(seed):
    V, H, W = positive()
    block = KLBlock(V, H)
    x = block.to_sphere(W)
    full = SciPi(0.7).advance(block, PointState(x, step=0.7, seed=0)).x
    one = SSciPi(0.7, batch=0.2, epoch=1).advance(block, PointState(x, step=0.7, seed=seed)).x
    np.testing.assert_allclose(one, full, rtol=1e-12)
    # Without the shortcut at t = 0: the two batch gradients at the anchor are one and the same.
    S = block.batch(Sampling(0.2), Draw(seed))
    np.testing.assert_array_equal(block.gradient(x, S), block.gradient(x.copy(), S))


def test_scaling_iterate_and_anchor_changes_no_direction():
    """Algorithm 1 with unnormalised x_t and x₀, written out, against the normalised form."""
    V, H, W = positive(n=1)
    block = KLBlock(V, H)
    y0 = block.to_sphere(W)
    rng = np.random.default_rng(1)
    y = block.normalise(y0 + 0.1 * rng.random(y0.shape))
    S = block.batch(Sampling(0.3), Draw(5))
    eta, p = 0.4, 0.0

    def step(x, anchor):
        alpha = abs((x * anchor).sum()) ** (p - 1) / np.linalg.norm(anchor) ** (2 * (p - 1))
        g = (
            alpha * block.gradient(anchor)
            + block.gradient(x, S)
            - alpha * block.gradient(anchor, S)
        )
        out = (1 - eta) * x + eta * g / np.linalg.norm(x) ** (p - 2)
        return out / np.linalg.norm(out)

    expected = step(y, y0)
    for a, b in ((2.5, 1.0), (1.0, 0.3), (1.7, 4.0)):
        np.testing.assert_allclose(step(a * y, b * y0), expected, rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scheme", ["elements", "stratified", "weighted"])
@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray])
def test_fused_sparse_epoch_is_algorithm_1(layout, scheme, replace):
    """The fused kernel draws the same batches as the readable solver and takes the same steps."""
    V = oracles.counts(30, 80, density=0.5)
    W, H = oracles.factors(30, 80, 5)
    rule = SSciPiRule(0.5, batch=0.3, epoch=5, scheme=scheme, replace=replace, shortest=0)
    compare_with_solver(layout(V), H, W, rule, 1e-10)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 19, 20, 63, 65, 200])
def test_fused_dense_epoch_is_algorithm_1(rank, replace):
    V = oracles.counts(30, 250, density=0.5)
    W, H = oracles.factors(30, 250, rank)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, replace=replace)
    compare_with_solver(V, H, W, rule, 1e-10)


@pytest.mark.parametrize("rank", [1, 2, 19, 20, 63, 65, 200])
def test_fused_sparse_epoch_over_ranks(rank):
    V = oracles.counts(30, 250, density=0.5)
    W, H = oracles.factors(30, 250, rank)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, shortest=0)
    compare_with_solver(sp.csr_array(V), H, W, rule, 1e-10)


@pytest.mark.parametrize("layout", [sp.csr_array, np.asarray])
def test_fused_epoch_in_float32(layout):
    V = oracles.counts(30, 250)
    W, H = oracles.factors(30, 250, 20)
    rule = SSciPiRule(0.5, batch=0.5, epoch=4, shortest=0)
    single = rule.update(
        KLBlock(as_matrix(layout(V), dtype=np.float32), H), W.astype(np.float32), HALF_STEP
    )
    double = rule.update(KLBlock(as_matrix(layout(V)), H), W, HALF_STEP)
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4 * double.max())


def compare_with_solver(V, H, W, rule, rtol):
    block = KLBlock(V, H)
    half_step = HALF_STEP._replace(step=rule.step)
    fused = rule.update(block, W, half_step)
    plan = rule.plan(block.V, H.shape[1])
    generic = rule._run_solver(block, W, half_step, plan)
    scale = block.c[:, None] / block.d
    np.testing.assert_allclose(
        fused / scale.clip(1e-300), generic / scale.clip(1e-300), rtol, 1e-13
    )


# ---- unbiased batches, by enumeration ----------------------------------------------------------


def subset_mean(block, y, scheme):
    """Mean of ∇f_S(y) over all batches of the scheme, each weighted by its probability."""
    V, B = block.V.array, block.B
    n = V.shape[1]
    total, weight = np.zeros_like(y), 0.0
    if scheme == "vectors":
        for pair in itertools.combinations(range(n), 2):
            part = KLBlock(
                np.ascontiguousarray(V[:, pair]) * n / 2,
                B[list(pair)],
                c=block.c,
                terms=Terms(block.d),
            )
            total += block.gradient(y, part)
            weight += 1
    else:
        positions = np.argwhere(V > 0)
        for pair in itertools.combinations(range(len(positions)), 2):
            part = np.zeros_like(V)
            for at in pair:
                part[tuple(positions[at])] = V[tuple(positions[at])] * len(positions) / 2
            total += block.gradient(y, KLBlock(part, B, c=block.c, terms=Terms(block.d)))
            weight += 1
    return total / weight


@pytest.mark.parametrize("scheme", ["vectors", "elements"])
def test_mean_over_all_batches_is_the_gradient(scheme):
    V, H, W = positive(n=3, m=7, rank=3)
    block = KLBlock(V, H)
    y = block.to_sphere(W)
    np.testing.assert_allclose(subset_mean(block, y, scheme), block.gradient(y), rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_sampled_matrix_is_unbiased(scheme, replace):
    """E[V_S] = V for every scheme, so every batch gradient is unbiased (it is linear in V_S)."""
    V = np.array([[1.0, 2, 3, 4, 5, 6, 9], [3, 0, 1, 0, 0, 2, 0]])
    matrix = as_matrix(sp.csr_array(V))
    draws = 30_000
    mean = np.zeros_like(V)
    for r in range(draws):
        part, other_part = matrix.sample(scheme, 2 / 7, Draw(4, round=r), replace=replace)
        dense = part.array.toarray()
        if other_part is None:
            mean += dense
        else:
            np.add.at(mean.T, other_part, dense.T)
    np.testing.assert_allclose(mean / draws, V, atol=0.05 * V.max() / np.sqrt(3))


def test_sums_only_sample_is_unbiased():
    """Where only rows are held, a batch of rows has the gradient of all rows as its mean."""
    V, _, W = positive(n=6, m=4, rank=3)
    H = oracles.factors(6, 4, 3)[1]
    block = KLBlock(as_matrix(V, rows_only=True).columns, W)
    y = block.to_sphere(H)
    sums = {}
    for r in range(400):
        draw = Draw(2, round=r)
        sums.setdefault(
            tuple(sorted(draw.batch(6, 2))), block.gradient(y, block.batch(Sampling(1 / 3), draw))
        )
    assert len(sums) == 15
    np.testing.assert_allclose(np.mean(list(sums.values()), axis=0), block.gradient(y), rtol=1e-12)
