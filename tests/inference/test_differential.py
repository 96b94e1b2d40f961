# SPDX-License-Identifier: BSD-3-Clause
"""`differential`: coverage on simulated topics, contrasts, the check, and refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sipower import KLNMF, differential
from sipower.inference.fold_changes import CONTRASTS

SAMPLES, FEATURES, RANK = 300, 200, 4


def topics(seed, length=600.0):
    """Return counts, weights in counts and profiles (K, m)."""
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(FEATURES, 0.3), RANK)
    sizes = rng.lognormal(np.log(length), 0.4, (SAMPLES, 1))
    W = sizes * rng.dirichlet(np.full(RANK, 0.3), SAMPLES)
    return sparse.csr_array(rng.poisson(W @ H)), W, H


V, W, H = topics(0)
MODEL = KLNMF(RANK, random_state=0).fit(V)


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_intervals_cover_the_true_changes(contrast):
    """With the true W; entries with at least 20 expected counts on both sides."""
    covered, wrong = [], []
    for seed in range(3):
        V, W, H = topics(seed)
        result = differential(V, W, contrast=contrast, check=False)
        truth, enough = true_changes(result, W, H)
        inside = (result.lower <= truth) & (truth <= result.upper)
        covered.append(inside[enough])
        hits = (result.lfsr <= 0.05) & enough
        wrong.append((np.sign(result.posterior_mean) != np.sign(truth))[hits])
    assert 0.93 <= np.concatenate(covered).mean() <= 0.97
    assert np.concatenate(wrong).mean() <= 0.05


def true_changes(result, W, H):
    counts = W.sum(axis=0)[:, None] * H
    average = counts.sum(axis=0) / counts.sum()
    rows, enough = [], []
    for (k, _), against in zip(result.pairs, result.against, strict=True):
        j = np.arange(FEATURES)
        other = np.where(against < 0, average, H[against, j])
        rows.append(np.log2(np.maximum(H[k], 1e-300) / np.maximum(other, 1e-300)))
        enough.append((counts[k] >= 20) & ((against < 0) | (counts[against, j] >= 20)))
    return np.array(rows), np.array(enough)


def test_a_fitted_model_agrees_with_its_weights():
    from_model = differential(V, MODEL, check=False)
    from_weights = differential(V, MODEL.transform(V), check=False)
    np.testing.assert_allclose(from_model.lfsr, from_weights.lfsr, atol=1e-6)
    np.testing.assert_allclose(from_model.profiles.sum(axis=1), 1)


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_the_scale_of_the_weights_does_not_matter(contrast):
    scaled = W * np.array([0.01, 1.0, 7.0, 300.0])
    one, other = (differential(V, w, contrast=contrast, check=False) for w in (W, scaled))
    difference = (other.log2_fold_change - one.log2_fold_change) / one.standard_error
    assert np.abs(difference).max() < 1e-3
    np.testing.assert_allclose(other.lfsr, one.lfsr, atol=1e-3)


def test_contrasts_agree_with_each_other():
    pairwise = differential(V, W, contrast="pairwise", check=False)
    least = differential(V, W, contrast="least extreme", check=False)
    null = differential(V, W, contrast="null", check=False)
    assert pairwise.lfsr.shape == (RANK * (RANK - 1) // 2, FEATURES)
    change = np.zeros((RANK, RANK, FEATURES))
    for (k, other), row in zip(pairwise.pairs, pairwise.log2_fold_change, strict=True):
        change[k, other], change[other, k] = row, -row
    size = np.where(np.eye(RANK, dtype=bool)[:, :, None], np.inf, np.abs(change))
    np.testing.assert_allclose(np.abs(least.log2_fold_change), size.min(axis=1), rtol=1e-9)
    difference = null.log2_fold_change[0] - null.log2_fold_change[1]
    np.testing.assert_allclose(difference, change[0, 1], atol=1e-9)


def test_a_distinctive_feature_is_larger_than_in_every_other_component():
    result = differential(V, W, check=False)
    for k in range(RANK):
        top = result.top(k)
        assert len(top) > 3
        others = np.delete(result.profiles, k, axis=0)
        assert (result.profiles[k, top] > others[:, top].max(axis=0)).all()


def noise(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(np.log(200), 0.5, (SAMPLES, 1))
    return sparse.csr_array(rng.poisson(sizes * rng.dirichlet(np.full(FEATURES, 0.5))))


@pytest.mark.parametrize("seed", range(3))
def test_components_of_pure_noise_are_reported(seed):
    data = noise(seed)
    model = KLNMF(RANK, random_state=seed).fit(data)
    with pytest.warns(UserWarning, match="The components fit noise"):
        result = differential(data, model, contrast="null", random_state=seed)
    assert not result.replication.is_supported
    assert result.replication.agreement < 0.65
    assert (result.lfsr <= 0.05).any()


@pytest.mark.parametrize("seed", range(3))
def test_components_of_topics_appear_again(seed):
    data, _, _ = topics(seed, length=200)
    model = KLNMF(RANK, random_state=seed).fit(data)
    result = differential(data, model, random_state=seed)
    assert result.replication.is_supported
    assert result.replication.agreement > 0.9
    assert (result.replication.similarity > 0.9).all()
    assert "have the same sign in the other half" in repr(result)


def test_the_same_seed_gives_the_same_bits():
    one, two = (differential(V, MODEL, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.lfsr, two.lfsr)
    assert one.replication.agreement == two.replication.agreement


def test_size_factors_batches_and_masks_are_those_of_the_model():
    sizes = np.random.default_rng(2).uniform(0.5, 2, SAMPLES)
    scaled = differential(V, W / sizes[:, None], offsets=sizes)
    assert scaled.replication.is_supported
    plain = differential(V, W, check=False)
    np.testing.assert_allclose(scaled.log2_fold_change, plain.log2_fold_change, atol=1e-6)
    panel = np.arange(FEATURES) % 2 == 0
    masked = differential(V, W, mask=np.broadcast_to(panel, V.shape), check=False)
    part = differential(V[:, panel], W, check=False)
    np.testing.assert_allclose(masked.z[:, panel], part.z, rtol=0.05, atol=0.2)
    lab = np.arange(SAMPLES) % 2
    effect = np.where(np.arange(FEATURES) < 40, 3.0, 1.0)
    data = np.random.default_rng(3).poisson(np.where(lab[:, None] == 1, effect, 1.0) * (W @ H))
    model = KLNMF(RANK, random_state=0).fit(data, batch=lab)
    result = differential(data, model, batch=lab)
    assert np.isfinite(result.posterior_mean).all()
    assert result.replication.is_supported


def test_names_labels_and_the_table():
    names = [f"gene{j}" for j in range(FEATURES)]
    frame = pd.DataFrame(V.toarray(), columns=names)
    guides = {"first": [names[j] for j in np.argsort(-H[0])[:4]]}
    model = KLNMF(RANK, guides=guides, random_state=0).fit(frame)
    result = differential(frame, model)
    assert result.replication.is_supported
    table = result.to_frame()
    assert set(table["contrast"]) == {"first", "component 2", "component 3", "component 4"}
    assert list(table["feature"][:FEATURES]) == names
    pairs = differential(frame, model, contrast="pairwise", check=False)
    assert pairs.label(0) == "first vs component 2"
    own = differential(V, W, check=False, component_names="ABCD")
    assert own.label(3) == "D"
    assert set(own.to_frame()["against"]) <= set("ABCD")


def test_empty_components_and_features_are_finite():
    data = sparse.lil_array(V.copy())
    data[:, 7] = 0
    extended = np.column_stack([W, np.zeros(SAMPLES), W[:, 0]])
    result = differential(data.tocsr(), extended, check=False)
    for measure in (result.log2_fold_change, result.standard_error, result.lower, result.upper):
        assert np.isfinite(measure).all()
    assert (result.lfsr[4] > 0.05).all()
    assert (result.lfsr[:, 7] > 0.05).all()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((V, W[:-1]), {}, "`model` must have one row of weights for each of the 300 samples"),
        ((V, -W), {}, "weights must be finite, non-negative and not all zero"),
        ((V, W[:, :1]), {}, "at least two components"),
        ((V, W), {"contrast": "all"}, "`contrast` must be one of least extreme, null, pairwise"),
        ((V, W), {"prior": 0}, "`prior` must be positive, got 0"),
        ((V, W), {"level": 95}, "`level` must be between 0 and 1, got 95"),
        ((V, W), {"component_names": ["a"]}, "one name for each of the 4 components, got 1"),
        ((V, W), {"batch": np.zeros(SAMPLES)}, "`batch` needs the batch effects of a fitted"),
    ],
)
def test_bad_arguments_get_one_sentence(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        differential(*arguments, **options, check=False)


def test_data_that_are_no_counts_are_not_checked():
    result = differential(V * 0.37, W)
    assert result.replication.is_supported is None
    assert str(result.replication) == "Not checked on independent counts: the data are no counts."


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_features_of_one_component_alone_are_found(contrast):
    """Zeros in the other components must not hide a marker behind a wide interval."""
    profiles = H.copy()
    markers = np.arange(8)
    profiles[:, markers] = 0
    profiles[markers % RANK, markers] = 300 / W.sum(axis=0)[markers % RANK]
    data = sparse.csr_array(np.random.default_rng(4).poisson(W @ profiles))
    result = differential(data, W, contrast=contrast, check=False)
    for j in markers:
        rows = (result.pairs == j % RANK).any(axis=1)
        assert (result.lfsr[rows, j] <= 0.05).all()
