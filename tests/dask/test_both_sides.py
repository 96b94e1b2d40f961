# SPDX-License-Identifier: BSD-3-Clause
"""With their columns on workers too, a fit has the bits of a local fit, for every model."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import sipower
from lazy_fits import RANK, V, lazy, model
from model_options import make_options
from sipower.dask import Files
from sipower.nmf import Factorization, Factors
from sipower.store import write_store

da = pytest.importorskip("dask.array")
psutil = pytest.importorskip("psutil")

BATCH = np.repeat(["a", "b", "c"], 80)
PLAIN = ({}, {})
OPTIONS = {
    **make_options(V.shape, RANK),
    "n_init": ({"n_init": 3, "tol": 1e-2, "max_iter": 100}, {}),
    "surplus": ({"init": "auto"}, {}),
    "batch": ({"batch_prior": 5.0}, {"batch": BATCH}),
    "batch beside weights": (
        {"prior_W": 0.1},
        {"batch": BATCH, "offsets": np.linspace(0.5, 2, 240), "mask": np.arange(60) % 7 > 0},
    ),
}


@pytest.fixture(autouse=True)
def quiet():
    """Some features are hidden altogether, and random guides contradict the data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no observed entry")
        warnings.filterwarnings("ignore", ".*The data do not support this guide")
        yield


def both(**parameters):
    return model(**{"solver": "auto"} | parameters)


def local(X, given, **parameters):
    settings = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 12}
    result = sipower.KLNMF(RANK, **settings | parameters)
    return result, result.fit_transform(X, **given)


def assert_same_fit(result, expected):
    """The objective has a constant, which is summed over the chunks, if entries have weights."""
    assert result.components_.tobytes() == expected.components_.tobytes()
    assert result.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-14)
    assert result.kkt_residual_ == expected.kkt_residual_
    assert result.status_ == expected.status_
    for a, b in zip(result.trace_, expected.trace_, strict=True):
        assert (a.round, a.passes) == (b.round, b.passes)
        np.testing.assert_allclose([a.objective, a.gap], [b.objective, b.gap], rtol=1e-14)


DENSE = ("mask", "surplus", "batch beside weights", "known beside guides")


@pytest.mark.parametrize(
    ("name", "sparse"),
    [*((name, True) for name in OPTIONS), *((name, False) for name in DENSE)],
)
def test_every_model_has_the_local_bits(client, name, sparse):
    parameters, given = OPTIONS[name]
    result = both(**parameters)
    W = result.fit_transform(lazy(sparse=sparse), **given).compute()
    X = sp.csr_array(V) if sparse else V
    expected, W_local = local(X, given, **parameters)
    assert_same_fit(result, expected)
    if result.status_ == "converged" or "sample_weight" not in given:
        np.testing.assert_allclose(W, W_local, rtol=1e-9, atol=1e-9 * W_local.max())
    np.testing.assert_array_equal(
        result.transform(lazy(sparse=sparse), **given).compute(), expected.transform(X, **given)
    )
    if "batch" in given:
        np.testing.assert_array_equal(result.batch_effects_, expected.batch_effects_)


def test_confounded_batches_are_reported_as_locally(client):
    """A cluster said nothing of batches that cannot be told from components."""
    rng = np.random.default_rng(0)
    types = np.repeat(np.eye(3), 80, axis=0)[:, rng.permutation(3)]
    counts = rng.poisson(500 * types @ rng.dirichlet(np.full(40, 0.5), 3)).astype(float)
    with pytest.warns(UserWarning, match="only this batch contains") as caught:
        both().fit(da.from_array(counts, (60, -1)), batch=BATCH)
    with pytest.warns(UserWarning, match="only this batch contains") as expected:
        local(counts, {"batch": BATCH})
    assert [str(w.message) for w in caught] == [str(w.message) for w in expected]
    assert {w.filename for w in caught} == {__file__}


def test_a_start_from_a_sample_is_certified(client):
    result = both(init="sample", tol=1e-3, max_iter=200).fit(lazy())
    assert result.status_ == "converged"
    W = result.to_local().transform(sp.csr_array(V))
    gap = Factorization(sp.csr_array(V), RANK).residual(Factors(W, result.components_.T))
    assert gap <= 1e-3


@pytest.mark.parametrize("transpose", [False, True])
def test_a_store_is_divided_among_the_workers(client, tmp_path, transpose):
    X = sp.csr_array(V).astype(np.uint16)
    write_store(sp.csr_array(X.T) if transpose else X, tmp_path / "counts.sipower")
    result = both().fit(Files([tmp_path / "counts.sipower"], transpose=transpose))
    expected, _ = local(X, {})
    assert_same_fit(result, expected)
    few = sp.csr_array(np.array([[3, 1, 2]], np.uint16))  # fewer rows than workers
    write_store(few, tmp_path / "few.sipower")
    small = sipower.dask.KLNMF(1, random_state=0).fit([tmp_path / "few.sipower"])
    assert small.status_ == "converged"


def test_a_store_without_columns(client, tmp_path):
    write_store(sp.csr_array(V), tmp_path / "rows.sipower", rows_only=True)
    result = both().fit([tmp_path / "rows.sipower"])
    expected, _ = local(sp.csr_array(V), {})
    assert_same_fit(result, expected)


def test_weights_on_a_store(client, tmp_path):
    write_store(sp.csr_array(V), tmp_path / "counts.sipower")
    given = {"sample_weight": np.linspace(1, 2, 240)}
    result = both().fit([tmp_path / "counts.sipower"], **given)
    expected, _ = local(sp.csr_array(V), given)
    np.testing.assert_allclose(result.components_, expected.components_, rtol=1e-9)


def test_resumed_fits_have_the_same_bits(client, tmp_path):
    path = tmp_path / "fit.npz"
    both(max_iter=5, checkpoint=path, checkpoint_every=0).fit(lazy())
    resumed = both(max_iter=12, checkpoint=path, checkpoint_every=0).fit(lazy())
    assert resumed.components_.tobytes() == both(max_iter=12).fit(lazy()).components_.tobytes()


@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_worker_that_dies_changes_no_bit(client, at):
    undisturbed = both(max_iter=12).fit(lazy())

    def kill(record):
        if record.round == at:
            pids = client.run(os.getpid)
            psutil.Process(pids[sorted(pids)[at % 2]]).kill()

    assert_same_fit(both(max_iter=12, on_round=kill).fit(lazy()), undisturbed)


def test_batches_need_a_label_for_every_sample(client):
    with pytest.raises(ValueError, match="`batch` must have one label"):
        both().fit(lazy(), batch=BATCH[:-1])
    with pytest.raises(ValueError, match="`batch` was not given in fit"):
        both().fit(lazy()).transform(lazy(), batch=BATCH)
