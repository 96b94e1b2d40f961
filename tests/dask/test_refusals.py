# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be factorised gets one sentence that says where."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed.client")

from distributed import Client, LocalCluster  # noqa: E402 - optional

from sipower.dask import KLNMF, Files, waiting  # noqa: E402 - optional

V = np.random.default_rng(0).poisson(2.0, (40, 6)).astype(float)


def assert_refused(X, message, error=ValueError, **parameters):
    with pytest.raises(error, match=message) as caught:
        KLNMF(2, **parameters).fit(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
@pytest.mark.parametrize("known_chunks", [True, False], ids=["known sizes", "unknown sizes"])
def test_bad_entries_are_found_by_their_row_in_all_data(client, sparse, known_chunks):
    for value, what in ((-1.0, "Negative"), (np.nan, "NaN"), (np.inf, "Infinity")):
        bad = V.copy()
        bad[25, 3] = value
        X = da.from_array(bad, chunks=(10, -1))
        X = X if known_chunks else X[X[:, 0] >= 0]
        X = X.map_blocks(sp.csr_array) if sparse else X
        assert_refused(X, rf"Chunk 2: {what}.*entry \(25, 3\)")


def test_bad_entries_in_transform(client):
    model = KLNMF(2, random_state=0, tol=1e-2).fit(da.from_array(V, chunks=(10, -1)))
    bad = V.copy()
    bad[25, 3] = -1
    with pytest.raises(ValueError, match=r"Chunk 2: Negative.*entry \(25, 3\)"):
        model.transform(da.from_array(bad, chunks=(10, -1))).compute()
    with pytest.raises(ValueError, match="X has 5 features, but KLNMF is expecting 6"):
        model.transform(da.from_array(V[:, :5]))


def test_arrays_that_are_no_table_of_row_chunks(client):
    assert_refused(
        da.from_array(V, chunks=(10, 3)), r"one chunk of columns, got 2: .*X\.rechunk\(\{1: -1\}\)"
    )
    assert_refused(da.from_array(V[0]), "1 dimension")
    assert_refused(da.from_array(V[:0]), "0 sample")
    assert_refused(V, "`X` must be a Dask array .* got a ndarray", TypeError)
    assert_refused([], "`X` must be a Dask array .* got a list", TypeError)
    assert_refused(Files([]), "`paths` must hold at least one file")
    assert_refused(da.from_array(V.astype(complex)), "Complex data not supported")
    assert_refused(da.from_array(V * 1e300), "too large for float32", dtype=np.float32)
    large = da.from_array(np.full((4, 2), 1e38), chunks=(1, -1))  # each chunk alone is small enough
    assert_refused(large, "sum of the data is too large for float32", dtype=np.float32)


def test_files(client, tmp_path):
    assert_refused([tmp_path / "none.csv"], "none.csv does not exist")
    (tmp_path / "a.csv").write_text("day,apples,pears\nMonday,3,1\n")
    (tmp_path / "b.csv").write_text("day,pears,apples\nTuesday,3,1\n")
    (tmp_path / "c.csv").write_text("day,pears\nTuesday,3\n")
    (tmp_path / "d.csv").write_text("day,apples,pears\nTuesday,-3,1\n")
    a, b, c, d = (tmp_path / f"{name}.csv" for name in "abcd")
    wide = {"layout": "wide"}
    assert_refused(
        Files([a, b], **wide), "b.csv has other features than .*a.csv: feature 0 is pears"
    )
    assert_refused(Files([a, c], **wide), "c.csv has 1 features, .*a.csv has 2")
    assert_refused(Files([a, d], **wide), "d.csv.*-3")
    np.save(tmp_path / "e.npy", np.full((2, 2), 1e39))
    assert_refused(
        [tmp_path / "e.npy"], r"e.npy: Entry \(0, 0\).*too large for float32", dtype="float32"
    )


def test_there_must_be_a_client_with_workers(client, monkeypatch):
    monkeypatch.setattr(waiting, "WORKER_TIMEOUT", 0.2)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as lonely,
    ):
        assert_refused(da.from_array(V), "`client` has no workers", RuntimeError, client=lonely)

    def nobody():
        raise ValueError("No clients found")

    monkeypatch.setattr("sipower.dask.fitting.default_client", nobody)
    assert_refused(da.from_array(V), "`client` is None and there is no Dask client")


def test_workers_that_die_again_and_again():
    deadly = da.from_array(V).map_blocks(lambda _: os._exit(9), meta=V[:0])
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as mortal,
    ):
        cluster.scheduler.allowed_failures = 0
        assert_refused(deadly, "Workers died repeatedly", RuntimeError, client=mortal)


def test_cancelled_tasks(client):
    future = client.submit(sum, [1], pure=False)
    client.cancel([future])
    with pytest.raises(RuntimeError, match="Dask has cancelled the tasks"):
        waiting.gather_results(client, [future])


def test_w_stays_lazy_whatever_the_output_of_scikit_learn():
    """A frame of W would bring all of it to the client."""
    assert not hasattr(KLNMF(2), "set_output")
