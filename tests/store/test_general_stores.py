# SPDX-License-Identifier: BSD-3-Clause
"""The general model of data that are available by row: the same bits on disk and in memory."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from model_options import make_options
from sipower import KLNMF, as_matrix
from sipower.io import open_store
from sipower.store import write_store

V = sp.csr_array(oracles.counts(900, 200, density=0.5))
RANK = 4
OPTIONS = make_options(V.shape, RANK)
SMALL = 1_070_000  # a memory limit that leads to several windows


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows"
    write_store(V, path, rows_only=True)
    return path


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*The data do not support this guide")
        yield


def fit(X, name, **parameters):
    options, given = OPTIONS[name]
    settings = {"random_state": 0, "tol": 0, "max_iter": 6, "init": "random"}
    model = KLNMF(RANK, **settings | options | parameters)
    return model, model.fit_transform(X, **given)


@pytest.mark.parametrize("solver", ["auto", "rows"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_store_of_rows_gives_the_bits_of_memory(path, name, solver):
    stored = open_store(path, memory_limit=SMALL)
    here, W = fit(as_matrix(V, rows_only=True), name, solver=solver)
    there, W_stored = fit(stored, name, solver=solver)
    assert len(stored.windows_of_blocks) > 1
    assert there.components_.tobytes() == here.components_.tobytes()
    assert W_stored.tobytes() == W.tobytes()
    assert there.kl_divergence_ == here.kl_divergence_
    assert there.trace_[-1].objective <= there.trace_[1].objective
    both, _ = fit(V, name, solver="rows")  # columns too: sums have another order
    assert both.trace_[-1].objective == pytest.approx(here.trace_[-1].objective, rel=1e-9)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_resumed_fit_has_the_same_bits(path, tmp_path, name):
    saved = {"checkpoint": tmp_path / "fit.npz", "checkpoint_every": 0}
    whole, W = fit(open_store(path), name)
    fit(open_store(path), name, **saved, max_iter=3)
    resumed, W_resumed = fit(open_store(path), name, **saved)
    assert resumed.components_.tobytes() == whole.components_.tobytes()
    assert W_resumed.tobytes() == W.tobytes()


@pytest.mark.parametrize(
    ("parameters", "given"),
    [
        ({"alpha_W": 0.03}, {}),
        ({"guides": {"other": [5, 6]}}, {}),
        ({"prior_H": 0.3}, {}),
        ({}, {"mask": np.random.default_rng(9).random(V.shape) < 0.8}),
        ({}, {"offsets": np.arange(900) + 1.0}),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(path, tmp_path, parameters, given):
    saved = {"checkpoint": tmp_path / "fit.npz", "checkpoint_every": 0}
    fit(open_store(path), "prior_W", **saved, max_iter=2)
    options = {"random_state": 0, "tol": 0, "max_iter": 6, "init": "random"}
    prior = {} if "alpha_W" in parameters else {"prior_W": 0.1}
    with pytest.raises(ValueError, match="is a checkpoint of another"):
        KLNMF(RANK, **options, **saved, **prior | parameters).fit(open_store(path), **given)


@pytest.mark.parametrize("solver", ["auto", "rows"])
def test_batches_need_the_columns(path, solver):
    message = r"`batch` (also needs their columns: convert|needs solver='auto')"
    with pytest.raises(ValueError, match=message):
        KLNMF(RANK, solver=solver).fit(open_store(path), batch=np.arange(900) % 2)
