# SPDX-License-Identifier: BSD-3-Clause
"""The matrix on disk: the same bits as in memory, whatever the windows."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import KLNMF, as_matrix, nmf
from sipower.data.from_store import StoreSource
from sipower.io import open_on_disk, open_store
from sipower.io.backed import BackedSource
from sipower.kernels import Draw
from sipower.problems.kl import KLBlock
from sipower.store import write_store
from systems import linux_only

V = sp.csr_array(oracles.counts(900, 400, density=0.5))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "counts.sipower"
    names = [[f"{side}{i}" for i in range(size)] for side, size in zip("sf", V.shape, strict=True)]
    write_store(V, path, samples=names[0], features=names[1])
    return path


@pytest.fixture(scope="module")
def rows_only(tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "rows.sipower"
    write_store(V, path, rows_only=True)
    return path


@pytest.fixture(scope="module")
def h5ad(tmp_path_factory):
    anndata = pytest.importorskip("anndata")
    path = tmp_path_factory.mktemp("files") / "cells.h5ad"
    anndata.AnnData(sp.csr_matrix(V.astype(np.float32))).write_h5ad(path, compression="gzip")
    return path


def fit_model(data, solver, **more):
    return KLNMF(4, solver=solver, random_state=3, tol=0, max_iter=6, **more).fit(data)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("limit", [500_000, "64MB"])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_every_solver_gives_the_bits_of_memory(store, solver, limit, dtype):
    stored = open_store(store, memory_limit=limit, dtype=dtype)
    assert (len(stored.windows_of_blocks) > 1) == (limit == 500_000)
    here, there = fit_model(V, solver, dtype=dtype), fit_model(stored, solver, dtype=dtype)
    assert here.components_.tobytes() == there.components_.tobytes()
    assert here.kl_divergence_ == there.kl_divergence_
    assert here.status_ == there.status_
    assert here.transform(V).tobytes() == there.transform(stored).tobytes()


@pytest.mark.parametrize("solver", ["auto", "mu", "sci-pi", "s-sci-pi", "rows"])
def test_rows_alone_serve_the_rules_that_need_sums(rows_only, h5ad, solver):
    stored = open_store(rows_only, memory_limit=500_000)
    backed = open_on_disk(h5ad, cache=False, dtype=np.float64, memory_limit=900_000)
    expected = fit_model(as_matrix(V, rows_only=True), solver)
    for data in (stored, backed):
        assert len(data.windows_of_blocks) > 1
        assert fit_model(data, solver).components_.tobytes() == expected.components_.tobytes()


@pytest.mark.parametrize("solver", ["ccd", "newton", "scd"])
def test_rules_that_need_columns_say_so(rows_only, solver):
    with pytest.raises(ValueError, match="are available by row only"):
        fit_model(open_store(rows_only), solver)


def test_what_a_store_tells_is_what_memory_tells(store, h5ad):
    matrix, stored, backed = as_matrix(V), open_store(store), open_on_disk(h5ad, cache=False)
    assert stored.sha256 == backed.sha256 == matrix.sha256
    for data in (stored, backed):
        assert data.mass.tobytes() == matrix.mass.tobytes()
        assert data.total == matrix.total
        np.testing.assert_array_equal(data.column_mass, matrix.T.mass)
        np.testing.assert_array_equal(data.rows(5, 9).toarray(), V[5:9].toarray())
    assert stored.T.T is stored
    assert list(stored.column_names[:2]) == ["f0", "f1"]
    assert list(stored.T.row_names[:2]) == ["f0", "f1"]
    assert backed.dtype == np.float32


def test_a_file_is_opened_and_checked_once_for_a_fit(store, h5ad, monkeypatch):
    files_opened = []

    def count(kind):
        init = kind.__init__

        def counted(self, *arguments):
            files_opened.append(kind)
            init(self, *arguments)

        monkeypatch.setattr(kind, "__init__", counted)

    count(StoreSource)
    count(BackedSource)
    for open_file, sources in (
        (lambda: open_store(store), 2),
        (lambda: open_on_disk(h5ad, cache=False), 1),
    ):
        data = open_file()
        for dtype in (np.float32, np.float64):
            KLNMF(3, max_iter=2, tol=0, random_state=0, dtype=dtype, n_jobs=2).fit(data)
        assert len(files_opened) == sources
        files_opened.clear()


def test_another_working_type_shares_the_open_file(store):
    stored = open_store(store, dtype=np.float64, n_jobs=1)
    assert stored.with_settings(np.dtype(np.float64), 1) is stored
    other = stored.with_settings(np.dtype(np.float32), 2)
    assert (other.dtype, other.threads, other.T.dtype, other.T.threads) == (np.float32, 2) * 2
    assert (stored.dtype, stored.T.dtype) == (np.float64, np.float64)
    assert other.source is stored.source
    assert other.buffers is stored.buffers
    named = stored.with_names(None, np.arange(V.shape[1]))
    np.testing.assert_array_equal(named.T.row_names, np.arange(V.shape[1]))
    assert stored.T.row_names[0] == "f0"


def test_buffers_stay_within_the_limit_and_are_used_again(store):
    stored = open_store(store, memory_limit=500_000)
    W, H = (np.ones((n, 3)) for n in V.shape)
    for _ in range(3):
        KLBlock(stored, H).ratio_sums(W)
        KLBlock(stored.T, W).ratio_sums(H)
    assert sum(len(memory) for memory in stored.buffers._memory) <= 500_000
    assert stored.buffers is stored.T.buffers


def test_a_window_that_is_held_still_is_not_read_again(store, monkeypatch):
    stored, reads = open_store(store), []
    read = stored.source.read
    monkeypatch.setattr(stored.source, "read", lambda *a: (reads.append(a[0]), read(*a)))
    W, H = (np.ones((n, 3)) for n in V.shape)
    for _ in range(3):
        KLBlock(stored, H).ratio_sums(W)
    assert reads == [0]


def test_a_limit_that_no_block_fits_into_is_refused(store):
    with pytest.raises(ValueError, match=r"`memory_limit` must be at least \d+ bytes, .* got 1000"):
        open_store(store, memory_limit=1000)


def test_files_travel_to_other_processes(h5ad):
    copy = pickle.loads(pickle.dumps(open_on_disk(h5ad, cache=False, memory_limit=900_000)))
    assert (copy.shape, copy.total) == (V.shape, V.sum())


@pytest.mark.parametrize("dtype", ["int32", "no type"])
def test_the_working_type_must_be_one_of_the_kernels(store, dtype):
    with pytest.raises(ValueError, match=f"`dtype` must be float32 or float64, got .?{dtype}"):
        open_store(store, dtype=dtype)


def test_stores_travel_to_other_processes(store):
    stored = open_store(store, memory_limit=500_000, dtype=np.float32)
    for data in (stored, stored.T):
        copy = pickle.loads(pickle.dumps(data))
        assert (copy.shape, copy.dtype, copy.total) == (data.shape, data.dtype, data.total)
        assert copy.T.T.shape == copy.shape
        assert copy.buffers.limit == 500_000


@pytest.mark.parametrize("scheme", ["vectors", "elements"])
def test_schemes_that_need_the_data_in_memory_say_so(store, scheme):
    with pytest.raises(ValueError, match=rf"`scheme` must be .* on disk, got '{scheme}': change"):
        open_store(store).sample(scheme, 0.5, Draw(0))


def test_what_needs_all_data_in_memory_says_so(store):
    with pytest.raises(ValueError, match="not in memory"):
        KLNMF(4, init="nndsvda", random_state=0).fit(open_store(store))


@linux_only
def test_data_larger_than_the_memory_of_the_process_are_fitted(tmp_path):
    """24 million nonzeros, 120 MB in each orientation, with 60 MB to spare for them."""
    path = tmp_path / "large.sipower"
    rng = np.random.default_rng(0)

    def blocks():
        for _ in range(24):
            columns = rng.integers(0, 30_000, (2_000, 500))
            rows = np.repeat(np.arange(2_000), 500)
            yield sp.csr_array((np.ones(10**6, np.uint8), (rows, columns.ravel())))

    write_store((b[:, :30_000] for b in blocks()), path, memory_limit="200MB")
    code = textwrap.dedent("""
        import resource, sys
        from sipower import KLNMF
        from sipower.io import open_store
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit = used + 230_000_000  # factors, threads and 60 MB of data
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        V = open_store(sys.argv[1], memory_limit="60MB", dtype="float32")
        assert len(V.windows_of_blocks) > 3
        model = KLNMF(5, random_state=0, max_iter=2, tol=0).fit(V)
        print(model.trace_[0].objective > model.kl_divergence_)
    """)
    output = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False,
        env=os.environ | {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"},  # no reserves
    )  # fmt: skip
    assert output.stdout.strip() == "True", output.stderr


def test_score_and_the_transpose_of_a_store(store):
    model = fit_model(V, "mu")
    assert model.score(open_store(store)) == model.score(V)
    transposed, expected = fit_model(open_store(store).T, "mu"), fit_model(sp.csr_array(V.T), "mu")
    assert transposed.components_.tobytes() == expected.components_.tobytes()


def test_counts_that_no_component_explains_are_named(store):
    model = fit_model(V, "mu")
    model.components_[:, 7] = 0
    with pytest.raises(ValueError, match="No component has feature 'f7', but the data on disk"):
        model.transform(open_store(store))
