# SPDX-License-Identifier: BSD-3-Clause
"""KLNMF: scikit-learn's contract, our promises, one sentence for every bad argument."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import kl_div
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from sipower import KLNMF, Interrupted, LpPCA, non_negative_factorization, solve
from sipower.nmf import SOLVERS

V = oracles.counts(60, 40)


@parametrize_with_checks([KLNMF()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- what scikit-learn's NMF promises, for KL ----------------------------------------------------


def quick(**options):
    options = {"n_components": 3, "random_state": 0, "max_iter": 300, "tol": 1e-3, **options}
    return KLNMF(**options)


@pytest.mark.parametrize("init", [None, "random", "nndsvd", "nndsvda", "nndsvdar"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_inits(init, layout):
    model = quick(init=init)
    W = model.fit_transform(layout(V))
    assert W.shape == (60, 3)
    assert model.components_.shape == (3, 40)
    assert (W >= 0).all()
    assert (model.components_ >= 0).all()
    assert model.kl_divergence_ < 0.7 * oracles.divergence(
        V, np.full((60, 1), 1.0), V.mean(0)[:, None] + 1e-9
    )


def test_custom_init_starts_where_it_is_told():
    W0, H0 = oracles.factors(60, 40, 3)
    model = quick(init="custom", solver="mu", max_iter=1, tol=0)
    model.fit(V, W=W0, H=H0.T)
    # One round: H first, then W; rows without data count for nothing.
    W0 = np.where(V.sum(1, keepdims=True) > 0, W0, 0)
    Z = W0 @ H0.T
    H = np.divide(V, Z, out=np.zeros_like(Z), where=V > 0).T @ W0 / W0.sum(0) * H0
    scaled = H * (V.sum(0) / (H @ W0.sum(0)).clip(1e-300))[:, None]
    np.testing.assert_allclose(model.components_.T, scaled, rtol=1e-10, atol=1e-12)
    given = W0.copy(), H0.copy()
    model.fit(V, W=W0, H=H0.T)
    np.testing.assert_array_equal(W0, given[0])
    np.testing.assert_array_equal(H0, given[1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_ends_with_the_exact_rows(solver):
    """fit_transform = fit + transform, bit for bit, and the numbers belong to that W."""
    model = quick(solver=solver, max_iter=20, tol=0)
    W = model.fit_transform(V)
    assert W.tobytes() == model.transform(V).tobytes()
    exact = oracles.divergence(V, W, model.components_.T)
    assert model.kl_divergence_ == pytest.approx(exact, rel=1e-11)
    assert model.reconstruction_err_ == pytest.approx(np.sqrt(2 * exact), rel=1e-11)
    assert model.n_iter_ == 20
    assert model.status_ == "max_rounds"


def test_reconstruction_error_is_scikit_learns():
    theirs = NMF(3, beta_loss="kullback-leibler", solver="mu", init="random", random_state=0)
    theirs.set_params(max_iter=100, tol=0)
    W = theirs.fit_transform(V)
    model = quick(init="custom", max_iter=1, tol=0).fit(V, W=W, H=theirs.components_)
    kl = theirs.reconstruction_err_**2 / 2
    assert model.kl_divergence_ <= kl * (1 + 1e-9)
    assert model.kl_divergence_ > 0.95 * kl


def test_converged_means_certified_for_the_returned_factors():
    model = quick(tol=1e-4, max_iter=5000, solver="ccd")
    W = model.fit_transform(V)
    assert model.status_ == "converged"
    assert model.kkt_residual_ <= 1e-4
    H = model.components_.T
    both = 0.0
    for data, basis, h in ((V, H, W), (V.T, W, H)):
        d, c = basis.sum(0), data.sum(1)
        fitted = h * (c / (h @ d).clip(1e-300))[:, None]
        z = fitted @ basis.T
        G = (np.divide(data, z, out=np.zeros_like(z), where=data > 0) @ basis) / d
        both += (c * np.maximum(G.max(1) - 1, 0) + kl_div(c, h @ d)).sum()
    assert model.kkt_residual_ == pytest.approx(both / V.sum(), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
def test_dtype_is_preserved(dtype, layout):
    model = quick()
    W = model.fit_transform(layout(V).astype(dtype))
    assert W.dtype == model.components_.dtype == dtype
    assert model.transform(layout(V).astype(dtype)).dtype == dtype


def test_integers_work_in_float64_and_dtype_can_be_chosen():
    assert quick().fit_transform(V.astype(int)).dtype == np.float64
    assert quick(dtype="float32").fit_transform(V.astype(int)).dtype == np.float32


@pytest.mark.parametrize("solver", ["mu", "sci-pi", "ccd", "pgd"])
def test_sparse_equals_dense(solver):
    dense, sparse = (
        quick(solver=solver, max_iter=15, tol=0).fit(f(V)) for f in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(dense.components_, sparse.components_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_more_components_than_rows_or_columns(solver):
    small = oracles.counts(6, 5) + 1
    model = KLNMF(9, solver=solver, random_state=0, max_iter=30, tol=0).fit(small)
    assert model.components_.shape == (9, 5)
    assert np.isfinite(model.kl_divergence_)
    with pytest.raises(ValueError, match="init='nndsvd' needs"):
        KLNMF(9, init="nndsvd").fit(small)


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
        found = (z - V[i] * np.log(z, where=V[i] > 0, out=np.zeros_like(z))).sum()
        q = np.divide(V[i], z, out=np.zeros_like(z), where=V[i] > 0)
        G = (H @ q) / H.sum(1)
        assert G.max() - 1 <= 1.1e-6
        if rank <= 20:
            assert found <= oracles.best_item(V[i], H.T)[0] + 1e-5 * V[i].sum()


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


def test_partial_fit_approaches_fit():
    rng = np.random.default_rng(0)
    big = rng.poisson(rng.gamma(0.3, 3, (1200, 3)) @ rng.gamma(0.3, 3, (3, 30))).astype(float)
    model = KLNMF(3, random_state=0, forget_factor=0.9)
    for _ in range(12):
        for i in range(0, 1200, 100):
            model.partial_fit(big[i : i + 100])
    assert model.n_steps_ == 144
    best = KLNMF(3, random_state=0, tol=1e-5, max_iter=3000).fit(big)
    assert model.score(big) > best.score(big) * 1.05  # scores are negative


def test_partial_fit_goes_on_from_fit():
    model = quick().fit(V)
    before = model.score(V)
    model.partial_fit(V)
    assert model.score(V) >= before - 1e-3


def test_the_call_that_cnmf_makes():
    W, H, n_iter = non_negative_factorization(
        V,
        n_components=4,
        init="random",
        beta_loss="kullback-leibler",
        solver="mu",
        tol=1e-4,
        max_iter=1000,
        random_state=14,
    )
    assert W.shape == (60, 4)
    assert H.shape == (4, 40)
    assert 1 <= n_iter <= 1000


@pytest.mark.parametrize("solver", SOLVERS)
def test_same_seed_same_bits_for_any_threads(solver, monkeypatch):
    monkeypatch.setattr("sipower.kernels.threads.WORTH_A_THREAD", 0.0)
    monkeypatch.setattr("sipower.data.memory.LEAST_BLOCK", 64)
    one, two = (quick(solver=solver, n_jobs=n, max_iter=8, tol=0).fit(V) for n in (1, 2))
    assert one.components_.tobytes() == two.components_.tobytes()


def test_not_converged_warns_with_the_gap():
    with pytest.warns(ConvergenceWarning, match=r"gap is \d.*tol is 1\.00e-09"):
        quick(tol=1e-9, max_iter=3).fit(V)


def test_max_time_stops_and_says_so():
    model = quick(tol=0, max_iter=10**9, max_time=0.05).fit(V)
    assert model.status_ == "max_seconds"
    assert np.isfinite(model.kl_divergence_)


def test_ctrl_c_leaves_a_usable_model():
    def on_round(record):
        if record.round == 7:
            raise KeyboardInterrupt

    model = quick(solver="mu", tol=0, max_iter=1000, on_round=on_round)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(V)
    assert isinstance(caught.value, Interrupted)
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 7
    assert model.transform(V).shape == (60, 3)


def test_verbose_prints_lines(capsys):
    quick(verbose=1).fit(V)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("gap" in line and "KL" in line for line in lines)


def test_pickle_and_clone():
    model = quick().fit(V)
    again = pickle.loads(pickle.dumps(model))
    assert again.transform(V).tobytes() == model.transform(V).tobytes()
    assert not hasattr(clone(model), "components_")


def test_all_zero_data_and_rows():
    model = KLNMF(2, random_state=0).fit(np.zeros((4, 3)))
    assert (model.transform(np.zeros((2, 3))) == 0).all()
    assert model.kl_divergence_ == 0
    assert model.score(np.zeros((4, 3))) == 0
    W = quick().fit_transform(V)
    assert (W[V.sum(1) == 0] == 0).all()


BAD = {
    "n_components": ({"n_components": 0}, "n_components"),
    "solver": ({"solver": "simplex"}, "solver"),
    "solver cd": ({"solver": "cd"}, "solver='cd' is for the Frobenius norm"),
    "init": ({"init": "best"}, "init"),
    "init without factors": ({"init": "custom"}, "init='custom' needs both W and H"),
    "tol": ({"tol": -1.0}, "tol"),
    "max_iter": ({"max_iter": 0}, "max_iter"),
    "max_time": ({"max_time": -1}, "max_time"),
    "random_state": ({"random_state": "x"}, "random_state"),
    "n_jobs": ({"n_jobs": 1.5}, "n_jobs"),
    "dtype": ({"dtype": "int32"}, "choose float32 or float64"),
    "transform_tol": ({"transform_tol": 0.0}, "transform_tol"),
    "forget_factor": ({"forget_factor": 2.0}, "forget_factor"),
    "verbose": ({"verbose": -1}, "verbose"),
    "beta_loss": ({"beta_loss": "frobenius"}, "beta_loss is 'frobenius'"),
    "beta_loss as number": ({"beta_loss": 0.5}, "beta_loss is 0.5"),
    "alpha_W": ({"alpha_W": 0.1}, "Penalties are not offered yet"),
    "alpha_H": ({"alpha_H": 0.1}, "Penalties are not offered yet"),
    "l1_ratio": ({"l1_ratio": 2.0}, "l1_ratio"),
    "shuffle": ({"shuffle": "yes"}, "shuffle"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arguments_get_one_sentence(what):
    options, message = BAD[what]
    with pytest.raises(ValueError, match=message) as caught:
        KLNMF(**{"n_components": 2, **options}).fit(V)
    assert "\n" not in str(caught.value)


W0, H0 = oracles.factors(60, 40, 3)
BAD_STARTS = {
    "only W": (W0, None, "needs both"),
    "W of another shape": (W0[:5], H0.T, r"W has shape \(5, 3\), expected \(60, 3\)"),
    "H of another shape": (W0, H0, r"H has shape \(40, 3\), expected \(3, 40\)"),
    "negative": (-W0, H0.T, "W must be finite and non-negative"),
    "NaN": (W0, H0.T * np.nan, "H must be finite and non-negative"),
    "zero": (W0, H0.T * 0, "H is zero everywhere"),
}


@pytest.mark.parametrize("what", BAD_STARTS)
def test_bad_starts_get_one_sentence(what):
    W, H, message = BAD_STARTS[what]
    with pytest.raises(ValueError, match=message):
        KLNMF(3, init="custom").fit(V, W=W, H=H)


def test_other_misuse():
    with pytest.raises(ValueError, match="use init='custom'"):
        KLNMF(3).fit(V, W=W0, H=H0.T)
    with pytest.raises(NotFittedError):
        KLNMF(3).transform(V)
    model = quick().fit(V)
    with pytest.raises(ValueError, match="39 features"):
        model.transform(V[:, 1:])
    with pytest.raises(ValueError, match=r"expected \(samples, 3\)"):
        model.inverse_transform(np.ones((2, 5)))
    with pytest.raises(ValueError, match="update_H=False needs H"):
        non_negative_factorization(V, update_H=False)
    with pytest.raises(ValueError, match=r"Negative values in data: entry \(0, 0\)"):
        model.transform(-V - 1)


def test_the_trace_ends_with_the_returned_factors():
    model = quick(tol=1e-3)
    model.fit(V)
    assert model.trace_[-1].objective == model.kl_divergence_
    assert model.trace_[-1].gap == model.kkt_residual_
    assert model.trace_[-1].round == model.n_iter_
    rounds = [record.round for record in model.trace_]
    assert rounds == sorted(rounds)


def test_ctrl_c_during_the_exact_rows_keeps_the_model(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("sipower.estimators.fitting.exact_rows", interrupted)
    model = quick(max_iter=5, tol=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(V)
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 5
    assert np.isfinite(model.kl_divergence_)


# ---- what a review found -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1.0, 4.0, 5.0, 1000.0])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_counts_that_no_component_explains_are_left_out_with_a_warning(layout, count):
    H = np.array([[1.0, 0, 0], [0, 1, 0]])
    with pytest.warns(UserWarning, match="No component has feature 2, of which row 0 has counts"):
        W, _, _ = non_negative_factorization(layout([[9.0, 1, count]]), H=H, update_H=False)
    np.testing.assert_allclose(W, [[9.0, 1.0]], rtol=1e-6)


def test_score_of_unknown_features_is_that_of_the_known_ones():
    seen = V.copy()
    seen[:, 7] = 0
    new = seen.copy()
    new[:, 7] = 50
    model = quick().fit(seen)
    with pytest.warns(UserWarning, match="No component has feature"):
        score = model.score(new)
    assert score == pytest.approx(model.score(seen), rel=1e-9)


def test_partial_fit_learns_features_that_come_later():
    rng = np.random.default_rng(1)
    big = rng.poisson(rng.gamma(0.3, 1, (300, 3)) @ rng.gamma(0.3, 1, (3, 30))).astype(float)
    big = big[big.sum(1) > 0]
    model = KLNMF(3, random_state=0)
    for row in big:
        model.partial_fit(row[None])
    assert (model.components_.sum(axis=0)[big.sum(0) > 20] > 1e-9).all()


def test_batches_without_counts_teach_nothing():
    rng = np.random.default_rng(1)
    V, nothing = rng.poisson(rng.gamma(0.5, 2, (60, 30))), np.zeros((2, 30))
    plain, late = KLNMF(3, random_state=0), KLNMF(3, random_state=0)
    late.partial_fit(nothing)
    for model in (plain, late):
        for _ in range(4):
            model.partial_fit(V)
    np.testing.assert_array_equal(late.components_, plain.components_)
    for _ in range(20):
        late.partial_fit(nothing)
    np.testing.assert_array_equal(late.components_, plain.components_)
    assert late.n_steps_ == plain.n_steps_ + 20


def test_statistics_fade_no_further_than_their_quotient_has_bits():
    topics = np.kron(np.eye(2), [[5.0, 4.0, 3.0, 2.0]])
    model = KLNMF(2, random_state=0, forget_factor=1e-3)
    for batch in [topics] * 30 + [topics[:1]] * 150:
        model.partial_fit(batch)
        quotient = model._numerator / model._denominator
        floor = 1e-14 * quotient.max()
        np.testing.assert_allclose(model.components_, quotient, rtol=1e-9, atol=floor)
    assert model._denominator.min() > 1e-210


@pytest.mark.parametrize(("tol", "row_tol"), [(1e-7, 1e-6), (1e-4, 1e-2)])
def test_rows_are_exact_enough_for_the_tolerance(tol, row_tol):
    model = quick(tol=tol, transform_tol=row_tol, solver="ccd", max_iter=5000)
    W = model.fit_transform(V)
    assert model.status_ == "converged"
    assert W.tobytes() == model.transform(V).tobytes()


def test_hard_rows_reach_their_tolerance():
    """Single counts against many components: singular Hessians, which once stopped Newton steps."""
    rng = np.random.default_rng(0)
    for trial in range(5):
        H = rng.gamma(0.2, 1.0, (50, 120)) * (rng.random((50, 120)) < 0.2) + 1e-12
        data = rng.poisson(0.02, (200, 120)).astype(float)
        W, _, _ = non_negative_factorization(data, H=H, update_H=False)
        assert np.isfinite(W).all(), trial


def test_overflow_of_the_answer_is_a_sentence():
    with pytest.raises(ValueError, match="too large for float64"):
        non_negative_factorization(V * 1e150, H=np.ones((2, 40)) * 1e-200, update_H=False)
    with pytest.raises(ValueError, match="zero everywhere in float32"):
        non_negative_factorization(V.astype("f4"), H=np.ones((2, 40)) * 1e-60, update_H=False)
    with pytest.raises(ValueError, match="finite and non-negative in float32"):
        non_negative_factorization(V.astype("f4"), H=np.ones((2, 40)) * 1e300, update_H=False)


def test_max_time_holds_over_restarts(monkeypatch, set_clock):
    """On a clock that moves by one second a look, every loop gets what the ones before left."""
    clock = itertools.count()
    set_clock(lambda: float(next(clock)))
    given = []

    def watched(*args, stop, **options):
        given.append(stop.seconds)
        return solve(*args, stop=replace(stop, tol=1e-2), **options)

    monkeypatch.setattr("sipower.estimators.fitting.solve", watched)
    model = quick(tol=1e-12, max_iter=10**6, max_time=400, n_jobs=1).fit(V)
    assert model.status_ == "max_seconds"
    assert len(given) > 2
    assert given == sorted(given, reverse=True)
    assert next(clock) < 450


def test_a_zero_column_is_zero_even_without_a_round():
    data = np.outer([1, 2, 3], [1.0, 2, 0, 3])
    model = KLNMF(1, init="nndsvdar", random_state=0, tol=1e-2).fit(data)
    assert model.components_[0, 2] == 0


def test_partial_fit_forgets_the_numbers_of_fit():
    model = quick().fit(V)
    model.partial_fit(V)
    assert not hasattr(model, "kl_divergence_")
    assert not hasattr(model, "trace_")
    with pytest.raises(ValueError, match="first partial_fit only"):
        model.partial_fit(V, H=model.components_)


def test_trace_never_goes_backwards():
    for seed in range(10):
        model = quick(tol=1e-4, random_state=seed, max_iter=2000).fit(V)
        for name in ("round", "passes", "seconds"):
            values = [getattr(record, name) for record in model.trace_]
            assert values == sorted(values), name


@pytest.mark.parametrize(
    ("W", "H", "message"),
    [
        ([1, 2], 3, "H has shape"),
        ("abc", H0.T, "W must be a dense array of numbers"),
        (W0, sp.csr_array(H0.T), "H must be a dense array of numbers"),
    ],
)
def test_odd_starts_get_one_sentence(W, H, message):
    with pytest.raises(ValueError, match=message):
        KLNMF(init="custom").fit(V, W=W, H=H)


def test_frames_of_nullable_and_mixed_columns():
    frame = pd.DataFrame(
        {"a": pd.array([1, 2, 3], "Int64"), "b": [True, False, True], "c": [0.5, 1, 2]}
    )
    assert KLNMF(2, random_state=0, tol=0, max_iter=2).fit(frame).components_.shape == (2, 3)
    with pytest.raises(ValueError, match="choose float32 or float64"):
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
    with pytest.raises(ValueError, match=r"X has shape \(2, 5\)"):
        model.inverse_transform(sp.csr_array((2, 5)))
