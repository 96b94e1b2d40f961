# SPDX-License-Identifier: BSD-3-Clause
"""Newton steps with a shared Hessian against a plain transcription of their formulas."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from identities.kl_examples import HALF_STEP, positive
from sipower import Status, Stop, as_matrix, solve
from sipower.nmf import Alternating, Factorization, Newton, SharedNewton
from sipower.nmf.shared_newton import correlations
from sipower.problems.kl import KLBlock

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}
SWEEPS = 6


def fisher_correlations(B, h):
    """Return the correlations of Bᵀ diag(1 ⊘ z̄) B with z̄ = B Σ_j h_j."""
    information = B.T @ np.diag(1 / (B @ h.sum(axis=0))) @ B
    scale = np.sqrt(np.diag(information))
    return information / np.outer(scale, scale)


def model_step(R, D, r, h):
    """Return p after cyclic coordinate descent on r·p + ½ p·DRDp over h + p ≥ 0, one item."""
    H, p = np.diag(D) @ R @ np.diag(D), np.zeros_like(h)
    for _ in range(SWEEPS):
        for k in range(len(h)):
            p[k] = max(p[k] - (r + H @ p)[k] / H[k, k], -h[k])
    return p


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("shape", [(23, 41, 5), (9, 30, 2), (5, 200, 9), (17, 97, 33)])
def test_the_step_is_that_of_the_formulas(layout, shape):
    V, B, h = positive(*shape)
    block = KLBlock(LAYOUTS[layout](V), B)
    new = SharedNewton().update(block, h, HALF_STEP)
    R, x = fisher_correlations(B, h), block.scale_to_mass(h)
    np.testing.assert_allclose(correlations(block, h), R, rtol=1e-12)
    z = x @ B.T
    r = block.d - (V / z) @ B
    D = np.sqrt((V / z**2) @ B**2)
    for j in range(len(V)):
        p = model_step(R, D[j], r[j], x[j])
        t = (new[j] - x[j]) @ p / (p @ p)
        e = B @ p / z[j]
        first, last = (V[j] @ (e / (1 + length * e)) - block.d @ p for length in (0, t))
        np.testing.assert_allclose(new[j], x[j] + t * p, rtol=1e-8, atol=1e-10)
        assert 0 < t <= 1 + 1e-9
        assert last >= -1e-9 * first  # never beyond the minimum along p
        assert last <= 0.1001 * first or t > 1 - 1e-9


def test_correlations_of_a_long_basis_come_from_evenly_spaced_rows():
    rng = np.random.default_rng(0)
    B, h = rng.random((5000, 3)), rng.random((4, 3))
    block = KLBlock(h @ B.T, B)
    stride = 5000 // 150
    np.testing.assert_allclose(
        correlations(block, h), fisher_correlations(B[::stride], h), rtol=1e-12
    )


def test_components_without_a_basis_and_items_without_mass_stay():
    rng = np.random.default_rng(1)
    V, B, h = rng.poisson(2.0, (12, 30)) * 1.0, rng.random((30, 4)), rng.random((12, 4))
    V[3], B[:, 2] = 0, 0
    R = correlations(KLBlock(V, B), h)
    np.testing.assert_array_equal(R[2], [0, 0, 1, 0])
    new = SharedNewton().update(KLBlock(V, B), h, HALF_STEP)
    np.testing.assert_array_equal(new[3], 0)
    np.testing.assert_array_equal(new[V.sum(axis=1) > 0, 2], h[V.sum(axis=1) > 0, 2])
    assert np.isfinite(new).all()


def test_on_dense_data_the_steps_gain_about_as_much_as_newton_steps():
    """The reason why `auto` takes them: the same decrease for a third of the passes."""
    rng = np.random.default_rng(2)
    V = rng.poisson(20 * rng.gamma(0.5, size=(300, 12)) @ rng.gamma(0.5, size=(12, 80))) + 1.0
    problem = Factorization(V, 12)
    start = Alternating(Newton()).init(problem, None, 0).x
    first = problem.value(start)
    results = [
        solve(problem, Alternating(rule), start, stop=Stop(0, rounds=15))
        for rule in (Newton(), SharedNewton())
    ]
    newton, shared = (first - result.value for result in results)
    assert shared > 0.98 * newton
    assert results[1].passes <= 0.52 * results[0].passes


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_the_steps_alone_reach_a_certified_point(layout):
    V = oracles.counts(80, 60, rank=4, density=0.6)
    problem = Factorization(as_matrix(LAYOUTS[layout](V)), 4)
    result = solve(problem, Alternating(SharedNewton()), stop=Stop(1e-6, rounds=3000))
    assert result.status is Status.CONVERGED


def test_a_wide_range_of_values_does_not_stall_the_steps():
    """Where the shared model fits an item badly, a power step takes over."""
    rng = np.random.default_rng(3)
    time, frequency = np.linspace(0, 1, 120)[:, None], np.arange(150)
    tones = np.exp(-0.5 * ((frequency - rng.uniform(0, 150, (4, 1))) / 1.5) ** 2)
    V = 100 * np.exp(-30 * np.abs(time - rng.random(4))) @ tones + 1e-9
    problem = Factorization(V, 6)
    result = solve(problem, Alternating(SharedNewton()), stop=Stop(1e-3, rounds=500))
    assert result.status is Status.CONVERGED
