# SPDX-License-Identifier: BSD-3-Clause
"""`refit`: optimal exposures, likelihood-ratio decisions, intervals, goodness of fit, names."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse, stats

from sipower import KLNMF, refit
from sipower.inference.goodness import goodness_of_fit
from sipower.inference.supports import threshold
from sipower.results import Run


def simulate(samples, mutations, seed, known=60, active=8):
    """Return counts, a catalogue and exposures, most of which are zero."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(96, 0.2), known)
    W = np.zeros((samples, known))
    for row in W:
        row[rng.choice(known, active, replace=False)] = rng.dirichlet(np.ones(active)) * mutations
    return rng.poisson(W @ H), H, W


def f1(found, truth):
    return 2 * (found & truth).sum() / (found.sum() + truth.sum())


def best_log_likelihood(v, H):
    """Return the maximum of the log-likelihood of one sample over w ≥ 0, by scipy."""
    if not len(H):
        return -np.inf if v.any() else 0.0

    def loss(w):
        z = np.maximum(w @ H, 1e-12)
        return z.sum() - v @ np.log(z), H.sum(axis=1) - (v / z) @ H.T

    start = np.full(len(H), v.sum() / len(H))
    bounds = [(1e-12, None)] * len(H)
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    result = optimize.minimize(loss, start, jac=True, bounds=bounds, options=options)
    return -result.fun


V, H, W = simulate(30, 500, 0)
RESULT = refit(V, H)


def test_exposures_are_optimal_for_their_support():
    for v, w, support, value in zip(
        V[:8], RESULT.exposures, RESULT.support, RESULT.log_likelihood, strict=False
    ):
        constant = -stats.poisson.logpmf(v, 1.0).sum() - len(v)  # log v!
        expected = best_log_likelihood(v, H[support]) - constant
        assert value == pytest.approx(expected, abs=1e-4)
        assert value == pytest.approx(stats.poisson.logpmf(v, np.maximum(w @ H, 1e-300)).sum())
        assert (w[~support] == 0).all()
        assert (w[support] > 0).all()


def test_no_component_can_be_dropped_or_added():
    """The decisions at the end, re-derived with a solver of scipy."""
    q = threshold(0.01)
    assert 0.5 * stats.chi2.sf(q, 1) == pytest.approx(0.01)
    counts, catalogue, _ = simulate(6, 300, 3, known=8, active=3)
    result = refit(counts, catalogue, level=0.01, intervals=False)
    for v, support in zip(counts, result.support, strict=True):
        value = best_log_likelihood(v, catalogue[support])
        for k in range(len(catalogue)):
            other = support.copy()
            other[k] = not other[k]
            change = 2 * (best_log_likelihood(v, catalogue[other]) - value)
            assert change < q + 1e-3 if other[k] else -change > q - 1e-3


def test_selection_is_nearly_the_best_of_all_supports():
    q = threshold(0.01)
    counts, catalogue, _ = simulate(4, 200, 4, known=4, active=2)
    result = refit(counts, catalogue, level=0.01, intervals=False)
    for v, support in zip(counts, result.support, strict=True):
        supports = [np.array(bits, bool) for bits in product((0, 1), repeat=4)]
        scores = [2 * best_log_likelihood(v, catalogue[s]) - q * s.sum() for s in supports]
        own = 2 * best_log_likelihood(v, catalogue[support]) - q * support.sum()
        assert own >= max(scores) - 1e-3


@pytest.mark.parametrize("mutations", [500, 5000])
def test_sparse_refit_finds_more_of_the_truth(mutations):
    counts, catalogue, truth = simulate(60, mutations, 100)
    plain = refit(counts, catalogue, sparse=False, intervals=False)
    cut = plain.exposures >= 0.05 * plain.exposures.sum(axis=1, keepdims=True)
    own = f1(refit(counts, catalogue, intervals=False).support, truth > 0)
    assert own > f1(cut, truth > 0) + 0.03
    assert own > f1(plain.support, truth > 0) + 0.1


def test_plain_exposures_are_those_of_transform():
    plain = refit(V, H, sparse=False, intervals=False)
    model = KLNMF(60, components_fixed=H, max_iter=1, transform_tol=1e-10)
    with pytest.warns(UserWarning, match="components"):
        model.fit(V)
    np.testing.assert_allclose(plain.exposures, model.transform(V), atol=0.01)
    np.testing.assert_allclose(plain.exposures.sum(axis=1), V.sum(axis=1))


def test_order_of_samples_features_and_components_does_not_matter():
    rng = np.random.default_rng(0)
    rows, columns, order = (rng.permutation(size) for size in (30, 96, 60))
    other = refit(V[np.ix_(rows, columns)], H[np.ix_(order, columns)])
    np.testing.assert_array_equal(other.support, RESULT.support[np.ix_(rows, order)])
    for name in ("exposures", "lower", "upper"):
        expected = getattr(RESULT, name)[np.ix_(rows, order)]
        np.testing.assert_allclose(getattr(other, name), expected, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(other.p_value, RESULT.p_value[rows], rtol=1e-3)


def test_sparse_data_frames_and_scales_give_the_same():
    for other in (
        refit(sparse.csr_array(V[:9]), H),
        refit(pd.DataFrame(V[:9]), 7 * H),
        refit(V[:9].astype(np.float32), np.asfortranarray(H), n_jobs=1),
    ):
        np.testing.assert_array_equal(other.support, RESULT.support[:9])
        np.testing.assert_allclose(other.exposures, RESULT.exposures[:9], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(other.upper, RESULT.upper[:9], rtol=1e-4)


def test_intervals_have_the_likelihood_ratio_at_their_ends():
    q = stats.chi2.isf(0.05, 1)
    counts, catalogue, _ = simulate(2, 400, 5, known=5, active=3)
    result = refit(counts, catalogue, sparse=False)
    for v, w, lower, upper in zip(
        counts, result.exposures, result.lower, result.upper, strict=True
    ):
        value = best_log_likelihood(v, catalogue)
        for k in np.flatnonzero(w > 0):
            for end in (lower[k], upper[k]):
                others = np.delete(catalogue, k, axis=0)

                def loss(x, end=end, k=k, others=others, v=v):
                    z = np.maximum(end * catalogue[k] + x @ others, 1e-12)
                    return z.sum() - v @ np.log(z), others.sum(axis=1) - (v / z) @ others.T

                bounds = [(0, None)] * len(others)
                start = np.full(len(others), v.sum() / len(others))
                best = -optimize.minimize(loss, start, jac=True, bounds=bounds, tol=1e-13).fun
                if end:
                    assert 2 * (value - best) == pytest.approx(q, rel=0.02)
                else:
                    assert 2 * (value - best) <= 1.01 * q


def test_intervals_cover_the_truth():
    counts, catalogue, truth = simulate(60, 1000, 7, known=20, active=4)
    result = refit(counts, catalogue)
    inside = (result.lower <= truth) & (truth <= result.upper)
    assert inside.mean() > 0.97
    assert inside[result.support].mean() > 0.88
    assert inside[~result.support & (truth > 0)].mean() > 0.85
    assert (result.lower <= result.exposures).all()
    assert (result.exposures <= result.upper).all()


@pytest.mark.parametrize("mutations", [100, 1000, 20_000])
def test_goodness_of_fit_is_uniform_if_the_model_is_true(mutations):
    counts, catalogue, _ = simulate(300, mutations, 8, known=10, active=4)
    p = refit(counts, catalogue, intervals=False).p_value
    assert 0.02 <= (p < 0.05).mean() <= 0.09
    assert 0.42 <= (p < 0.5).mean() <= 0.62


def test_goodness_of_fit_is_chi_squared_for_large_counts():
    rng = np.random.default_rng(0)
    z = np.full((5, 96), 1e4)
    D, p = goodness_of_fit(rng.poisson(z).astype(float), z, np.full(5, 3))
    np.testing.assert_allclose(p, stats.chi2.sf(D, 93), rtol=0.01)


def test_a_missing_component_shows_in_the_goodness_of_fit():
    counts, catalogue, truth = simulate(40, 2000, 9, known=10, active=4)
    missing = truth[:, 0] > 300
    p = refit(counts, catalogue[1:], intervals=False).p_value
    assert missing.sum() >= 5
    assert (p[missing] < 1e-3).all()
    assert np.median(p[truth[:, 0] == 0]) > 0.2


def test_empty_samples_have_no_exposures_and_an_upper_limit():
    result = refit(np.zeros((2, 96), int), H)
    assert not result.exposures.any()
    assert not result.support.any()
    np.testing.assert_allclose(result.upper, stats.chi2.isf(0.05, 1) / 2, rtol=0.01)
    np.testing.assert_array_equal(result.p_value, 1)
    for name in ("lower", "upper", "deviance", "log_likelihood", "shares"):
        assert np.isfinite(getattr(result, name)).all()


def named():
    kinds = [f"kind{j}" for j in range(96)]
    catalogue = pd.DataFrame(H, [f"SBS{k}" for k in range(60)], kinds)
    return pd.DataFrame(V, [f"tumour{i}" for i in range(30)], kinds), catalogue


def test_features_are_matched_by_name():
    frame, catalogue = named()
    result = refit(frame.iloc[:, ::-1], catalogue, intervals=False)
    np.testing.assert_array_equal(result.support, RESULT.support)
    assert result.components[3] == "SBS3"
    frames = result.to_frames()
    assert frames["exposures"].loc["tumour2", "SBS5"] == result.exposures[2, 5]
    assert set(frames) == {"exposures", "shares", "samples"}
    assert set(RESULT.to_frames()) == {"exposures", "shares", "lower", "upper", "samples"}
    assert "Refit of 30 samples to 60 components" in repr(result)


def test_features_that_one_side_lacks_are_not_observed_or_left_out():
    frame, catalogue = named()
    with pytest.warns(UserWarning, match="`V` lacks 6 of 96 features of `H`") as caught:
        fewer = refit(frame.iloc[:, 6:], catalogue, intervals=False)
    assert len(caught) == 1
    # The likelihood is that of the observed features; exposures are for the whole profile.
    expected = refit(V[:, 6:], H[:, 6:], intervals=False)
    np.testing.assert_array_equal(fewer.support, expected.support)
    scale = H[:, 6:].sum(axis=1)
    np.testing.assert_allclose(fewer.exposures * scale, expected.exposures, rtol=1e-4, atol=1e-4)
    with pytest.warns(UserWarning, match="`H` lacks 3 of 99 features of `V`: .* left out"):
        more = refit(frame.assign(a=1, b=2, c=0), catalogue, intervals=False)
    np.testing.assert_allclose(more.exposures, RESULT.exposures)
    np.testing.assert_array_equal(more.left_out, 3)


def test_counts_that_no_component_has_are_left_out():
    gaps, counts = H.copy(), V.copy()
    gaps[:, 5] = 0
    counts[:, 5] = np.arange(30)
    with pytest.warns(UserWarning, match="`V` has counts of features that no component of `H`"):
        result = refit(counts, gaps, intervals=False)
    np.testing.assert_array_equal(result.left_out, np.arange(30))
    counts[:, 5] = 0
    np.testing.assert_allclose(refit(counts, gaps, intervals=False).exposures, result.exposures)


def test_models_and_runs_are_components():
    frame, _ = named()
    model = KLNMF(4, random_state=0).fit(frame)
    run = Run.from_model(model, model.transform(frame))
    by_model, by_run = refit(frame, model), refit(frame, run)
    np.testing.assert_allclose(by_run.exposures, by_model.exposures[:, run.order], atol=1e-4)
    assert by_run.components == ("component 1", "component 2", "component 3", "component 4")


def test_bad_input_is_refused():
    frame, catalogue = named()
    with pytest.raises(ValueError, match="`level` must be between 0 and 1, got 2"):
        refit(V, H, level=2)
    with pytest.raises(ValueError, match="`H` must have the 96 features of `V`, got 60"):
        refit(V, H.T)
    with pytest.raises(ValueError, match=r"No feature of `V` is in `H`.*'kind0' in `V`"):
        refit(frame, catalogue.rename(columns="x{}".format))
    with pytest.raises(ValueError, match="`H` has the component 'SBS0' more than once"):
        refit(frame, catalogue.rename(index={"SBS1": "SBS0"}))
    with pytest.raises(ValueError, match="`H`: 'component 2' is zero; leave it out"):
        refit(V, np.vstack([H[:1], 0 * H[:1]]))
    with pytest.raises(ValueError, match="`H`: Negative values in data: entry"):
        refit(V, -H)
    only = pd.DataFrame([[1.0, 1.0]], ["a"], ["kind0", "other"])
    with pytest.raises(ValueError, match="`V` has no feature of component 'b' of `H`"):
        refit(frame, pd.concat([only, only.assign(kind0=0).rename(index={"a": "b"})]))
    with pytest.warns(UserWarning, match="`V` holds numbers that are no counts"):
        refit(V / 3, H, intervals=False)
