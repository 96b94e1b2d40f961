# SPDX-License-Identifier: BSD-3-Clause
"""The objective and the certificate of KL-NMF with weights, missing values and batch effects."""

import numpy as np
import pytest
from scipy.special import rel_entr

import oracles
from identities.item_examples import LAYOUTS
from identities.model_examples import EXPOSURES, RANK, M, N, V, divergence, model, random_weights
from sipower import Stop, solve
from sipower.nmf import RULES, Factorization, Factors, make_solver


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


@pytest.fixture
def x0():
    return Factors(*oracles.factors(N, M, RANK))


# ---- the objective ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", EXPOSURES)
def test_the_value_is_the_divergence_of_the_model(kind, x0, layout):
    problem, data, X = model(kind, layout)
    expected = divergence(data, X, x0)
    assert problem.value(x0) == pytest.approx(expected, rel=1e-12)
    assert problem.without_penalties(problem.value(x0), x0) == pytest.approx(expected, rel=1e-12)
    assert problem.quick_value(x0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", EXPOSURES)
def test_weights_multiply_the_divergence_of_their_entry(kind, x0, layout):
    """D(ωV ‖ ωZ) = Σ ω [v log(v/z) − v + z]."""
    problem, _, X = model(kind, layout)
    weights = np.ones((N, M)) if kind == "batches" else random_weights()
    Z = np.where(weights > 0, X / np.where(weights > 0, weights, 1), 1) * (x0.W @ x0.H.T)
    expected = (weights * (rel_entr(V, Z) - V + Z)).sum()
    assert problem.value(x0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", EXPOSURES)
def test_in_float32_the_quick_value_has_a_small_error(kind, x0, layout):
    problem, data, X = model(kind, layout, V.astype(np.float32))
    if problem.dtype != np.float32:
        problem = Factorization(layout(data.astype(np.float32)), RANK, problem.terms)
    x = Factors(*(factor.astype(np.float32) for factor in x0))
    expected = divergence(data, X, Factors(*(factor.astype(float) for factor in x)))
    assert problem.dtype == np.float32
    assert problem.value(x) == pytest.approx(expected, rel=1e-6)
    assert abs(problem.quick_value(x) - expected) <= problem.rounding(expected)


@pytest.mark.parametrize("kind", EXPOSURES)
def test_the_residual_is_the_certified_gap_of_both_halves(kind, x0, layout):
    """kl_div(c, d·h) + c (max G − 1) for every row of W and of H, by dense matrices."""
    problem, data, X = model(kind, layout)
    total = 0.0
    for h, B, v, exposure in ((x0.W, x0.H, data, X), (x0.H, x0.W, data.T, X.T)):
        c, d = v.sum(axis=1), exposure @ B
        mass = (d * h).sum(axis=1)
        scaled = h * np.divide(c, mass, out=np.zeros_like(c), where=mass > 0)[:, None]
        Z = scaled @ B.T
        quotient = np.divide(v, Z, out=np.zeros_like(Z), where=v > 0)
        G = np.divide(quotient @ B, d, out=np.zeros_like(d), where=d > 0)
        total += (rel_entr(c, mass) - c + mass).sum() + c @ (np.maximum(G.max(axis=1), 1) - 1)
    assert problem.residual(x0) == pytest.approx(total / data.sum(), rel=1e-9)


@pytest.mark.parametrize("kind", EXPOSURES)
@pytest.mark.parametrize("name", ["auto", *sorted(set(RULES) - {"vanilla"})])
def test_every_solver_descends_to_a_certified_point(name, kind, x0, layout):
    problem, _, _ = model(kind, layout)
    values = [problem.value(x0)]
    stop = Stop(1e-3, rounds=60 if name != "pgd" else 15)
    result = solve(
        problem,
        make_solver(name),
        x0,
        stop=stop,
        on_state=lambda record, state: values.append(problem.value(state.x)),
    )
    rounding = problem.rounding(values[0])
    assert (np.diff(values) <= rounding).all()
    assert problem.residual(result.x) < 0.2 * problem.residual(x0)
