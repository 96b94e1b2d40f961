# SPDX-License-Identifier: BSD-3-Clause
"""A fit with KLNMF: scikit-learn's contract and our promises."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import kl_div
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from contract.small_fits import V, quick
from sipower import KLNMF, Interrupted, non_negative_factorization, solve
from sipower.nmf import SOLVERS

REASON = "a random start depends on the number of rows; test_weights.py starts both fits equally"
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": REASON for kind in ("dense", "sparse")
}


@parametrize_with_checks([KLNMF()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- what scikit-learn's NMF promises, for KL ----------------------------------------------------


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
    before = W0.copy(), H0.copy()
    model.fit(V, W=W0, H=H0.T)
    np.testing.assert_array_equal(W0, before[0])
    np.testing.assert_array_equal(H0, before[1])


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
        scaled = h * (c / (h @ d).clip(1e-300))[:, None]
        z = scaled @ basis.T
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
    monkeypatch.setattr("sipower.kernels.threads.MIN_PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr("sipower.data.block_bounds.MIN_BLOCK", 64)
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

    monkeypatch.setattr("sipower.estimators.fit.exact_rows", interrupted)
    model = quick(max_iter=5, tol=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(V)
    assert model.status_ == "interrupted"
    assert model.n_iter_ == 5
    assert np.isfinite(model.kl_divergence_)


@pytest.mark.parametrize("count", [1.0, 4.0, 5.0, 1000.0])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_counts_that_no_component_explains_are_left_out_with_a_warning(layout, count):
    H = np.array([[1.0, 0, 0], [0, 1, 0]])
    place = r"feature 2 \(counted from 0\), but row 0 \(counted from 0\) has counts of it"
    sentence = f"No component has {place}: 1 such entry is left out."
    with pytest.warns(UserWarning, match=sentence):
        W, _, _ = non_negative_factorization(layout([[9.0, 1, count]]), H=H, update_H=False)
    np.testing.assert_allclose(W, [[9.0, 1.0]], rtol=1e-6)


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


def test_max_time_holds_over_restarts(monkeypatch, set_clock):
    """On a clock that moves by one second a look, every loop gets what the ones before left."""
    clock = itertools.count()
    set_clock(lambda: float(next(clock)))
    starts = []

    def watched(*args, stop, **options):
        starts.append(stop.seconds)
        return solve(*args, stop=replace(stop, tol=1e-2), **options)

    monkeypatch.setattr("sipower.estimators.fit.solve", watched)
    model = quick(tol=1e-12, max_iter=10**6, max_time=400, n_jobs=1).fit(V)
    assert model.status_ == "max_seconds"
    assert len(starts) > 2
    assert starts == sorted(starts, reverse=True)
    assert next(clock) < 450


def test_a_zero_column_is_zero_even_without_a_round():
    data = np.outer([1, 2, 4], [1.0, 2, 0, 4])
    model = KLNMF(1, init="nndsvdar", random_state=0, tol=1e-2).fit(data)
    assert model.components_[0, 2] == 0


def test_trace_never_goes_backwards():
    for seed in range(10):
        model = quick(tol=1e-4, random_state=seed, max_iter=2000).fit(V)
        for name in ("round", "passes", "seconds"):
            values = [getattr(record, name) for record in model.trace_]
            assert values == sorted(values), name
