# SPDX-License-Identifier: BSD-3-Clause
"""Files of NumPy and SciPy: what is read, and what is refused."""

import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from reading import BANNER, V, assert_read, held, refused
from sipower import as_matrix
from sipower.io import ReadError, convert, read


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, bool])
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_npz_is_read(tmp_path, layout, kind, compressed) -> None:
    expected = np.minimum(V, 200).astype(kind)
    matrix = sparse.coo_array(expected).asformat(layout)
    sparse.save_npz(tmp_path / "v.npz", matrix, compressed=compressed)
    table = read(tmp_path / "v.npz")
    assert_read(table, expected, names=False)
    assert held(table).dtype == (np.uint8 if kind is bool else kind)


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, np.float16, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_read(tmp_path, kind, order) -> None:
    expected = np.asarray(np.minimum(V, 200).astype(kind), order=order)
    np.save(tmp_path / "v.npy", expected)
    table = read(tmp_path / "v.npy")
    assert_read(table, expected, names=False)
    if kind != np.float16:
        assert held(table).dtype == np.dtype(kind).newbyteorder("=")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), "has 1 dimensions, expected rows and columns"),
        (np.array([[1.0, np.nan]]), "row 1, column 2, holds nan: counts must be finite"),
        (np.array([[1.0], [-np.inf]]), "row 2, column 1, holds -inf"),
        (np.array([[1, 2], [-3, 4]]), "row 2, column 1, holds -3"),
        (np.ones((2, 2), complex), "has values of type complex128, expected numbers"),
        (np.array([["a"]]), "has values of type <U1, expected numbers"),
        (np.ones((0, 3)), "holds no counts: it has 0 rows and 3 columns"),
        (np.array([[{}]]), "holds Python objects"),
    ],
)
def test_a_bad_npy_is_refused(tmp_path, array, message) -> None:
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    refused(tmp_path / "v.npy", message)


def test_npy_of_a_wrong_length(tmp_path) -> None:
    file = tmp_path / "v.npy"
    np.save(file, np.ones((3, 4)))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    refused(file, "declares 96 bytes and has 95")
    file.write_bytes(whole + b"\0")
    refused(file, "declares 96 bytes and has 97")
    file.write_bytes(whole.replace(b"(3, 4), }        ", b"(3, 4000000000), }"))
    refused(file, "declares|is damaged or not a NumPy array")


def save_parts(file: Path, **changed: np.ndarray) -> None:
    """Write a good CSR matrix with some of its parts replaced."""
    good = sparse.csr_array(np.array([[0, 2, 1], [3, 0, 0]]))
    parts = {name: getattr(good, name) for name in ("data", "indices", "indptr")}
    np.savez(file, **({"format": b"csr", "shape": good.shape, **parts} | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"indices": np.array([1, 3, 0])}, "an index is outside 2 x 3"),
        ({"indices": np.array([1, -1, 0])}, "an index is outside 2 x 3"),
        ({"indices": np.array([1, 1, 0])}, "holds two counts for row 1, column 2"),
        ({"indices": np.array([1.0, 2, 0])}, "has indices of type float64"),
        ({"indices": np.array([[1, 2, 0]])}, "a part of its matrix is not a list of numbers"),
        ({"indptr": np.array([0, 4, 3])}, "the starts of its rows are out of order"),
        ({"indptr": np.array([0, 2, 9])}, "the starts of its rows are out of order"),
        ({"indptr": np.array([0, 3])}, "cannot have 3 values, 3 indices and 2 starts"),
        ({"shape": np.array([2, 10**12])}, "declares 2 x 1000000000000 with 3 counts"),
        ({"shape": np.array([-2, 3])}, "declares -2 x 3"),
        ({"shape": np.array([2, 3, 4])}, "the shape of its matrix"),
        ({"data": np.array([2, 1, -3])}, "row 2, column 1, holds -3"),
        ({"data": np.array([2, np.nan, 3])}, "row 1, column 3, holds nan"),
        ({"format": np.array(b"dia")}, "of the format 'dia'.*save it as CSR"),
    ],
)
def test_a_bad_sparse_npz_is_refused(tmp_path, changed, message) -> None:
    save_parts(tmp_path / "v.npz")
    assert read(tmp_path / "v.npz").counts.sum() == 6
    save_parts(tmp_path / "v.npz", **changed)
    refused(tmp_path / "v.npz", message)


def test_coordinates_in_npz(tmp_path) -> None:
    file = tmp_path / "v.npz"
    for rows, message in (
        ([0, 0, 2], "outside 2 x 3"),
        ([0, 0, 0], "two counts for row 1, column 2"),
    ):
        parts = {"row": np.array(rows), "col": np.array([1, 2, 1]), "data": np.ones(3)}
        np.savez(file, format=b"coo", shape=(2, 3), **parts)
        refused(file, message)


def test_other_arrays_beside_a_sparse_matrix_are_not_read(tmp_path) -> None:
    names = np.array(["a", {}], object)  # a pickle
    save_parts(tmp_path / "v.npz", names=names)
    assert read(tmp_path / "v.npz").counts.sum() == 6


def test_the_only_array_of_an_archive_is_read(tmp_path) -> None:
    np.savez_compressed(tmp_path / "v.npz", V=np.arange(6).reshape(2, 3))
    assert read(tmp_path / "v.npz").counts.tolist() == [[0, 1, 2], [3, 4, 5]]
    np.savez(tmp_path / "flat.npz", np.arange(6))
    refused(tmp_path / "flat.npz", "has 1 dimensions, expected rows and columns")
    np.savez(tmp_path / "objects.npz", np.array([["a", {}]], object))
    refused(tmp_path / "objects.npz", "holds Python objects, expected numbers")


def test_other_archives(tmp_path) -> None:
    file = tmp_path / "v.npz"
    np.savez(file, V=np.ones((2, 2)), names=np.arange(2))
    refused(file, r"holds the arrays V, names, expected .*: save the counts alone, with numpy.save")
    file.write_bytes(b"PK no archive")
    refused(file, "is damaged or not an .npz file")


def test_a_small_archive_that_unpacks_to_gigabytes_is_refused(tmp_path) -> None:
    file, zeros = tmp_path / "v.npz", np.zeros(300 << 20, np.uint8)
    parts = {"indices": zeros[:1], "indptr": zeros[:3], "shape": (2, 3)}
    np.savez_compressed(file, format=b"csr", data=zeros, **parts)
    raw = file.read_bytes()
    assert len(raw) < 1 << 20
    # The size that the archive's directory tells, made larger than any compression can be.
    size = (zeros.nbytes + 128).to_bytes(4, "little")
    assert raw.count(size) >= 1
    file.write_bytes(raw.replace(size, (0xFFFFFF00).to_bytes(4, "little")))
    refused(file, "declares 4294967040 bytes for the array data and stores")


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("<i8", (-3, -4)), ("<i8", (0, 10**30)), ("|S0", (3, 4)), ("<i8", (0, 2**63)), ("|V0", ())],
)
def test_a_head_of_numpy_with_sizes_that_cannot_be(tmp_path, kind, shape) -> None:
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode() + b"\n"
    raw = np.lib.format.magic(1, 0) + len(head).to_bytes(2, "little") + head
    raw += bytes(8 * 12) if min(shape, default=0) < 0 else b""
    (tmp_path / "v.npy").write_bytes(raw)
    refused(tmp_path / "v.npy", "is damaged or not a NumPy array")


@pytest.mark.parametrize(("value", "message"), [("1e4000", "large"), ("1e-4000", "small")])
def test_a_long_double_out_of_range_is_refused_without_a_warning(tmp_path, value, message) -> None:
    np.save(tmp_path / "v.npy", np.array([[value]], np.longdouble))
    counts = read(tmp_path / "v.npy").counts
    with pytest.raises(ValueError, match=rf"Entry \(0, 0\) is .*, too {message} for float64"):
        as_matrix(counts)
    with pytest.raises(ValueError, match=f"too {message} for float64"):
        convert(tmp_path / "v.npy", tmp_path / "v.sipower")


def test_a_head_of_numpy_that_is_odd_source_gives_no_warning(tmp_path) -> None:
    head = b"{'descr': '\\d', 'fortran_order': False, 'shape': (1, 1)}\n"
    raw = np.lib.format.magic(1, 0) + len(head).to_bytes(2, "little") + head + bytes(8)
    (tmp_path / "v.npy").write_bytes(raw)
    refused(tmp_path / "v.npy", "is damaged or not a NumPy array")


def test_members_of_an_archive_without_the_ending_are_no_arrays(tmp_path) -> None:
    save_parts(tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as good:
        members = {name: good.read(name) for name in good.namelist()}
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as bad:
        for name, content in members.items():
            bad.writestr(name.replace("shape.npy", "shape"), content)
    refused(tmp_path / "v.npz", "holds the arrays data, format, indices, indptr, expected")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["data", "extra"])
def test_two_arrays_of_one_name_are_refused(tmp_path, name) -> None:
    """The last one was taken."""
    save_parts(tmp_path / "v.npz", extra=np.ones(2))
    with zipfile.ZipFile(tmp_path / "v.npz", "a") as archive:
        archive.writestr(f"{name}.npy", archive.read("indices.npy"))
    refused(tmp_path / "v.npz", f"holds two arrays with the name '{name}': write it again with one")


@pytest.mark.parametrize("make", [np.array, sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_whole_numbers_that_would_be_rounded_are_refused(tmp_path, make, kind) -> None:
    """Where they become the working type: in memory, in a store and in the transpose."""
    expected = np.array([[3, 0], [0, 2**53 + 1], [5, 2**53]], kind)
    file = tmp_path / ("v.npy" if make is np.array else "v.npz")
    np.save(file, expected) if make is np.array else sparse.save_npz(file, make(expected))
    counts = read(file).counts
    assert counts.sum() == 2**54 + 9  # all digits
    sentence = "is 9007199254740993, a whole number beyond 2\\^53 that float64 would round: rescale"
    with pytest.raises(ValueError, match=rf"^Entry \(1, 1\) {sentence}"):
        as_matrix(counts)
    for act, entry in ((convert, r"\(1, 1\)"), (partial(convert, transpose=True), r"\(1, 1\)")):
        with pytest.raises(ReadError, match=rf"{file.name}: Entry {entry} {sentence}"):
            act(file, tmp_path / "v.sipower")
    assert as_matrix(counts, dtype=np.float32).total == pytest.approx(2**54)


def test_whole_numbers_of_a_text_file_that_would_be_rounded(tmp_path) -> None:
    file = tmp_path / "v.mtx"
    file.write_text(f"{BANNER}2 3 2\n1 3 {2**53 + 1}\n2 1 4\n")
    sentence = "is 9007199254740993, a whole number beyond 2\\^53"
    with pytest.raises(ValueError, match=rf"^Entry \(0, 2\) {sentence}"):
        as_matrix(read(file).counts)
    with pytest.raises(ReadError, match=rf"v\.mtx: Entry \(0, 2\) {sentence}"):
        convert(file, tmp_path / "v.sipower")


def test_a_format_that_is_no_text(tmp_path) -> None:
    save_parts(tmp_path / "v.npz", format=np.array(b"\xff\xfe"))
    refused(tmp_path / "v.npz", "of the format 'ÿþ'")


def test_damage_in_an_archive_packed_by_lzma(tmp_path) -> None:
    save_parts(tmp_path / "good.npz")
    with (
        zipfile.ZipFile(tmp_path / "good.npz") as good,
        zipfile.ZipFile(tmp_path / "v.npz", "w", zipfile.ZIP_LZMA) as packed,
    ):
        for name in good.namelist():
            packed.writestr(name, good.read(name))
    raw = bytearray((tmp_path / "v.npz").read_bytes())
    at = raw.index(b"data.npy") + len(b"data.npy") + 12
    raw[at : at + 20] = b"\xff" * 20
    (tmp_path / "v.npz").write_bytes(raw)
    refused(tmp_path / "v.npz", "is damaged or not a NumPy array: Corrupt input data")
