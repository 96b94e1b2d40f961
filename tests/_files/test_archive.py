# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in files are read as NumPy reads them, and nothing that lies takes memory."""

import io
import zipfile

import numpy as np
import pytest

from sipower._files import DamagedError, read_archive, read_array, read_header

ARRAYS = [
    np.arange(12.0).reshape(3, 4),
    np.asfortranarray(np.ones((2, 3), ">i2")),
    np.array(3, np.uint8),
    np.array(b"csr"),
    np.array(["a", "é"]),
    np.zeros((0, 3), bool),
    np.array([1, 2], "M8[s]"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_what_numpy_writes_is_read(array, version) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    size = stream.tell()
    stream.seek(0)
    result = read_array(stream, size)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    assert result.flags.f_contiguous == array.flags.f_contiguous
    np.testing.assert_array_equal(result, array)


def head(text: str) -> io.BytesIO:
    size = len(text).to_bytes(2, "little")
    return io.BytesIO(np.lib.format.magic(1, 0) + size + text.encode())


def test_other_writers_order_and_space_a_head_otherwise() -> None:
    header = read_header(head("{'shape':(3L,4L),'fortran_order':False,\n'descr': '<f4'}"))
    assert header == ((3, 4), False, np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '\\d', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4'\n 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\xa0",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\x0b",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 5000},)}}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}" * 2,
        "-" * 9000,
        "",
    ],
)
def test_any_other_head_is_damage(text) -> None:
    with pytest.raises(DamagedError, match="is damaged or not a NumPy array: "):
        read_header(head(text))


@pytest.mark.parametrize(("version", "size"), [((1, 0), 2), ((2, 0), 4), ((3, 0), 4)])
def test_a_head_longer_than_any_takes_no_memory(version, size) -> None:
    start = np.lib.format.magic(*version) + b"\xff" * size
    declared = 256**size - 1
    with pytest.raises(DamagedError, match=f"its header declares {declared} bytes"):
        read_header(io.BytesIO(start + b"{'descr': '<f4', "))


def test_an_array_of_terabytes_in_a_small_archive_takes_no_memory(tmp_path) -> None:
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000,), }"
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as packed:
        packed.writestr("W.npy", head(text).getvalue() + bytes(32))
    with pytest.raises(DamagedError) as caught:
        read_archive(tmp_path / "v.npz")
    assert "declares 32000000000000 bytes and has 32" in str(caught.value)
