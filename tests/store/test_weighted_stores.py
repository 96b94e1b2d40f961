# SPDX-License-Identifier: BSD-3-Clause
"""Weighted data on disk: the same bits as in memory, whatever the weights and the windows."""

import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from sipower import Stop, as_matrix, solve
from sipower.data import weighted_source
from sipower.data.weighting import Weights, apply_weights
from sipower.io import open_on_disk, open_store
from sipower.nmf import SOLVERS, Factorization, make_solver
from sipower.store import write_store
from weight_cases import KINDS, make_weights, product

COUNTS = sp.csr_array(oracles.counts(900, 400, density=0.5))
DATA = {"counts": COUNTS, "reals": COUNTS / 3, "float32": (COUNTS / 3).astype(np.float32)}
SMALL = 1_200_000  # a memory limit that leads to several windows
TYPES = [np.float64, np.float32]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    names = [[f"{s}{i}" for i in range(n)] for s, n in zip("sf", COUNTS.shape, strict=True)]
    for name, data in DATA.items():
        write_store(data, folder / name, samples=names[0], features=names[1])
        write_store(data, folder / f"{name} by row", rows_only=True)
    return folder


@pytest.fixture(scope="module")
def h5ad(tmp_path_factory):
    anndata = pytest.importorskip("anndata")
    path = tmp_path_factory.mktemp("files") / "cells.h5ad"
    anndata.AnnData(sp.csr_matrix(DATA["float32"])).write_h5ad(path, compression="gzip")
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(weighted_source, "ENTRIES_AT_ONCE", 5000)


def fit(data, solver, rounds=4):
    result = solve(Factorization(data, 4), make_solver(solver), stop=Stop(0, rounds), seed=3)
    return [factor.tobytes() for factor in result.x], result.trace[-1].objective


def assert_same_data(stored, matrix):
    """Compare everything that row blocks tell, bit by bit."""
    assert (stored.shape, stored.nnz, stored.dtype) == (matrix.shape, matrix.nnz, matrix.dtype)
    assert stored.mass.tobytes() == matrix.mass.tobytes()
    assert stored.column_mass.tobytes() == matrix.column_mass.tobytes()
    assert stored.total == matrix.total
    assert stored.bounds == matrix.bounds
    np.testing.assert_array_equal(stored.indptr, matrix.indptr)
    rows = stored.rows(0, stored.shape[0])
    assert rows.data.tobytes() == matrix.array.data.tobytes()
    np.testing.assert_array_equal(rows.indices, matrix.array.indices)
    assert stored.source.smallest == pytest.approx(matrix.array.data.min(), rel=1e-6)
    assert stored.source.largest == pytest.approx(matrix.array.data.max(), rel=1e-6)
    assert stored.source.value_type == stored.dtype
    assert stored.sha256 == matrix.sha256


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DATA)
def test_a_weighted_store_is_the_product(stores, name, kind, dtype):
    weights = make_weights(kind, COUNTS.shape)
    stored = apply_weights(open_store(stores / name, dtype=dtype, memory_limit=SMALL), weights)
    matrix = apply_weights(as_matrix(DATA[name], dtype=dtype), weights)
    assert len(stored.windows_of_blocks) > 1
    assert len(stored.T.windows_of_blocks) > 1
    expected = product(DATA[name], weights, dtype)
    np.testing.assert_array_equal(stored.rows(0, 900).toarray(), expected)
    assert_same_data(stored, matrix)
    assert_same_data(stored.T, matrix.T)
    assert stored.T.T is stored


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_alone_are_weighted_too(stores, h5ad, kind, dtype):
    weights = make_weights(kind, COUNTS.shape)
    plain = as_matrix(DATA["float32"], dtype=dtype, rows_only=True)
    matrix = apply_weights(plain, weights)
    for data in (
        open_store(stores / "float32 by row", dtype=dtype, memory_limit=SMALL),
        open_on_disk(h5ad, cache=False, dtype=dtype, memory_limit=SMALL),
    ):
        stored = apply_weights(data, weights)
        assert not stored.has_columns
        assert len(stored.windows_of_blocks) > 1
        assert_same_data(stored, matrix)
        for solver in ("auto", "rows"):
            assert fit(stored, solver) == fit(matrix, solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_gives_the_bits_of_memory(stores, solver):
    weights = make_weights("all", COUNTS.shape)
    stored = apply_weights(open_store(stores / "counts", memory_limit=SMALL), weights)
    assert fit(stored, solver) == fit(apply_weights(as_matrix(COUNTS), weights), solver)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_weights_gives_the_fit_of_memory(stores, kind, dtype):
    weights = make_weights(kind, COUNTS.shape)
    expected = fit(apply_weights(as_matrix(DATA["reals"], dtype=dtype), weights), "mu")
    for limit in (SMALL, "64MB"):
        plain = open_store(stores / "reals", dtype=dtype, memory_limit=limit)
        assert fit(apply_weights(plain, weights), "mu") == expected


def test_the_transpose_takes_weights_of_its_own_shape(stores):
    weights = make_weights("all", COUNTS.shape)
    plain = open_store(stores / "reals", memory_limit=SMALL)
    there = apply_weights(plain.T, weights.transpose())
    assert_same_data(there, apply_weights(as_matrix(DATA["reals"]), weights).T)


def test_names_and_settings_are_kept(stores):
    plain = open_store(stores / "counts", dtype=np.float32, n_jobs=2)
    weighted = apply_weights(plain, make_weights("rows", COUNTS.shape))
    assert (weighted.dtype, weighted.threads, weighted.T.threads) == (np.float32, 2, 2)
    assert weighted.row_names[1] == weighted.T.column_names[1] == "s1"
    assert weighted.column_names[2] == weighted.T.row_names[2] == "f2"
    renamed = plain.with_names(None, np.arange(400))
    named = apply_weights(renamed, make_weights("rows", COUNTS.shape))
    assert named.row_names is None
    assert named.T.row_names[3] == 3
    assert apply_weights(plain, Weights()) is plain


def test_another_working_type_has_the_fingerprint_of_memory(stores):
    weights, narrow = make_weights("all", COUNTS.shape), np.dtype(np.float32)
    stored = apply_weights(open_store(stores / "reals"), weights)
    matrix = apply_weights(as_matrix(DATA["reals"]), weights)
    assert stored.sha256 == matrix.sha256 != matrix.with_settings(narrow).sha256
    assert stored.with_settings(narrow).sha256 == matrix.with_settings(narrow).sha256


def test_buffers_are_shared_and_stay_within_the_limit(stores):
    plain = open_store(stores / "counts", memory_limit=SMALL)
    weighted = apply_weights(plain, make_weights("all", COUNTS.shape))
    fit(plain, "mu", 2)
    fit(weighted, "mu", 2)
    assert weighted.buffers is plain.buffers
    assert sum(len(memory) for memory in plain.buffers._memory) <= SMALL


def test_a_window_of_other_weights_is_never_used(stores):
    plain = open_store(stores / "counts")
    for factor in (1.0, 2.0, 3.0, 4.0):
        weighted = apply_weights(plain, Weights(rows=np.full(900, factor)))
        sums = [data.row_sums().sum() for data, _ in weighted.windows()]
        assert sum(sums) == factor * COUNTS.sum()
        source = weakref.ref(weighted.source)
        del weighted
        gc.collect()
        assert source() is not None  # no new source takes its place while a buffer holds its rows


def test_weighted_stores_travel_to_other_processes(stores):
    weights = make_weights("all", COUNTS.shape)
    weighted = apply_weights(open_store(stores / "reals", memory_limit=SMALL), weights)
    for data in (weighted, weighted.T):
        copy = pickle.loads(pickle.dumps(data))
        assert copy.mass.tobytes() == data.mass.tobytes()
        assert copy.buffers.limit == SMALL
        assert fit(copy, "mu") == fit(data, "mu")


def test_weights_can_be_applied_one_after_another(stores):
    first, second = make_weights("rows", COUNTS.shape), make_weights("all", COUNTS.shape, 1)
    stored = apply_weights(apply_weights(open_store(stores / "reals"), first), second)
    assert_same_data(stored, apply_weights(apply_weights(as_matrix(DATA["reals"]), first), second))


def test_parts_of_rows_are_read_from_any_position(stores):
    weighted = apply_weights(open_store(stores / "reals"), make_weights("all", COUNTS.shape))
    whole = weighted.rows(0, 900)
    for first, length in ((0, 1), (17, 1), (1234, 20_000), (weighted.nnz - 3, 3), (5, 0)):
        indices, values = np.empty(length, np.int32), np.empty(length)
        weighted.source.read(first, indices, values)
        np.testing.assert_array_equal(indices, whole.indices[first : first + length])
        np.testing.assert_array_equal(values, whole.data[first : first + length])


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_weights_that_leave_nothing(stores, kind):
    weights = Weights(**{kind: np.zeros(COUNTS.shape[kind == "columns"])})
    weighted = apply_weights(open_store(stores / "counts"), weights)
    assert (weighted.nnz, weighted.total, weighted.T.total) == (0, 0, 0)
    assert (weighted.source.smallest, weighted.source.largest) == (0, 0)
    assert [data.row_sums().sum() for data, _ in weighted.windows()] == [0]


@pytest.mark.parametrize("factor", [1e38, 1e-30])
def test_a_weight_that_the_working_type_cannot_hold_is_one_sentence(stores, factor):
    weights = Weights(rows=np.full(900, factor))
    with pytest.raises(ValueError, match=r"out of range for float32: rescale the weights"):
        apply_weights(open_store(stores / "counts", dtype=np.float32), weights)
    weighted = apply_weights(open_store(stores / "counts"), weights)
    with pytest.raises(ValueError, match=r"too (small|large) for float32"):
        weighted.with_settings(np.dtype(np.float32))


def test_damage_is_reported_before_and_after_weighting(tmp_path):
    path = tmp_path / "damaged.sipower"
    write_store(DATA["reals"], path)
    weights, file = make_weights("all", COUNTS.shape), path / "rows" / "values.npy"
    weighted, content = apply_weights(open_store(path), weights), file.read_bytes()
    values = np.load(file)
    values[40:60] += 1
    with file.open("r+b") as changed:
        changed.seek(len(content) - values.nbytes)
        changed.write(values.tobytes())
    with pytest.raises(ValueError, match=f"{path} is damaged: the values of a row do not have"):
        apply_weights(open_store(path), weights)
    with pytest.raises(ValueError, match=f"{path} is damaged: the values of a row do not have"):
        next(weighted.windows())
    values[:] = 0
    with file.open("r+b") as changed:
        changed.seek(len(content) - values.nbytes)
        changed.write(values.tobytes())
    with pytest.raises(ValueError, match="has changed since its weights were applied"):
        next(weighted.windows())
