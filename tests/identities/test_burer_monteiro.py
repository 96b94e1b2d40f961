# SPDX-License-Identifier: BSD-3-Clause
"""Burer-Monteiro and max-cut: ascent, duality, cuts of small graphs."""

import numpy as np
import pytest

from sipower import SciPi, Stop, max_cut, solve
from sipower.problems import (
    BurerMonteiro,
)


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
    monkeypatch.setattr("sipower.problems.burer_monteiro.MAX_DENSE_SIZE", 50)
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


@pytest.mark.parametrize("rank", ["3", 2.5, 0, -1])
def test_a_rank_that_is_no_number_of_columns_is_refused(rank):
    with pytest.raises(ValueError, match="`rank` must be a positive integer"):
        BurerMonteiro(np.ones((4, 4)), rank)


def test_a_graph_without_edges_has_the_cut_zero():
    cut = max_cut(np.zeros((4, 4)))
    assert (cut.weight, cut.bound) == (0.0, 0.0)
    assert (np.abs(cut.sides) == 1).all()
