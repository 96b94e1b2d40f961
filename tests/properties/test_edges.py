# SPDX-License-Identifier: BSD-3-Clause
"""At the edges of the types: what leaves their range is refused in one sentence, the rest fits."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from properties.generated import Fits, generated
from properties.matrices import INTEGERS, Recipe, recipes, seeds
from properties.test_klnmf import divergence
from sipower import KLNMF, as_matrix
from sipower.nmf import SOLVERS

TYPES = ("float32", "float64")


@dataclass(frozen=True)
class Edge:
    """Values from 10^low to 10^high, near both ends of a type, and the fit of them."""

    solver: str
    rank: int
    dtype: str
    rows: int
    columns: int
    low: float
    high: float
    sparse: bool
    seed: int

    def values(self):
        """Return the values of the recipe, some of them zero."""
        rng = np.random.default_rng(self.seed)
        exponents = rng.uniform(self.low, self.high, (self.rows, self.columns))
        with np.errstate(over="ignore", under="ignore"):
            V = (np.longdouble(10) ** exponents).astype(self.dtype)
        V[rng.random(V.shape) < 0.3] = 0
        return V


def edges(solver):
    ends = {"float32": (-47.0, 39.0), "float64": (-325.0, 309.0)}

    def draw_edges(name):
        return st.builds(
            lambda solver, rank, size, ab, sparse, seed: Edge(
                solver, rank, name, *size, *sorted(ab), sparse, seed
            ),
            solver,
            st.sampled_from([1, 2, 5]),
            st.tuples(st.integers(1, 12), st.integers(1, 12)),
            st.tuples(st.floats(*ends[name]), st.floats(*ends[name])),
            st.booleans(),
            seeds,
        )

    return st.sampled_from(TYPES).flatmap(draw_edges)


def is_one_sentence(error):
    text = str(error)
    return text.strip() == text and "\n" not in text and text.endswith(".") and len(text) < 300


@generated(edges, SOLVERS, share=80, stress=150)
def test_the_whole_range_of_a_type_fits_or_is_refused_in_a_sentence(edge):
    """Refused: infinite, too small or nothing beside the largest; a sum out of range."""
    V = edge.values()
    data = sp.csr_array(V) if edge.sparse else V
    limits = np.finfo(edge.dtype)
    nonzero = V[V != 0].astype(np.longdouble)
    largest = nonzero.max(initial=0)
    smallest_allowed = max(np.longdouble(1), largest) / np.sqrt(np.longdouble(limits.max))
    fits = (
        np.isfinite(V).all()
        and not (nonzero < smallest_allowed).any()
        and nonzero.sum() <= limits.max
    )
    model = KLNMF(edge.rank, solver=edge.solver, random_state=0, max_iter=10, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No component has feature")  # it fell out of range
        if not fits:
            with pytest.raises(ValueError) as refused:  # noqa: PT011 - its sentence is checked
                model.fit_transform(data)
            assert is_one_sentence(refused.value)
            return
        Fits.number += 1
        W = model.fit_transform(data)
    for number in (W, model.components_, model.kl_divergence_, model.kkt_residual_):
        assert np.isfinite(number).all()
        assert np.min(number) >= 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_up_to_their_limits_fit(dtype, sparse, record_property):
    """float32 rounds them beyond 2^24; those that float64 would round are refused by it."""
    largest = np.iinfo(dtype).max
    near = [n for n in (2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63) if n < largest]
    numbers = ([largest, largest - 1, largest // 2, 1, 0, 3, *near, 1, 2, 0, 5, 7] * 2)[:18]
    V = np.array(numbers, dtype).reshape(6, 3)
    record_property("fits", 2 * len(SOLVERS))
    if largest > 2**53:
        data = sp.csr_array(V) if sparse else V
        with pytest.raises(
            ValueError, match=rf"Entry \(0, 0\) is {largest}, a whole number beyond"
        ):
            KLNMF(2, dtype=np.float64).fit(data)
    for solver, working in itertools.product(SOLVERS, TYPES):
        if working == "float64":  # the largest numbers of the type that it holds
            V = np.array([min(n, 2**63) // 2**10 * 2**10 if n > 2**53 else n for n in numbers])
            V = V.astype(dtype).reshape(6, 3)
        model = KLNMF(2, solver=solver, dtype=working, random_state=0, max_iter=10, tol=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = model.fit_transform(sp.csr_array(V) if sparse else V)
        for number in (W, model.components_, model.kl_divergence_, model.kkt_residual_):
            assert np.isfinite(number).all()
            assert np.min(number) >= 0
        data = V.astype(working).astype(np.longdouble)
        value, size = divergence(data, W, model.components_)
        assert model.kl_divergence_ == pytest.approx(value, abs=1e-12 * size)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [name for name in INTEGERS if name.startswith("int")])
def test_the_least_integers_are_refused_in_a_sentence(dtype, sparse):
    V = np.array([[1, 0], [np.iinfo(dtype).min, 2]], dtype)
    with pytest.raises(ValueError, match=r"Negative values in data: entry \(1, 0\)") as refused:
        KLNMF(1).fit(sp.csr_array(V) if sparse else V)
    assert is_one_sentence(refused.value)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc", "coo", "frame"])
@pytest.mark.parametrize("solver", ["auto", "mu"])
def test_empty_data_are_refused_in_a_sentence(shape, layout, solver):
    V = Recipe(*shape, "zeros", "float64", layout, 0).matrix()
    with pytest.raises(ValueError, match="minimum of 1 is required") as refused:
        KLNMF(2, solver=solver).fit(V)
    assert is_one_sentence(refused.value)


@generated(lambda _: recipes(), ("any",), share=100, stress=1000)
def test_as_matrix_keeps_every_count(recipe):
    """Whatever the layout: the entries, both masses and the total are those of the numbers."""
    V = recipe.matrix()
    matrix = as_matrix(V, dtype="float64")
    truth = recipe.values().astype(np.float64)
    array = matrix.array.toarray() if not matrix.dense else matrix.array
    np.testing.assert_array_equal(array, truth)
    bound = {"rtol": 1e-12, "atol": 0}
    np.testing.assert_allclose(matrix.mass, truth.sum(axis=1), **bound)
    np.testing.assert_allclose(matrix.columns.mass, truth.sum(axis=0), **bound)
    assert matrix.total == pytest.approx(truth.sum(), rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_rank_above_both_dimensions_fits_exactly(solver):
    """With K ≥ min(n, m) there is a factorisation without any error; no solver may break at it."""
    V = Recipe(4, 3, "poisson", "float64", "C", 5).matrix()
    model = KLNMF(40, solver=solver, random_state=0, tol=1e-5, max_iter=3000).fit(V)
    assert model.status_ == "converged"
    assert model.kl_divergence_ <= 1e-2 * V.sum()


def test_a_sum_beyond_the_range_is_refused_without_a_warning():
    with pytest.raises(ValueError, match="sum of the data is too large"):
        KLNMF(2).fit(np.full((11, 1), 1e308))
