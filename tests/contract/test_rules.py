# SPDX-License-Identifier: BSD-3-Clause
"""What every update rule promises, plain and guarded, and every driver, on all kinds of data."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Guarded, Status, Stop, as_matrix, load_state, save_state, solve
from sipower.data.sampling import SCHEMES
from sipower.nmf import (
    CCD,
    RULES,
    Alternating,
    Auto,
    Extrapolated,
    Factorization,
    RowRounds,
    SSciPiRule,
    Vanilla,
)

V = oracles.counts(120, 90, density=0.4)
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array, "uint8": lambda v: v.astype(np.uint8)}


def a_rule(name):
    """The rule so that it really samples on data as small as these."""
    return SSciPiRule(shortest=0, batch=0.3, epoch=4) if name == "s-sci-pi" else RULES[name]()


@pytest.fixture(params=sorted(RULES))
def rule(request):
    return a_rule(request.param)


DRIVERS = {"auto": Auto(), "near": Auto(near=True), "extrapolated": Extrapolated(CCD())}


@pytest.fixture(params=[*sorted(RULES), *sorted(DRIVERS)])
def plain(request):
    """A rule in the alternating driver, or a driver of its own."""
    return DRIVERS.get(request.param) or Alternating(a_rule(request.param))


@pytest.fixture
def guarded(plain):
    """The same so that it never raises the objective."""
    return Guarded(plain) if isinstance(plain, Alternating) else plain


@pytest.fixture(params=["plain", "guarded"])
def solver(request, plain, guarded):
    return plain if request.param == "plain" else guarded


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


def run(V, solver, rounds=6, rank=5, seed=3, **options):
    return solve(Factorization(V, rank), solver, stop=Stop(0, rounds=rounds), seed=seed, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_finite_non_negative_and_zero_where_the_data_are(plain, layout, dtype):
    result = run(as_matrix(layout(V), dtype=dtype), plain)
    W, H = result.x
    assert W.dtype == H.dtype == dtype
    assert np.isfinite(W).all()
    assert np.isfinite(H).all()
    assert (W >= 0).all()
    assert (H >= 0).all()
    assert (W[V.sum(axis=1) == 0] == 0).all()
    assert (H[V.sum(axis=0) == 0] == 0).all()
    assert result.value == pytest.approx(oracles.divergence(V, W, H), rel=1e-11)


def test_same_bits_for_any_number_of_threads(solver, layout, monkeypatch):
    monkeypatch.setattr("sipower.kernels.threads.MIN_PARALLEL_SECONDS", 0.0)
    monkeypatch.setattr("sipower.data.block_bounds.MIN_BLOCK", 64)
    one, two, many = (run(as_matrix(layout(V), n_jobs=n), solver).x for n in (1, 2, 16))
    assert one.W.tobytes() == two.W.tobytes() == many.W.tobytes()
    assert one.H.tobytes() == two.H.tobytes() == many.H.tobytes()


def test_same_seed_same_bits_other_seed_other_bits(plain, layout):
    a, b, c = (run(layout(V), plain, seed=s).x.W for s in (1, 1, 2))
    assert a.tobytes() == b.tobytes()
    assert a.tobytes() != c.tobytes()


def test_dense_equals_sparse(rule):
    """Up to rounding, stochastic rules with the same scheme on both."""
    if isinstance(rule, SSciPiRule | Vanilla):
        rule = replace(rule, batch=0.3, epoch=4, scheme="stratified")
    dense, sparse = (run(f(V), Alternating(rule)).x for f in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(dense.W, sparse.W, rtol=1e-8, atol=1e-11)


def test_saving_the_state_after_every_round_changes_no_bit(solver, layout, tmp_path):
    problem = Factorization(layout(V), 5)
    whole = run(problem.V, solver)
    state = solver.init(problem, None, 3)
    for _ in range(6):
        save_state(tmp_path / "state.npz", solver.advance(problem, state))
        state = load_state(tmp_path / "state.npz", solver.init(problem, None, 3))
    assert state.W.tobytes() == whole.state.W.tobytes()
    assert state.H.tobytes() == whole.state.H.tobytes()
    assert (state.step, state.passes) == (whole.state.step, whole.state.passes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_guarded_never_rises(guarded, layout, dtype):
    problem = Factorization(as_matrix(layout(V), dtype=dtype), 5)
    result = solve(problem, guarded, stop=Stop(0, rounds=25), trace="every")
    values = np.array([record.objective for record in result.trace])
    assert (np.diff(values) <= problem.rounding(values[0])).all()
    assert values[-1] < 0.8 * values[0]


def test_input_is_untouched(plain, layout):
    data = layout(V.copy())
    W, H = oracles.factors(120, 90, 5)
    before = data.copy(), W.copy(), H.copy()
    run_from = solve(Factorization(data, 5), plain, (W, H), stop=Stop(0, rounds=3))
    assert run_from.state.round == 3
    difference = abs(data - before[0])
    assert difference.max() == 0
    np.testing.assert_array_equal(W, before[1])
    np.testing.assert_array_equal(H, before[2])


def test_all_zero_data(plain):
    result = run(np.zeros((6, 5)), plain, rank=2)
    assert (result.x.W == 0).all()
    assert result.value == 0
    assert result.status is Status.CONVERGED or result.residual == 0


@pytest.mark.parametrize("rank", [1, 2, 19, 63, 65, 200])
def test_any_rank(guarded, layout, rank):
    problem = Factorization(layout(V), rank)
    result = solve(problem, guarded, stop=Stop(0, rounds=4))
    assert np.isfinite(result.x.W).all()
    assert result.value < result.trace[0].objective


def test_scaling_the_data_scales_the_answer(plain, layout):
    """fit(cV) = c fit(V) bit for bit, c a power of two, in float64."""
    if layout is LAYOUTS["uint8"]:
        pytest.skip("uint8 data cannot be scaled")
    a = run(layout(V), plain).x
    b = run(layout(V * 2.0**20), plain).x
    np.testing.assert_array_equal(a.W @ a.H.T * 2.0**20, b.W @ b.H.T)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("replace", [False, True])
def test_every_scheme_on_every_layout(layout, scheme, replace):
    rule = SSciPiRule(0.3, batch=0.3, epoch=4, scheme=scheme, replace=replace, shortest=0)
    result = run(layout(V), Guarded(Alternating(rule)), rounds=15)
    assert result.value < 0.6 * result.trace[0].objective


def test_rows_only_matrix(rule):
    """Without a transpose the rules that need only sums still run, and guarded ones descend."""
    if isinstance(rule, SSciPiRule):
        rule = SSciPiRule(batch=0.3, epoch=4, scheme="vectors")
    matrix = as_matrix(sp.csr_array(V), rows_only=True)
    if rule.needs_items:
        with pytest.raises(ValueError, match="by row only"):
            run(matrix, Alternating(rule))
        return
    result = run(matrix, Guarded(Alternating(rule)), rounds=10)
    assert result.value < 0.8 * result.trace[0].objective


def test_auto_on_a_rows_only_matrix_takes_rounds_on_rows():
    matrix = as_matrix(sp.csr_array(V), rows_only=True)
    result, expected = (run(matrix, solver, rounds=30) for solver in (Auto(), RowRounds()))
    assert result.value < 0.8 * result.trace[0].objective
    for factor, other in zip(result.x, expected.x, strict=True):
        assert factor.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", ["mu", "sci-pi"])
def test_exact_alternation_descends_faster_per_round(name):
    one = run(V, Alternating(RULES[name]()), rounds=5)
    exact = run(V, Alternating(RULES[name](), tol=1e-4), rounds=5)
    assert exact.value < one.value
    assert exact.passes > one.passes


def test_start_of_another_shape_is_refused():
    with pytest.raises(
        ValueError, match=r"`x0` must hold W and H of shapes \(\(120, 5\), \(90, 5\)\)"
    ):
        solve(Factorization(V, 5), Alternating(RULES["mu"]()), oracles.factors(90, 120, 5))
    with pytest.raises(ValueError, match="`rank` must be a positive integer, got 0"):
        Factorization(V, 0)
    with pytest.raises(ValueError, match="sides"):
        SSciPiRule(sides="short")
