# SPDX-License-Identifier: BSD-3-Clause
"""`prior_W` and `prior_H`: what they mean, and that every way to a result agrees."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import kl_div, xlogy

from sipower import KLNMF, non_negative_factorization
from sipower.datasets import poisson_topics
from sipower.io import convert, open_store

RNG = np.random.default_rng(0)
V = RNG.poisson(RNG.gamma(0.5, 2, (60, 4)) @ RNG.gamma(0.5, 1, (4, 40))) * 1.0
V[0] += 1  # no empty sample
SETTINGS = [
    {"prior_H": 0.1},
    {"prior_W": 0.3},
    {"prior_W": [0.1, 0.2, 0.3, 0.4], "prior_H": np.linspace(0, 0.5, 160).reshape(4, 40)},
    {"prior_H": np.linspace(0, 1, 40)},
]
LAYOUTS = [np.asarray, sparse.csr_array]


def objective(V, W, H, prior_W=0.0, prior_H=0.0):
    """Return D and the negative log densities, for H (K, m) whose rows sum to 1."""
    b = np.broadcast_to(prior_W, W.shape)
    c = V.sum(axis=1, keepdims=True)
    rate = np.divide(b.sum(axis=1, keepdims=True), c, out=np.zeros(c.shape), where=c > 0)
    prior = rate * W - np.where(c > 0, xlogy(b, np.where(W > 0, W, 1)), 0)
    return kl_div(V, W @ H).sum() + prior.sum() - xlogy(np.broadcast_to(prior_H, H.shape), H).sum()


def fit(V=V, **settings):
    model = KLNMF(4, random_state=0, tol=1e-6, max_iter=3000, **settings)
    return model, model.fit_transform(V)


@pytest.mark.parametrize("layout", LAYOUTS, ids=["dense", "csr"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_objective_belongs_to_the_returned_factors(settings, layout):
    model, W = fit(layout(V), **settings)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-12)
    value = objective(V, W, model.components_, **settings)
    assert model.trace_[-1].objective == pytest.approx(value, rel=1e-9)
    assert model.kl_divergence_ == pytest.approx(kl_div(V, W @ model.components_).sum(), rel=1e-9)


@pytest.mark.parametrize("settings", SETTINGS)
def test_prior_counts_of_components_smooth_zeros(settings):
    model, W = fit(**settings)
    positive = np.broadcast_to(settings.get("prior_H", 0.0), (4, 40)) > 0
    assert (model.components_[positive] > 0).all()
    if "prior_W" in settings:
        assert (W > 0).all()
    assert (W @ model.components_).sum(axis=1) == pytest.approx(V.sum(axis=1), rel=1e-4)


@pytest.mark.parametrize("settings", SETTINGS)
def test_transform_and_the_function_use_the_prior_of_the_fit(settings):
    model, W = fit(**settings)
    np.testing.assert_allclose(model.transform(V), W, rtol=1e-9, atol=1e-12)
    again, H, _ = non_negative_factorization(
        V, n_components=4, init="auto", random_state=0, tol=1e-6, max_iter=3000, **settings
    )
    np.testing.assert_array_equal(H, model.components_)
    np.testing.assert_array_equal(again, W)
    rows, _, _ = non_negative_factorization(
        V, H=model.components_, update_H=False, prior_W=settings.get("prior_W", 0.0)
    )
    np.testing.assert_allclose(rows, W, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_weight_of_two_counts_like_two_samples(settings):
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    doubled = np.vstack([V, V[:20]])
    start = np.random.default_rng(1)
    W, H = start.random((60, 4)), start.random((4, 40))
    options = {"init": "custom", "solver": "ccd", "tol": 1e-8, "max_iter": 5000, **settings}
    one = KLNMF(4, **options)
    W_one = one.fit_transform(V, W=W, H=H, sample_weight=weight)
    two = KLNMF(4, **options)
    W_two = two.fit_transform(doubled, W=np.vstack([W, W[:20]]), H=H)
    np.testing.assert_allclose(one.components_, two.components_, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(W_one, W_two[:60], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("settings", SETTINGS)
def test_size_factors_scale_the_weights_alone(settings):
    size = np.random.default_rng(3).uniform(0.5, 2, 60)
    model, W = fit(**settings)
    other = KLNMF(4, random_state=0, tol=1e-6, max_iter=3000, **settings)
    scaled = other.fit_transform(V, offsets=size)
    np.testing.assert_allclose(other.components_, model.components_, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(scaled * size[:, None], W, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_value_of_the_trace_is_finite(settings):
    """The plain fit that the first round begins with may leave zeros that have prior counts."""
    data = poisson_topics(100, 300, 4, length=60, seed=0)
    settings = {k: v for k, v in settings.items() if np.ndim(v) == 0} or {"prior_H": 0.01}
    model = KLNMF(4, random_state=0, **settings).fit(data)
    assert all(np.isfinite([r.objective, r.gap]).all() for r in model.trace_)


def test_samples_without_counts_have_no_weights_and_unseen_features_their_prior():
    data = V.copy()
    data[7], data[:, 3] = 0, 0
    model, W = fit(data, prior_W=0.2, prior_H=0.2)
    assert (W[7] == 0).all()
    others = model.components_[:, data.sum(axis=0) > 0]
    assert (model.components_[:, 3] > 0).all()
    assert (model.components_[:, 3] <= others.min(axis=1) * (1 + 1e-9)).all()


def test_large_prior_counts_make_weights_and_components_even():
    model, W = fit(prior_W=1e7, prior_H=1e7)
    np.testing.assert_allclose(model.components_, 1 / 40, rtol=1e-3)
    np.testing.assert_allclose(W, np.repeat(V.sum(axis=1, keepdims=True) / 4, 4, axis=1), rtol=1e-3)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("solver", ["ccd", "newton", "mu", "sci-pi"])
@pytest.mark.filterwarnings("ignore:Not converged")
def test_the_objective_never_rises(solver, settings):
    model = KLNMF(4, random_state=0, solver=solver, tol=0, max_iter=60, **settings).fit(V)
    values = np.array([record.objective for record in model.trace_[:-1]])  # the last W is exact
    assert (np.diff(values) <= 1e-9 * values[:-1]).all()


@pytest.mark.parametrize("settings", SETTINGS)
def test_in_float32(settings):
    model, W = fit(V.astype(np.float32), **settings)
    exact, _ = fit(**settings)
    assert W.dtype == np.float32
    assert model.trace_[-1].objective == pytest.approx(exact.trace_[-1].objective, rel=2e-3)


@pytest.mark.parametrize("settings", SETTINGS)
def test_missing_values_and_known_components_beside_prior_counts(settings):
    observed = np.random.default_rng(5).random(V.shape) > 0.1
    known = np.random.default_rng(4).gamma(0.5, 1.0, (1, 40)) * 9
    model = KLNMF(4, random_state=0, components_fixed=known, max_iter=3000, **settings)
    model.fit(V, mask=observed)
    assert model.status_ == "converged"
    assert (model.components_[:1] == known).all()
    np.testing.assert_allclose(model.components_[1:].sum(axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize("settings", SETTINGS)
def test_batches_beside_prior_counts(settings):
    lab = np.arange(60) % 2
    data = np.where(lab[:, None] == 1, V * np.where(np.arange(40) < 10, 3, 1), V)
    model = KLNMF(4, random_state=0, max_iter=3000, **settings).fit(data, batch=lab)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.batch_effects_.mean(axis=0), 1, rtol=1e-9)
    ratio = model.batch_effects_[1] / model.batch_effects_[0]
    assert np.median(ratio[:10]) > 1.3 * np.median(ratio[10:])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.filterwarnings("ignore:Not converged")
def test_a_fit_is_resumed_to_the_same_bits(settings, tmp_path):
    options = {"random_state": 0, "tol": 1e-9, **settings}
    whole = KLNMF(4, max_iter=12, **options)
    W = whole.fit_transform(V)
    path = tmp_path / "checkpoint.npz"
    for rounds in (2, 7, 12):
        part = KLNMF(4, max_iter=rounds, checkpoint=path, checkpoint_every=0, **options)
        W_part = part.fit_transform(V)
    np.testing.assert_array_equal(W_part, W)
    np.testing.assert_array_equal(part.components_, whole.components_)
    with pytest.raises(ValueError, match="checkpoint"):
        KLNMF(4, checkpoint=path, **options | {"prior_H": 0.7}).fit(V)


@pytest.mark.parametrize("settings", [*SETTINGS, {"guides": {"few": [1, 2, 3]}}])
@pytest.mark.filterwarnings("ignore:`guides`")
def test_data_on_disk_give_the_same_bits(settings, tmp_path):
    np.save(tmp_path / "counts.npy", V)
    convert(tmp_path / "counts.npy", tmp_path / "counts.sipower")
    model, W = fit(sparse.csr_array(V), **settings)
    stored, W_stored = fit(open_store(tmp_path / "counts.sipower"), **settings)
    np.testing.assert_array_equal(W_stored, W)
    np.testing.assert_array_equal(stored.components_, model.components_)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"prior_W": -1.0}, "`prior_W` must be finite and non-negative"),
        ({"prior_W": [1.0, 2.0]}, r"`prior_W` must be a number or have shape \(4,\), got \(2,\)"),
        ({"prior_H": np.nan}, "`prior_H` must be finite and non-negative"),
        ({"prior_H": "much"}, "`prior_H` must be a number or an array of numbers"),
        ({"prior_H": [1.0]}, r"must be a number or have shape \(40,\) or \(4, 40\), got \(1,\)"),
        ({"prior_H": 0.1, "alpha_W": 0.1}, "cannot be combined with `alpha_W` and `alpha_H`"),
        ({"prior_H": 0.1, "solver": "s-sci-pi"}, "does not take prior counts: use solver='auto'"),
    ],
)
def test_bad_values_get_one_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        KLNMF(4, **settings).fit(V)


@pytest.mark.parametrize("settings", [{"prior_H": 0.1}, {"prior_W": 0.1}, {"alpha_W": 0.1}])
def test_partial_fit_takes_neither_penalties_nor_prior_counts(settings):
    with pytest.raises(ValueError, match="`partial_fit` takes neither penalties nor prior counts"):
        KLNMF(4, **settings).partial_fit(V)


def test_a_component_may_lose_all_its_weights_to_a_strong_prior():
    """Without weights its profile is the prior, and the linear terms of its features vanish."""
    data = poisson_topics(150, 500, 5, alpha=0.3, beta=0.1, length=60, seed=0)[:75]
    model = KLNMF(5, prior_H=5.0, random_state=0).fit(data)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-9)
