# SPDX-License-Identifier: BSD-3-Clause
"""Prior counts, guides and forbidden entries on data that leave components without counts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import kl_div

from sipower import KLNMF, differential
from sipower.nmf.batch_effects import _with_mean_one

RNG = np.random.default_rng(0)
V = RNG.poisson(RNG.gamma(0.5, 2, (30, 3)) @ RNG.gamma(0.5, 2, (3, 12))) * 1.0
SOLVERS = ["auto", "ccd", "mu", "newton"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("parameters", [{"prior_H": 0.1}, {"prior_W": 1.0, "prior_H": 0.1}])
@pytest.mark.parametrize("start", [{}, {"W": np.ones((4, 2)), "H": np.ones((2, 5))}])
def test_data_that_are_all_zero_have_factors_that_are_zero(solver, parameters, start):
    init = "custom" if start else "auto"
    model = KLNMF(2, solver=solver, init=init, random_state=0, **parameters)
    with pytest.warns(UserWarning, match="The data are all zero: W and H are zero"):
        W = model.fit_transform(np.zeros((4, 5)), **start)
    assert not W.any()
    assert not (W @ model.components_).any()
    assert model.kl_divergence_ == 0


@pytest.mark.parametrize("parameters", [{"prior_H": 0.1}, {"prior_W": 0.1}])
@pytest.mark.parametrize("init", ["auto", "random", "nndsvda", "custom"])
def test_components_that_no_count_needs_keep_their_profiles(parameters, init):
    """A component that was zero once made the divergence NaN, or ended the fit."""
    data = np.diag([1.0, 5, 8, 20, 300])
    rank = 5 if init == "nndsvda" else 11
    start = {"W": np.ones((5, rank)), "H": np.ones((rank, 5))} if init == "custom" else {}
    if start:
        start["H"][3] = 0
    model = KLNMF(rank, init=init, random_state=0, max_iter=500, **parameters)
    W = model.fit_transform(data, **start)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-9)
    assert model.kl_divergence_ == pytest.approx(kl_div(data, W @ model.components_).sum())
    assert np.isfinite(model.trace_[-1].objective)


@pytest.mark.parametrize("solver", ["auto", "ccd"])
def test_forbidden_entries_stay_zero_where_guided_components_change_places(solver):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        zero = rng.random((6, 12)) < 0.3
        zero[:, zero.all(axis=0)] = False
        guides = {"first": [int(rng.integers(12))], "second": [int(rng.integers(12))]}
        model = KLNMF(6, components_zero=zero, guides=guides, random_state=seed, solver=solver)
        W = model.fit_transform(V)
        assert not model.components_[zero].any()
        assert model.kl_divergence_ == pytest.approx(kl_div(V, W @ model.components_).sum())


def test_a_component_with_prior_counts_and_without_features_is_refused():
    zero = np.zeros((3, 12), bool)
    zero[1] = True
    with pytest.raises(ValueError, match=r"False for some feature of component 1, which has prior"):
        KLNMF(3, components_zero=zero, prior_W=0.1).fit(V)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KLNMF(3, components_zero=zero, random_state=0).fit(V)
    assert not model.components_[1].any()


def test_guides_find_the_columns_of_a_frame_without_names():
    guides = {"first": [0, 3], "second": {7: 1.0}}
    model = KLNMF(3, guides=guides, random_state=0).fit(V)
    framed = KLNMF(3, guides=guides, random_state=0).fit(pd.DataFrame(V))
    assert framed.components_.tobytes() == model.components_.tobytes()


@pytest.mark.parametrize("solver", ["ccd", "newton", "scd"])
def test_a_component_whose_features_have_no_counts_keeps_its_profile(solver):
    zero = np.zeros((2, 3), bool)
    zero[0, :2] = True  # all that the first component may have is a feature without counts
    data = np.array([[4.0, 7.0, 0.0], [1.0, 2.0, 0.0]])
    model = KLNMF(2, solver=solver, components_zero=zero, prior_W=0.1, random_state=0, max_iter=50)
    W = model.fit_transform(data)
    np.testing.assert_allclose(model.components_[0], [0, 0, 1], rtol=1e-12)
    assert model.kl_divergence_ == pytest.approx(kl_div(data, W @ model.components_).sum())


def test_differences_of_data_that_are_all_zero_are_refused():
    with pytest.warns(UserWarning, match="all zero"):
        model = KLNMF(2, random_state=0).fit(np.zeros((4, 5)))
    with pytest.raises(ValueError, match="`V` must have counts"):
        differential(np.zeros((4, 5)), model)


def test_batch_effects_of_a_feature_that_one_batch_lacks_are_finite():
    """Their denominators once cancelled to zero beside 1e15 expected counts."""
    counts = np.array([[10.0, 10.0], [1e15, 30.0], [1e15, 20.0]])
    expected = np.array([[1e15, 10.0], [1e15 / 3, 10.0], [1e14, 40.0]])
    effects = _with_mean_one(counts, expected)
    assert np.isfinite(effects).all()
    np.testing.assert_allclose(effects.mean(axis=0), 1, rtol=1e-9)
    multipliers = counts[:, 1] / effects[:, 1] - expected[:, 1]
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-9)
