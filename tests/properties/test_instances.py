# SPDX-License-Identifier: BSD-3-Clause
"""The other problems and estimators over generated data: values as they are, points feasible."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from properties.generated import Fits, generated
from properties.matrices import copy_contents, is_unchanged, recipes, seeds
from properties.test_edges import is_one_sentence
from properties.test_klnmf import dense, divergence
from sipower import (
    KLNMF,
    GaussianEM,
    Guarded,
    LpPCA,
    SciPi,
    SSciPi,
    Stop,
    max_cut,
    non_negative_factorization,
    solve,
)
from sipower.problems import (
    ICA,
    PCA,
    BurerMonteiro,
    GaussianMixture,
    LpKernelPCA,
    MixtureProportions,
)


@dataclass(frozen=True)
class Instance:
    """The recipe of a problem: its solver, its size and a seed."""

    name: str
    samples: int
    features: int
    stochastic: bool
    seed: int

    def data(self):
        rng = np.random.default_rng(self.seed)
        scale = 10.0 ** rng.integers(-3, 4)
        return (
            scale
            * rng.normal(size=(self.samples, self.features))
            * rng.gamma(1.0, 1.0, self.features)
        )

    def solve(self, problem, **options):
        Fits.number += 1
        solver = SSciPi(batch=0.5, epoch=4) if self.stochastic else SciPi()
        stop = Stop(1e-8, rounds=30)
        return solve(problem, Guarded(solver), stop=stop, seed=self.seed % 1000, **options)


def _pca(case):
    A = case.data()
    result = case.solve(PCA(A))
    x = result.x[0]
    return result, x, 0.5 * ((A @ x) ** 2).mean()


def _lp(case):
    A = case.data()
    result = case.solve(LpKernelPCA.from_features(A, 1.5))
    x = result.x[0]
    return result, x, (np.abs(A @ x) ** 1.5).mean() / 1.5


def _ica(case):
    """Return a run of ICA; whitened data have orthonormal columns times √n."""
    X = np.linalg.qr(case.data())[0]
    X = np.sqrt(len(X)) * X
    result = case.solve(ICA(X, -1, whitened=True))
    w = result.x[0]
    return result, w, 0.75 - 0.25 * ((X @ w) ** 4).mean()


def _burer_monteiro(case):
    A = case.data()
    C = A @ A.T
    Fits.number += 1
    result = solve(BurerMonteiro(C), SciPi(), stop=Stop(1e-8, rounds=30), seed=case.seed % 1000)
    return result, result.x, float((C * (result.x @ result.x.T)).sum())


def _mixture(case):
    L = np.abs(case.data()) + 1e-6
    result = case.solve(MixtureProportions(L))
    x = result.x[0] ** 2
    # The value has a constant of the data, so it is compared with that at the uniform point.
    problem = MixtureProportions(L)
    uniform = np.full((1, L.shape[1]), 1 / np.sqrt(L.shape[1]))
    gain = 0.5 * (np.log(L @ x) - np.log(L.mean(axis=1))).mean()
    return result, result.x[0], problem.value(uniform) + gain


INSTANCES = {
    "pca": _pca,
    "lp": _lp,
    "ica": _ica,
    "burer-monteiro": _burer_monteiro,
    "mixture": _mixture,
}


def instances(name):
    return st.builds(Instance, name, st.integers(2, 60), st.integers(1, 12), st.booleans(), seeds)


@generated(instances, tuple(INSTANCES), share=50, stress=500)
def test_every_instance_reports_the_value_of_a_feasible_point(case):
    """Finite, on the sphere, the value that of an independent formula, never below the start."""
    result, x, value = INSTANCES[case.name](case)
    assert np.isfinite(x).all()
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1, rtol=1e-10)
    assert result.value == pytest.approx(value, rel=1e-9, abs=1e-9)
    values = [record.objective for record in result.trace]
    rounding = 1e-9 * (1 + max(np.abs(values)))
    assert (np.diff(values) >= -rounding).all()


def mixtures(_):
    return st.builds(
        Instance, st.just("gm"), st.integers(12, 60), st.integers(1, 4), st.just(False), seeds
    )


@generated(mixtures, ("gaussian mixture",), share=10, stress=200)
def test_gaussian_mixtures_report_their_likelihood(case):
    """Weights on the simplex, covariances positive, F by an independent formula, never falling."""
    X = case.data()
    Fits.number += 1
    result = solve(GaussianMixture(X, 2), Guarded(GaussianEM()), stop=Stop(1e-6, rounds=20), seed=1)
    weights, means, covariances = result.x
    assert weights.sum() == pytest.approx(1)
    logs = []
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        sign, volume = np.linalg.slogdet(2 * np.pi * covariance)
        assert sign > 0
        off = X - mean
        squares = (off * np.linalg.solve(covariance, off.T).T).sum(axis=1)
        logs.append(np.log(weight) - 0.5 * (volume + squares))
    assert result.value == pytest.approx(logsumexp(logs, axis=0).mean(), rel=1e-8, abs=1e-8)
    values = [record.objective for record in result.trace]
    assert (np.diff(values) >= -1e-9 * (1 + np.abs(values[-1]))).all()


@dataclass(frozen=True)
class Directions:
    """The recipe of an LpPCA and of its data."""

    content: str
    p: float
    number: int
    kernel: str
    center: bool
    sparse: bool
    instance: Instance

    def data(self):
        X = self.instance.data()
        rng = np.random.default_rng(self.instance.seed + 1)
        if self.content == "equal rows":
            X[:] = X[0]
        elif self.content == "few rows":
            X[:] = X[rng.integers(2, size=len(X))]
        elif self.content == "zero columns":
            X[:, rng.random(X.shape[1]) < 0.5] = 0
        elif self.content == "rare":
            X *= rng.random(X.shape) < 0.2
        elif self.content == "outlier":
            X[0] *= 1e6
        elif self.content == "far from zero" and not self.sparse:
            X += 1e8
        return sp.csr_array(X) if self.sparse else X

    def rank(self, X):
        """Return the number of eigenvalues of the kernel matrix above 1e-7 of its largest entry."""
        X = X.toarray() if self.sparse else X
        if self.kernel == "rbf":
            kernel = np.exp(-cdist(X, X, "sqeuclidean") / X.shape[1])
        else:
            kernel = X @ X.T
        largest, mean = np.abs(kernel).max(), np.eye(len(X)) - 1 / len(X)
        kernel = mean @ kernel @ mean if self.center else kernel
        return int((np.linalg.eigvalsh(kernel) > 1e-7 * largest).sum())


CONTENTS = ("normal", "equal rows", "few rows", "zero columns", "rare", "outlier", "far from zero")


def directions(content):
    return st.builds(
        Directions,
        content,
        st.sampled_from([1.0, 1.5, 2.0, 3.0]),
        st.sampled_from([1, 2]),
        st.sampled_from(["linear", "rbf"]),
        st.booleans(),
        st.booleans(),
        st.builds(
            Instance, st.just("lp"), st.integers(2, 60), st.integers(1, 6), st.just(False), seeds
        ),
    )


@generated(directions, CONTENTS, share=35, stress=50)
def test_lp_pca_finds_orthonormal_directions_of_their_dispersion(case):
    """(1/np) Σ|score|^p, as `transform` has them too; or one sentence: the rank is less."""
    X = case.data()
    before = copy_contents(X)
    model = LpPCA(
        case.number, p=case.p, kernel=case.kernel, center=case.center, random_state=0, n_init=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            scores = model.fit_transform(X)
        except ValueError as refused:
            assert is_one_sentence(refused)  # noqa: PT017 - not of all data
            assert case.rank(X) < case.number
            return
    Fits.number += 1
    assert is_unchanged(before, X)
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.eye(case.number), atol=1e-10)
    dispersion = (np.abs(scores) ** case.p).mean(axis=0) / case.p
    np.testing.assert_allclose(dispersion, model.dispersion_, rtol=1e-9)
    # Distances of sparse samples are differences of squared norms: nothing is left of an outlier's.
    if case.content != "outlier" or case.kernel != "rbf" or not case.sparse:
        np.testing.assert_allclose(model.transform(X), scores, atol=1e-6 * np.abs(scores).max())


@generated(mixtures, ("cut",), share=10, stress=100)
def test_a_cut_weighs_what_it_says_and_no_more_than_its_bound(case):
    graph = np.abs(case.data()[:12] @ case.data()[:12].T)
    np.fill_diagonal(graph, 0)
    Fits.number += 1
    cut = max_cut(graph, seed=case.seed % 1000)
    crossing = graph[np.ix_(cut.sides > 0, cut.sides < 0)].sum()
    assert cut.weight == pytest.approx(crossing, rel=1e-12, abs=1e-12)
    assert cut.weight <= cut.bound * (1 + 1e-9)


def small_data(_):
    return recipes(st.one_of(st.integers(1, 8), st.integers(1, 40)))


@generated(small_data, ("rows",), share=30, stress=300)
def test_transform_and_partial_fit_are_exact_for_the_rows(recipe):
    """transform: each row alone gives the same bits. partial_fit: finite, non-negative."""
    V = recipe.matrix()
    before = copy_contents(V)
    model = KLNMF(3, random_state=1, max_iter=5, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No component has feature")
        W = model.fit_transform(V)
        Fits.number += 2
        np.testing.assert_array_equal(model.transform(V), W)
        rows = recipe.values()
        if rows.dtype.isnative:
            np.testing.assert_array_equal(model.transform(rows[-1:])[0], W[-1])
        batch = KLNMF(3, random_state=1).partial_fit(V).partial_fit(V)
    assert is_unchanged(before, V)
    assert np.isfinite(batch.components_).all()
    assert (batch.components_ >= 0).all()


@generated(small_data, ("function",), share=20, stress=200)
def test_the_function_factorises_as_it_reports(recipe):
    """W H of `non_negative_factorization` is what a KLNMF of the same arguments has."""
    V = recipe.matrix()
    Fits.number += 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W, H, rounds = non_negative_factorization(V, n_components=2, random_state=3, max_iter=6)
        model = KLNMF(2, init=None, random_state=3, max_iter=6).fit(V)
    np.testing.assert_array_equal(H, model.components_)
    assert rounds == model.n_iter_
    value, size = divergence(dense(V).astype(W.dtype).astype(np.longdouble), W, H)
    assert model.kl_divergence_ == pytest.approx(value, abs=1e-11 * size)
