# SPDX-License-Identifier: BSD-3-Clause
"""Only the verifier makes a fit converged: faults in the certificates of the solvers are caught."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import oracles
from sipower import KLNMF, as_matrix, kernels, verify
from sipower.estimators import fitting
from sipower.loop.stall import is_stalled
from sipower.loop.trace import Record

V = oracles.counts(60, 40)
SETTINGS = {"random_state": 0, "n_jobs": 1, "init": "random", "tol": 1e-4}


def no_gaps(data, basis, h, begin, end, out, *rest):
    out[begin:end] = 0


def no_certificate(basis, g, h, c, out):
    out[:] = 0


def half_gradient(data, basis, h, begin, end, out, *rest):
    real_gradient(data, basis, h, begin, end, out, *rest)
    out[begin:end] /= 2


def half_sums(data, basis, h, begin, end, out, *rest):
    real_sums(data, basis, h, begin, end, out, *rest)
    out /= 2


def half_divergence(data, basis, h, begin, end, out, *rest):
    real_divergence(data, basis, h, begin, end, out, *rest)
    out[begin:end] /= 2


real_gradient, real_sums, real_divergence = kernels.gradient, kernels.sums, kernels.divergence
FAULTS = {
    "gaps": (no_gaps, {}, V),
    "certify": (no_certificate, {"alpha_W": 0.01}, V),
    "certify, priors": (no_certificate, {"prior_H": 0.1, "prior_W": 0.1}, sp.csr_array(V)),
    "gradient": (half_gradient, {"alpha_W": 0.01, "solver": "ccd"}, V),
    "sums": (half_sums, {"solver": "rows"}, as_matrix(sp.csr_array(V), rows_only=True)),
    "divergence": (half_divergence, {"solver": "mu", "max_iter": 2000}, V),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_certificate_that_is_too_small_is_caught(fault, monkeypatch):
    function, parameters, data = FAULTS[fault]
    monkeypatch.setattr(kernels, fault.partition(",")[0], function)
    model = KLNMF(4, **{**SETTINGS, **parameters})
    with pytest.warns(ConvergenceWarning, match=r"Not (verified|converged)") as caught:
        W = model.fit_transform(data)
    assert model.status_ != "converged"
    if model.status_ == "not_verified":
        text = str(caught[-1].message)
        assert f"{model.kkt_residual_:.6e}" in text
        assert f"{model.verification_.gap:.6e}" in text
    monkeypatch.undo()
    if fault != "divergence":  # the gap that the solver claims is not the gap of its factors
        assert model.kkt_residual_ <= model.tol
        assert verify(data, W, model=model).gap > model.kkt_residual_


def test_without_the_verifier_the_fault_would_pass(monkeypatch):
    monkeypatch.setattr(kernels, "gaps", no_gaps)
    model = KLNMF(4, verify=False, **SETTINGS).fit(V)
    assert model.status_ == "converged"
    assert model.verification_ is None
    with pytest.warns(ConvergenceWarning, match="Not verified"):
        model.set_params(verify=True).fit(V)
    assert model.status_ == "not_verified"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "given", [{}, {"sample_weight": np.arange(60) % 3 + 0.5}], ids=["plain", "weights"]
)
def test_the_returned_factors_are_the_verified_ones(dtype, given):
    model = KLNMF(4, dtype=dtype, **SETTINGS)
    W = model.fit_transform(V, **given)
    assert model.status_ == "converged"
    found = verify(as_matrix(V, dtype=dtype), W, model=model, **given)
    assert found == model.verification_
    assert found.gap <= model.tol
    error = 1e-9 + 8 * float(np.finfo(dtype).eps)
    assert found.divergence == pytest.approx(model.kl_divergence_, rel=error)


@pytest.mark.parametrize("given", [{}, {"sample_weight": np.arange(60) % 3 + 0.5}])
@pytest.mark.parametrize("parameters", [{}, {"prior_H": 1.0}], ids=["plain", "prior"])
def test_data_without_counts_are_not_contradicted(given, parameters):
    model = KLNMF(4, **SETTINGS, **parameters)
    W = model.fit_transform(np.zeros((60, 40)), **given)
    assert (model.status_, model.kkt_residual_) == ("converged", 0)
    assert not W.any()


@pytest.mark.parametrize("prior", [{"prior_H": 0.1}, {"prior_W": 0.1, "prior_H": 0.1}])
def test_penalties_that_exceed_the_counts_by_far_are_not_held_against_a_solver(prior):
    """D is the objective less its other terms, so it has their rounding errors."""
    for exponent in (-9, -7, -5):
        model = KLNMF(4, **SETTINGS | {"tol": 1.0, "max_iter": 500}, **prior)
        model.fit(V * 10.0**exponent)
        assert model.status_ != "not_verified"


@pytest.mark.filterwarnings("ignore:.*no observed entry:UserWarning")
def test_an_unseen_feature_with_prior_counts_has_a_finite_gap():
    """The multiplier of its component may not vanish with the rounding errors of huge counts."""
    counts = np.array([[4294967295.0, 366152, 4294967295, 0, 0, 83325, 229373210, 0]])
    mask = np.array([[True, True, False, True, True, True, True, False]])
    for seed in range(20):
        settings = {"random_state": seed, "prior_H": 0.1, "dtype": np.float32, "max_iter": 50}
        model = KLNMF(3, solver="mu", init="random", tol=1e-6, n_jobs=1, **settings)
        model.fit(counts, mask=mask, offsets=[0.49729239])
        assert model.status_ == "converged"


def test_the_verifier_changes_no_bit_of_a_fit():
    with_it, without = (KLNMF(4, verify=verify, **SETTINGS).fit(V) for verify in (True, False))
    assert with_it.components_.tobytes() == without.components_.tobytes()
    assert with_it.kkt_residual_ == without.kkt_residual_


# ---- stalled fits ----------------------------------------------------------------------------


def test_float32_that_cannot_reach_tol_says_so():
    model = KLNMF(4, dtype=np.float32, max_iter=20_000, **SETTINGS | {"tol": 1e-12})
    with pytest.warns(ConvergenceWarning, match="use dtype=float64"):
        model.fit(V)
    assert model.status_ == "working_precision"
    assert model.n_iter_ < 20_000
    exact = KLNMF(4, max_iter=20_000, **SETTINGS | {"tol": 1e-12}).fit(V)
    assert exact.status_ == "converged"  # tol is within the reach of float64


def test_float64_that_cannot_reach_tol_has_stalled():
    model = KLNMF(4, max_iter=20_000, **SETTINGS | {"tol": 1e-19})
    with pytest.warns(ConvergenceWarning, match="accept the gap with a larger `tol`"):
        model.fit(V)
    assert model.status_ == "stalled"
    assert 0 < model.kkt_residual_ < 1e-11


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gap_of_zero_that_the_exact_w_does_not_keep_is_not_sought_forever():
    counts = sp.csc_array([[0, 0, 0, 0], [20, 8, 16, 12]])
    model = KLNMF(
        2,
        tol=0.0,
        max_iter=10,
        init="random",
        transform_tol=1e-6,
        random_state=713008313,
        prior_H=np.array(
            [0.7270864614229479, 0.04898013612218788, 0.24824180503567195, 0.5798786534585503]
        ),
    )
    mask = np.array([[False, True, True, True], [True, True, True, True]])
    offsets = np.array([1.52511506, 0.69497])
    model.fit(counts, mask=mask, sample_weight=np.array([1.5, 0.5]), offsets=offsets)
    assert model.status_ in ("stalled", "converged")
    assert model.kkt_residual_ < 1e-15


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("dtype", "status"), [(np.float32, "working_precision"),
                                               (np.float64, "stalled")])  # fmt: skip
def test_a_tolerance_below_the_rounding_errors_is_no_contradiction(monkeypatch, dtype, status):
    """The solver says 1e-16 and the verifier 1e-12, which is rounding, too."""

    def above_zero(*args):
        found = real(*args)
        return replace(found, gap=max(found.gap, 1e-12), gap_H=max(found.gap_H, 1e-12), rounding=0)

    real = fitting.verify_factors
    monkeypatch.setattr(fitting, "verify_factors", above_zero)
    counts = np.outer([24, 16, 28, 16, 8, 12], [1.0, 2.0])
    model = KLNMF(1, tol=1e-13, dtype=dtype, random_state=0).fit(counts)
    assert model.kkt_residual_ <= model.tol
    assert model.status_ == status


def records(values):
    return [Record(r, r, 0.0, objective, gap, 1.0) for r, objective, gap in values]


def test_a_run_has_stalled_only_if_neither_objective_nor_gap_falls():
    flat = [(100, 5.0, 1e-3), (300, 5.0, 1e-3), (600, 5.0, 0.9e-3)]
    assert is_stalled(records(flat), 1e-9)
    assert not is_stalled(records(flat[:1]), 1e-9)
    assert not is_stalled(records([*flat[:2], (600, 5.0 - 1e-8, 0.9e-3)]), 1e-9)
    assert not is_stalled(records([*flat[:2], (600, 5.0, 0.7e-3)]), 1e-9)
    assert not is_stalled(records([(10, 5.0, 1e-3), (150, 5.0, 1e-3)]), 1e-9)  # too few rounds
