# SPDX-License-Identifier: BSD-3-Clause
"""`max_time` on a cluster: no round begins after it, and W is that of the last round."""

import re
import time

import numpy as np
import pytest
import scipy.sparse as sp

import sipower
from lazy_fits import RANK, V, lazy
from sipower.loop.stop import Stop
from sipower.nmf import Factorization, Factors

pytest.importorskip("distributed.client")

from sipower.dask import KLNMF

SOLVERS = sorted(KLNMF._parameter_constraints["solver"][0].options)
LIMIT, PAUSE = 1.5, 0.35  # seconds: the limit, and a pause that makes every round slow


@pytest.fixture
def checks(monkeypatch):
    """A list of all times at which the limit was checked, each with the seconds that were left."""
    times, reached_limit = [], Stop.reached_limit

    def spy(self, done, elapsed):
        times.append((elapsed, self.seconds))
        return reached_limit(self, done, elapsed)

    monkeypatch.setattr(Stop, "reached_limit", spy)
    return times


def fit(model, X, **more):
    """Fit until the limit, with slow rounds."""
    model.set_params(
        on_round=lambda record: time.sleep(PAUSE), max_time=LIMIT, tol=0, max_iter=10**6,
        random_state=0,
    )  # fmt: skip
    return model.fit_transform(X, **more)


def gap(W, model):
    return Factorization(sp.csr_array(V), RANK).residual(Factors(W, model.components_.T))


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_round_begins_after_the_limit(client, checks, solver):
    """The limit is checked after every round, and includes the time before the first one."""
    model = KLNMF(RANK, solver=solver, init="random")
    W = fit(model, lazy(), gather=True)
    assert model.status_ == "max_seconds"
    assert len(checks) == model.n_iter_ + 1
    assert all(elapsed < left < LIMIT for elapsed, left in checks[:-1])
    assert W.shape == (240, RANK)
    assert gap(W, model) == pytest.approx(model.kkt_residual_, rel=1e-3)


def test_the_rows_are_those_of_the_last_round_as_in_a_local_fit(client):
    """They are not solved exactly, which would take longer and change the gap."""
    local, lazy_one = sipower.KLNMF(RANK, init="random"), KLNMF(RANK, init="random")
    W_local, W_lazy = fit(local, sp.csr_array(V)), fit(lazy_one, lazy())
    assert W_lazy.chunks[0] == lazy().chunks[0]
    for model, W in ((local, W_local), (lazy_one, W_lazy.compute())):
        assert model.status_ == "max_seconds"
        assert gap(W, model) == pytest.approx(model.kkt_residual_, rel=1e-9)
        exact = model.transform(sp.csr_array(V) if model is local else lazy())
        assert not np.array_equal(W, np.asarray(exact))


def test_rounds_are_printed_as_in_a_local_fit(client, capsys):
    settings = {"init": "random", "random_state": 0, "max_iter": 8, "tol": 0, "verbose": 1}
    KLNMF(RANK, **settings).fit(lazy())
    stages, *lines = capsys.readouterr().out.partition("round")
    assert stages == (
        "loading the rows on the workers\nbringing the columns together on the workers\n"
    )
    sipower.KLNMF(RANK, **settings).fit(sp.csr_array(V))
    texts = "".join(lines), capsys.readouterr().out
    here, there = (re.sub(r"[\d.]+ s", "", text) for text in texts)
    assert there.count("round") > 1
    assert here == there
