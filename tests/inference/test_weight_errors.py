# SPDX-License-Identifier: BSD-3-Clause
"""`standard_errors`: the inverse Hessian, the boundary, and the errors of simulated data."""

import numpy as np
import pytest
from scipy import sparse
from scipy.integrate import quad

from sipower import KLNMF, as_matrix, io, standard_errors
from sipower.datasets import poisson_topics
from sipower.inference import weight_errors
from sipower.inference.weight_errors import one_sided_deviation

STEP = 1e-30  # of complex differences, which have no cancellation


def fitted(H, **parameters):
    """Return a model whose components are H, (K, m)."""
    model = KLNMF(len(H), transform_tol=1e-12, **parameters)
    rng = np.random.default_rng(0)
    model.fit(rng.poisson(rng.gamma(1.0, 20.0, (30, len(H))) @ H))
    model.components_, model.transform_tol_ = np.ascontiguousarray(H, float), 1e-12
    return model


def profiles(K, m, concentration=0.3, seed=1):
    return np.random.default_rng(seed).dirichlet(np.full(m, concentration), K)


def objective(w, v, H, *, exposure=1.0, weight=1.0, ridge=0.0, prior=0.0, rate=0.0):
    """Return the row objective; w may be complex. The prior is that of the counts w ∘ ΣH."""
    z = exposure * (w @ H)
    value = (weight * (z - v * np.log(z))).sum() + 0.5 * ridge * (w**2).sum()
    return value + (rate * (w * H.sum(axis=1)) - prior * np.log(w)).sum()


def numerical_hessian(w, *arguments, **terms):
    """Return the Hessian from the objective alone: complex and then central differences."""
    K = len(w)

    def gradient(x):
        steps = x + 1j * STEP * np.eye(K)
        return np.array([objective(s, *arguments, **terms).imag / STEP for s in steps])

    def column(k):
        def central(h):
            return (gradient(w + h * np.eye(K)[k]) - gradient(w - h * np.eye(K)[k])) / (2 * h)

        h = 1e-3 * w[k]
        return (4 * central(h) - central(2 * h)) / 3  # Richardson: the error is of order h⁴

    return np.array([column(k) for k in range(K)])


def numerical_errors(w, *arguments, **terms):
    return np.sqrt(np.diag(np.linalg.inv(numerical_hessian(w, *arguments, **terms))))


def counts(H, n=12, size=300.0, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(4.0, size / 4, (n, len(H))) @ H)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, as_matrix])
def test_errors_are_those_of_the_numerical_hessian(kind):
    H = profiles(4, 60) * np.array([[1.0], [20.0], [0.01], [1e6]])  # of any scale
    V = counts(profiles(4, 60))
    model = fitted(H)
    W = model.transform(V)
    assert (W > 0).all()
    errors = standard_errors(kind(V), model, W)
    expected = [numerical_errors(w, v, H) for w, v in zip(W, V, strict=True)]
    np.testing.assert_allclose(errors, expected, rtol=1e-6)
    np.testing.assert_array_equal(standard_errors(kind(V), model), errors)


def test_weights_masks_size_factors_and_batches_are_those_of_the_model():
    H, rng = profiles(3, 40), np.random.default_rng(2)
    batch = np.repeat(["a", "b"], 10)
    truth = rng.gamma(4.0, 100.0, (20, 3))
    V = rng.poisson(truth @ H * np.where(batch == "a", 1.0, 1.5)[:, None])
    model = KLNMF(3, random_state=0, tol=1e-5, transform_tol=1e-12).fit(V, batch=batch)
    feature_weight, mask = rng.gamma(5.0, 0.2, 40), rng.random(V.shape) > 0.2
    weights, offsets = rng.gamma(5.0, 0.2, V.shape), rng.gamma(5.0, 0.2, 20)
    observed = {
        "feature_weight": feature_weight, "weights": weights, "mask": mask, "offsets": offsets,
        "batch": batch,
    }  # fmt: skip
    W = model.transform(V, **observed)
    errors = standard_errors(V, model, W, **observed, sample_weight=np.full(20, 3.0))
    assert (W > 0).sum() > 40
    for i in np.flatnonzero((W > 0).all(axis=1)):
        terms = {
            "exposure": offsets[i] * model.batch_effects_[int(batch[i] == "b")],
            "weight": feature_weight * weights[i] * mask[i],
        }
        expected = numerical_errors(W[i], V[i], model.components_, **terms)
        np.testing.assert_allclose(errors[i], expected, rtol=1e-6)


def test_ridge_and_prior_counts_are_part_of_the_information():
    H = profiles(3, 40)
    V = counts(H, size=30.0)
    ridge = 0.01 * 40
    model = fitted(H, alpha_W=0.01)
    W = model.transform(V)
    errors = standard_errors(V, model, W)
    for i in np.flatnonzero((W > 0).all(axis=1)):
        expected = numerical_errors(W[i], V[i], H, ridge=ridge)
        np.testing.assert_allclose(errors[i], expected, rtol=1e-6)
    prior = np.array([0.5, 1.0, 2.0])
    model = fitted(H, prior_W=prior)
    W = model.transform(V)
    errors = standard_errors(V, model, W)
    for i in range(len(V)):
        terms = {"prior": prior, "rate": prior.sum() / V[i].sum()}
        expected = numerical_errors(W[i], V[i], H, **terms)
        np.testing.assert_allclose(errors[i], expected, rtol=1e-6)


def test_errors_are_the_deviations_of_simulated_weights():
    """The parametric bootstrap with known H: 400 samples with the same weights."""
    H, w = profiles(4, 80), np.array([400.0, 150.0, 80.0, 250.0])
    rng = np.random.default_rng(3)
    V = rng.poisson(np.tile(w @ H, (400, 1)))
    model = fitted(H)
    W = model.transform(V)
    assert (W > 0).all()
    errors = standard_errors(V, model, W)
    np.testing.assert_allclose(errors.mean(axis=0), W.std(axis=0, ddof=1), rtol=0.1)


def test_the_one_sided_posterior_is_the_integral():
    for slope, curvature in [(0, 1), (1, 1), (-3, 1), (5, 0.3), (24, 1), (26, 1), (300, 2), (2, 0)]:
        end = 45 / slope if slope > 0 else 12 / np.sqrt(curvature)

        def moment(p, s=slope, k=curvature, end=end):
            return quad(lambda w: w**p * np.exp(-s * w - k * w * w / 2), 0, end, epsabs=0)[0]

        mean, square = moment(1) / moment(0), moment(2) / moment(0)
        expected = np.sqrt(square - mean**2)
        assert one_sided_deviation(slope, curvature) == pytest.approx(expected, rel=1e-8)
    assert one_sided_deviation(0, 0) == np.inf
    large = np.array([1e3, 1e8, 1e150])
    np.testing.assert_allclose(one_sided_deviation(large, 1.0), 1 / large, rtol=1e-5)


def test_a_weight_of_zero_has_the_deviation_of_its_posterior():
    """Two components: the exact posterior of both weights, integrated on a grid."""
    H = profiles(2, 30, concentration=1.0)
    v = np.random.default_rng(3).poisson(400 * H[0])
    v = np.maximum(v - np.round(25 * H[1]).astype(int), 0)  # the data push the second below zero
    model = fitted(H)
    W = model.transform(v[None])
    assert W[0, 1] == 0
    errors = standard_errors(v[None], model, W)[0]
    first = W[0, 0] + np.linspace(-6, 6, 241)[:, None] * errors[0]
    second = np.linspace(0, 15, 301) * errors[1]
    z = first[:, :, None] * H[0] + second[:, None] * H[1]
    f = z.sum(axis=2) - np.log(z) @ v
    f -= f.min()
    density = np.exp(-f).sum(axis=0)
    mean = (density * second).sum() / density.sum()
    deviation = np.sqrt((density * (second - mean) ** 2).sum() / density.sum())
    assert errors[1] == pytest.approx(deviation, rel=0.05)


def test_an_empty_sample_has_the_error_of_one_count():
    H = profiles(3, 20) * np.array([[1.0], [10.0], [100.0]])
    V = np.vstack([np.zeros(20, int), counts(profiles(3, 20), n=2)])
    errors = standard_errors(V, fitted(H))
    np.testing.assert_allclose(errors[0], 1 / H.sum(axis=1), rtol=1e-12)


def test_collinear_components_have_large_finite_errors():
    H = profiles(3, 40)
    V = counts(H, n=6)
    alone = standard_errors(V, fitted(H))
    for difference in (0.0, 1e-12, 1e-8, 1e-5):
        twin = H[1] * (1 + difference * np.cos(np.arange(40)))
        model = fitted(np.vstack([H, twin / twin.sum()]))
        errors = standard_errors(V, model)
        assert np.isfinite(errors).all()
        assert (errors[:, [1, 3]].max(axis=1) > 10 * alone[:, 1]).all()
        np.testing.assert_allclose(errors[:, [0, 2]], alone[:, [0, 2]], rtol=1e-3)
        sure = np.linalg.norm(errors, axis=1) <= 2e4 * np.linalg.norm(model.transform(V), axis=1)
        assert sure.all()


def test_nothing_is_known_without_an_observed_entry():
    H, mask = profiles(3, 20), np.ones((3, 20), bool)
    mask[1] = False
    V = counts(H, n=3)
    with pytest.warns(UserWarning, match="1 sample has no observed entry"):
        errors = standard_errors(V, fitted(H), mask=mask)
    assert np.isinf(errors[1]).all()
    assert np.isfinite(errors[[0, 2]]).all()


def test_errors_do_not_depend_on_threads_and_are_finite_on_topics():
    V = poisson_topics(300, 200, 5, length=100, seed=0)
    model = KLNMF(5, random_state=0, dtype=np.float32)
    W = model.fit_transform(V)
    errors = standard_errors(V, model, W)
    assert errors.dtype == np.float64
    assert (np.isfinite(errors) & (errors > 0)).all()
    one = standard_errors(V, model.set_params(n_jobs=1), W)
    np.testing.assert_array_equal(one, errors)
    np.testing.assert_allclose(standard_errors(V.toarray(), model, W), errors, rtol=1e-9)


def test_data_on_disk_have_the_errors_of_data_in_memory(tmp_path, monkeypatch):
    V = poisson_topics(300, 200, 5, length=100, seed=0)
    model = KLNMF(5, random_state=0).fit(V)
    expected = standard_errors(V, model)
    io.write_store(V, tmp_path / "store")
    monkeypatch.setattr(weight_errors, "NUMBERS_AT_ONCE", 2000)  # many small steps
    found = standard_errors(io.open_store(tmp_path / "store"), model)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(standard_errors(V.toarray(), model), expected, rtol=1e-9)


def test_wrong_weights_are_refused():
    H = profiles(3, 20)
    V, model = counts(H, n=2), fitted(H)
    with pytest.raises(ValueError, match=r"`W` must have shape \(2, 3\), got \(3, 2\)"):
        standard_errors(V, model, np.ones((3, 2)))
    with pytest.raises(ValueError, match="`W` must be finite and non-negative"):
        standard_errors(V, model, -np.ones((2, 3)))
    with pytest.raises(ValueError, match="`W` must be a dense array of numbers"):
        standard_errors(V, model, "W")
    for kind in (np.asarray, sparse.csr_array):
        with pytest.raises(ValueError, match=r"`W` must explain every count, .* entry \(0, "):
            standard_errors(kind(V), model, np.zeros((2, 3)))
    with pytest.raises(TypeError, match="`weight` is not an argument"):
        standard_errors(V, model, weight=1)
