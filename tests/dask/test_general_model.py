# SPDX-License-Identifier: BSD-3-Clause
"""Weights, masks, known components, penalties, priors and guides on workers: the local fit."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import sipower
from lazy_fits import RANK, UNEVEN, V, lazy, model
from model_options import make_arguments, make_options

da = pytest.importorskip("dask.array")
psutil = pytest.importorskip("psutil")

N, M = V.shape
GIVEN = make_arguments(V.shape)
MASK, WEIGHTS, SAMPLE_WEIGHT, OFFSETS = (
    GIVEN[name] for name in ("mask", "weights", "sample_weight", "offsets")
)
OPTIONS = make_options(V.shape, RANK)
KNOWN = OPTIONS["components_fixed"][0]["components_fixed"]
PANEL = OPTIONS["mask of features"][1]["mask"]


@pytest.fixture(autouse=True)
def quiet():
    """Some features are hidden altogether, and random guides contradict the data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no observed entry")
        warnings.filterwarnings("ignore", ".*The data do not support this guide")
        yield


def local(X=V, given=None, **parameters):
    settings = {"init": "random", "random_state": 0, "tol": 0, "max_iter": 8, "solver": "rows"}
    result = sipower.KLNMF(RANK, **settings | parameters)
    return result, result.fit_transform(X, **given or {})


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_gives_the_local_fit(client, name):
    parameters, given = OPTIONS[name]
    result = model(max_iter=8, **parameters)
    W = result.fit_transform(lazy(), **given).compute()
    expected, W_local = local(sp.csr_array(V), given, **parameters)
    for record, other in zip(result.trace_, expected.trace_, strict=True):
        assert record.round == other.round
        assert record.objective == pytest.approx(other.objective, rel=1e-9, nan_ok=True)
    assert result.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-9)
    assert result.kkt_residual_ == pytest.approx(expected.kkt_residual_, rel=1e-9)
    scale = expected.components_.max()
    np.testing.assert_allclose(
        result.components_, expected.components_, rtol=1e-9, atol=1e-9 * scale
    )
    np.testing.assert_allclose(W, W_local, rtol=1e-9, atol=1e-9 * W_local.max())
    assert [str(g) for g in getattr(result, "guides_", [])] == [
        str(g) for g in getattr(expected, "guides_", [])
    ]
    bits = result.to_local().transform(sp.csr_array(V), **given)
    np.testing.assert_array_equal(result.transform(lazy(), **given).compute(), bits)
    if "components_fixed" in parameters:
        assert result.components_[:1].tobytes() == KNOWN.tobytes()


def test_lazy_masks_weights_and_missing_values(client):
    """Masks and weights may be as large as the data, so they may be lazy as well."""
    X = np.where(MASK, V, np.nan)
    expected, _ = local(X, {"weights": WEIGHTS}, missing="nan")
    lazy_given = {
        "mask": da.from_array(MASK, chunks=(UNEVEN, -1)),
        "weights": da.from_array(WEIGHTS, chunks=(UNEVEN, -1)).map_blocks(np.asarray),
    }
    results = [
        model(max_iter=8).fit(lazy(X, sparse=False), **lazy_given),
        model(max_iter=8, missing="nan").fit(lazy(X), weights=WEIGHTS),
    ]
    for result in results:
        np.testing.assert_allclose(result.components_, expected.components_, rtol=1e-9, atol=1e-12)
    bits = expected.transform(X, weights=WEIGHTS)
    assert bits.shape == (N, RANK)
    W = results[1].transform(lazy(X), weights=lazy_given["weights"]).compute()
    local_W = results[1].to_local().transform(sp.csr_array(X), weights=WEIGHTS)
    np.testing.assert_array_equal(W, local_W)


def test_files_take_arguments_for_all_their_rows(client, tmp_path):
    parts = np.split(V, [100, 150])
    paths = [tmp_path / f"{number}.npy" for number in range(3)]
    for path, part in zip(paths, parts, strict=True):
        np.save(path, part)
    given = {"sample_weight": SAMPLE_WEIGHT, "mask": MASK}
    result = model(max_iter=8)
    W = result.fit_transform(paths, **given)
    expected, W_local = local(V, given)
    np.testing.assert_allclose(result.components_, expected.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(W.compute(), W_local, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="`mask` cannot be divided, because the number of rows"):
        result.transform(paths, mask=MASK)
    assert result.transform(paths, mask=PANEL).compute().shape == (N, RANK)


@pytest.mark.parametrize("name", ["components_fixed", "guides", "mask", "L2"])
def test_a_start_from_a_sample_respects_the_model(client, name):
    parameters, given = OPTIONS[name]
    result = model(init="sample", tol=1e-2, max_iter=60, **parameters).fit(lazy(), **given)
    assert result.status_ == "converged"
    if name == "components_fixed":
        assert result.components_[:1].tobytes() == KNOWN.tobytes()
    if name == "guides":
        np.testing.assert_allclose(result.components_.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("name", ["mask", "L2", "guides", "known beside guides"])
def test_a_resumed_fit_has_the_same_bits(client, tmp_path, name):
    parameters, given = OPTIONS[name]
    X = lazy(rows=(N,))  # one chunk: the order of sums is the same in every fit
    whole = model(max_iter=6, **parameters).fit(X, **given)
    saved = {"checkpoint": tmp_path / "fit.npz", "checkpoint_every": 0, **parameters}
    model(max_iter=3, **saved).fit(X, **given)
    resumed = model(max_iter=6, **saved).fit(X, **given)
    assert resumed.components_.tobytes() == whole.components_.tobytes()
    assert resumed.trace_[-1].objective == whole.trace_[-1].objective
    others = {
        "mask": ({}, {"mask": ~MASK | (V > 0)}),
        "L2": ({"alpha_W": 0.03}, {}),
        "guides": ({"guides": {"other": [5, 6]}}, {}),
        "known beside guides": ({}, {"offsets": OFFSETS + 1}),
    }
    changed, observed = others[name]
    with pytest.raises(ValueError, match="is a checkpoint of another"):
        model(max_iter=6, **saved | changed).fit(X, **given | observed)


def test_a_killed_worker_changes_nothing(client):
    """Its chunks are loaded and weighted again."""
    pids = client.run(os.getpid)

    def kill(record):
        if record.round == 3:
            psutil.Process(pids.popitem()[1]).kill()

    parameters, given = OPTIONS["known beside guides"]
    result = model(max_iter=8, on_round=kill, **parameters).fit(lazy(), **given)
    expected, _ = local(sp.csr_array(V), given, **parameters)
    assert len(pids) == 1
    assert result.kl_divergence_ == pytest.approx(expected.kl_divergence_, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": np.arange(N) % 2}, r"`batch` needs solver='auto', got"),
        ({"offsets": OFFSETS[:5]}, r"`offsets` must have one number for each of the 240 samples"),
        ({"sample_weight": -SAMPLE_WEIGHT}, r"`sample_weight` must be finite and non-neg.* at pos"),
        ({"mask": True}, r"`mask` must have one row for each of the 240 samples, got shape \(\)"),
        ({"mask": MASK[:9]}, r"`mask` must have one row for each of the 240 samples"),
        ({"weights": -WEIGHTS}, r"Chunk 0: `weights` must be finite and non-negative, got -"),
        ({"mask": da.from_array(MASK)}, r"`mask` must have the row chunks .*mask\.rechunk\(X"),
        ({"feature_weight": np.zeros(M)}, r"`feature_weight` must not be all zero"),
    ],
)
def test_arguments_that_do_not_fit_get_one_sentence(client, arguments, message):
    with pytest.raises(ValueError, match=message):
        model().fit(lazy(), **arguments)


def test_parameters_that_exclude_each_other(client):
    with pytest.raises(ValueError, match="cannot be combined with `alpha_W` and `alpha_H`"):
        model(prior_W=0.1, alpha_W=0.1).fit(lazy())
