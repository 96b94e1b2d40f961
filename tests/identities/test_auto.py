# SPDX-License-Identifier: BSD-3-Clause
"""`Auto`: its phases, its start from a sample, and that D never rises."""

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import KLNMF, Status, Stop, as_matrix, solve
from sipower.nmf import Alternating, Auto, Factorization, PowerSearch
from sipower.nmf.sampled_items import can_sample_items, effective_items, fit_sampled_items


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_auto_goes_through_both_phases_to_a_certified_point(layout):
    V = oracles.counts(150, 120, rank=5, density=0.5)
    result = solve(Factorization(layout(V), 5), Auto(), stop=Stop(1e-8, rounds=2000))
    assert result.status is Status.CONVERGED
    assert result.state.phase == "second order"
    near = solve(Factorization(layout(V), 5), Auto(near=True), result.x, stop=Stop(1e-9))
    assert near.value <= result.value * (1 + 1e-12)


def test_auto_samples_long_even_dense_data_only():
    V = np.random.default_rng(0).poisson(50.0, (330, 30)) * 1.0
    assert can_sample_items(as_matrix(V), 4)
    assert can_sample_items(as_matrix(V.T), 4)
    assert not can_sample_items(as_matrix(V), 5)  # 100 rows are more than a quarter
    assert not can_sample_items(as_matrix(sp.csr_array(V)), 4)
    V[:40] *= 50  # 40 rows with most of the mass count for little more than 40
    assert not can_sample_items(as_matrix(V), 4)
    assert not can_sample_items(as_matrix(V.T), 4)


def test_effective_items():
    assert effective_items(as_matrix(np.full((7, 3), 2.0))) == pytest.approx(7)
    assert effective_items(as_matrix(np.diag([1.0, 1.0, 1e9]))) == pytest.approx(1)
    assert effective_items(as_matrix(np.zeros((3, 2)))) == 0


@pytest.mark.parametrize("transposed", [False, True])
def test_a_sample_of_items_gives_a_better_start(transposed):
    rng = np.random.default_rng(2)
    V = rng.poisson(rng.gamma(0.5, 2.0, (600, 4)) @ rng.gamma(0.5, 2.0, (4, 40))) * 1.0
    problem = Factorization(V.T if transposed else V, 4)
    start = Auto().init(problem, None, 0)
    x, passes = fit_sampled_items(problem, start.x, 0)
    power = solve(problem, Alternating(PowerSearch()), start.x, stop=Stop(0, passes=passes))
    assert power.passes >= passes
    assert problem.value(x) < power.value < problem.value(start.x)


@pytest.mark.parametrize("shape", [(60, 50), (1600, 50)], ids=["all items", "a sample first"])
def test_auto_never_raises_the_divergence(shape):
    rng = np.random.default_rng(1)
    mean = rng.gamma(0.5, 1.0, (shape[0], 4)) @ rng.gamma(0.5, 1.0, (4, shape[1]))
    V = rng.poisson(mean * 20) * 1.0
    problem = Factorization(V, 4)
    assert Auto().init(problem, None, 0).phase == ("sample" if shape[0] == 1600 else "power")
    result = solve(problem, Auto(), stop=Stop(0, rounds=60), trace="every")
    values = np.array([record.objective for record in result.trace])
    assert (np.diff(values) <= 1e-12 * V.sum()).all()
    assert result.state.phase == "second order"


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_single_round_of_auto_changes_both_factors(layout):
    """A fit of one round must make progress, so that warm calls of one round each do too."""
    V = layout(oracles.counts(150, 60, density=0.5))
    model = KLNMF(5, max_iter=1, tol=0, init="random", random_state=0)
    W = model.fit_transform(V)
    values = [model.kl_divergence_]
    warm = KLNMF(5, max_iter=1, tol=0, init="custom", random_state=0)
    for _ in range(4):
        H = model.components_
        W = warm.fit_transform(V, W=W, H=H)
        assert (warm.components_ != H).any()
        values.append(warm.kl_divergence_)
        model = warm
    assert (np.diff(values) < 0).all()


def test_features_that_no_sampled_row_has_stay_explained():
    rng = np.random.default_rng(0)
    V = rng.poisson(3.0, (3000, 20)) * 1.0
    V[:, 5] = 0
    V[1234, 5] = 4
    model = KLNMF(2, random_state=0, max_iter=1, tol=0).fit(V)
    assert np.isfinite(model.kkt_residual_)
    assert model.components_[:, 5].any()
