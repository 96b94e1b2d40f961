# SPDX-License-Identifier: BSD-3-Clause
"""LpPCA: scikit-learn's contract, kernel PCA at p = 2, robustness at p = 1."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.estimator_checks import parametrize_with_checks

from sipower import LpPCA

X = np.random.default_rng(0).normal(size=(80, 4)) * [4, 3, 2, 1] + [1, -2, 3, 0]
NEW = np.random.default_rng(1).normal(size=(15, 4)) * [4, 3, 2, 1]
KERNELS = ["linear", "rbf", "poly"]


@parametrize_with_checks([LpPCA(), LpPCA(p=2.0, kernel="rbf"), LpPCA(center=False)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def model(n_components=3, **options):
    return LpPCA(n_components, **{"random_state": 0, "gamma": 0.05, **options})


def same_up_to_sign(ours, theirs):
    return ours * np.sign((ours * theirs).sum(axis=0))


# ---- mathematics -------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_p_2_is_kernel_pca(kernel):
    theirs = KernelPCA(3, kernel=kernel, gamma=0.05).fit(X)
    ours = model(p=2.0, kernel=kernel).fit(X)
    scores = theirs.transform(NEW)
    size = np.abs(scores).max()
    np.testing.assert_allclose(
        same_up_to_sign(ours.transform(NEW), scores), scores, atol=1e-6 * size
    )
    np.testing.assert_allclose(ours.dispersion_, theirs.eigenvalues_ / (2 * len(X)), rtol=1e-9)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("p", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_transform_of_the_training_samples_is_fit_transform(kernel, p, center):
    estimator = model(p=p, kernel=kernel, center=center)
    scores = estimator.fit_transform(X)
    np.testing.assert_allclose(estimator.transform(X), scores, atol=1e-8 * np.abs(scores).max())
    np.testing.assert_allclose(
        (np.abs(scores) ** p).mean(axis=0) / p, estimator.dispersion_, rtol=1e-10
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_precomputed_and_callable_kernels_are_the_computed_one(kernel):
    options = {"gamma": 0.05} if kernel != "linear" else {}
    K = pairwise_kernels(X, metric=kernel, **options)
    expected = model(kernel=kernel)
    scores = expected.fit_transform(X)
    precomputed = model(kernel="precomputed")
    np.testing.assert_allclose(precomputed.fit_transform(K), scores, atol=1e-8)
    rows = pairwise_kernels(NEW, X, metric=kernel, **options)
    np.testing.assert_allclose(precomputed.transform(rows), expected.transform(NEW), atol=1e-8)


def test_callable_kernel_takes_its_parameters():
    def scaled(x, y, scale):
        return scale * (x @ y)

    ours = model(kernel=scaled, kernel_params={"scale": 4.0}).fit_transform(X)
    np.testing.assert_allclose(ours, 2 * model().fit_transform(X), atol=1e-8)


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_components_are_orthonormal(kernel, p):
    components = model(4, p=p, kernel=kernel).fit(X).components_
    np.testing.assert_allclose(components @ components.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_l1_direction_disperses_at_least_as_much_as_the_l2_one(seed):
    data = np.random.default_rng(seed).standard_t(3, size=(50, 5))
    second = LpPCA(1, p=2.0).fit_transform(data)
    first = LpPCA(1, p=1.0, random_state=seed).fit(data)
    assert first.dispersion_[0] >= np.abs(second).mean() * (1 - 1e-12)


@pytest.mark.parametrize("p", [1.0, 3.0])
def test_every_direction_is_stationary_among_those_left(p):
    """∇f − λx lies in the span of the directions before."""
    estimator = model(3, p=p).fit(X)
    A = estimator.fit_transform(X) @ estimator.components_  # features within the span found
    for k, x in enumerate(estimator.components_):
        u = A @ x
        g = np.sign(u) * np.abs(u) ** (p - 1) @ A / len(A)
        left = estimator.components_[k:]
        g = left.T @ (left @ g)
        np.testing.assert_allclose(g, (x @ g) * x, atol=1e-8 * np.linalg.norm(g))


def test_an_outlier_turns_l1_far_less_than_l2():
    data = np.random.default_rng(2).normal(size=(200, 2)) * [3, 0.5]
    with_outlier = np.vstack([data, [[0, 60.0]]])
    angles = {}
    for p in (1.0, 2.0):
        estimator = LpPCA(1, p=p, center=False, random_state=0).fit(with_outlier)
        direction = estimator.transform(np.eye(2))[:, 0]
        angles[p] = np.degrees(np.arctan2(abs(direction[1]), abs(direction[0])))
    assert angles[1.0] < 12
    assert angles[2.0] > 60


def test_no_run_is_worse_than_more_runs():
    values = [model(1, n_init=n).fit(X).dispersion_[0] for n in (1, 3, 10)]
    assert values == sorted(values)


def test_large_offsets_do_not_add_rank():
    """Rounding of the kernel is not taken for features."""
    offset = model(2, p=2.0).fit(X + 1e5)
    assert len(offset.pivots_) == 4
    plain = model(2, p=2.0).fit(X)
    np.testing.assert_allclose(offset.dispersion_, plain.dispersion_, rtol=1e-4)


def test_scaling_the_data_scales_the_scores():
    for scale in (1e-100, 1e100):
        ours = model(p=3.0).fit_transform(X * scale) / scale
        np.testing.assert_allclose(ours, model(p=3.0).fit_transform(X), rtol=1e-6, atol=1e-6)


# ---- scikit-learn's manners --------------------------------------------------------------------


def test_sparse_is_dense():
    sparse = model().fit(sp.csr_array(X))
    np.testing.assert_allclose(
        sparse.transform(sp.csr_array(NEW)), model().fit(X).transform(NEW), atol=1e-9
    )


def test_names_frames_pickle_and_clone():
    frame = pd.DataFrame(X, columns=list("abcd"))
    estimator = model().set_output(transform="pandas")
    out = estimator.fit_transform(frame)
    assert list(out.columns) == ["lppca0", "lppca1", "lppca2"]
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.transform(frame), estimator.transform(frame))
    assert clone(estimator).get_params() == estimator.get_params()


def test_same_seed_same_bits():
    one, two = (model().fit(X).components_ for _ in range(2))
    assert one.tobytes() == two.tobytes()


def test_later_changes_of_the_data_do_not_reach_the_model():
    data = X.copy()
    estimator = model(kernel="rbf").fit(data)
    before = estimator.transform(NEW)
    data[:] = 0
    np.testing.assert_array_equal(estimator.transform(NEW), before)
    K = pairwise_kernels(X)
    K_before = K.copy()
    model(kernel="precomputed").fit(K)
    np.testing.assert_array_equal(K, K_before)


def test_not_converged_warns():
    with pytest.warns(ConvergenceWarning, match="Not converged after 1 steps: a residual is"):
        model(p=3.0, max_iter=1).fit(X)


INDEFINITE = np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])
BAD = {
    "p": ({"p": 0.5}, X, "'p' parameter .* Got 0.5"),
    "infinite p": ({"p": np.inf}, X, "'p' parameter .* Got inf"),
    "NaN p": ({"p": np.nan}, X, "'p' parameter"),
    "large p": ({"p": 2000.0}, X * 1e3, "rescale X or choose a smaller p"),
    "rank": ({"n_components": 5}, X, "`n_components` must be at most 4, the rank .*, got 5"),
    "asymmetric": (
        {"kernel": "precomputed"},
        np.triu(np.ones((5, 5))),
        r"must be symmetric, but entries \(0, 1\) and \(1, 0\) differ",
    ),
    "not square": ({"kernel": "precomputed"}, X, r"must be square, got shape \(80, 4\)"),
    "indefinite": (
        {"kernel": "precomputed", "center": False},
        INDEFINITE,
        "must be positive semi-definite",
    ),
    "NaN": ({}, np.where(X.max() == X, np.nan, X), "NaN"),
    "zero": ({"center": False}, np.zeros((9, 3)), "differ from zero: X has no principal direction"),
    "zero centred": ({}, np.zeros((9, 3)), "differ from their mean: X has no principal direction"),
    "constant": ({}, np.full((9, 3), 0.1), "differ from their mean: X has no principal direction"),
    "kernel": ({"kernel": "laplace"}, X, "'kernel' parameter .* Got 'laplace'"),
    "kernel of NaN": (
        {"kernel": lambda x, y: np.nan},
        X,
        r"Entry \(0, 0\) of the kernel matrix `K` must be finite",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence(what):
    options, data, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        LpPCA(**options).fit(data)


def test_other_misuse():
    with pytest.raises(NotFittedError):
        LpPCA().transform(X)
    with pytest.raises(ValueError, match="features"):
        model().fit(X).transform(X[:, :2])


def test_a_large_offset_does_not_matter():
    X = np.random.default_rng(1).normal(size=(60, 4)) * [4, 3, 2, 1]
    near, far = LpPCA(random_state=0).fit(X), LpPCA(random_state=0).fit(X + 1e8)
    np.testing.assert_allclose(far.dispersion_, near.dispersion_, rtol=1e-6)
    new = np.random.default_rng(2).normal(size=(5, 4))
    np.testing.assert_allclose(far.transform(new + 1e8), near.transform(new), atol=1e-6)
