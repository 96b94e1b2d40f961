# SPDX-License-Identifier: BSD-3-Clause
"""Starts of a fit: surplus components, races, and what holds for them as for any fit."""

import numpy as np
import pytest

import oracles
from sipower import KLNMF, Stop, as_matrix, solve
from sipower.datasets import poisson_topics
from sipower.estimators.race import FIRST_PASSES
from sipower.nmf import Alternating, Auto, Factorization, PowerSearch
from sipower.nmf.auto import RACE_PASSES
from sipower.nmf.surplus import surplus_start

V = poisson_topics(200, 120, 12, length=60, seed=0)  # more topics than components
RACES = [{"init": "auto"}, {"init": "random", "n_init": 3}, {"init": "auto", "n_init": 2}]


def fit(**parameters):
    settings = {"n_components": 6, "random_state": 0, "tol": 1e-7, "max_iter": 400} | parameters
    return KLNMF(**settings).fit(V)


def test_a_surplus_start_is_lower_than_power_steps_of_the_same_cost():
    """Medians of five seeds, on topics that overlap."""
    differences = []
    for seed in range(5):
        matrix = as_matrix(poisson_topics(300, 200, 10, length=100, seed=seed))
        problem = Factorization(matrix, 10)
        x, passes = surplus_start(Factorization(matrix, 10), seed)
        assert (x.W.shape, x.H.shape) == ((300, 10), (200, 10))
        assert all((factor > 0).all() for factor in x)
        solver, stop = Alternating(PowerSearch()), Stop(0, passes=40)
        surplus = solve(problem, solver, x, stop=stop)
        random = solve(problem, solver, seed=seed, stop=Stop(0, passes=40 + passes))
        differences.append(surplus.value - random.value)
    assert np.median(differences) < 0


def test_auto_keeps_the_lower_of_a_random_and_a_surplus_start():
    """The two fits again by hand."""
    matrix = as_matrix(V)
    problem = Factorization(matrix, 6)
    state = Auto(surplus=True).init(problem, None, 0)
    winner = Auto(surplus=True).advance(problem, state)
    x, cost = surplus_start(Factorization(matrix, 6), 0)
    runs = [
        solve(problem, Auto(), start, stop=Stop(0, passes=RACE_PASSES - passes))
        for start, passes in ((None, 0.0), (x, cost + problem.value_passes))
    ]
    assert winner.value == pytest.approx(min(run.value for run in runs), rel=1e-12)
    assert winner.round == 1
    assert winner.passes >= 2 * RACE_PASSES


@pytest.mark.parametrize("race", RACES[1:], ids=str)
def test_the_winner_is_the_lowest_when_the_others_are_dropped(race):
    """The first rung again by hand, without the race."""
    problem = Factorization(as_matrix(V), 6)
    model = fit(**race)
    values = [
        solve(
            problem,
            Auto(surplus=race["init"] == "auto"),
            seed=seed,
            stop=Stop(1e-7, passes=FIRST_PASSES),
        ).value
        for seed in range(race["n_init"])
    ]
    assert model.trace_[0].objective <= min(values) * (1 + 1e-12)
    assert model.kl_divergence_ <= model.trace_[0].objective * (1 + 1e-9)


@pytest.mark.parametrize("race", RACES, ids=str)
def test_a_race_gives_the_same_bits_for_any_number_of_threads(race):
    one, two = (fit(**race, n_jobs=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.components_, two.components_)


def test_one_random_start_is_no_race():
    model = fit(init="random")
    assert (model.trace_[0].round, model.trace_[0].passes) == (0, 0)


def test_dense_data_with_a_sample_have_no_surplus_start():
    problem = Factorization(oracles.counts(1200, 20), 3)
    assert Auto(surplus=True).init(problem, None, 0).phase == "sample"
    x = Auto().init(problem, None, 0).x
    assert Auto(surplus=True).init(Factorization(V, 6), None, 0).phase == "race"
    given = Auto(surplus=True).init(problem, x, 0)
    assert given.phase != "race"


@pytest.mark.parametrize("race", RACES, ids=str)
def test_a_fit_killed_in_or_after_its_race_goes_on_to_the_same_bits(race, tmp_path):
    whole = fit(**race)
    last_of_race = whole.trace_[0].passes
    for name, passes in (("in", last_of_race / 2), ("after", whole.trace_[-1].passes)):

        class Killed(BaseException):
            pass

        def dies(record, passes=passes, error=Killed):
            if record.passes >= passes:
                raise error

        checkpoint = {"checkpoint": tmp_path / name, "checkpoint_every": 0}
        with pytest.raises(Killed):
            fit(**race, **checkpoint, on_round=dies)
        resumed = fit(**race, **checkpoint)
        np.testing.assert_array_equal(resumed.components_, whole.components_)
        assert resumed.n_iter_ == whole.n_iter_


def test_rounds_and_passes_are_those_of_all_starts():
    rounds = []
    model = KLNMF(6, init="random", n_init=3, solver="mu", max_iter=90, tol=0, random_state=0)
    model.set_params(on_round=lambda record: rounds.append(record.round)).fit(V)
    assert rounds[: model.n_iter_] == list(range(1, model.n_iter_ + 1))
    assert model.n_iter_ <= 90
    assert model.trace_[0].passes > 2 * FIRST_PASSES or model.n_iter_ == 90
    assert np.all(np.diff([record.passes for record in model.trace_]) >= 0)


def test_a_race_ends_when_it_is_asked_to():
    rounds = []

    def stops(record):
        rounds.append(record.round)
        return True

    model = KLNMF(6, random_state=0, n_init=4, on_round=stops).fit(V)
    assert model.status_ == "stopped"
    assert np.isfinite(model.kl_divergence_)
    assert len(rounds) == 1


def test_interrupted_in_the_race_the_model_has_the_last_round():
    def interrupts(record):
        raise KeyboardInterrupt

    model = KLNMF(6, random_state=0, n_init=4, on_round=interrupts)
    with pytest.raises(KeyboardInterrupt):
        model.fit(V)
    assert model.status_ == "interrupted"
    assert np.isfinite(model.kl_divergence_)


@pytest.mark.parametrize("init", ["nndsvd", "custom"])
def test_a_single_start_cannot_be_raced(init):
    given = {"W": np.ones((200, 6)), "H": np.ones((6, 120))} if init == "custom" else {}
    with pytest.raises(ValueError, match="`n_init` must be 1 with init="):
        KLNMF(6, init=init, n_init=2).fit(V, **given)
