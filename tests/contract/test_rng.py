# SPDX-License-Identifier: BSD-3-Clause
"""Every public function with a seed also takes `rng` (SPEC 7), with the same bits."""

import importlib
import inspect

import anndata
import numpy as np
import pytest

import sipower
from sipower import datasets, inference, tl
from sipower.kernels.seeds import choose_seed
from sipower.problems import PCA

V = datasets.poisson_topics(60, 40, 3, seed=1)
MODULES = [importlib.import_module(f"sipower.{name}") for name in (*sipower._MODULES, "inference")]
SEEDS = {"seed", "random_state"}
A = np.random.default_rng(5).normal(size=(30, 4))
GRAPH = np.triu(np.random.default_rng(6).random((20, 20)) < 0.4, 1).astype(float)


def find_seeded():
    """Return the public plain functions that have a seed, by module and name."""
    pairs = [(sipower, name) for name in sipower.__all__]
    pairs += [(module, name) for module in MODULES for name in module.__all__]
    values = [getattr(module, name) for module, name in pairs]
    functions = [value for value in values if inspect.isfunction(value)]
    return {
        f"{value.__module__}.{value.__name__}": value
        for value in functions
        if (SEEDS | {"rng"}) & set(inspect.signature(value).parameters)
    }


def fit():
    return sipower.KLNMF(3, random_state=0, tol=1e-2).fit(V)


def draw_nmf(**seed):
    cells = anndata.AnnData(V.astype("float32"))
    tl.nmf(cells, 3, tol=1e-2, solver="scd", init="random", **seed)
    return cells.obsm["X_nmf"]


def draw_tl_differential(**seed):
    cells = anndata.AnnData(V.astype("float32"))
    tl.nmf(cells, 3, tol=1e-2)
    tl.differential(cells, **seed)
    found = cells.uns["nmf_differential"]
    return [found["verdict"], found["params"]["random_state"]]


def draw_nnmf(**seed):
    options = {"solver": "scd", "init": "random", "tol": 1e-2}
    return sipower.non_negative_factorization(V, n_components=3, **options, **seed)[0]


def draw_check(**seed):
    return [check.measured for check in sipower.check_problem(PCA(A), **seed).checks]


CALLS = {
    "sipower.datasets.synthetic.poisson": lambda **seed: datasets.poisson(40, 30, 0.3, **seed),
    "sipower.datasets.synthetic.poisson_topics": lambda **seed: datasets.poisson_topics(
        40, 30, 3, **seed
    ),
    "sipower.datasets.synthetic.negative_binomial_topics": lambda **seed: (
        datasets.negative_binomial_topics(40, 30, 3, **seed)
    ),
    "sipower.estimators.function.non_negative_factorization": draw_nnmf,
    "sipower.inference.bootstrap.bootstrap": lambda **seed: (
        inference.bootstrap(V, fit(), n=2, **seed).W.upper
    ),
    "sipower.inference.differential.differential": lambda **seed: (
        inference.differential(V, fit(), **seed).replication.similarity
    ),
    "sipower.inference.quality.topic_quality": lambda **seed: (
        inference.topic_quality(V, fit(), **seed).perplexity
    ),
    "sipower.loop.check_problem.check_problem": draw_check,
    "sipower.loop.solve.solve": lambda **seed: (
        sipower.solve(PCA(A), sipower.SSciPi(), stop=sipower.Stop(rounds=2), **seed).x
    ),
    "sipower.problems.max_cut.max_cut": lambda **seed: (
        sipower.max_cut(GRAPH + GRAPH.T, rounds=3, **seed).bound
    ),
    "sipower.results.anndata_differences.differential": draw_tl_differential,
    "sipower.tl.nmf": draw_nmf,
}
SEEDED = find_seeded()


def as_bits(result):
    return np.asarray(result.toarray() if hasattr(result, "toarray") else result).tolist()


def test_every_function_with_a_seed_is_tested_and_takes_rng():
    assert set(SEEDED) == set(CALLS)
    for function in SEEDED.values():
        parameter = inspect.signature(function).parameters["rng"]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default is None


@pytest.mark.parametrize("name", CALLS)
def test_an_integer_gives_the_same_bits_by_either_name(name):
    call, old = CALLS[name], old_name(name)
    before = np.random.get_state()[1:]  # noqa: NPY002 - the global state must not move
    assert as_bits(call(rng=7)) == as_bits(call(**{old: 7})) == as_bits(call(rng=np.int64(7)))
    assert as_bits(call(rng=7)) != as_bits(call(rng=8))
    after = np.random.get_state()[1:]  # noqa: NPY002
    assert before[1:] == after[1:]
    assert (before[0] == after[0]).all()
    parameter = inspect.signature(SEEDED[name]).parameters.get(old)
    if parameter is None or parameter.default is not None:  # None draws a new seed each time
        assert as_bits(call()) == as_bits(call(rng=None)) == as_bits(call(**{old: 0}))


@pytest.mark.parametrize("name", CALLS)
def test_a_generator_gives_its_next_integer_as_the_seed(name):
    call, old = CALLS[name], old_name(name)
    seeds = np.random.default_rng(3).integers(2**32, size=2)
    generator = np.random.default_rng(3)
    first, second = as_bits(call(rng=generator)), as_bits(call(rng=generator))
    assert first == as_bits(call(**{old: int(seeds[0])}))
    assert second == as_bits(call(**{old: int(seeds[1])}))
    assert first != second


@pytest.mark.parametrize("name", CALLS)
def test_both_names_at_once_are_an_error(name):
    old = old_name(name)
    with pytest.raises(ValueError, match=f"`rng` and `{old}` must not both be given"):
        CALLS[name](rng=0, **{old: 0})


def old_name(name):
    return next(iter(SEEDS & set(inspect.signature(SEEDED[name]).parameters)), "random_state")


def test_a_seed_sequence_gives_the_same_seed_in_every_call():
    sequence = np.random.SeedSequence(4)
    seed = choose_seed(sequence, "seed", None)
    assert seed == choose_seed(sequence, "seed", None) == np.random.default_rng(4).integers(2**32)
    assert seed == choose_seed(np.random.PCG64(sequence), "seed", None)


@pytest.mark.parametrize("rng", [-1, 0.5, "7", [1, 2], np.random.RandomState(0)])
def test_other_values_get_one_sentence(rng):
    with pytest.raises(ValueError, match="`rng` must be a non-negative integer, a numpy"):
        datasets.poisson(5, 5, 0.5, rng=rng)
