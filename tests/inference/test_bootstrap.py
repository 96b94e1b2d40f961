# SPDX-License-Identifier: BSD-3-Clause
"""`bootstrap`: same bits however it runs, right intervals on simulated data, refusals."""

import signal

import numpy as np
import pytest
from scipy import sparse

from sipower import KLNMF, bootstrap, io, standard_errors
from sipower.data.validate import as_matrix
from sipower.datasets import poisson_topics
from sipower.inference import intervals
from sipower.inference.resampled_fits import draw_counts
from sipower.kernels import Draw
from sipower.kernels.random import Stream
from sipower.selection import match

V = poisson_topics(60, 40, 3, length=100, seed=0)


def fitted(data=V, K=3, **parameters):
    settings = {"random_state": 0, "tol": 1e-4, "n_jobs": 1} | parameters
    return KLNMF(K, **settings).fit(data)


def assert_same_bits(one, other):
    pairs = zip(
        (*one.W, *one.H, one.cosines, one.divergences, one.gaps),
        (*other.W, *other.H, other.cosines, other.divergences, other.gaps),
        strict=True,
    )
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)
    assert one.statuses == other.statuses


# ---- the counts ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_counts_are_poisson_with_the_data_as_means(dtype):
    data = np.tile(np.array([[0, 1, 3, 40]], dtype), (5000, 1))
    drawn = draw_counts(as_matrix(data), Draw(0, Stream.BOOTSTRAP, 3)).array
    assert not drawn[:, 0].any()
    np.testing.assert_allclose(drawn.mean(axis=0)[1:], [1, 3, 40], rtol=0.05)
    np.testing.assert_allclose(drawn.var(axis=0)[1:], [1, 3, 40], rtol=0.1)
    again = draw_counts(as_matrix(sparse.csr_array(data)), Draw(0, Stream.BOOTSTRAP, 3)).array
    np.testing.assert_array_equal(again.toarray(), drawn)  # zeros cost no random numbers
    assert (again.data > 0).all()
    other = draw_counts(as_matrix(data), Draw(0, Stream.BOOTSTRAP, 4)).array
    assert (other != drawn).any()


# ---- same bits -------------------------------------------------------------------------------


def test_threads_and_parts_change_no_bit(monkeypatch):
    model = fitted()
    one = bootstrap(V, model, 6, n_jobs=1)
    monkeypatch.setattr(intervals, "NUMBERS_PER_PART", 20)  # six samples at a time
    assert_same_bits(bootstrap(V, model, 6, n_jobs=3), one)
    other = bootstrap(V, model, 6, random_state=1)
    assert (other.H.lower != one.H.lower).any()


@pytest.mark.parametrize("by", ["callback", "signal"])
def test_an_interrupted_bootstrap_is_resumed_to_the_same_bits(tmp_path, by):
    after = int(np.random.default_rng().integers(1, 8))
    model, finished = fitted(n_jobs=2), []
    whole = bootstrap(V, model, 8)

    def interrupt(done, total):
        if done == after and by == "signal":  # Ctrl-C
            signal.raise_signal(signal.SIGINT)
        elif done == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bootstrap(V, model, 8, folder=tmp_path, on_replicate=interrupt)
    files = {file: file.read_bytes() for file in tmp_path.glob("replicate-*.npz")}
    assert after <= len(files) <= 8  # fits that ran were finished
    again = bootstrap(V, model, 8, folder=tmp_path, on_replicate=lambda *n: finished.append(n))
    assert_same_bits(again, whole)
    assert finished == [(done, 8) for done in range(1, 9)]
    assert all(file.read_bytes() == content for file, content in files.items())
    more = bootstrap(V, model, 10, folder=tmp_path)  # replicates can be added
    np.testing.assert_array_equal(more.cosines[:8], whole.cosines)
    assert_same_bits(more, bootstrap(V, model, 10))


def test_a_damaged_replicate_is_fitted_again(tmp_path):
    model = fitted()
    whole = bootstrap(V, model, 3, folder=tmp_path)
    piece = tmp_path / "replicate-001.npz"
    piece.write_bytes(piece.read_bytes()[:-100])
    assert_same_bits(bootstrap(V, model, 3, folder=tmp_path), whole)


# ---- what the intervals mean -----------------------------------------------------------------


def topics(length=1000.0, alpha=0.5, seed=5):
    """Return counts, weights in counts and profiles of a topic model."""
    n, m, K, rng = 300, 60, 3, np.random.default_rng(seed)
    W = length * rng.dirichlet(np.full(K, alpha), n)
    H = rng.dirichlet(np.full(m, 0.3), K)
    return rng.poisson(W @ H).astype(float), W, H


def test_intervals_cover_the_truth():
    """Of the profiles and weights with at least 10 counts; the nominal level is 95 %.

    The mean over 12 data sets was 0.932 for H, and 0.87 to 0.98 for single ones.
    """
    covered = {"W": [], "H": []}
    for seed in (0, 5):
        data, W, H = topics(seed=seed)
        model = fitted(data, tol=1e-6)
        result = bootstrap(data, model, 40, n_jobs=2)
        order = match(model.components_, H)[0]
        W, H = W[:, order], H[order]
        truths = (W, W), (H, H * W.sum(axis=0)[:, None])
        for name, (truth, counts) in zip("WH", truths, strict=True):
            interval = getattr(result, name)
            is_covered = (interval.lower <= truth) & (truth <= interval.upper)
            covered[name].append(is_covered[counts >= 10].mean())
            assert (interval.lower <= interval.upper).all()
    for shares in covered.values():
        assert 0.88 < np.mean(shares) < 0.98


def test_deviations_are_those_of_new_data():
    data, W, H = topics()
    model = fitted(data, tol=1e-6)
    result = bootstrap(data, model, 40, n_jobs=2)
    rng, profiles = np.random.default_rng(1), []
    start = model.transform(data) + 1e-3, model.components_ + 1e-4
    for _ in range(40):
        other = KLNMF(3, init="custom", tol=1e-5, random_state=0)
        other.fit(rng.poisson(W @ H), W=start[0], H=start[1])
        profiles.append(other.components_ / other.components_.sum(axis=1, keepdims=True))
    expected = np.std(profiles, axis=0, ddof=1)
    ratio = np.sqrt((result.H.sd**2).sum(axis=1) / (expected**2).sum(axis=1))
    np.testing.assert_allclose(ratio, 1, atol=0.2)


def test_errors_of_weights_are_part_of_their_deviations():
    """Where H is known well, the standard errors of the weights agree with the bootstrap."""
    data, _, _ = topics()
    model = fitted(data, tol=1e-6)
    result = bootstrap(data, model, 40, n_jobs=2)
    errors = standard_errors(data, model) * model.components_.sum(axis=1)
    is_free = result.W.value > 50
    ratio = np.sqrt((result.W.sd[is_free] ** 2).mean() / (errors[is_free] ** 2).mean())
    assert 0.95 < ratio < 1.15


def test_stability_is_low_for_spurious_components():
    rng = np.random.default_rng(0)
    data = rng.poisson(0.5, (80, 60))
    data[:30, :20] += rng.poisson(20, (30, 20))
    data[30:60, 20:40] += rng.poisson(20, (30, 20))
    with pytest.warns(UserWarning, match=r"klnmf\d of `model` became others .* do not hold"):
        result = bootstrap(data, fitted(data, K=4, tol=1e-5), 20, n_jobs=2)
    is_real = result.W.value.sum(axis=0) > 0.1 * data.sum()
    assert is_real.sum() == 2
    assert result.stability[is_real].min() > 0.99
    assert result.low_stability[is_real].min() > 0.99
    assert result.stability[~is_real].max() < 0.9
    assert result.low_stability[~is_real].max() < 0.8


def test_a_model_far_from_its_minimum_is_reported():
    data, _, _ = topics(length=30_000.0, alpha=1.0)
    with pytest.warns(UserWarning, match=r"`model` is not close enough .* Fit it with tol="):
        result = bootstrap(data, fitted(data, tol=1e-3), 5)
    assert (result.H.sd > 0).mean() > 0.9  # the tolerance of the model would end fits at once


# ---- models and layouts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "mu", "max_iter": 2000},
        {"dtype": np.float32},
        {"prior_W": 0.1, "prior_H": 0.1},
        {"alpha_W": 1e-3, "alpha_H": 1e-3},
        {"components_zero": np.eye(3, 40) > 0},
        {"components_fixed": np.ones((1, 40)) / 40},
    ],
    ids=lambda parameters: next(iter(parameters)),
)
def test_models_of_every_kind(parameters):
    model = fitted(**parameters)
    result = bootstrap(V, model, 4)
    assert result.n == 4
    assert result.n_converged >= 3
    assert result.W.value.shape == (60, 3)
    assert result.W.value.dtype == result.H.upper.dtype == model.components_.dtype
    np.testing.assert_allclose(result.H.value.sum(axis=1), 1, rtol=1e-5)
    if "components_fixed" in parameters:
        assert not result.H.sd[0].any()
        np.testing.assert_allclose(result.cosines[:, 0], 1)
    if "components_zero" in parameters:
        assert not result.H.upper[np.eye(3, 40) > 0].any()


def test_how_the_data_were_observed_is_that_of_the_model():
    rng = np.random.default_rng(0)
    data = V.toarray().astype(float)
    observed = {"offsets": rng.gamma(5.0, 0.2, 60), "sample_weight": rng.gamma(5.0, 0.2, 60)}
    observed["batch"] = np.repeat(["a", "b"], 30)
    observed["mask"] = rng.random(V.shape) > 0.1
    model = KLNMF(3, random_state=0, n_jobs=1).fit(data, **observed)
    result = bootstrap(data, model, 3, **observed)
    data[~observed["mask"]] = -1  # values that were not observed may be anything
    assert_same_bits(bootstrap(data, model, 3, **observed), result)
    missing = np.where(observed.pop("mask"), data, np.nan)
    model = KLNMF(3, random_state=0, missing="nan").fit(missing, **observed)
    assert np.isfinite(bootstrap(missing, model, 3, **observed).W.upper).all()


def test_empty_samples_and_features_stay_empty():
    data = V.toarray()
    data[3], data[:, 5] = 0, 0
    result = bootstrap(data, fitted(data), 3)
    assert not result.W.upper[3].any()
    assert not result.H.upper[:, 5].any()


def test_frames_have_the_names_of_the_data():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        V.toarray(), [f"s{i}" for i in range(60)], [f"f{j}" for j in range(40)]
    )  # fmt: skip
    model = fitted(table).set_output(transform="pandas")
    result = bootstrap(table, model, 3)
    frames = result.to_frames()
    assert frames["W"].columns.tolist() == ["sample", "component", "value", "lower", "upper", "sd"]
    assert frames["W"].loc[4, ["sample", "component"]].tolist() == ["s1", "klnmf1"]
    assert frames["W"].loc[4, "upper"] == result.W.upper[1, 1]
    assert frames["H"].loc[41, ["component", "feature"]].tolist() == ["klnmf1", "f1"]
    assert frames["H"].loc[41, "lower"] == result.H.lower[1, 1]
    assert frames["stability"]["mean"].tolist() == result.stability.tolist()
    assert bootstrap(V, fitted(), 2).to_frames()["W"]["sample"].tolist()[:4] == [0, 0, 0, 1]


def test_what_is_printed():
    result = bootstrap(V, fitted(), 3, level=0.9)
    assert repr(result).startswith(
        "Bootstrap(n=3, level=0.9, 60 samples, 40 features, 3 components, stability 0.9"
    )
    lines = result.summary().splitlines()
    assert lines[0] == "3 replicates (3 converged), 90 % intervals"
    assert len(lines) == 5


# ---- refusals --------------------------------------------------------------------------------


def test_a_folder_of_another_task_is_refused(tmp_path):
    model = fitted()
    bootstrap(V, model, 2, folder=tmp_path)
    other = V.copy()
    other.data[0] += 1
    for data, some, seed in ((other, model, 0), (V, fitted(tol=1e-3), 0), (V, model, 1)):
        with pytest.raises(ValueError, match=f"{tmp_path} holds fits of another task"):
            bootstrap(data, some, 2, folder=tmp_path, random_state=seed)
    with pytest.raises(ValueError, match="`random_state` must be an integer if `folder` is given"):
        bootstrap(V, model, 2, folder=tmp_path, random_state=None)


def test_wrong_arguments_are_refused(tmp_path):
    model = fitted()
    with pytest.raises(ValueError, match="`n` must be an integer of at least 2, got 1"):
        bootstrap(V, model, 1)
    with pytest.raises(ValueError, match="`level` must be a number between 0 and 1, got 95"):
        bootstrap(V, model, level=95)
    with pytest.raises(TypeError, match="`weight` is not an argument"):
        bootstrap(V, model, weight=1)
    with pytest.raises(ValueError, match="The data are all zero"):
        bootstrap(0 * V, model)
    with pytest.raises(ValueError, match="The data must be at most 2\\^62"):
        bootstrap(V * 1e19, model)
    with pytest.raises(ValueError, match="not fitted"):
        bootstrap(V, KLNMF(3))
    io.write_store(V, tmp_path / "store")
    with pytest.raises(ValueError, match="The data must be in memory"):
        bootstrap(io.open_store(tmp_path / "store"), model)
