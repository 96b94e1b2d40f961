# SPDX-License-Identifier: BSD-3-Clause
"""Listeners of a fit: `on_round`, `verbose`, scikit-learn's callbacks."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sipower import KLNMF
from sipower.datasets import poisson_topics

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")
V = poisson_topics(60, 40, 3, length=80, seed=0)


class Listener:
    """Keeps what it hears, and asks to stop after so many rounds."""

    def __init__(self, rounds=10**9):
        self.rounds, self.heard, self.models = rounds, [], []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.heard.append(f"end {context.task_name}")
        if context.task_name == "round":
            self.models.append(fitted_estimator)
            return len(self.models) >= self.rounds
        return False


def test_on_round_is_told_of_every_round_and_can_stop():
    records = []
    model = KLNMF(3, tol=0, random_state=0, on_round=lambda r: records.append(r) or r.round == 5)
    model.fit(V)
    assert [r.round for r in records] == [1, 2, 3, 4, 5]
    assert model.status_ == "stopped"
    assert model.n_iter_ == 5


def test_passes_and_seconds_add_up_over_the_loops_of_a_fit():
    """Where the exact rows open the gap again a second loop follows the first."""
    data, records = np.random.default_rng(932).poisson(0.5, (30, 20)), []
    model = KLNMF(3, init="random", tol=1e-2, random_state=0, on_round=records.append).fit(data)
    rounds = [record.round for record in model.trace_]
    assert any(a == b < model.n_iter_ for a, b in pairwise(rounds))  # two loops
    for name in ("round", "passes", "seconds"):
        values = [getattr(record, name) for record in records]
        assert values == sorted(values)
    assert (records[-1].round, records[-1].passes) == (model.n_iter_, model.trace_[-1].passes)


def test_listening_changes_no_bit():
    plain, observed = KLNMF(3, random_state=0), KLNMF(3, random_state=0, on_round=lambda r: None)
    np.testing.assert_array_equal(plain.fit_transform(V), observed.fit_transform(V))


def test_callbacks_hear_the_fit_from_setup_to_teardown():
    listener = Listener()
    model = KLNMF(3, random_state=0).set_callbacks(listener).fit(V)
    rounds = ["begin round", "end round"] * model.n_iter_
    assert listener.heard == ["setup", "begin fit", *rounds, "end fit", "teardown"]


def test_a_callback_stops_the_fit_and_sees_a_model_of_every_round():
    listener = Listener(rounds=4)
    model = KLNMF(3, tol=0, random_state=0).set_callbacks(listener).fit(V)
    assert model.n_iter_ == 4
    assert model.status_ == "stopped"
    np.testing.assert_array_equal(listener.models[-1].components_, model.components_)
    scores = [one.score(V) for one in listener.models]
    assert scores[0] < scores[-1]


def test_teardown_follows_an_error():
    listener = Listener()
    with pytest.raises(ValueError, match="Negative"):
        KLNMF(3).set_callbacks(listener).fit(-V.toarray())
    broken = KLNMF(3, random_state=0, on_round=lambda r: 1 / 0).set_callbacks(listener)
    with pytest.raises(ZeroDivisionError):
        broken.fit(V)
    assert listener.heard[-1] == "teardown"


def test_progress_bar_of_scikit_learn_drives_the_fit(capsys):
    pytest.importorskip("rich")
    KLNMF(3, random_state=0).set_callbacks(callback.ProgressBar()).fit(V)
    assert "KLNMF - fit" in capsys.readouterr().out


def test_progress_bar_within_a_search(capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(KLNMF(random_state=0), {"n_components": [2, 3]}, cv=2)
    search.set_callbacks(callback.ProgressBar(max_propagation_depth=2))
    search.fit(np.random.default_rng(0).poisson(5.0, (40, 12)))
    assert "KLNMF" in capsys.readouterr().out


def test_scoring_monitor_of_scikit_learn_follows_the_fit():
    monitor = callback.ScoringMonitor(scoring=None)
    model = KLNMF(3, random_state=0).set_callbacks(monitor).fit(V)
    log = monitor.get_logs()
    assert log
    assert model.status_ == "converged"


def test_callbacks_survive_cloning_and_pipelines():
    listener = Listener()
    model = clone(KLNMF(3, random_state=0).set_callbacks(listener))
    make_pipeline(model).fit(V)
    assert listener.heard[-1] == "teardown"


def test_verbose_prints_plain_lines(capsys):
    KLNMF(3, random_state=0, verbose=1).fit(V)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("round") and "gap" in line for line in lines)
    assert lines
