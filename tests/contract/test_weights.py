# SPDX-License-Identifier: BSD-3-Clause
"""Weights of samples, features and entries, and size factors: what they mean, not their shapes."""

import numpy as np
import pytest
import scipy.sparse as sp

from contract.observed_data import (
    ALL_WEIGHTS,
    EVERYTHING,
    FEATURE_WEIGHT,
    MASK,
    OFFSETS,
    SAMPLE_WEIGHT,
    START,
    W0,
    WEIGHTS,
    V,
    divergence,
    from_start,
)
from contract.test_callbacks import Listener
from sipower import KLNMF, non_negative_factorization

LAYOUTS = [np.asarray, sp.csr_array]
SOLVERS = ["auto", "mu", "ccd", "newton", "sci-pi", "shared-newton", "power-search", "pgd"]


def sparse_weights(weights):
    """Return weights as a sparse array that stores every weight other than 1, zeros too."""
    rows, columns = np.nonzero(weights != 1)
    return sp.csr_array(sp.coo_array((weights[rows, columns], (rows, columns)), weights.shape))


# ---- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sample_of_weight_two_is_two_equal_samples(layout, solver):
    twice = np.r_[0:60, 5:20]
    weight = np.bincount(twice).astype(float)
    start = {"W": W0[twice], "H": START["H"]}
    weighted = from_start(solver=solver).fit(layout(V), sample_weight=weight, **START)
    doubled = from_start(solver=solver).fit(layout(V[twice]), **start)
    assert weighted.kl_divergence_ == pytest.approx(doubled.kl_divergence_, rel=1e-10)
    np.testing.assert_allclose(weighted.components_, doubled.components_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sample_of_weight_zero_is_left_out_of_the_components_but_has_a_row(solver):
    weight = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    kept = weight > 0
    model = from_start(solver=solver)
    W = model.fit_transform(V, sample_weight=weight, **START)
    without = from_start(solver=solver).fit(V[kept], W=W0[kept], H=START["H"])
    assert model.kl_divergence_ == pytest.approx(without.kl_divergence_, rel=1e-10)
    np.testing.assert_allclose(model.components_, without.components_, rtol=1e-7, atol=1e-8)
    assert W.tobytes() == model.transform(V).tobytes()
    assert W[~kept].any()


def test_sample_weights_do_not_change_new_rows():
    model = from_start().fit(V, **START)
    weighted = model.transform(V, sample_weight=SAMPLE_WEIGHT)
    assert weighted.tobytes() == model.transform(V).tobytes()
    assert model.transform(V[:1], sample_weight=[0.0]).tobytes() == weighted[:1].tobytes()


# ---- features ------------------------------------------------------------------------------------


def test_a_feature_of_weight_two_is_two_equal_features():
    twice = np.r_[0:40, 5:12]
    weight = np.bincount(twice).astype(float)
    weighted = from_start().fit(V, feature_weight=weight, **START)
    doubled = from_start().fit(V[:, twice], W=W0, H=START["H"][:, twice])
    assert weighted.kl_divergence_ == pytest.approx(doubled.kl_divergence_, rel=1e-10)
    np.testing.assert_allclose(weighted.components_[:, twice], doubled.components_, atol=1e-8)


def test_a_feature_of_weight_zero_is_absent():
    weight = np.where(np.arange(40) % 5 == 1, 0.0, 1.0)
    kept = weight > 0
    model = from_start()
    W = model.fit_transform(V, feature_weight=weight, **START)
    without = from_start()
    same = without.fit_transform(V[:, kept], W=W0, H=START["H"][:, kept])
    np.testing.assert_allclose(W, same, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.components_[:, kept], without.components_, atol=1e-10)
    assert not model.components_[:, ~kept].any()


# ---- entries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_in_dense_and_sparse_form_are_equal(layout):
    weights = np.where(MASK, WEIGHTS, 0.0)
    dense = from_start().fit(layout(V), weights=weights, **START)
    for form in (sparse_weights(weights), sparse_weights(weights).tocsc()):
        sparse = from_start().fit(layout(V), weights=form, **START)
        assert sparse.components_.tobytes() == dense.components_.tobytes()


@pytest.mark.parametrize("solver", ["mu", "ccd", "newton"])
def test_an_outer_product_of_weights_equals_the_two_vectors(solver):
    weights = np.outer(SAMPLE_WEIGHT, FEATURE_WEIGHT)
    outer = from_start(solver=solver).fit(V, weights=weights, **START)
    vectors = {"sample_weight": SAMPLE_WEIGHT, "feature_weight": FEATURE_WEIGHT}
    product = from_start(solver=solver).fit(V, **vectors, **START)
    assert product.kl_divergence_ == pytest.approx(outer.kl_divergence_, rel=1e-10)
    np.testing.assert_allclose(product.components_, outer.components_, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("dtype", "rel"), [(np.float64, 1e-12), (np.float32, 1e-7)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_divergence_and_score_equal_plain_numpy(solver, dtype, rel, layout):
    model = from_start(solver=solver, dtype=dtype)
    W = model.fit_transform(layout(V), **EVERYTHING, **START)
    Z = OFFSETS[:, None] * (W.astype(float) @ model.components_)
    D = divergence(V, Z, ALL_WEIGHTS)
    assert model.kl_divergence_ == pytest.approx(D, rel=rel)
    assert W.dtype == dtype
    score = model.score(layout(V), **EVERYTHING)
    assert score == pytest.approx(-D / (ALL_WEIGHTS * V).sum(), rel=10 * rel)
    again = model.transform(layout(V), **EVERYTHING)
    np.testing.assert_allclose(again, W, rtol=1e3 * rel, atol=1e2 * rel)


def test_score_of_weighted_unknown_features_is_that_of_the_known_ones():
    """The logarithms of the weights of features that no component has once counted in the score."""
    training = V.copy()
    training[:, 7] = 0
    model = from_start().fit(training, **START)
    assert not model.components_[:, 7].any()
    kept = np.arange(40) != 7
    with pytest.warns(UserWarning, match="No component has feature 7"):
        score = model.score(V, weights=WEIGHTS)
    W = model.transform(training, weights=WEIGHTS)
    D = divergence(V[:, kept], (W @ model.components_)[:, kept], WEIGHTS[:, kept])
    assert score == pytest.approx(-D / (WEIGHTS * V)[:, kept].sum(), rel=1e-9)


def test_certificate_of_the_weighted_problem_bounds_what_another_round_gains():
    model = from_start(max_iter=2000, tol=1e-6)
    W = model.fit_transform(V, **EVERYTHING, **START)
    assert model.status_ == "converged"
    again = from_start(max_iter=50).fit(V, **EVERYTHING, W=W, H=model.components_)
    total = (ALL_WEIGHTS * V).sum()
    assert model.kl_divergence_ - again.kl_divergence_ <= 2e-6 * total


# ---- size factors and scales ---------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_size_factors_only_scale_the_rows(solver):
    plain, scaled = from_start(solver=solver), from_start(solver=solver)
    W = plain.fit_transform(V, **START)
    W_scaled = scaled.fit_transform(V, W=W0 / OFFSETS[:, None], H=START["H"], offsets=OFFSETS)
    np.testing.assert_allclose(W_scaled * OFFSETS[:, None], W, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(scaled.components_, plain.components_, rtol=1e-6, atol=1e-8)
    assert scaled.kl_divergence_ == pytest.approx(plain.kl_divergence_, rel=1e-10)


@pytest.mark.parametrize("factor", [0.25, 1024.0, 1e-3, 7.0])
def test_data_scaled_by_a_factor_scale_the_answer(factor):
    one, other = from_start(), from_start()
    W = one.fit_transform(V, **EVERYTHING, **START)
    scaled = other.fit_transform(factor * V, **EVERYTHING, W=factor * W0, H=START["H"])
    Z, Z_scaled = W @ one.components_, scaled @ other.components_
    np.testing.assert_allclose(Z_scaled, factor * Z, rtol=1e-5, atol=1e-7 * factor)
    assert other.kl_divergence_ == pytest.approx(factor * one.kl_divergence_, rel=1e-9)


# ---- extreme weights -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_negligible_weight_is_refused(dtype):
    tiny = np.ones(60)
    tiny[5] = 1e-300
    with pytest.raises(ValueError, match="set negligible ones to 0"):
        from_start(dtype=dtype).fit(V, sample_weight=tiny, **START)


def test_weights_and_size_factors_beyond_the_working_type_get_one_sentence():
    with pytest.raises(ValueError, match="out of range for float32: rescale the weights"):
        KLNMF(2, dtype=np.float32).fit(V, sample_weight=np.full(60, 1e-30))
    with pytest.raises(ValueError, match="W is too large for float32: rescale `offsets`"):
        KLNMF(2, dtype=np.float32).fit(V, offsets=np.full(60, 1e-45))


# ---- the other ways in ---------------------------------------------------------------------------


def test_callbacks_see_components_in_the_scale_of_the_user():
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
    listener = Listener(rounds=3)
    model = from_start().set_callbacks(listener)
    model.fit(V, feature_weight=FEATURE_WEIGHT, **START)
    seen = listener.models[-1].components_
    np.testing.assert_array_equal(seen, model.components_)


def test_the_function_takes_everything_that_fit_takes():
    options = {"n_components": 3, "init": "custom", "tol": 0, "max_iter": 20, "random_state": 0}
    W, H, n_iter = non_negative_factorization(V, **START, **options, **EVERYTHING)
    model = from_start()
    assert W.tobytes() == model.fit_transform(V, **EVERYTHING, **START).tobytes()
    assert H.tobytes() == model.components_.tobytes()
    assert n_iter == 20
    rows, same, _ = non_negative_factorization(V, H=H, update_H=False, **EVERYTHING)
    assert same.tobytes() == H.tobytes()
    np.testing.assert_allclose(rows, W, rtol=1e-9, atol=1e-12)


def test_the_function_takes_known_components():
    known = START["H"][:2]
    zero = np.zeros((3, 40), bool)
    zero[2, :5] = True
    options = {"n_components": 3, "init": "random", "tol": 0, "max_iter": 10, "random_state": 0}
    terms = {"components_fixed": known, "components_zero": zero}
    _, H, _ = non_negative_factorization(V, **options, **terms)
    assert H[:2].tobytes() == known.tobytes()
    assert not H[2, :5].any()
    with pytest.raises(ValueError, match="`components_zero` must be None with update_H=False"):
        non_negative_factorization(V, H=H, update_H=False, **terms)


@pytest.mark.parametrize("solver", ["auto", "mu", "newton"])
def test_same_bits_for_any_number_of_threads(solver, monkeypatch):
    monkeypatch.setattr("sipower.kernels.threads.MIN_PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr("sipower.data.block_bounds.MIN_BLOCK", 64)
    models = [from_start(solver=solver, n_jobs=jobs, max_iter=8) for jobs in (1, 2)]
    one, two = (model.fit_transform(V, **EVERYTHING, **START) for model in models)
    assert one.tobytes() == two.tobytes()
    assert models[0].components_.tobytes() == models[1].components_.tobytes()


@pytest.mark.parametrize("solver", ["mu", "ccd", "sci-pi"])
def test_sparse_equals_dense(solver):
    dense, sparse = (from_start(solver=solver).fit(f(V), **EVERYTHING, **START) for f in LAYOUTS)
    np.testing.assert_allclose(dense.components_, sparse.components_, rtol=1e-7, atol=1e-9)
