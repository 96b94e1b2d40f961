# SPDX-License-Identifier: BSD-3-Clause
"""A fit on workers is the local fit, wherever the rows lie."""

import pickle
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import sipower
from lazy_fits import EVEN, RANK, UNEVEN, V, curve, lazy, local, model
from sipower.dask import Files
from sipower.store import write_store

da = pytest.importorskip("dask.array")


# ---- the same as a local fit -------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
@pytest.mark.parametrize("tol", [0.0, 2e-2])
def test_every_round_has_the_local_objective_and_gap(client, sparse, tol):
    result = model(tol=tol, max_iter=60 if tol else 12).fit(lazy(sparse=sparse))
    expected = local(tol=tol, rounds=60 if tol else 12, sparse=sparse)
    assert result.status_ == expected.status_ == ("converged" if tol else "max_rounds")
    assert result.n_iter_ == expected.n_iter_
    np.testing.assert_allclose(curve(result.trace_), curve(expected.trace_), rtol=1e-9)
    gaps = [[record.gap for record in fit.trace_[1:]] for fit in (result, expected)]
    np.testing.assert_allclose(*gaps, rtol=1e-6)
    np.testing.assert_allclose(result.components_, expected.components_, rtol=1e-7, atol=1e-12)
    divergence = expected.kl_divergence_
    assert result.kl_divergence_ == pytest.approx(divergence, rel=1e-9)
    assert result.reconstruction_err_ == pytest.approx(np.sqrt(2 * divergence), rel=1e-9)


@pytest.mark.parametrize("rows", [(240,), EVEN, (50, 50, 50, 50, 40)])
def test_chunks_change_nothing_but_rounding(client, plain, rows):
    result = model().fit(lazy(rows=rows))
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-9)
    np.testing.assert_allclose(result.components_, plain.components_, rtol=1e-7, atol=1e-12)


def test_float32(client):
    result = model(max_iter=4).fit(lazy(V.astype(np.float32)))
    assert result.components_.dtype == np.float32
    expected = local(V.astype(np.float32), rounds=4)
    np.testing.assert_allclose(curve(result.trace_), curve(expected.trace_), rtol=1e-4)
    mixed = da.concatenate([lazy(V[:80].astype(np.float32), (80,)), lazy(V[80:], (160,))])
    result, expected = model(max_iter=4).fit(mixed), local(rounds=4)
    assert result.components_.dtype == np.float64
    np.testing.assert_allclose(curve(result.trace_), curve(expected.trace_), rtol=1e-9)


def test_unknown_sizes_and_read_only_chunks(client, plain):
    def guarded(chunk):
        chunk.flags.writeable = False
        return chunk

    array = lazy(sparse=False).map_blocks(guarded, dtype=float)
    unknown = array[array.sum(axis=1) >= 0]  # chunks of unknown sizes, one of them empty
    assert np.isnan(unknown.shape[0])
    result = model()
    W = result.fit_transform(unknown)
    np.testing.assert_allclose(curve(result.trace_)[-2:], curve(plain.trace_)[-2:], rtol=1e-9)
    assert W.chunks == (UNEVEN, (RANK,))  # known by now
    again = result.transform(unknown)
    assert np.isnan(again.shape[0])
    np.testing.assert_array_equal(again.compute(), W.compute())


def test_files_and_stores_are_opened_by_the_workers(client, plain, tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.csr_array(V[:100]))
    np.save(tmp_path / "b.npy", V[100:150])
    write_store(sp.csr_array(V[150:]), tmp_path / "c")
    paths = [tmp_path / "a.npz", str(tmp_path / "b.npy"), tmp_path / "c"]
    result = model()
    W = result.fit_transform(paths)
    np.testing.assert_allclose(curve(result.trace_)[-2:], curve(plain.trace_)[-2:], rtol=1e-9)
    assert W.chunks[0] == (100, 50, 90)
    np.testing.assert_array_equal(result.transform(paths).compute(), W.compute())
    np.save(tmp_path / "turned.npy", V.T)
    transposed = model().fit(Files([tmp_path / "turned.npy"], transpose=True))
    np.testing.assert_allclose(curve(transposed.trace_)[-2:], curve(plain.trace_)[-2:], rtol=1e-9)


def test_lazy_anndata(client, plain):
    anndata = pytest.importorskip("anndata")
    result = model().fit(anndata.AnnData(lazy()))
    np.testing.assert_allclose(curve(result.trace_), curve(plain.trace_), rtol=1e-9)


def test_data_without_counts(client):
    result = model(tol=1e-3).fit(lazy(np.zeros_like(V)))
    assert result.kl_divergence_ == 0
    assert not result.components_.any()


# ---- W -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
def test_transform_has_the_bits_of_the_local_one(client, sparse):
    result, X = model(), lazy(sparse=sparse)
    W = result.fit_transform(X)
    assert isinstance(W, da.Array)
    expected = result.to_local().transform(sp.csr_array(V) if sparse else V)
    np.testing.assert_array_equal(W.compute(), expected)
    np.testing.assert_array_equal(result.transform(X).compute(scheduler="sync"), expected)


def test_to_local_pickle_and_clone(client, plain):
    one = plain.to_local()
    assert type(one) is sipower.KLNMF
    assert one.solver == "rows"
    np.testing.assert_array_equal(one.components_, plain.components_)
    persistent = model(client=client)
    assert clone(persistent).client is client
    assert pickle.loads(pickle.dumps(persistent.fit(lazy()))).client is None
    names = plain.get_feature_names_out()
    assert names.tolist() == [f"klnmf{k}" for k in range(RANK)]


def test_partial_fit_goes_on_from_the_sums_of_all_rows(client, plain):
    """H ← (f H∘d + H∘Wᵀ(V ⊘ WH)) / (f d + Σ W): d of the W of the fit, the rest of the batch."""
    one, batch, f = plain.to_local(), V[:50], 0.7
    d = plain.transform(lazy()).compute().sum(axis=0)[:, None]
    W, H = one.transform(batch), one.components_
    ratios = np.divide(batch, W @ H, out=np.zeros_like(batch), where=batch > 0)
    below = f * d + W.sum(axis=0)[:, None]  # zero: a component that no row has any more
    expected = H * np.divide(f * d + W.T @ ratios, below, out=np.ones_like(H), where=below > 0)
    result = one.set_params(forget_factor=f).partial_fit(batch).components_
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12 * expected.max())


def test_counts_of_unknown_features_are_told(client, plain):
    assert not plain.components_[:, V.sum(axis=0) == 0].any()
    finite = np.ones((5, 60))
    finite[:, V.sum(axis=0) == 0] = 0
    assert plain.transform(da.from_array(finite)).compute().shape == (5, RANK)
    lost = da.from_array(np.ones((5, 60)))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        plain.transform(lost).compute()
        deadline = time.monotonic() + 10  # it comes by another connection than W
        while not warned and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "Chunk 0 has counts of" in str(warned[0].message)
