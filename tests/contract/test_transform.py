# SPDX-License-Identifier: BSD-3-Clause
"""KLNMF.transform, its score and its way back, and the frames it takes and gives."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context

import oracles
from contract.small_fits import V, quick
from sipower import KLNMF, LpPCA, non_negative_factorization


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_transform_depends_on_the_row_alone(layout):
    """Any order and any batching of rows give the same bits."""
    model = quick().fit(V)
    whole = model.transform(layout(V))
    order = np.random.default_rng(0).permutation(60)
    shuffled = model.transform(layout(V[order]))
    assert shuffled.tobytes() == np.ascontiguousarray(whole[order]).tobytes()
    pieces = [model.transform(layout(V[i : i + 7])) for i in range(0, 60, 7)]
    assert np.vstack(pieces).tobytes() == whole.tobytes()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rank", [1, 3, 20, 70])
def test_transform_is_optimal_for_every_row(layout, rank):
    H = oracles.factors(60, 40, rank)[1].T.copy()
    W, same, _ = non_negative_factorization(layout(V), H=H, update_H=False, n_components=rank)
    np.testing.assert_array_equal(same, H)
    for i in np.flatnonzero(V.sum(1) > 0)[:12]:
        z = W[i] @ H
        divergence = (z - V[i] * np.log(z, where=V[i] > 0, out=np.zeros_like(z))).sum()
        q = np.divide(V[i], z, out=np.zeros_like(z), where=V[i] > 0)
        G = (H @ q) / H.sum(1)
        assert G.max() - 1 <= 1.1e-6
        if rank <= 20:
            assert divergence <= oracles.best_item(V[i], H.T)[0] + 1e-5 * V[i].sum()


def test_components_are_untouched_by_transform():
    model = quick().fit(V)
    before = model.components_.tobytes()
    model.transform(oracles.counts(20, 40, seed=5))
    assert model.components_.tobytes() == before


def test_score_and_inverse_transform():
    model = quick().fit(V)
    W = model.transform(V)
    np.testing.assert_allclose(model.inverse_transform(W), W @ model.components_)
    expected = -oracles.divergence(V, W, model.components_.T) / V.sum()
    assert model.score(V) == pytest.approx(expected, rel=1e-9)
    better = KLNMF(8, random_state=0, tol=0, max_iter=100).fit(V)
    assert better.score(V) > model.score(V)


def test_frames_names_and_set_output():
    frame = pd.DataFrame(V, columns=[f"gene{j}" for j in range(40)])
    model = quick().set_output(transform="pandas").fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.transform(frame).columns) == ["klnmf0", "klnmf1", "klnmf2"]
    assert list(model.get_feature_names_out()) == ["klnmf0", "klnmf1", "klnmf2"]


def test_score_of_unknown_features_is_that_of_the_known_ones():
    training = V.copy()
    training[:, 7] = 0
    new = training.copy()
    new[:, 7] = 50
    model = quick().fit(training)
    with pytest.warns(UserWarning, match="No component has feature"):
        score = model.score(new)
    assert score == pytest.approx(model.score(training), rel=1e-9)


def test_frames_of_nullable_and_mixed_columns():
    frame = pd.DataFrame(
        {"a": pd.array([1, 2, 3], "Int64"), "b": [True, False, True], "c": [0.5, 1, 2]}
    )
    assert KLNMF(2, random_state=0, tol=0, max_iter=2).fit(frame).components_.shape == (2, 3)
    with pytest.raises(ValueError, match="`dtype` must be float32 or float64"):
        KLNMF(2, dtype="foo").fit(V)


def test_frames_as_the_default_output_change_no_inner_step():
    """`sklearn.set_config(transform_output="pandas")` is for the faces of estimators alone."""
    V = oracles.counts(30, 12, density=0.5)
    plain = non_negative_factorization(V, n_components=2, random_state=0)
    lp = LpPCA(2, kernel="rbf", random_state=0).fit(V)
    with config_context(transform_output="pandas"):
        W = non_negative_factorization(V, n_components=2, random_state=0)[0]
        assert isinstance(W, np.ndarray)
        np.testing.assert_array_equal(W, plain[0])
        frame = LpPCA(2, kernel="rbf", random_state=0).fit_transform(V)
        assert isinstance(frame, pd.DataFrame)
        np.testing.assert_allclose(frame, lp.transform(V), atol=1e-9)


def test_a_sparse_w_is_transformed_back():
    """As scikit-learn's NMF takes it."""
    model = KLNMF(2, random_state=0, tol=1e-2).fit(V)
    W = model.transform(V)
    np.testing.assert_allclose(model.inverse_transform(sp.csr_array(W)), W @ model.components_)
    with pytest.raises(ValueError, match=r"`X` must have shape \(samples, 2\), got \(2, 5\)"):
        model.inverse_transform(sp.csr_array((2, 5)))
