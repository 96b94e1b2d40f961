# SPDX-License-Identifier: BSD-3-Clause
"""Blocks of rows become a store that holds what memory would hold, or nothing at all."""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from sipower import as_matrix
from sipower.store import read_layout, write_store
from sipower.store.layout import read_names
from sipower.store.workspace import Workspace

TINY = 1_000_000


def counts(rows, columns, density=0.1, largest=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(1, largest + 1, (rows, columns)) * (rng.random((rows, columns)) < density)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_array,
                                  pd.DataFrame, as_matrix])  # fmt: skip
@pytest.mark.parametrize("cut", [1, 7, 300])
def test_any_blocks_make_the_same_store(tmp_path, assert_store, make, cut) -> None:
    V = counts(300, 40)
    blocks = (make(V[at : at + cut]) for at in range(0, 300, cut))
    write_store(blocks, tmp_path / "v.sipower")
    assert_store(tmp_path / "v.sipower", V, np.uint8)
    write_store(make(V), tmp_path / "whole.sipower")
    assert_store(tmp_path / "whole.sipower", V, np.uint8)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, as_matrix])
def test_large_blocks_are_cut_and_the_transpose_has_many_ranges(tmp_path, assert_store, make):
    V = counts(4000, 200, 0.2)
    calls = []
    write_store(
        make(V),
        tmp_path / "v",
        memory_limit=TINY,
        on_block=lambda *arguments: calls.append(arguments),
    )
    assert_store(tmp_path / "v", V)
    max_entries = Workspace(tmp_path, TINY).max_entries
    for side, size in zip(("rows", "columns"), V.shape, strict=True):
        progress = [(0, 0), *((items, nonzeros) for what, items, nonzeros in calls if what == side)]
        assert progress[-1] == (size, np.count_nonzero(V))
        assert len(progress) > 10
        assert np.diff(progress, axis=0).sum(axis=1).max() <= max_entries


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([1, 255], np.uint8),
        ([1, 256], np.uint16),
        ([65535, 3], np.uint16),
        ([65536, 3], np.float32),
        ([2**24, 1], np.float32),
        ([2**24 + 1, 1], np.float64),
        ([0.5, 300], np.float32),
        ([0.1, 300], np.float64),
        ([1e100, 1], np.float64),
        ([2**60, 1], np.float32),
        ([2**40 + 1, 1], np.float64),
        (np.float32([0.1, 2]), np.float32),
        (np.float32([7, 2]), np.uint8),
        (np.float16([0.5, 2]), np.float32),
        ([True, True], np.uint8),
        ([5e-100, 1], np.float64),
    ],
)
def test_values_have_the_smallest_type_that_holds_them(tmp_path, assert_store, numbers, kind):
    row = np.asarray(numbers)
    ones = np.ones_like(np.tile(row, (5, 1)))
    write_store([ones, row[None], ones], tmp_path / "v")  # narrow before and after
    assert_store(tmp_path / "v", np.vstack([ones, row[None], ones]), kind)


def test_a_widened_file_keeps_many_numbers(tmp_path, assert_store, monkeypatch) -> None:
    monkeypatch.setattr("sipower.store.append_only._COPY_LENGTH", 7)
    V = counts(50, 30, 0.5).astype(float)
    V[20, 3], V[30, 4], V[40, 5] = 1000, 0.5, 0.1
    write_store((V[at : at + 3] for at in range(0, 50, 3)), tmp_path / "v")
    assert_store(tmp_path / "v", V, np.float64)


@pytest.mark.parametrize(
    "V",
    [
        np.zeros((3, 4)),
        np.ones((1, 1)),
        np.arange(12).reshape(1, 12),
        np.arange(12).reshape(12, 1),
        np.diag([0, 0, 3, 0, 0]),
        np.eye(2, 90000),
        np.eye(90000, 2),
    ],
    ids=["zeros", "one", "one row", "one column", "empty sides", "wide", "tall"],
)
@pytest.mark.parametrize("rows_only", [False, True])
def test_odd_shapes(tmp_path, assert_store, V, rows_only) -> None:
    write_store(V, tmp_path / "v", memory_limit=TINY, rows_only=rows_only)
    assert_store(tmp_path / "v", V, np.uint8, rows_only)


@settings(max_examples=40, deadline=None)
@given(V=arrays.arrays(np.float64, arrays.array_shapes(min_dims=2, max_dims=2, max_side=9),
                       elements=st.sampled_from([0, 0, 1, 2.5, 300, 70000, 0.1])),
       cut=st.integers(1, 9))  # fmt: skip
def test_any_small_matrix(tmp_path_factory, V, cut) -> None:
    path = tmp_path_factory.mktemp("v") / "v"
    write_store((V[at : at + cut] for at in range(0, len(V), cut)), path)
    store = read_layout(path)
    for side, matrix in (("rows", V), ("columns", V.T)):
        parts = (np.load(path / side / f"{name}.npy") for name in ("values", "indices", "indptr"))
        stored = sparse.csr_array(tuple(parts), shape=matrix.shape)
        np.testing.assert_array_equal(stored.toarray(), matrix)
    assert store.total == as_matrix(V).total


def test_fractions_have_the_same_sums_of_rows_and_columns(tmp_path, assert_store) -> None:
    V = np.random.default_rng(0).gamma(0.3, size=(3000, 30))
    write_store(V, tmp_path / "v", memory_limit=TINY)
    assert_store(tmp_path / "v", V, np.float64)
    write_store(V.astype(np.float32), tmp_path / "w", memory_limit=TINY, rows_only=True)
    assert_store(tmp_path / "w", V.astype(np.float32), np.float32, rows_only=True)


def test_duplicates_of_a_block_add_up_as_in_memory(tmp_path, assert_store) -> None:
    V = sparse.coo_array(([1, 2, 0, 4], ([0, 0, 1, 1], [1, 1, 0, 2])), shape=(2, 3))
    write_store([V], tmp_path / "v")
    assert_store(tmp_path / "v", V)


def test_a_store_can_be_written_of_another_one(tmp_path, assert_store) -> None:
    stored = pytest.importorskip("sipower.io")
    V = counts(500, 30)
    write_store(V, tmp_path / "v", rows_only=True)
    write_store(stored.open_store(tmp_path / "v"), tmp_path / "w")
    assert_store(tmp_path / "w", V)


def test_names_are_carried(tmp_path) -> None:
    samples, features = ["é", "b"], ("x\n", "y", "z")
    write_store(np.eye(2, 3), tmp_path / "v", samples=samples, features=features)
    assert read_names(read_layout(tmp_path / "v")) == (("é", "b"), features)
    write_store(np.eye(2, 3), tmp_path / "w", features=features)
    assert read_names(read_layout(tmp_path / "w")) == (None, features)


def test_names_cost_what_they_hold_and_stay_as_they_are(tmp_path) -> None:
    stored = pytest.importorskip("sipower.io")
    samples = ["x" * 1_000_000, "NUL\0", *(f"s{i}" for i in range(2, 1000))]
    write_store(np.eye(1000, 3) + 1, tmp_path / "v", samples=samples)
    tracemalloc.start()
    try:
        matrix = stored.open_store(tmp_path / "v", memory_limit="1MB")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000  # side by side they were 4 GB
    finally:
        tracemalloc.stop()
    assert matrix.row_names.tolist() == samples


def test_memory_stays_within_the_limit(tmp_path) -> None:
    limit, V = 20_000_000, sparse.csr_array(counts(5000, 400, 0.5, 60000))
    tracemalloc.start()
    try:
        write_store(V, tmp_path / "v", memory_limit=limit)
        assert 0.1 * limit < tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()
    assert V.nnz * 24 > limit


# ---- complete or not there -----------------------------------------------------------------------


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError, OSError])
@pytest.mark.parametrize("side", ["blocks", "columns"])
def test_what_is_interrupted_leaves_nothing(tmp_path, problem, side) -> None:
    def blocks():
        yield np.eye(3)
        if side == "blocks":
            raise problem

    def on_block(what, *_):
        if what == side:
            raise problem

    with pytest.raises(problem):
        write_store(blocks(), tmp_path / "v", on_block=on_block)
    assert list(tmp_path.iterdir()) == []


def test_an_older_store_is_replaced_only_if_asked_and_only_by_a_whole_one(tmp_path, assert_store):
    path = tmp_path / "v"
    write_store(np.eye(3), path)
    with pytest.raises(ValueError, match="v is a store already: choose another name, or use force"):
        write_store(np.eye(4), path)
    with pytest.raises(ValueError, match="Negative values in data"):
        write_store(-np.eye(4), path, force=True)
    assert_store(path, np.eye(3))
    write_store(np.eye(4), path, force=True)
    assert_store(path, np.eye(4))


def test_what_is_no_store_is_never_replaced(tmp_path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "file").write_text("mine")
    for name in ("home", "file"):
        with pytest.raises(ValueError, match=f"{name} exists and is not a store"):
            write_store(np.eye(3), tmp_path / name, force=True)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        ([], {}, "`blocks` must have at least one row, got none."),
        ([np.eye(2), -np.eye(2)], {}, r"Negative .* entry \(2, 0\) is -1"),
        ([np.eye(2), np.full((1, 2), np.nan)], {}, r"NaN in data: entry \(2"),
        ([np.eye(2), np.eye(3)], {}, "Block 2 has 3 columns of float64, .* 2 of float64"),
        ([np.eye(2), np.eye(2, dtype="f4")], {}, "Block 2 has 2 columns of float32, .* has 2 of"),
        ([np.ones(3)], {}, "Block 1, rows from 0 on: The data must be 2-dimensional, got 1"),
        ([[["a"]]], {}, "Block 1, rows from 0 on: The data must be numbers, got texts"),
        (np.full((2, 2), np.float32(3e38)), {}, "The sum of the data is too large for float32"),
        (np.eye(2), {"samples": ["a"]}, "`samples` must have 2 names, got 1"),
        (np.eye(2), {"features": "abc"}, "`features` must have 2 names, got 3"),
        (np.eye(2), {"memory_limit": "1kB"}, "`memory_limit` must be at least 1MB, got '1kB'"),
        (
            np.eye(2),
            {"memory_limit": "much"},
            "`memory_limit` must be a number of bytes or a size such as 512MB, got 'much'",
        ),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, blocks, options, message) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        write_store(blocks, tmp_path / "v", **options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_the_older_store_comes_back_when_the_new_one_cannot_take_its_place(
    tmp_path, monkeypatch, problem
):
    """Between the two renames there is no store: whatever happens there, the older one returns."""
    path = tmp_path / "v.sipower"
    write_store(counts(30, 20), path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    rename, calls = Path.rename, []

    def second_fails(self, target):
        calls.append(self.name)
        if len(calls) == 2:
            assert not path.exists()
            raise problem
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises(type(problem)):
        write_store(counts(40, 20), path, force=True)
    assert calls == ["v.sipower", "new", "old"]
    assert list(tmp_path.iterdir()) == [path]
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    assert read_layout(path).shape == (30, 20)
