# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's penalties: the same objective, never a worse value, certified."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import kl_div
from sklearn.decomposition import NMF

from sipower import KLNMF, non_negative_factorization

RNG = np.random.default_rng(0)
V = RNG.poisson(RNG.gamma(0.5, 2, (60, 4)) @ RNG.gamma(0.5, 1, (4, 40))) * 1.0
SETTINGS = [
    {"alpha_W": 0.001, "alpha_H": "same", "l1_ratio": 1.0},
    {"alpha_W": 0.001, "alpha_H": "same", "l1_ratio": 0.0},
    {"alpha_W": 0.01, "alpha_H": 0.001, "l1_ratio": 0.5},
]


def objective(V, W, H, *, alpha_W, alpha_H, l1_ratio):
    """Return the objective as scikit-learn defines it."""
    n, m = V.shape
    alpha_H = alpha_W if alpha_H == "same" else alpha_H
    value = kl_div(V, W @ H).sum()
    for alpha, size, factor in ((alpha_W, m, W), (alpha_H, n, H)):
        l1, l2 = factor.sum(), (factor**2).sum()
        value += alpha * size * (l1_ratio * l1 + 0.5 * (1 - l1_ratio) * l2)
    return value


def fit(**settings):
    return KLNMF(4, random_state=0, tol=1e-6, max_iter=3000, **settings)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_objective_is_scikit_learns_and_not_above_its_value(settings):
    model = fit(**settings)
    W = model.fit_transform(V)
    value = objective(V, W, model.components_, **settings)
    assert model.trace_[-1].objective == pytest.approx(value, rel=1e-9)
    assert model.status_ == "converged"
    for seed in range(3):
        other = NMF(
            4, solver="mu", beta_loss="kullback-leibler", init="random", random_state=seed,
            max_iter=3000, tol=1e-8, **settings,
        )  # fmt: skip
        peer = objective(V, other.fit_transform(V), other.components_, **settings)
        assert value <= peer * (1 + 1e-5)


@pytest.mark.parametrize("solver", ["auto", "ccd", "newton", "mu"])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_the_penalised_objective_never_rises(settings, solver, layout):
    model = KLNMF(4, random_state=0, solver=solver, tol=0, max_iter=60, **settings).fit(layout(V))
    values = np.array([record.objective for record in model.trace_[:-1]])  # the last W is exact
    assert len(values) > 2
    assert (np.diff(values) <= 1e-9 * values[:-1]).all()


@pytest.mark.parametrize("settings", SETTINGS)
def test_doubled_rows_with_a_doubled_start_leave_the_components(settings):
    start = np.random.default_rng(1)
    W, H = start.random((60, 4)), start.random((4, 40))
    options = {"init": "custom", "solver": "ccd", "tol": 1e-10, "max_iter": 5000, **settings}
    once = KLNMF(4, **options).fit(V, W=W, H=H)
    twice = KLNMF(4, **options).fit(np.vstack([V, V]), W=np.vstack([W, W]), H=H)
    np.testing.assert_allclose(twice.components_, once.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("settings", SETTINGS)
def test_transform_penalises_rows_as_the_fit_does(settings):
    model = fit(**settings)
    W = model.fit_transform(V)
    np.testing.assert_allclose(model.transform(V), W, rtol=1e-6, atol=1e-8)
    again, _, _ = non_negative_factorization(V, H=model.components_, update_H=False, **settings)
    np.testing.assert_allclose(again, W, rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_weights_and_size_factors_leave_the_penalties_of_the_factors_themselves(settings):
    weight, size = (np.random.default_rng(i).uniform(0.5, 2, 60) for i in (2, 3))
    model = fit(**settings)
    W = model.fit_transform(V, sample_weight=weight, offsets=size)
    plain = objective(V, W, model.components_, **settings) - kl_div(V, W @ model.components_).sum()
    divergence = weight[:, None] * kl_div(V, size[:, None] * (W @ model.components_))
    assert model.trace_[-1].objective == pytest.approx(divergence.sum() + plain, rel=1e-9)


def test_an_l1_penalty_prunes_components_and_an_l2_penalty_shrinks_them():
    free = KLNMF(10, random_state=0).fit(V)
    pruned = KLNMF(10, random_state=0, alpha_W=0.3, l1_ratio=1.0, max_iter=3000).fit(V)
    assert (pruned.components_.sum(axis=1) == 0).any()
    assert (free.components_.sum(axis=1) > 0).all()
    small = KLNMF(4, random_state=0, alpha_W=0.05).fit(V)
    assert (small.components_**2).sum() < (KLNMF(4, random_state=0).fit(V).components_ ** 2).sum()


def test_known_components_are_not_scaled_by_a_penalty():
    known = np.random.default_rng(4).gamma(0.5, 1.0, (2, 40))
    model = KLNMF(4, random_state=0, alpha_W=0.01, l1_ratio=0.5, components_fixed=known).fit(V)
    assert (model.components_[:2] == known).all()
    assert model.status_ == "converged"


@pytest.mark.filterwarnings("ignore:Not converged")
@pytest.mark.parametrize("solver", ["sci-pi", "pgd", "shared-newton"])
def test_rules_without_a_ridge_refuse_it_and_take_l1(solver):
    with pytest.raises(ValueError, match="does not take fixed components or penalties: use solver"):
        KLNMF(3, solver=solver, alpha_W=0.1).fit(V)
    model = KLNMF(3, solver=solver, alpha_W=0.001, l1_ratio=1.0, random_state=0, max_iter=5)
    assert np.isfinite(model.fit_transform(V)).all()


@pytest.mark.parametrize("solver", ["auto", "ccd", "scd", "newton", "mu"])
def test_a_component_that_alone_explains_a_count_is_kept(solver):
    """However small its share of all counts: without it the divergence would be infinite."""
    counts = np.array([[0, 0], [0, 4.9], [0, 7e-8], [1e-10, 3e-12]])
    model = KLNMF(
        3, solver=solver, init="random", random_state=0, alpha_W=0.1, l1_ratio=0.5,
        tol=1e-9, max_iter=1000,
    )  # fmt: skip
    W = model.fit_transform(counts)
    assert ((W @ model.components_)[counts > 0] > 0).all()
    assert model.status_ == "converged"
