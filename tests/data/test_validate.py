# SPDX-License-Identifier: BSD-3-Clause
"""`as_matrix`: every input a user may have becomes the same matrix, or one sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import oracles
from sipower import Matrix, as_matrix
from sipower.io import open_store
from sipower.store import write_store

V = oracles.counts(9, 7, density=0.3)
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def as_dense(matrix):
    return matrix.array if matrix.dense else matrix.array.toarray()


@pytest.mark.parametrize(
    "dtype",
    [
        bool,
        np.uint8,
        np.int8,
        np.uint16,
        np.int32,
        np.uint64,
        np.int64,
        np.float16,
        np.float32,
        np.float64,
        np.longdouble,
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_of_any_real_type(dtype, order):
    data = np.asarray(np.minimum(V, 1) if dtype is bool else V).astype(dtype, order=order)
    matrix = as_matrix(data)
    np.testing.assert_array_equal(as_dense(matrix).astype(float), data.astype(float))
    small = (np.dtype(np.float16), np.dtype(np.float32))
    assert matrix.dtype == (np.float32 if np.dtype(dtype) in small else np.float64)
    np.testing.assert_array_equal(matrix.mass, data.astype(float).sum(axis=1))
    np.testing.assert_array_equal(as_dense(matrix.T).astype(float), data.astype(float).T)


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("format_", FORMATS)
def test_every_sparse_format(format_, kind):
    data = getattr(sp, f"{format_}_{kind}")(V)
    matrix = as_matrix(data)
    assert not matrix.dense
    assert matrix.nnz == np.count_nonzero(V)
    np.testing.assert_array_equal(as_dense(matrix), V)
    np.testing.assert_array_equal(as_dense(matrix.T), V.T)
    np.testing.assert_array_equal(matrix.mass, V.sum(axis=1))


def test_64_bit_indices():
    data = sp.csr_array(V)
    data.indices, data.indptr = data.indices.astype(np.int64), data.indptr.astype(np.int64)
    np.testing.assert_array_equal(as_dense(as_matrix(data)), V)


def test_duplicates_zeros_and_order_without_touching_the_input():
    data, row = np.array([1.0, 2.0, 0.0, 4.0, 5.0]), np.array([0, 0, 0, 1, 1])
    column = np.array([2, 2, 1, 3, 0])
    csr = sp.csr_array((data, column, np.array([0, 3, 5])), shape=(2, 4))
    before = csr.data.copy(), csr.indices.copy(), csr.indptr.copy()
    matrix = as_matrix(csr)
    assert matrix.nnz == 3
    assert matrix.array.has_sorted_indices
    np.testing.assert_array_equal(as_dense(matrix), [[0, 0, 3, 0], [5, 0, 0, 4]])
    for old, new in zip(before, (csr.data, csr.indices, csr.indptr), strict=True):
        np.testing.assert_array_equal(old, new)
    assert row.size == 5


@pytest.mark.parametrize("format_", ["coo", "bsr", "csr", "csc"])
@pytest.mark.parametrize(("dtype", "value"), [("uint8", 200), ("int8", 100), ("bool", 1)])
def test_places_given_twice_are_summed_in_a_type_that_holds_them(format_, dtype, value, tmp_path):
    twice = sp.coo_array((np.array([value, value, 1], dtype), ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    if format_ == "bsr":
        blocks = np.array([[[value]], [[value]], [[1]]], dtype)
        data = sp.bsr_array((blocks, np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    elif format_ == "coo":
        data = twice
    else:
        parts = (twice.data, np.array([0, 0, 1]), np.array([0, 2, 3]))
        data = {"csr": sp.csr_array, "csc": sp.csc_array}[format_](parts, shape=(2, 2))
    np.testing.assert_array_equal(as_dense(as_matrix(data)), [[2 * value, 0], [0, 1]])
    write_store([data], tmp_path / "v")
    np.testing.assert_array_equal(
        open_store(tmp_path / "v").rows(0, 2).toarray(), [[2 * value, 0], [0, 1]]
    )


def test_read_only_and_memory_mapped(tmp_path):
    np.save(tmp_path / "v.npy", V)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    np.testing.assert_array_equal(as_dense(as_matrix(mapped)), V)
    frozen = V.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(as_dense(as_matrix(frozen)), V)


def test_a_matrix_stays_itself():
    matrix = as_matrix(V)
    assert as_matrix(matrix) is matrix
    assert isinstance(matrix, Matrix)
    assert matrix.T.T is matrix


def test_frames_keep_their_names():
    frame = pd.DataFrame(V, index=[f"s{i}" for i in range(9)], columns=list("abcdefg"))
    for data in (frame, frame.astype(pd.SparseDtype(float, 0.0))):
        matrix = as_matrix(data)
        np.testing.assert_array_equal(as_dense(matrix), V)
        assert list(matrix.row_names) == [f"s{i}" for i in range(9)]
        assert list(matrix.column_names) == list("abcdefg")
        assert list(matrix.T.row_names) == list("abcdefg")
    assert not as_matrix(frame.astype(pd.SparseDtype(float, 0.0))).dense


def test_all_zero_data_are_legal():
    assert as_matrix(np.zeros((3, 4))).total == 0
    assert as_matrix(sp.csr_array((3, 4))).nnz == 0


def with_entry(value, row=4, column=3):
    out = V.copy()
    out[row, column] = value
    return out


BAD = {
    "negative": (with_entry(-1.5), r"Negative values in data: entry \(4, 3\) is -1.5"),
    "negative integer": (
        with_entry(-2).astype(int),
        r"Negative values in data: entry \(4, 3\) is -2",
    ),
    "NaN": (with_entry(np.nan), r"NaN in data: entry \(4, 3\)"),
    "infinite": (with_entry(np.inf), r"Infinity in data: entry \(4, 3\)"),
    "sparse negative": (sp.csr_array(with_entry(-1.5)), r"Negative values in data: entry \(4, 3\)"),
    "sparse NaN": (sp.coo_array(with_entry(np.nan)), r"NaN in data: entry \(4, 3\)"),
    "Fortran order": (
        np.asfortranarray(with_entry(-1.0)),
        r"Negative values in data: entry \(4, 3\)",
    ),
    "complex": (V + 0j, "Complex data not supported"),
    "dates": (V.astype("datetime64[D]"), r"must be numbers, got dates \(datetime64"),
    "strings": (V.astype(str), r"must be numbers, got texts such as .* V\.astype\(float\)"),
    "texts": (["a text", "another"], r"texts such as 'a text'.*read_texts.*CountVectorizer"),
    "texts as objects": (np.array([["a"], ["b"]], object), r"texts such as 'a'.*read_texts"),
    "a path": ("counts.h5ad", r"a path or a text, 'counts\.h5ad'.*read\('counts\.h5ad'\)"),
    "a Path": (Path("counts.csv"), r"read_texts"),
    "a text column": (
        pd.DataFrame({"title": ["x", "y"], "n": [1, 2]}),
        r"a column 'title' of text.*drop\(columns='title'\).*set_index\('title'\).*read_texts",
    ),
    "no rows": (np.zeros((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\)"),
    "no columns": (sp.csr_array((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    "one dimension": (np.ones(3), "1 dimension"),
    "three dimensions": (np.ones((2, 2, 2)), "3 dimension"),
    "masked": (np.ma.masked_equal(V, 0), "masked array"),
}


@pytest.mark.parametrize(
    ("module", "advice"), [("dask.array", r"sipower\.dask"), ("anndata", r"\.X")]
)
def test_collections_of_other_libraries_are_told_what_to_do(module, advice):
    data = type("Collection", (), {"__module__": module, "obs": None})()
    with pytest.raises(TypeError, match=advice):
        as_matrix(data)


def test_numbers_as_python_objects_are_converted():
    np.testing.assert_array_equal(as_matrix(V.astype(object)).array, V)


@pytest.mark.parametrize("what", BAD)
def test_bad_input_gets_one_sentence(what):
    data, message = BAD[what]
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        as_matrix(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("value", "word"), [(1e39, "too large"), (1e-40, "too small")])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_values_outside_the_working_type(layout, value, word):
    assert as_matrix(layout(with_entry(value))).dtype == np.float64
    with pytest.raises(ValueError, match=rf"Entry \(4, 3\) is .*{word} for float32"):
        as_matrix(layout(with_entry(value)), dtype=np.float32)


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e-21), ("float64", 1e-160)])
def test_data_too_small_for_quotients_are_refused(dtype, scale):
    """Below half the range of exponents certificates were lies, or fits went astray."""
    with pytest.raises(ValueError, match=f"too small for {dtype}; rescale the data"):
        as_matrix(np.array([[1.0, 2.0], [3.0, 4.0]]) * scale, dtype=dtype)
    assert as_matrix(np.array([[1.0, 2.0]]) * scale * 1e6, dtype=dtype).total > 0


def test_the_first_of_several_bad_entries_is_named():
    bad = V.copy()
    bad[8, 0], bad[5, 6], bad[5, 2] = -1, -1, -1
    for data in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=r"\(5, 2\)"):
            as_matrix(data)


def test_sums_of_duplicates_may_not_overflow():
    data = sp.coo_array((np.full(2, 3e38, np.float32), ([1, 1], [2, 2])), shape=(3, 3))
    with pytest.raises(ValueError, match=r"(Entry|entry) \(1, 2\) is"):
        as_matrix(data)


def test_working_type_must_be_a_kernel_type():
    with pytest.raises(ValueError, match="`dtype` must be float32 or float64"):
        as_matrix(V, dtype=np.int32)


def test_blocks_cover_all_rows_and_are_cut_by_work():
    big = sp.random_array((5000, 400), density=0.2, random_state=0, format="csr")
    big.data[:] = 1
    matrix = as_matrix(big)
    assert matrix.bounds[0] == 0
    assert matrix.bounds[-1] == 5000
    work = np.diff(matrix.indptr[matrix.bounds])
    assert 8 <= len(work) <= 64
    assert work.max() < 1.5 * work.mean()


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [1e100, 1e-100])
def test_a_matrix_is_not_narrowed_to_what_cannot_hold_it(layout, value):
    wide = as_matrix(layout(np.array([[1.0, 2.0], [3.0, value]])))
    with pytest.raises(ValueError, match=r"Entry \(1, 1\) .* for float32"):
        as_matrix(wide, dtype=np.float32)
    assert as_matrix(wide, dtype=np.float64) is wide


def test_a_data_frame_may_have_features_called_counts_and_samples():
    frame = pd.DataFrame({"counts": [1, 2], "samples": [3, 4]})
    assert as_matrix(frame).total == 10


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: pd.DataFrame({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}),
        lambda rows: pl.DataFrame({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}),
        lambda rows: pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]}),
        lambda rows: np.array(rows, object),
        list,
    ],
    ids=["pandas", "polars", "arrow", "objects", "list"],
)
def test_whole_numbers_beside_decimals_are_not_rounded(make):
    """NumPy makes floats of a frame with columns of both kinds, before their types can be seen."""
    exact = [(0.5, 2**60), (1.5, 3)]
    assert as_matrix(make(exact)).array[0, 1] == 2**60
    data = make([(0.5, 3), (1.5, 2**60 + 1)])
    with pytest.raises(ValueError, match=rf"Entry \(1, 1\) is {2**60 + 1}, .* would round"):
        as_matrix(data)
    assert as_matrix(data, dtype="float32").array[1, 1] == 2**60
