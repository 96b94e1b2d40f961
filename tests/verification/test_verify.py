# SPDX-License-Identifier: BSD-3-Clause
"""The verifier agrees with the library, bounds what SciPy gains, and rejects bad factors."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import rel_entr
from sklearn.decomposition import PCA

import oracles
from model_options import make_options
from sipower import KLNMF, as_matrix, verify
from sipower.estimators.model import Model
from sipower.estimators.observation import ARGUMENTS
from sipower.io import open_store
from sipower.nmf import Factors
from sipower.nmf.batch_effects import BatchFactors
from sipower.store import write_store
from sipower.verification import row_pass

V = oracles.counts(60, 40)
RANK = 4
OPTIONS = {"plain": ({}, {}), **make_options(V.shape, RANK)}
LAYOUTS = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "rows": lambda V: as_matrix(sp.csr_array(V), rows_only=True),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*The data do not support this guide"),
    pytest.mark.filterwarnings("ignore:.*cannot be told from its components"),
]


def fit(X, parameters, given, **settings):
    """Return a model after a few rounds, and its W."""
    settings = {"random_state": 0, "max_iter": 5, "tol": 0, "n_jobs": 1, **settings}
    model = KLNMF(RANK, **settings, **parameters)
    return model, model.fit_transform(X, **given)


def as_model(model, X, given, *, reset=False):
    """Return the problem of a model and its data as the solvers have it."""
    values = tuple(given.get(name) for name in ARGUMENTS)
    data, observation = model._observe(X, values, reset=reset)
    return Model(model, model._prepare(data, observation), 0)


def in_library(model, X, W, given):
    """Return objective, divergence and gap by the code of the solvers."""
    prepared = as_model(model, X, given)
    scaled = prepared.prepared
    x = Factors(
        scaled.scale_rows(np.ascontiguousarray(W)),
        scaled.scale_columns(np.ascontiguousarray(model.components_.T)),
    )
    problem = prepared.problem(x)
    if "batch" in given:
        effects = np.array(model.batch_effects_)
        if not np.any(problem.terms.fixed_features):
            for _ in range(500):  # the scale of the penalty: all means are 1
                effects /= effects.mean(axis=0)
                effects /= effects.mean(axis=1, keepdims=True)
        change = effects / model.batch_effects_
        W_change = change[:, 0] / change[0, 0]
        batch = np.searchsorted(model.batches_, given["batch"])
        x = BatchFactors(x.W / W_change[batch][:, None], x.H / change[0][:, None], effects)
    value = problem.value(x)
    return value, problem.without_penalties(value, x), problem.residual(x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPTIONS)
def test_the_verifier_agrees_with_the_library_on_every_model(name, layout):
    parameters, given = OPTIONS[name]
    X = LAYOUTS[layout](V)
    model, W = fit(X, parameters, given)
    found = verify(X, W, model=model, **given)
    objective, divergence, gap = in_library(model, X, W, given)
    assert found.objective == pytest.approx(objective, rel=1e-10)
    assert found.divergence == pytest.approx(divergence, rel=1e-10)
    assert gap > 1e-9  # not a solution, where both could be zero
    assert found.gap == pytest.approx(gap, rel=1e-8, abs=1e-13)
    assert found.gap == pytest.approx(found.gap_W + found.gap_H + found.gap_effects)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("parameters", [{}, {"prior_H": 0.2}], ids=["free", "mean one"])
@pytest.mark.parametrize("others", ["alone", "all weights"])
def test_the_verifier_agrees_with_the_library_on_batches(parameters, others, layout):
    given = {"batch": np.arange(len(V)) % 3, **({} if others == "alone" else OPTIONS[others][1])}
    X = LAYOUTS[layout](V)
    model, W = fit(X, parameters, given, max_iter=40)
    found = verify(X, W, model=model, **given)
    objective, divergence, gap = in_library(model, X, W, given)
    assert found.objective == pytest.approx(objective, rel=1e-10)
    assert found.divergence == pytest.approx(divergence, rel=1e-10)
    # If the means are fixed, the verifier bounds the gap of the effects by a fixed multiplier.
    assert found.gap >= gap - 1e-12
    assert found.gap_W + found.gap_H <= gap + 1e-12
    if not parameters:
        assert found.gap == pytest.approx(gap, rel=1e-6, abs=1e-12)


def test_a_store_has_the_numbers_of_memory(tmp_path, monkeypatch):
    write_store(sp.csr_array(V), tmp_path / "rows", rows_only=True)
    stored = open_store(tmp_path / "rows")
    for name in ("plain", "all weights", "penalties beside weights"):
        parameters, given = OPTIONS[name]
        model, W = fit(sp.csr_array(V), parameters, given)
        here = verify(sp.csr_array(V), W, model=model, **given)
        monkeypatch.setattr(row_pass, "ENTRIES_AT_ONCE", 300)  # several groups of rows
        there = verify(stored, W, model=model, **given)
        monkeypatch.undo()
        assert there.objective == pytest.approx(here.objective, rel=1e-12)
        assert there.gap == pytest.approx(here.gap, rel=1e-10)
        assert (there.worst_sample, there.worst_feature) == (here.worst_sample, here.worst_feature)


# ---- against SciPy ---------------------------------------------------------------------------


def smallest(objective, start):
    """Return the minimum over non-negative arrays that L-BFGS-B finds."""
    result = minimize(
        lambda h: objective(h.reshape(start.shape)), start.ravel(), method="L-BFGS-B",
        bounds=[(1e-12, None)] * start.size,
        options={"maxfun": 10**6, "maxiter": 4000, "ftol": 1e-13},
    )  # fmt: skip
    return result.fun


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["plain", "weights", "L1 and L2"])
def test_no_change_of_one_factor_gains_more_than_its_gap(name, seed):
    rng = np.random.default_rng(seed)
    data, rank = rng.poisson(3.0, (6, 5)) * 1.0, 2
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], data.shape) if name == "weights" else None
    alpha, share = (0.05, 0.5) if name == "L1 and L2" else (0.0, 0.0)
    model = KLNMF(rank, alpha_W=alpha, alpha_H=alpha, l1_ratio=share)
    W, H = rng.random((6, rank)) + 0.1, rng.random((rank, 5)) + 0.1
    omega = np.ones(data.shape) if weights is None else weights

    def objective(W, H):
        Z = W @ H
        D = (omega * (rel_entr(data, Z) - data + Z)).sum()
        for factor, size in ((W, data.shape[1]), (H, data.shape[0])):
            penalty = share * factor.sum() + (1 - share) * (factor**2).sum() / 2
            D += alpha * size * penalty
        return D

    found = verify(data, W, H, model=model, weights=weights)
    now, total = objective(W, H), (omega * data).sum()
    assert found.objective == pytest.approx(now, rel=1e-12)
    gain_W = now - smallest(lambda other: objective(other, H), W)
    gain_H = now - smallest(lambda other: objective(W, other), H)
    assert 0 < gain_W <= found.gap_W * total * (1 + 1e-9)
    assert 0 < gain_H <= found.gap_H * total * (1 + 1e-9)


def test_the_gap_vanishes_at_a_solution_and_nowhere_else():
    model, W = fit(V, {}, {}, tol=1e-9, max_iter=3000)
    H = model.components_
    assert verify(V, W, H).gap <= 1e-9
    assert verify(V, W, H).gap_W <= model.transform_tol_  # W is exact for H
    for factor in (W, H):
        place = np.unravel_index(factor.argmax(), factor.shape)
        before, factor[place] = factor[place], 1.01 * factor[place]
        assert verify(V, W, H).gap > 1e-6
        factor[place] = before


def test_factors_that_do_not_explain_a_count_have_an_infinite_gap():
    W, H = np.ones((2, 1)), np.array([[1.0, 0.0]])
    found = verify([[1, 0], [1, 2]], W, H)
    assert found.gap == np.inf
    assert found.divergence == np.inf
    assert not found.is_converged(1.0)


def test_a_product_that_is_almost_zero_explains_nothing():
    """No sum overflows: the answer is an infinite gap and no warning."""
    counts = np.array([[1e15, 3], [2, 5]])
    W, H = np.array([[1e-310, 0], [1, 2]]), np.array([[1.0, 0], [3, 1]])
    for parameters in ({}, {"prior_H": 1.0}, {"prior_W": 1.0}, {"alpha_W": 0.1}):
        found = verify(counts, W, H, model=KLNMF(2, **parameters))
        assert found.gap == np.inf
        assert np.isfinite(found.rounding)
        assert not found.is_converged(1.0)


def test_bad_factors_get_one_sentence():
    with pytest.raises(ValueError, match=r"`W` and `H` must have the shapes \(60, K\) and"):
        verify(V, np.ones((60, 2)), np.ones((3, 40)))
    with pytest.raises(ValueError, match="`H` must be finite and non-negative"):
        verify(V, np.ones((60, 2)), -np.ones((2, 40)))
    with pytest.raises(ValueError, match="`H` must be given unless `model` is a fitted KLNMF"):
        verify(V, np.ones((60, 2)))
    with pytest.raises(ValueError, match="`batch` needs `model`"):
        verify(V, np.ones((60, 2)), np.ones((2, 40)), batch=np.arange(60) % 2)


def test_a_component_without_prior_counts_may_grow_from_zero():
    """Its sum was held at zero, because another component had prior counts."""
    rows = np.arange(100) < 10
    counts = np.zeros((100, 11))
    counts[:, :5] = np.where(rows[:, None], 20, 100)
    counts[:, 5:10] = np.where(rows[:, None], 100, 20)
    counts[0, 10] = 1
    prior = np.zeros((2, 11))
    prior[0] = 0.1
    model = KLNMF(2, prior_H=prior)
    H = np.vstack([(counts.sum(axis=0) + 0.1) / (counts.sum() + 1.1), np.zeros(11)])
    W = np.column_stack([counts.sum(axis=1), rows])
    found = verify(counts, W, H, model=model)
    other = np.vstack([0.9 * H[0], 0.5 * counts[rows].mean(axis=0)])  # the profile is the same
    gain = found.objective - verify(counts, W, other, model=model).objective
    assert gain > 1e-2 * counts.sum()
    assert found.gap_H * counts.sum() >= gain
    problem = as_model(model, counts, {}, reset=True).problem(x := Factors(W, H.T.copy()))
    assert problem.residual(x) == pytest.approx(found.gap, rel=1e-9)


def test_given_entries_that_differ_make_the_objective_infinite():
    zero = np.zeros((RANK, V.shape[1]), bool)
    zero[3, :5] = True
    known = np.random.default_rng(1).random((2, V.shape[1]))
    model = KLNMF(RANK, random_state=0, components_fixed=known, components_zero=zero)
    W, H = model.fit_transform(V), model.components_
    assert verify(V, W, model=model).is_converged(model.tol)
    # Single precision is enough.
    assert np.isfinite(verify(V, W, H.astype(np.float32).astype(float), model=model).gap)
    for at in ((0, 7), (3, 2)):
        other = H.copy()
        other[at] += 1e-3
        found = verify(V, W, other, model=model)
        assert (found.objective, found.gap) == (np.inf, np.inf)
        assert np.isfinite(found.divergence)


MODELS = {
    "a penalty below zero": ({"alpha_W": -1}, "'alpha_W'"),
    "too much l1": ({"alpha_W": 0.1, "l1_ratio": 2}, "'l1_ratio'"),
    "other components": ({"n_components": 7}, "n_components = 7 of `model`, got 4"),
    "missing": ({"missing": "zz"}, "'missing'"),
    "known components": ({"components_fixed": np.ones((2, 3))}, "one column for each of the 40"),
    "too many": ({"components_fixed": np.ones((5, 40))}, "at most n_components = 4 rows"),
    "forbidden": ({"components_zero": np.zeros((3, 40), bool)}, "boolean with shape"),
    "weights": ({"prior_W": [1.0, 2.0]}, "`prior_W` must be a number or have shape"),
    "profiles": ({"prior_H": [1.0, 2.0]}, "`prior_H` must be a number or have shape"),
    "both": ({"prior_H": 1.0, "alpha_W": 0.1}, "cannot be combined"),
    "text": ({"alpha_W": "x"}, "'alpha_W'"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_no_fit_takes_is_refused(name):
    parameters, message = MODELS[name]
    W, H = np.ones((V.shape[0], RANK)), np.ones((RANK, V.shape[1]))
    with pytest.raises(ValueError, match=message):
        verify(V, W, H, model=KLNMF(**{"n_components": RANK} | parameters))


def test_what_is_no_model_is_refused():
    with pytest.raises(TypeError, match="`model` must be a KLNMF, got PCA"):
        verify(V, np.ones((60, 2)), np.ones((2, 40)), model=PCA())


def test_batches_and_names_of_the_fit_are_not_forgotten():
    batch = np.arange(60) % 2
    model = KLNMF(RANK, random_state=0, max_iter=3, tol=0)
    W = model.fit_transform(V, batch=batch)
    with pytest.raises(ValueError, match="`batch` must be given"):
        verify(V, W, model=model)
    frame = pd.DataFrame(V, columns=[f"word {j}" for j in range(40)])
    W = model.fit_transform(frame)
    assert np.isfinite(verify(frame, W, model=model).gap)
    turned = frame[frame.columns[::-1]]
    with pytest.raises(ValueError, match="feature names should match"):
        verify(turned, W, model=model)
    H = pd.DataFrame(model.components_, columns=frame.columns)
    assert verify(turned, W, H).gap == pytest.approx(verify(frame, W, H).gap)


def test_factors_of_extreme_scale_are_verified():
    model = KLNMF(RANK, random_state=0)
    W = model.fit_transform(V)
    found = verify(V, W * 1e200, model.components_ / 1e200)
    assert found.gap == pytest.approx(model.verification_.gap, rel=1e-9)
