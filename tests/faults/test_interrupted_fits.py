# SPDX-License-Identifier: BSD-3-Clause
"""What Ctrl-C leaves of a fit: factors in the scale of the data, with their own divergence."""

import json
import signal
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from cli.calls import call, command, events
from interrupted_commands import (
    BATCH,
    GIVEN,
    MODELS,
    V,
    assert_states_its_divergence,
    fit_words,
    interrupt_advance,
    write_files,
)
from model_options import make_options
from sipower import KLNMF, Interrupted, estimate, max_cut, non_negative_factorization
from sipower.io import open_store
from sipower.store import write_store
from systems import unix_only

RANK = 4
OPTIONS = {
    **make_options(V.shape, RANK),
    "batch": ({"batch_prior": 5.0}, {"batch": BATCH}),
    "batch beside weights": (
        {"prior_W": 0.1, "prior_H": 0.1},
        {"batch": BATCH, **{k: GIVEN[k] for k in ("offsets", "sample_weight", "weights")}},
    ),
    "n_init": ({"n_init": 3}, {}),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no observed entry")
        warnings.filterwarnings("ignore", ".*The data do not support this guide")
        yield


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "counts.sipower"
    write_store(sp.csr_array(V), path)
    return path


def interrupt(model, X, given, after):
    """Fit until Ctrl-C comes in a round, and return what the interruption carries."""
    rounds = []

    def on_round(record):
        rounds.append(record)
        if len(rounds) == after:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as caught:
        model.set_params(on_round=on_round, tol=0, max_iter=1000).fit_transform(X, **given)
    return caught.value.result


def assert_fit_states_its_divergence(fit, model, given):
    assert fit.H.T.tobytes() == model.components_.tobytes()
    labels = getattr(model, "batches_", None)
    divergence = oracles.observed_divergence(V, fit.W, fit.H, given, fit.effects, labels)
    assert fit.divergence == model.kl_divergence_ == pytest.approx(divergence, rel=1e-10)
    assert fit.gap == model.kkt_residual_
    assert (str(fit.status), fit.rounds) == (model.status_, model.n_iter_)
    assert model.status_ == "interrupted"
    if labels is not None:
        assert fit.effects.tobytes() == model.batch_effects_.tobytes()
    scale = fit.W.sum(axis=0)[:, None] * model.components_
    np.testing.assert_allclose(model._numerator, scale, rtol=1e-12)  # what partial_fit goes on from


@unix_only
@pytest.mark.parametrize("after", [1, 5])
@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize("name", OPTIONS)
def test_an_interruption_carries_the_factors_of_the_data(stored, name, where, after):
    parameters, given = OPTIONS[name]
    X = sp.csr_array(V) if where == "memory" else open_store(stored)
    model = KLNMF(RANK, random_state=0, **{"init": "random"} | parameters)
    fit = interrupt(model, X, given, after)
    assert fit.W.shape == (90, RANK)
    assert_fit_states_its_divergence(fit, model, given)


@pytest.mark.parametrize("name", ["sample_weight", "all weights"])
def test_an_interruption_after_the_rounds_keeps_the_fit(monkeypatch, name):
    """Where samples have weights, their rows of W are solved once more at the end."""
    parameters, given = OPTIONS[name]
    model = KLNMF(RANK, random_state=0, tol=1e-2, **parameters)
    whole = KLNMF(RANK, random_state=0, tol=1e-2, **parameters).fit(V, **given)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(KLNMF, "_exact_rows", interrupted)
    with pytest.raises(Interrupted) as caught:
        model.fit(V, **given)
    assert model.components_.tobytes() == whole.components_.tobytes()
    assert_fit_states_its_divergence(caught.value.result, model, given)


def test_the_best_start_is_kept_with_the_work_of_all(stored):
    passes = []

    def on_round(record):
        passes.append(record.passes)
        if passes[-1] > 150:  # in the third of the starts
            raise KeyboardInterrupt

    model = KLNMF(RANK, random_state=0, n_init=4, tol=0, on_round=on_round)
    with pytest.raises(Interrupted) as caught:
        model.fit(V)
    fit = caught.value.result
    assert fit.trace[-1].passes == pytest.approx(passes[-1], rel=0.05)
    limits = {"max_iter": 1000, "tol": 0, "on_round": lambda record: record.passes >= 70}
    starts = [KLNMF(RANK, random_state=seed, **limits).fit(V) for seed in (0, 1)]
    assert fit.divergence <= min(start.trace_[-2].objective for start in starts) * (1 + 1e-9)
    assert_fit_states_its_divergence(fit, model, {})


def test_the_function_carries_the_same(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sipower.estimators.fit.exact_rows", interrupted)
    offsets = GIVEN["offsets"]
    with pytest.raises(Interrupted) as caught:
        non_negative_factorization(V, n_components=3, random_state=0, offsets=offsets, tol=1e-2)
    fit = caught.value.result
    expected = oracles.observed_divergence(V, fit.W, fit.H, {"offsets": offsets})
    assert fit.divergence == pytest.approx(expected, rel=1e-10)


CALLS = {
    "max_cut": lambda: max_cut(np.ones((6, 6)) - np.eye(6)),
    "estimate": lambda: estimate(V, KLNMF(2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_result_of_an_inner_loop_is_not_passed_off_as_that_of_the_call(monkeypatch, name):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sipower.loop.solve._status", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        CALLS[name]()
    assert not isinstance(caught.value, Interrupted)


# ---- the command ---------------------------------------------------------------------------------

PLACES = {"memory": ("counts.csv",), "disk": ("counts.sipower", "--memory-limit", "1MB")}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)


@unix_only
@pytest.mark.parametrize("after", [0, 6])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", MODELS)
def test_the_run_of_an_interrupted_command_has_its_divergence(
    files, monkeypatch, name, place, after
):
    interrupt_advance(monkeypatch, after)
    result = call(*fit_words(name, *PLACES[place]), code=3)
    assert result.stderr == ""
    assert [e["status"] for e in events(result) if e["event"] == "done"] == ["interrupted"]
    assert assert_states_its_divergence("run", name) == after


@unix_only
def test_a_command_interrupted_from_outside(files):
    """By another process, at a moment that nobody chooses."""
    process = subprocess.Popen(
        command(*fit_words("all")), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stdout:
        if json.loads(line)["event"] == "round":
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors
    assert errors == ""
    assert assert_states_its_divergence("run", "all") > 0


@unix_only
def test_a_command_interrupted_before_the_first_round_saves_nothing(files, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("sipower.nmf.auto.Auto.init", interrupted)
    result = call(*fit_words("offsets"), code=3)
    assert result.stderr == "Interrupted; nothing was fitted yet, nothing is saved.\n"
    assert not Path("run").exists()
