# SPDX-License-Identifier: BSD-3-Clause
"""Replicates on a client: the same bits as in threads, and folders that either can go on from."""

import warnings

import numpy as np
import pytest

import sipower.dask
from sipower import KLNMF, bootstrap, consensus, rank_selection
from sipower.data.from_store import StoreSource
from sipower.datasets import poisson_topics
from sipower.io import open_store, write_store

V = poisson_topics(120, 60, 3, length=100, seed=0)


def test_consensus_has_the_local_bits(client, tmp_path):
    model, counted = KLNMF(3, random_state=0), []
    expected = consensus(V, model, replicates=3)
    result = consensus(
        V, model, replicates=3, client=client, folder=tmp_path, on_fit=lambda *n: counted.append(n)
    )
    np.testing.assert_array_equal(result.W, expected.W)
    np.testing.assert_array_equal(result.divergences, expected.divergences)
    assert counted == [(1, 3), (2, 3), (3, 3)]
    again = consensus(V, model, replicates=3, folder=tmp_path)  # reads what the client has found
    np.testing.assert_array_equal(again.W, expected.W)


@pytest.mark.parametrize("scale", [1, 0.37], ids=["thinning", "bi-cross-validation"])
def test_rank_selection_has_the_local_bits_and_goes_on(client, tmp_path, scale):
    task = V * scale, range(2, 5), KLNMF(tol=1e-2, random_state=0)
    expected = rank_selection(*task, replicates=2)

    def interrupt(completed, _):
        if completed == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rank_selection(*task, replicates=2, folder=tmp_path, client=client, on_fit=interrupt)
    result = rank_selection(*task, replicates=2, folder=tmp_path, client=client)
    np.testing.assert_array_equal(result.deviance, expected.deviance)
    np.testing.assert_array_equal(result.stability, expected.stability)
    assert result.best == expected.best


def test_bootstrap_has_the_local_bits_and_goes_on(client, tmp_path):
    model = KLNMF(3, random_state=0, tol=1e-4).fit(V)
    offsets = np.linspace(0.5, 2, 120)
    expected = bootstrap(V, model, 4, offsets=offsets)

    def interrupt(completed, _):
        if completed == 2:
            raise KeyboardInterrupt

    task = {"folder": tmp_path, "client": client, "offsets": offsets}
    with pytest.raises(KeyboardInterrupt):
        bootstrap(V, model, 4, **task, on_replicate=interrupt)
    result = bootstrap(V, model, 4, **task)
    for a, b in zip((*result.W, *result.H), (*expected.W, *expected.H), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(result.cosines, expected.cosines)


def test_callbacks_of_rounds_stay_at_home(client):
    with pytest.raises(ValueError, match="`on_round` must be None with a client"):
        consensus(V, KLNMF(3, on_round=print), client=client)


def read_counters():
    """Return functions that start and read a count of the bytes that a worker reads of stores."""

    def start():
        if not hasattr(StoreSource, "counted"):
            read = StoreSource.read

            def counting_read(source, first, indices, values):
                StoreSource.counted += indices.nbytes + values.nbytes
                read(source, first, indices, values)

            StoreSource.read = counting_read
        StoreSource.counted = 0

    return start, lambda: StoreSource.counted


def test_fits_of_a_store_share_the_reads_of_their_worker(client, tmp_path):
    data = poisson_topics(2000, 900, 3, length=150, seed=0)
    write_store(data, tmp_path / "store")
    stored = open_store(tmp_path / "store", memory_limit=1_000_000)
    assert len(stored.windows_of_blocks) > 1
    model, sums = KLNMF(3, random_state=0, init="random", tol=0, max_iter=4), []
    start_count, get_count = read_counters()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*not converged")
        expected = consensus(data, model, replicates=6)
        for replicates in (2, 6):  # one or three for each worker
            client.run(start_count)
            found = consensus(stored, model, replicates=replicates, client=client)
            sums.append(client.run(get_count))
    for worker, alone in sums[0].items():
        assert 0 < sums[1][worker] <= alone + 1_000_000
    np.testing.assert_array_equal(found.W, expected.W)
    np.testing.assert_array_equal(found.divergences, expected.divergences)


def test_fits_of_a_store_are_saved_and_continued(client, tmp_path):
    write_store(V, tmp_path / "store")
    stored, counted = open_store(tmp_path / "store"), []
    task = {"folder": tmp_path / "fits", "on_fit": lambda *n: counted.append(n)}
    consensus(stored, KLNMF(3, random_state=0), replicates=3, client=client, **task)
    found = consensus(stored, KLNMF(3, random_state=0), replicates=5, client=client, **task)
    again = consensus(V, KLNMF(3, random_state=0), replicates=5, **task)  # all are saved
    expected = consensus(V, KLNMF(3, random_state=0), replicates=5)
    assert counted[:5] == [(1, 3), (2, 3), (3, 3), (3, 5), (4, 5)]
    for result in (found, again):
        np.testing.assert_array_equal(result.W, expected.W)


def test_a_store_that_workers_cannot_open_is_an_error(client, tmp_path):
    write_store(V, tmp_path / "store")
    stored = open_store(tmp_path / "store")
    (tmp_path / "store").rename(tmp_path / "moved")
    with pytest.raises(ValueError, match="store is damaged"):
        consensus(stored, KLNMF(3, random_state=0), replicates=2, client=client)


# ---- data that only the cluster holds --------------------------------------------------------


def rows_on_disk(folder, data):
    """Return a Dask array whose chunks leave a file each time they are computed."""
    da = pytest.importorskip("dask.array")

    def leave_file(block):
        with (folder / "computed").open("a") as file:
            file.write("x")
        return block

    lazy = da.from_array(data.toarray().astype(float), chunks=(30, -1))
    return lazy.map_blocks(leave_file, dtype=float, meta=np.empty((0, 0)))


def test_a_model_of_the_cluster_loads_the_data_once(client, tmp_path):
    lazy, counted = rows_on_disk(tmp_path, V), []
    settings = {"random_state": 0, "init": "random"}
    model = sipower.dask.KLNMF(3, client=client, **settings)
    found = consensus(
        lazy, model, replicates=4, folder=tmp_path / "fits", on_fit=lambda *n: counted.append(n)
    )
    assert len((tmp_path / "computed").read_text()) == 4
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]
    expected = consensus(V.toarray().astype(float), KLNMF(3, **settings), replicates=4)
    np.testing.assert_array_equal(found.W, expected.W)
    np.testing.assert_array_equal(found.H, expected.H)
    np.testing.assert_array_equal(found.divergences, expected.divergences)
    assert found.outliers == expected.outliers
    again = consensus(lazy, model, replicates=4, folder=tmp_path / "fits")
    np.testing.assert_array_equal(again.W, expected.W)


def test_loaded_data_serve_fits_of_several_ranks_with_their_weights(client, tmp_path):
    lazy, weights = rows_on_disk(tmp_path, V), np.linspace(0.5, 2, 120)
    model = sipower.dask.KLNMF(3, random_state=0, init="random")
    loaded = model.load(lazy, sample_weight=weights, batch=np.arange(120) % 2)
    for rank in (2, 3):
        model.set_params(n_components=rank)
        W = model.fit_transform(loaded)
        again = sipower.dask.KLNMF(rank, random_state=0, init="random")
        expected = again.fit_transform(lazy, sample_weight=weights, batch=np.arange(120) % 2)
        np.testing.assert_array_equal(W.compute(), expected.compute())
        np.testing.assert_array_equal(model.batch_effects_, again.batch_effects_)
    with pytest.raises(ValueError, match="`offsets` must be an argument of `load`"):
        model.fit(loaded, offsets=weights)
    with pytest.raises(ValueError, match="`dtype` must be float64"):
        model.set_params(dtype="float32").fit(loaded)


def test_what_a_model_of_the_cluster_does_not_support(client):
    model = sipower.dask.KLNMF(3)
    with pytest.raises(ValueError, match=r"`client` must be None with a model of `sipower\.dask`"):
        consensus(V, model, client=client)
    with pytest.raises(ValueError, match="`groups` must be None"):
        consensus(V, model, groups=np.arange(120) % 2)
    with pytest.raises(TypeError, match=r"`model` must be a sipower.KLNMF to choose a rank"):
        rank_selection(V, [2, 3], model)
    with pytest.raises(TypeError, match=r"`model` must be a sipower.KLNMF or a sipower.dask.KLNMF"):
        consensus(V, 3)
