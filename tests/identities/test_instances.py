# SPDX-License-Identifier: BSD-3-Clause
"""Facts about the single instances: rates, closed forms, equivalences, certificates."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.decomposition import FastICA

from sipower import SciPi, Stop, max_cut, solve
from sipower.problems import (
    ICA,
    PCA,
    BurerMonteiro,
    LpKernelPCA,
    MixtureProportions,
    mixture_proportions,
)
from sipower.problems.ica import whiten
from sipower.problems.lp_kernel_pca import pivoted_cholesky

RNG = np.random.default_rng(0)


# ---- Lp-norm PCA -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0])
def test_sci_pi_never_lowers_a_convex_objective(p):
    problem = LpKernelPCA(np.random.default_rng(1).normal(size=(40, 6)), p)
    state = SciPi().init(problem, None, 0)
    before = problem.value(state.x)
    for _ in range(60):
        state = SciPi().advance(problem, state)
        after = problem.value(state.x)
        assert after >= before * (1 - 1e-12)
        before = after


@pytest.mark.parametrize("seed", range(10))
def test_l1_stops_after_finitely_many_steps(seed):
    problem = LpKernelPCA(np.random.default_rng(seed).normal(size=(40, 6)), 1.0)
    result = solve(problem, SciPi(), stop=Stop(1e-14, rounds=100), seed=seed)
    assert result.residual <= 1e-14


def test_kernel_matrix_and_features_give_the_same_answer():
    X = np.random.default_rng(2).normal(size=(30, 4))
    direct = solve(LpKernelPCA(X, 3.0), SciPi(), stop=Stop(1e-10), seed=0).value
    by_kernel = solve(LpKernelPCA(X @ X.T, 3.0, "precomputed"), SciPi(), stop=Stop(1e-10)).value
    assert by_kernel == pytest.approx(direct, rel=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_p_2_is_kernel_pca(kernel):
    from sklearn.metrics.pairwise import pairwise_kernels  # noqa: PLC0415

    X = np.random.default_rng(3).normal(size=(25, 3))
    top = np.linalg.eigvalsh(pairwise_kernels(X, metric=kernel))[-1]
    found = solve(LpKernelPCA(X, 2.0, kernel), SciPi(), stop=Stop(1e-9, rounds=50_000))
    assert found.value == pytest.approx(top / (2 * 25), rel=1e-9)


def test_pivoted_cholesky():
    F = RNG.normal(size=(20, 5))
    A, pivots = pivoted_cholesky(F @ F.T)
    assert A.shape == (20, 5)
    np.testing.assert_allclose(A @ A.T, F @ F.T, atol=1e-10)
    np.testing.assert_array_equal(A[pivots], np.tril(A[pivots]))


def test_features_of_new_points_reproduce_the_kernel():
    """a(z)·a(x_i) = k(z, x_i) for z in the span of the samples."""
    F, Z = RNG.normal(size=(20, 5)), RNG.normal(size=(7, 5))
    cholesky = pivoted_cholesky(F @ F.T)
    features = cholesky.features(Z @ F[cholesky.pivots].T)
    np.testing.assert_allclose(features @ cholesky.A.T, Z @ F.T, atol=1e-10)
    np.testing.assert_allclose(features @ features.T, Z @ Z.T, atol=1e-10)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_further_lp_directions_are_orthogonal_to_those_found(p):
    X = np.random.default_rng(8).normal(size=(60, 4)) * [4, 3, 2, 1]
    found = np.zeros((0, 4))
    for seed in range(4):
        problem = LpKernelPCA(X, p, found=found)
        x = solve(problem, SciPi(), stop=Stop(1e-9, rounds=5000), seed=seed).x
        assert problem.residual(x) <= 1e-9
        found = np.vstack([found, x])
    np.testing.assert_allclose(found @ found.T, np.eye(4), atol=1e-12)


# ---- ICA ---------------------------------------------------------------------------------------


def test_sci_pi_step_is_the_fastica_step():
    problem = ICA(RNG.laplace(size=(500, 4)) @ RNG.normal(size=(4, 4)))
    w = problem.start(1)
    u = problem.X @ w[0]
    step = (problem.X * (u**3)[:, None]).mean(axis=0) - 3 * w[0]
    step /= np.linalg.norm(step)
    found = SciPi().advance(problem, SciPi().init(problem, w, 0)).x[0]
    np.testing.assert_allclose(found, step * np.sign(step @ found), rtol=1e-12)
    np.testing.assert_allclose(problem.gradient(w)[0], step * np.linalg.norm(problem.gradient(w)))


def test_sub_gaussian_sources_have_kurtosis_minus_1_2():
    S = np.random.default_rng(3).uniform(-1, 1, (400_000, 2))
    problem = ICA(S, sign=-1)
    w = solve(problem, SciPi(), stop=Stop(1e-8)).x
    lam = float(problem.inner(w, problem.gradient(w))[0])
    assert lam == pytest.approx(1.2, abs=0.02)


def test_sources_match_scikit_learns_fastica():
    """Its example: a sine, a square wave and a saw tooth, mixed; kurtosis of all is negative."""
    time = np.linspace(0, 8, 2000)
    S = np.c_[np.sin(2 * time), np.sign(np.sin(3 * time)), 2 * (time * 1.1 % 1) - 1]
    S += 0.1 * np.random.default_rng(0).normal(size=S.shape)
    X = S @ np.array([[1, 1, 1], [0.5, 2, 1.0], [1.5, 1.0, 2.0]]).T
    Z, _ = whiten(X)
    found = []
    for _ in range(3):
        problem = ICA(Z, sign=-1, found=np.array(found) if found else None, whitened=True)
        found.append(solve(problem, SciPi(), stop=Stop(1e-10), seed=len(found)).x[0])
    ours = Z @ np.array(found).T
    theirs = FastICA(3, fun="cube", whiten="unit-variance", random_state=0).fit_transform(X)
    match = np.abs(np.corrcoef(ours.T, theirs.T)[:3, 3:])
    assert (match.max(axis=1) > 0.999).all()
    assert sorted(match.argmax(axis=1)) == [0, 1, 2]


# ---- mixtures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_mixture_proportions_are_optimal(weighted):
    L = np.random.default_rng(4).gamma(0.5, 1.0, (300, 6)) + 1e-3
    v = np.random.default_rng(5).random(300) if weighted else None
    found = mixture_proportions(L, v)
    w = np.ones(300) if v is None else v

    def objective(z):
        x = np.exp(z - z.max())
        x /= x.sum()
        return -(w * np.log(L @ x)).sum()

    best = -minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-9}).fun
    assert found.gap <= 1e-8
    assert found.proportions.sum() == pytest.approx(1, abs=1e-12)
    assert found.log_likelihood >= best - 1e-6
    G = L.T @ (w / (L @ found.proportions)) / w.sum()
    assert G.max() - 1 <= 2e-8


def test_log_likelihoods_do_not_underflow():
    logs = np.random.default_rng(6).normal(size=(100, 4)) * 3
    plain = mixture_proportions(np.exp(logs))
    shifted = mixture_proportions(logs - 5000.0, log=True)
    np.testing.assert_allclose(shifted.proportions, plain.proportions, atol=1e-6)
    assert shifted.log_likelihood == pytest.approx(plain.log_likelihood - 500_000, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-295, 1e-307, 1e300])
def test_the_scale_of_a_row_only_shifts_the_likelihood(scale):
    """Also where products of it would leave the range of floats; the certificate is no lie."""
    rng = np.random.default_rng(0)
    L = rng.gamma(1.0, 1.0, (300, 5))
    plain = mixture_proportions(L)
    scales = np.where(rng.random(300) < 0.5, scale, 1.0)
    found = mixture_proportions(L * scales[:, None])
    G = (L / (L @ found.proportions)[:, None]).mean(axis=0)
    assert G.max() - 1 <= found.gap + 1e-12
    np.testing.assert_allclose(found.proportions, plain.proportions, atol=1e-6)
    shifted = plain.log_likelihood + np.log(scales).sum()
    assert found.log_likelihood == pytest.approx(shifted, rel=1e-9)
    solved = solve(MixtureProportions(L * scale), SciPi(), stop=Stop(1e-8, rounds=5000))
    np.testing.assert_allclose(solved.x[0] ** 2, plain.proportions, atol=1e-4)


def test_solvers_and_the_exact_routine_agree():
    L = np.random.default_rng(7).gamma(1.0, 1.0, (200, 5))
    problem = MixtureProportions(L)
    result = solve(problem, SciPi(0.9), stop=Stop(1e-10, rounds=100_000))
    exact = mixture_proportions(L)
    np.testing.assert_allclose(problem.proportions(result.x), exact.proportions, atol=1e-5)
    assert 2 * problem.V.total * result.value == pytest.approx(exact.log_likelihood, rel=1e-9)


BAD_MIXTURES = {
    "zero row": (lambda: MixtureProportions([[1.0, 2], [0, 0]]), "Row 1 of L is zero"),
    "zero log row": (lambda: MixtureProportions([[-np.inf, -np.inf]], log=True), "Row 0"),
    "negative": (lambda: MixtureProportions([[1.0, -2]]), r"Likelihood \(0, 1\) is negative"),
    "NaN": (lambda: MixtureProportions([[1.0, np.nan]]), "NaN"),
    "NaN log": (lambda: MixtureProportions([[1.0, np.nan]], log=True), "NaN"),
    "weights": (lambda: MixtureProportions([[1.0, 2]], [-1.0]), "weights"),
    "zero weights": (lambda: MixtureProportions([[1.0, 2]], [0.0]), "All weights are zero"),
    "p": (lambda: LpKernelPCA(np.ones((2, 2)), p=0.5), "p is 0.5"),
    "infinite p": (lambda: LpKernelPCA(np.ones((2, 2)), p=np.inf), "p is inf"),
    "kernel": (lambda: LpKernelPCA(np.ones((2, 3)), kernel="precomputed"), "not symmetric"),
    "indefinite": (
        lambda: LpKernelPCA([[1.0, 2], [2, 1]], kernel="precomputed"),
        "not positive semi-definite",
    ),
    "found": (lambda: LpKernelPCA(np.eye(3), found=np.ones((1, 2))), "found has shape"),
    "sign": (lambda: ICA(RNG.normal(size=(9, 2)), sign=2), "sign is 2"),
    "covariance": (lambda: ICA(np.ones((9, 2))), "singular covariance"),
    "costs": (lambda: BurerMonteiro(np.triu(np.ones((3, 3)))), "not symmetric"),
    "diagonal": (lambda: BurerMonteiro(np.eye(3)), "no entry off its diagonal"),
    "graph": (lambda: max_cut(-np.ones((3, 3))), "negative weight"),
}


@pytest.mark.parametrize("what", BAD_MIXTURES)
def test_bad_input_gets_one_sentence(what):
    action, message = BAD_MIXTURES[what]
    with pytest.raises(ValueError, match=message):
        action()


# ---- Burer-Monteiro ----------------------------------------------------------------------------


def random_graph(n, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    return (upper + upper.T).astype(float)


def test_block_steps_never_lower_the_objective():
    problem = BurerMonteiro(-random_graph(40, 0.3, 1))
    state = SciPi().init(problem, None, 0)
    before = problem.value(state.x)
    for _ in range(40):
        state = SciPi().advance(problem, state)
        after = problem.value(state.x)
        assert after >= before - 1e-12 * abs(before)
        before = after


@pytest.mark.parametrize("seed", range(3))
def test_primal_meets_the_dual_bound(seed):
    problem = BurerMonteiro(-random_graph(60, 0.2, seed))
    x = solve(problem, SciPi(), stop=Stop(1e-7, rounds=20_000)).x
    value, bound = problem.value(x), problem.upper_bound(x)
    assert value <= bound + 1e-9 * abs(bound)
    assert bound - value <= 1e-4 * abs(value)


def test_the_bound_of_a_large_graph_is_that_of_the_dense_one(monkeypatch):
    """Lanczos begins at the same vector every time, and errs to the safe side."""
    graph = random_graph(120, 0.1, 0) * np.exp(np.random.default_rng(1).normal(size=(120, 120)) * 3)
    problem = BurerMonteiro(-(graph + graph.T))
    x = solve(problem, SciPi(), stop=Stop(1e-3, rounds=200)).x
    dense = problem.upper_bound(x)
    monkeypatch.setattr("sipower.problems.burer_monteiro.SMALL", 50)
    bounds = {problem.upper_bound(x) for _ in range(3)}
    assert len(bounds) == 1
    bound = bounds.pop()
    assert dense * (1 - 1e-14) <= bound <= dense * (1 + 1e-6)


def test_max_cut_of_small_graphs_is_bounded_and_near_the_best():
    for seed in range(3):
        graph = random_graph(10, 0.5, seed)
        signs = np.array(np.meshgrid(*[[1, -1]] * 10)).reshape(10, -1).T
        best = ((graph.sum() - np.einsum("si,ij,sj->s", signs, graph, signs)) / 4).max()
        cut = max_cut(graph)
        assert cut.weight <= best <= cut.bound + 1e-6
        assert cut.weight >= 0.878 * best


# ---- PCA ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["one sample", "rank one"])
def test_directions_beyond_the_rank_are_orthogonal_to_those_found(data):
    A = np.ones((1, 5))
    if data == "rank one":
        A = np.outer(np.random.default_rng(0).normal(size=50), np.ones(5))
    found = []
    for _ in range(5):
        problem = PCA(A, found=found or None)
        x = solve(problem, SciPi(), stop=Stop(1e-6, rounds=100)).x[0]
        assert np.linalg.norm(x) == pytest.approx(1, abs=1e-12)
        assert all(abs(x @ other) <= 1e-12 for other in found)
        found.append(x)


# ---- numbers of any size -----------------------------------------------------------------------


@pytest.mark.parametrize(("p", "c"), [(2.0, 1e-76), (4.0, 1e-37), (20.0, 1e-7), (20.0, 1e7)])
def test_a_small_gradient_is_no_small_residual(p, c):
    """The residual is that of the same data at scale 1, though squares of ∇f are zero."""
    A = np.random.default_rng(3).normal(size=(50, 3))
    x = LpKernelPCA.of_features(A, p).start(0)
    truth = LpKernelPCA.of_features(A, p).residual(x)
    assert truth > 0.1
    assert LpKernelPCA.of_features(c * A, p).residual(x) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("c", [1e-120, 1e120])
def test_powers_that_leave_the_range_are_refused(c):
    A = np.random.default_rng(3).normal(size=(50, 3))
    with pytest.raises(ValueError, match=r"powers with p=4\.0 leave the range"):
        LpKernelPCA.of_features(c * A, 4.0)
    with pytest.raises(ValueError, match="too small: rescale"):
        LpKernelPCA(1e-160 * A, 1.0)


@pytest.mark.parametrize("c", [1e-200, 1e160, 1e300])
def test_whitening_forgets_the_scale(c):
    X = np.random.default_rng(4).laplace(size=(80, 3))
    Z, M = whiten(c * X)
    np.testing.assert_allclose(Z, whiten(X)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose((c * X - (c * X).mean(axis=0)) @ M, Z, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rank", ["3", 2.5, 0, -1])
def test_a_rank_that_is_no_number_of_columns_is_refused(rank):
    with pytest.raises(ValueError, match="expected a whole number of at least 1"):
        BurerMonteiro(np.ones((4, 4)), rank)


def test_a_graph_without_edges_has_the_cut_zero():
    cut = max_cut(np.zeros((4, 4)))
    assert (cut.weight, cut.bound) == (0.0, 0.0)
    assert (np.abs(cut.sides) == 1).all()
