# SPDX-License-Identifier: BSD-3-Clause
"""Fit generated models, and check each result by plain NumPy.

python fuzz/fits.py --inputs 1000 --seed 0

A fit must be finite and non-negative, must not change its arguments, and must report the
divergence of its factors. Expectation maximisation may not gain more than the certified gap, and
one and two threads must give the same bits. Some inputs are refits to known components or
differential analyses instead.
"""

from __future__ import annotations

import pickle
import random
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests")]

import driver  # noqa: E402 - the line above makes these imports possible
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from model_cases import REFUSALS, FitCase, draw_case  # noqa: E402
from scipy.special import rel_entr  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402

from properties.matrices import copy_contents, is_unchanged  # noqa: E402
from sipower import KLNMF, as_matrix, differential, refit, verify  # noqa: E402

EM_STEPS = 5
SAME_BITS = 0.05  # share of the fits that are repeated with two threads
REFITS, DIFFERENTIALS = 0.05, 0.02  # shares of the inputs
HIGHEST = 1e9  # sum of counts that are made from components


def target(source: random.Random) -> str:
    """Run one input and return what it was."""
    kind = source.random()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in (ConvergenceWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        if kind < REFITS:
            return check_refit(source)
        if kind < REFITS + DIFFERENTIALS:
            return check_differential(source)
        return check_fit(draw_case(source), source)


# ---- fits ----------------------------------------------------------------------------------------


def check_fit(case: FitCase, source: random.Random) -> str:
    """Fit and check everything that is promised about the result."""
    V = case.data()
    before, arguments = copy_contents(V), pickle.dumps((case.observed, case.start))
    solver = case.parameters["solver"]
    word = f"fit {solver:13} {'general' if case.observed or case.terms else 'plain'}"
    try:
        model, W = run_fit(case, V, 1)
    except ValueError as problem:
        if not str(problem).startswith(REFUSALS):
            raise
        return f"{word}, refused"
    finally:
        assert pickle.dumps((case.observed, case.start)) == arguments, "an argument changed"
    assert equal_with_nan(before, V), "the data changed"
    H, shape = model.components_, (case.recipe.rows, case.recipe.columns)
    rank = case.parameters["n_components"]
    assert (W.shape, H.shape) == ((shape[0], rank), (rank, shape[1]))
    for factor in (W, H):
        assert np.isfinite(factor).all(), "a factor is not finite"
        assert (factor >= 0).all(), "a factor is negative"
    check_components(case, H)
    check_divergence(case, model, W, to_dense(V).astype(W.dtype).astype(np.float64))
    check_verification(case, model, W, V)
    large = shape[0] > 100
    if source.random() < (0.5 if large else SAME_BITS):
        again, W_again = run_fit(case, V, 2)
        assert W_again.tobytes() == W.tobytes(), "two threads give other bits of W"
        assert again.components_.tobytes() == H.tobytes(), "two threads give other bits of H"
        word += ", same bits"
    return word


def run_fit(case: FitCase, V: Any, jobs: int) -> tuple[KLNMF, np.ndarray]:
    """Return the fitted model and W."""
    model = KLNMF(**case.parameters, n_jobs=jobs)
    return model, model.fit_transform(V, **case.start, **case.observed)


def equal_with_nan(before: list[np.ndarray], V: Any) -> bool:
    """Return whether V is as before; NaN equals NaN."""
    if isinstance(V, np.ndarray) and V.dtype.kind == "f":
        return np.array_equal(before[0], V, equal_nan=True)
    return is_unchanged(before, V)


def to_dense(V: Any) -> np.ndarray:
    """Return the data as an array."""
    return V.toarray() if sp.issparse(V) else np.asarray(V)


def check_components(case: FitCase, H: np.ndarray) -> None:
    """Check that known components and forbidden entries are as they were given."""
    known = case.parameters.get("components_fixed")
    if known is not None:
        assert (H[: len(known)] == known.astype(H.dtype)).all(), "a known component changed"
    zero = case.parameters.get("components_zero")
    assert zero is None or not H[zero].any(), "a forbidden entry is not zero"


def check_divergence(case: FitCase, model: KLNMF, W: np.ndarray, V: np.ndarray) -> None:
    """Check the divergence, its descent, and the certificate."""
    omega = case.weights(V)
    V = np.where(omega > 0, V, 0.0)
    X = np.ones(V.shape)
    if "batch" in case.observed:
        X = model.batch_effects_[np.searchsorted(model.batches_, case.observed["batch"])]
    if "offsets" in case.observed:
        X = X * case.observed["offsets"][:, None]
    W, H = W.astype(float), model.components_.astype(float)
    value, size = divergence(V, X, omega, W, H)
    eps = float(np.finfo(model.components_.dtype).eps)
    total = float((omega * V).sum())
    general = bool(case.observed or case.terms)
    rounding = (1e-13 if not general else 1e-12) * (H.shape[0] + 20) * size
    if general and eps > 1e-10:  # weighted data are rounded to the working type
        rounding += 8 * eps * size
    # D is the objective without its penalties, and has the rounding error of both.
    rounding += 1e-14 * abs(model.trace_[-1].objective)
    error = abs(model.kl_divergence_ - value)
    assert error <= rounding, f"D is {value}, reported as {model.kl_divergence_}"
    if {"W", "H", "both", "guides", "penalties"} & case.terms:
        return  # the certificate is that of another objective
    better_w = divergence(V, X, omega, run_em(V, X, omega, W, H), H)[0]
    free = find_free_entries(case, H)
    H_em = run_em(V.T, X.T, omega.T, H.T, W.T).T
    better_h = divergence(V, X, omega, W, np.where(free, H_em, H))[0]
    gained = max(value - better_w, 0.0) + max(value - better_h, 0.0)
    allowed = model.kkt_residual_ * total + 2 * rounding + 1e-9 * total
    if "sample_weight" in case.observed:  # W is solved once more after the certificate
        allowed += 2 * model.transform_tol_ * total
    assert gained <= allowed, f"EM gains {gained}, the certificate allows {allowed}"


def check_verification(case: FitCase, model: KLNMF, W: np.ndarray, V: Any) -> None:
    """Check that the verifier confirms what the solver says, converged or not."""
    assert model.status_ != "not_verified", "the verifier contradicts the solver"
    dense, is_missing = to_dense(V).astype(float), "missing" in case.terms
    total = float(np.nansum(case.weights(dense) * dense))
    if not total > 0:  # no counts: the factors are zero
        return
    data = V if is_missing else as_matrix(V, dtype=W.dtype)
    found = verify(data, W, model=model, **case.observed)
    error = 1e-9 + 8 * float(np.finfo(W.dtype).eps)
    if model.status_ == "converged":
        # Data with missing entries are verified above as they are, not in the working type.
        tol = model.tol + (error if is_missing else 0.0)
        assert found.is_converged(tol), f"{found}, but converged"
    if "sample_weight" in case.observed:  # W is solved once more after the certificate
        return
    D, gap = model.kl_divergence_, model.kkt_residual_
    error += found.rounding
    assert abs(found.divergence - D) <= error * (total + D), f"{found}, not D = {D}"
    # Far from a solution, the multipliers of prior counts amplify rounding errors: in one fit of
    # 100,000, by 15 % of the gap. At a solution the gap is checked above, to a rounding error.
    assert found.gap_W + found.gap_H <= 1.5 * gap + error, f"{found}, not a gap of {gap}"


def find_free_entries(case: FitCase, H: np.ndarray) -> np.ndarray:
    """Return which entries of H the fit may change."""
    free = np.ones(H.shape, bool)
    free[: len(case.parameters.get("components_fixed", ()))] = False
    return free & ~case.parameters.get("components_zero", np.zeros(H.shape, bool))


def divergence(
    V: np.ndarray, X: np.ndarray, omega: np.ndarray, W: np.ndarray, H: np.ndarray
) -> tuple[float, float]:
    """Return Σ ω [V log(V/Z) − V + Z] with Z = X W H, and the sum of the sizes of its terms."""
    V, W, H = (array.astype(np.longdouble) for array in (V, W, H))
    Z = X * (W @ H)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(V > 0, V * np.log(V / Z), 0)
    used = omega > 0
    value = (omega * np.where(used, terms - V + Z, 0)).sum()
    return float(value), float((omega * np.where(used, np.abs(terms) + V + Z, 0)).sum())


def run_em(
    V: np.ndarray, X: np.ndarray, omega: np.ndarray, W: np.ndarray, H: np.ndarray
) -> np.ndarray:
    """Return W after a few steps of EM, none of which raises the divergence."""
    W = np.maximum(W, 1e-12 * W.max(initial=1e-300))
    mass = (omega * X) @ H.T
    for _ in range(EM_STEPS):
        Z = W @ H
        ratio = np.divide(omega * V, Z, out=np.zeros_like(Z), where=(V > 0) & (Z > 0))
        W = W * np.divide(ratio @ H.T, mass, out=np.zeros_like(W), where=mass > 0)
    return W


# ---- refits and differential analyses ------------------------------------------------------------


def draw_counts(source: random.Random) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Draw counts from components, and return both."""
    rng = np.random.default_rng(source.getrandbits(64))
    rank, n, m = source.randint(1, 6), source.randint(1, 20), source.randint(2, 40)
    H = rng.dirichlet(np.full(m, source.choice((0.1, 1.0))), rank)
    W = rng.gamma(0.5, source.choice((1.0, 30.0, 1000.0)), (n, rank))
    return rng.poisson(W @ H), H, rng


def check_refit(source: random.Random) -> str:
    """Refit counts to their components."""
    V, H, _ = draw_counts(source)
    before = V.copy(), H.copy()
    sparse, intervals = source.random() < 0.7, source.random() < 0.5
    given = sp.csr_array(V) if source.random() < 0.5 else V
    result = refit(given, H, sparse=sparse, intervals=intervals, n_jobs=1)
    assert all(np.array_equal(a, b) for a, b in zip(before, (V, H), strict=True))
    E = result.exposures
    assert np.isfinite(E).all()
    assert (E >= 0).all()
    assert not E[~result.support].any(), "a component without support has exposure"
    assert ((result.p_value >= 0) & (result.p_value <= 1)).all()
    assert (result.deviance >= -1e-9).all()
    used = V * (H.sum(axis=0) > 0)
    value = rel_entr(used, E @ H).sum(axis=1) - used.sum(axis=1) + E.sum(axis=1)
    np.testing.assert_allclose(result.deviance, 2 * value, rtol=1e-6, atol=1e-6)
    ones = np.ones(V.shape)
    better = run_em(used, ones, ones, E, H) * result.support
    gained = value - rel_entr(used, better @ H).sum(axis=1) + used.sum(axis=1) - better.sum(axis=1)
    assert (gained <= 1e-5 * (1 + used.sum(axis=1))).all(), f"EM gains {gained.max()}"
    if intervals:
        assert (result.lower <= E * (1 + 1e-9) + 1e-9).all()
        assert (result.upper >= E * (1 - 1e-9) - 1e-9).all()
    return f"refit, {'sparse' if sparse else 'all components'}"


def check_differential(source: random.Random) -> str:
    """Analyse the differences between fitted components."""
    V, H, _ = draw_counts(source)
    before, rank = V.copy(), len(H)
    contrast = source.choice(("least extreme", "null", "pairwise"))
    model = KLNMF(rank, random_state=source.getrandbits(31), n_jobs=1)
    try:
        model.fit(V)
        result = differential(V, model, contrast=contrast, check=source.random() < 0.3)
    except ValueError:
        if rank > 1 and V.any():
            raise
        return "differential analysis, refused"
    assert np.array_equal(before, V)
    assert ((result.lfsr >= 0) & (result.lfsr <= 1)).all()
    assert np.isfinite(result.log2_fold_change).all()
    assert (result.standard_error > 0).all()
    assert (result.lower <= result.upper).all()
    np.testing.assert_allclose(result.profiles.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_array_equal(result.counts, V.sum(axis=0))
    return "differential analysis"


if __name__ == "__main__":
    driver.main(target)
