# SPDX-License-Identifier: BSD-3-Clause
"""`spectra` against dense NumPy and scikit-learn, in every form of the data."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

import oracles
from sipower import KLNMF, as_matrix, consensus
from sipower.datasets import negative_binomial_topics
from sipower.inference import Spectra, spectra, spectra_fits
from sipower.io import open_store, write_store
from sipower.results import Run

V = negative_binomial_topics(90, 40, 3, dispersion=0.3, alpha=0.3, beta=0.2, length=120, seed=1)
MODEL = KLNMF(3, tol=1e-6, random_state=0)
W = MODEL.fit_transform(V)
RESULT = spectra(V, MODEL, W=W)
ARRAYS = ("usages", "median_units", "z_scores")


def dense_z_scores(counts, usages):
    """Return the z-scores by their definition, from standardised dense data."""
    counts = counts.toarray().astype(float)
    totals = counts.sum(axis=1, keepdims=True)
    Z = StandardScaler().fit_transform(counts * np.median(totals) / totals)
    return LinearRegression(fit_intercept=False).fit(usages, Z).coef_.T


def assert_equal(one: Spectra, other: Spectra, rtol=1e-10):
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol, 1e-12)


def test_usages_are_shares_of_the_counts():
    np.testing.assert_allclose(RESULT.usages.sum(axis=1), 1, rtol=1e-14)
    counts = W * MODEL.components_.sum(axis=1)
    np.testing.assert_allclose(RESULT.usages, counts / counts.sum(axis=1, keepdims=True))


def test_z_scores_are_the_coefficients_of_scikit_learn():
    expected = dense_z_scores(V, RESULT.usages)
    np.testing.assert_allclose(RESULT.z_scores, expected, rtol=1e-10, atol=1e-10)


def test_median_units_of_a_converged_fit_are_its_profiles_times_the_median():
    profiles = MODEL.components_ / MODEL.components_.sum(axis=1, keepdims=True)
    totals = V.sum(axis=1)
    assert RESULT.median_total == np.median(totals)
    expected = profiles * RESULT.median_total
    np.testing.assert_allclose(RESULT.median_units, expected, atol=0.02 * expected.max())
    np.testing.assert_allclose(RESULT.median_units.sum(axis=1), RESULT.median_total, rtol=2e-3)


def test_median_units_are_the_minimum_for_every_feature():
    basis = RESULT.usages * (V.sum(axis=1) / RESULT.median_total)[:, np.newaxis]
    dense = V.toarray().astype(float)
    for j in (0, 7, 39):
        _, best = oracles.best_item(dense[:, j], basis)
        np.testing.assert_allclose(RESULT.median_units[:, j], best, atol=2e-3 * best.max())


@pytest.mark.parametrize(
    "form", ["dense", "float32", "csc", "rows only", "store", "rows of a store"]
)
def test_every_form_of_the_data_gives_the_same(form, tmp_path):
    data = {
        "dense": V.toarray,
        "float32": lambda: V.astype(np.float32),
        "csc": lambda: sparse.csc_array(V),
        "rows only": lambda: as_matrix(V, rows_only=True),
    }
    if form in data:
        counts = data[form]()
    else:
        write_store(V, tmp_path / "v", rows_only=form != "store")
        counts = open_store(tmp_path / "v")
        assert counts.has_columns == (form == "store")
    assert_equal(spectra(counts, MODEL, W=W), RESULT)


def test_chunks_do_not_matter(monkeypatch):
    for entries in (1, 57, 1000):
        monkeypatch.setattr(spectra_fits, "ENTRIES_AT_ONCE", entries)
        monkeypatch.setattr(spectra_fits, "ENTRIES_GATHERED", entries)
        for counts in (V, V.toarray(), as_matrix(V, rows_only=True)):
            assert_equal(spectra(counts, MODEL, W=W), RESULT)


def test_weights_are_repeated_samples():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, V.shape[0])
    rows = np.repeat(np.arange(V.shape[0]), weight)
    other = spectra(V[rows], MODEL, W=W[rows])
    one = spectra(V, MODEL, W=W, sample_weight=weight)
    for counts in (V.toarray(), as_matrix(V, rows_only=True)):
        assert_equal(spectra(counts, MODEL, W=W, sample_weight=weight), one)
    scale = other.median_total / one.median_total  # weights do not change the median
    np.testing.assert_allclose(one.median_units * scale, other.median_units, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.z_scores, other.z_scores, rtol=1e-10, atol=1e-10)


def test_features_and_totals_beyond_the_fit():
    part, totals = V[:, :25], V.sum(axis=1)
    fitted = KLNMF(3, random_state=0).fit(part)
    weights = fitted.transform(part)
    result = spectra(V, fitted, W=weights)
    assert result.z_scores.shape == (3, 40)
    expected = dense_z_scores(V, result.usages)
    np.testing.assert_allclose(result.z_scores, expected, rtol=1e-10, atol=1e-10)
    # With the totals of all features, fewer features give the same numbers for those.
    fewer = spectra(part, fitted, W=weights, totals=totals)
    np.testing.assert_allclose(fewer.z_scores, result.z_scores[:, :25], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fewer.median_units, result.median_units[:, :25], rtol=1e-12)


def test_empty_samples_and_constant_features():
    counts = V.toarray().astype(float)
    counts[:, 5] = 0
    counts[:, 6] = counts.sum(axis=1) - counts[:, 6]  # half of every sample: constant once scaled
    result = spectra(counts, MODEL, W=W)
    assert not result.z_scores[:, 5].any()
    assert not result.median_units[:, 5].any()
    assert not result.z_scores[:, 6].any()
    np.testing.assert_allclose(result.median_units[:, 6], result.median_total / 2, rtol=1e-5)
    extended = np.vstack([counts, np.zeros((2, 40))])
    more = spectra(extended, (np.vstack([W, np.ones((2, 3))]), MODEL.components_))
    assert not more.usages[-2:].any()
    np.testing.assert_allclose(more.z_scores, result.z_scores, rtol=1e-10, atol=1e-12)
    assert more.median_total == result.median_total


def test_dependent_usages_give_finite_numbers():
    twice = np.hstack([W, W[:, :1], np.zeros((len(W), 1))])
    result = spectra(V, (twice, np.vstack([MODEL.components_, MODEL.components_[[0, 0]]])))
    assert all(np.isfinite(getattr(result, name)).all() for name in ARRAYS)
    np.testing.assert_allclose(result.z_scores[0], result.z_scores[3], atol=1e-9)
    assert not result.z_scores[4].any()
    assert not result.median_units[4].any()
    alone = spectra(V, np.ones((len(W), 1)))
    np.testing.assert_allclose(alone.z_scores, 0, atol=1e-12)
    np.testing.assert_allclose(
        alone.median_units[0], alone.median_total * V.sum(axis=0) / V.sum(), rtol=1e-5
    )


def test_models_runs_pairs_and_weights_give_the_same():
    weights = W * MODEL.components_.sum(axis=1)
    for model in (MODEL, (W, MODEL.components_), weights):
        assert_equal(spectra(V, model), RESULT)
    run = Run.from_model(MODEL, W)
    sorted_result = spectra(V, run)
    for name, rtol in (("median_units", 1e-4), ("z_scores", 1e-10)):
        expected = getattr(RESULT, name)[run.order]
        np.testing.assert_allclose(getattr(sorted_result, name), expected, rtol, atol=1e-4 * rtol)
    result = consensus(V, KLNMF(2, random_state=0), replicates=2)
    assert spectra(V, result).z_scores.shape == (2, 40)


def test_names_and_order_are_kept():
    pd = pytest.importorskip("pandas")
    genes, cells = [f"g{j}" for j in range(40)], [f"c{i}" for i in range(90)]
    frame = pd.DataFrame(V.toarray(), cells, genes)
    model = KLNMF(3, tol=1e-6, random_state=0).fit(frame)
    result = spectra(frame, model)
    frames = result.to_frames()
    assert list(frames) == list(ARRAYS)
    assert frames["usages"].index.tolist() == cells
    assert frames["usages"].columns.tolist() == ["klnmf0", "klnmf1", "klnmf2"]
    for name in ("median_units", "z_scores"):
        assert frames[name].index.tolist() == genes
        np.testing.assert_array_equal(frames[name].to_numpy().T, getattr(result, name))
    best = frames["z_scores"]["klnmf1"].nlargest(4).index.tolist()
    assert result.top_features(4)[1] == best
    run = Run.from_model(model, model.transform(frame), samples=cells)
    with pytest.raises(ValueError, match="`model` has names of samples, but `V` has none"):
        spectra(V, run)
    named = spectra(frame.iloc[::-1, ::-1], run)
    np.testing.assert_allclose(named.usages, spectra(frame, run).usages[::-1])
    cells, genes = cells[::-1], genes[::-1]
    assert (named.samples, named.features) == (tuple(cells), tuple(genes))
    assert named.components == ("component 1", "component 2", "component 3")
    plain = spectra(V, W)
    assert plain.samples is plain.features is None
    assert plain.top_features(1)[0][0].isdigit()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"W": W[:5]}, "`W` must have a row for each of the 90 samples"),
        ({"W": -W}, "`W` must be finite, non-negative"),
        ({"W": W[:, :2]}, "`W` must have 3 columns"),
        ({"totals": np.zeros(90)}, "`totals` must be positive in row 0"),
        ({"sample_weight": np.ones(3)}, "`sample_weight` must be a finite"),
        ({"sample_weight": np.zeros(90)}, "must be positive for a sample"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        spectra(V, MODEL, **{"W": W} | arguments)


def test_bad_models():
    with pytest.raises(ValueError, match="`W` must be None unless"):
        spectra(V, (W, MODEL.components_), W=W)
    with pytest.raises(ValueError, match="`model` must be fitted"):
        spectra(V, KLNMF(3))
