# SPDX-License-Identifier: BSD-3-Clause
"""`compare`: cosines, the optimal matching, mixtures, new components and names."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linear_sum_assignment

from sipower import KLNMF, compare
from sipower.results import Run

KINDS = [f"kind{j}" for j in range(96)]
KNOWN = np.random.default_rng(0).dirichlet(np.full(96, 0.2), 12)
CATALOGUE = pd.DataFrame(KNOWN, [f"SBS{k}" for k in range(1, 13)], KINDS)
NEW = np.random.default_rng(1).dirichlet(np.full(96, 0.2), 2)


def noisy(profile, seed=0):
    return np.random.default_rng(seed).poisson(5000 * profile) / 5000


def test_components_are_named_by_the_catalogue():
    mixture = 0.4 * KNOWN[0] + 0.35 * KNOWN[6] + 0.25 * KNOWN[9]
    H = np.stack([noisy(KNOWN[4]), NEW[0], noisy(mixture), KNOWN[2], NEW[1]])
    result = compare(pd.DataFrame(H, columns=KINDS), CATALOGUE)
    assert result.names == ("SBS5", "new 1", "SBS1 + SBS7 + SBS10", "SBS3", "new 2")
    np.testing.assert_array_equal(result.is_new, [False, True, False, False, True])
    shares = list(result.mixtures[2].values())
    np.testing.assert_allclose(shares, [0.4, 0.35, 0.25], atol=0.03)
    assert result.mixture_cosines[2] > 0.98
    frame = result.to_frame()
    assert frame.loc["component 3", "mixture"].startswith("40% SBS1 + ")
    assert frame.loc["component 1", "partner"] == "SBS5"
    assert "component 2: new 1 (best SBS" in repr(result)


def test_cosines_and_matching_are_those_of_scipy():
    H = np.random.default_rng(2).dirichlet(np.ones(96), 5)
    result = compare(H, KNOWN, threshold=0.01)
    norms = np.linalg.norm(H, axis=1)[:, None] * np.linalg.norm(KNOWN, axis=1)
    np.testing.assert_allclose(result.cosines, H @ KNOWN.T / norms)
    rows, columns = linear_sum_assignment(-result.cosines)
    np.testing.assert_array_equal(result.partners[rows], columns)
    np.testing.assert_array_equal(result.best, result.cosines.argmax(axis=1))


def test_two_components_may_resemble_one_entry():
    H = pd.DataFrame([KNOWN[3], noisy(KNOWN[3]), noisy(KNOWN[3], 1)], columns=KINDS)
    result = compare(H, CATALOGUE)
    assert result.names == ("SBS4", "SBS4 (2)", "SBS4 (3)")
    assert not result.is_new.any()
    more = compare(CATALOGUE.iloc[[0, 0, 0]].set_axis(list("abc")), CATALOGUE.iloc[:1])
    assert list(more.to_frame()["partner"]) == ["SBS1", "", ""]
    assert list(more.partner_cosines) == [pytest.approx(1), 0, 0]


def test_features_are_matched_by_name():
    H = CATALOGUE.iloc[[3, 1], ::-1]
    assert compare(H, CATALOGUE).names == ("SBS4", "SBS2")
    with pytest.warns(UserWarning, match="`catalogue` has 6 features of its 96 that the other"):
        assert compare(H.iloc[:, 6:], CATALOGUE).names == ("SBS4", "SBS2")
    with pytest.warns(UserWarning, match="`H` has 6 features of its 96"):
        compare(H, CATALOGUE.iloc[:, 6:])


def test_a_model_and_its_run_have_the_same_components():
    rng = np.random.default_rng(0)
    V = pd.DataFrame(rng.poisson(rng.gamma(0.5, 2000, (60, 3)) @ KNOWN[:3]), columns=KINDS)
    model = KLNMF(3, random_state=0, tol=1e-4).fit(V)
    run = Run.from_model(model, model.transform(V))
    by_model, by_run = compare(model, CATALOGUE), compare(run, CATALOGUE)
    assert sorted(by_model.names) == ["SBS1", "SBS2", "SBS3"]
    assert [by_model.names[k] for k in run.order] == list(by_run.names)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`threshold` must be above 0 and at most 1, got 2"):
        compare(KNOWN, KNOWN, threshold=2)
    with pytest.raises(ValueError, match="`catalogue` must have the 96 features of `H`, got 12"):
        compare(KNOWN, KNOWN.T)
