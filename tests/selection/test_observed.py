# SPDX-License-Identifier: BSD-3-Clause
"""Weights, masks and batches in rank selection and consensus."""

import numpy as np
import pytest

from sipower import KLNMF, bootstrap, consensus, differential, rank_selection
from sipower.data.validate import as_matrix
from sipower.datasets import poisson_topics
from sipower.estimators.dispersion import estimate_dispersion
from sipower.selection import edit_components

V = poisson_topics(60, 40, 3, seed=0).toarray() * 1.0
FEATURES = np.arange(40) < 20


def test_masked_features_do_not_change_the_recommended_rank():
    for given in ({"mask": FEATURES}, {"feature_weight": FEATURES * 1.0}):
        found = rank_selection(V, range(1, 5), replicates=3, **given)
        assert found.best == 3
        assert found.dispersion == 0


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_the_dispersion_of_masked_counts_is_that_of_all(share):
    rng = np.random.default_rng(0)
    mean = rng.gamma(0.5, 4, (200, 3)) @ rng.gamma(0.5, 1, (3, 80))
    counts = rng.poisson(mean * rng.gamma(1 / 0.3, 0.3, mean.shape)) * 1.0
    mask = rng.random(counts.shape) >= share
    model = KLNMF(3, random_state=0)
    estimate = estimate_dispersion(model, as_matrix(counts), {"mask": mask} if share else {})
    mean_dispersion = np.average(estimate, weights=counts.sum(axis=0))
    assert mean_dispersion == pytest.approx(0.3, abs=0.08)


def test_batches_do_not_count_as_components():
    rng = np.random.default_rng(0)
    H, W = rng.dirichlet(np.ones(100), 3), 300 * rng.dirichlet(np.full(3, 0.3), 200)
    effect = np.where(rng.random(100) < 1 / 3, rng.choice([-1.0, 1.0], 100), 0)
    batch = rng.integers(0, 2, 200)
    counts = rng.poisson(W @ H * np.exp(np.stack([effect, -effect])[batch])) * 1.0
    assert rank_selection(counts, range(1, 8), replicates=2, batch=batch).best == 3
    assert rank_selection(counts, range(1, 8), replicates=2).best > 3


def test_inner_fits_are_not_checked_for_confounded_batches(monkeypatch):
    """Each of them took time for the check, and those with too many components warned."""
    batch, checks = np.arange(60) % 2, []
    monkeypatch.setattr(
        "sipower.estimators.remarks.find_confounding", lambda *_: checks.append(1) or []
    )
    model = KLNMF(3, random_state=0).fit(V, batch=batch)
    assert len(checks) == 1
    rank_selection(V, [2, 3], replicates=2, batch=batch)
    outcome = consensus(V, KLNMF(3, random_state=0), replicates=2, batch=batch)
    bootstrap(V, model, 2, batch=batch)
    differential(V, model, batch=batch)
    edit_components(V, model, merge=[(0, 1)], batch=batch)
    assert outcome.batch_effects is not None
    assert len(checks) == 1


def test_missing_values_are_not_observed():
    mask = np.random.default_rng(1).random(V.shape) > 0.1
    holes, model = np.where(mask, V, np.nan), KLNMF(3, missing="nan", random_state=0)
    one = consensus(holes, model, replicates=2)
    two = consensus(V, KLNMF(3, random_state=0), replicates=2, mask=mask)
    np.testing.assert_array_equal(one.H, two.H)
    assert rank_selection(holes, [2, 3], model, replicates=2).best == 3


def test_a_saved_task_of_other_weights_is_refused(tmp_path):
    options = {"replicates": 2, "folder": tmp_path / "fits"}
    consensus(V, KLNMF(2, random_state=0), sample_weight=np.ones(60), **options)
    with pytest.raises(ValueError, match="fits of another task"):
        consensus(V, KLNMF(2, random_state=0), sample_weight=np.full(60, 2.0), **options)


def test_bad_arguments_get_one_sentence():
    with pytest.raises(TypeError, match=r"`bacht` is not an argument of KLNMF\.fit"):
        consensus(V, KLNMF(2), bacht=np.ones(60))
    with pytest.raises(ValueError, match="The data are not counts, so `batch` cannot be used"):
        rank_selection(V + 0.5, [1, 2], batch=np.arange(60) % 2)
