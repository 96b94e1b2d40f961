# SPDX-License-Identifier: BSD-3-Clause
"""What Ctrl-C leaves of a fit on workers: factors in the scale of the data, of the last round."""

import signal

import numpy as np
import pytest

import oracles
from cli.calls import call, events
from interrupted_commands import (
    BATCH,
    GIVEN,
    V,
    assert_states_its_divergence,
    fit_words,
    interrupt_advance,
    write_files,
)
from lazy_fits import lazy
from sipower import Interrupted, Stop, solve
from sipower.nmf import Factorization, make_solver
from systems import unix_only

pytest.importorskip("distributed.client")

from sipower.dask import KLNMF

ROWS = (30, 0, 41, 19)
OBSERVED = {name: GIVEN[name] for name in ("offsets", "sample_weight", "feature_weight")}
FITS = {
    "both sides": ({"solver": "auto"}, OBSERVED | {"batch": BATCH}),
    "rows": ({"solver": "rows", "prior_H": 0.1}, OBSERVED | {"weights": GIVEN["weights"]}),
    "rows with penalties": ({"solver": "rows", "alpha_W": 0.01}, OBSERVED),
}


@unix_only
@pytest.mark.parametrize("gather", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_an_interruption_carries_what_the_call_would_have_returned(client, name, gather):
    parameters, given = FITS[name]
    model = KLNMF(4, init="random", random_state=0, tol=0, max_iter=100, **parameters)
    model.set_params(on_round=lambda r: r.round == 3 and signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted) as caught:
        model.fit_transform(lazy(V, ROWS), gather=gather, **given)
    fit = caught.value.result
    assert gather == isinstance(fit.W, np.ndarray)
    if not gather:
        assert fit.W.chunks == (ROWS, (4,))
    W, labels = np.asarray(fit.W), getattr(model, "batches_", None)
    assert fit.H.T.tobytes() == model.components_.tobytes()
    expected = oracles.observed_divergence(V, W, fit.H, given, fit.effects, labels)
    assert fit.divergence == model.kl_divergence_ == pytest.approx(expected, rel=1e-10)
    assert (model.status_, fit.rounds) == ("interrupted", 3)


def test_an_interruption_while_the_start_is_made_leaves_the_model_as_it_was(client, monkeypatch):
    """The loop that fits a sample of the rows is none of this fit."""

    def fit_sample(V, rank, seed, terms):
        def interrupted(record):
            raise KeyboardInterrupt

        data = np.random.default_rng(0).poisson(2.0, (20, 40))
        return solve(Factorization(data, rank), make_solver("mu"), on_round=interrupted,
                     stop=Stop(rounds=5))  # fmt: skip

    monkeypatch.setattr("sipower.dask.fitting.fit_sample", fit_sample)
    model = KLNMF(4, solver="rows", init="sample", random_state=0)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(lazy(V, ROWS))
    assert not isinstance(caught.value, Interrupted)
    assert not hasattr(model, "n_features_in_")


@unix_only
@pytest.mark.parametrize("after", [0, 4])
@pytest.mark.parametrize(("name", "solver"), [("all", "auto"), ("all but batches", "rows")])
def test_the_run_of_an_interrupted_command_has_its_divergence(
    client, tmp_path, monkeypatch, name, solver, after
):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    interrupt_advance(monkeypatch, after)
    place = ("--init", "random", "--solver", solver, "--scheduler", client.scheduler.address)
    result = call(*fit_words(name, "counts.sipower", *place), code=3)
    assert [e["status"] for e in events(result) if e["event"] == "done"] == ["interrupted"]
    assert assert_states_its_divergence("run", name) == after
