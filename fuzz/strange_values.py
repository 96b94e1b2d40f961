# SPDX-License-Identifier: BSD-3-Clause
"""Values that readers often mishandle: words, numbers, shapes, types and columns."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["ARRAYS", "DESCRIPTIONS", "NUMBERS", "SHAPES", "TOKENS", "VALUES", "draw_column"]

_WORDS = (
    b"nan inf -inf 1e400 -1e400 -1 -0 -0.0 0 1 2 3 +1 1e-400 5e-324 0x10 1_000 1,5 1.5 .5 1. 1e5 "
    b"007 2147483647 2147483648 4294967296 9223372036854775807 9223372036854775808 1000000000000 "
    b"18446744073709551616 99999999999999999999999999 20000000 None null True <NA> NA \xd9\xa3 "
    b"%%MatrixMarket matrix coordinate array integer real double complex pattern unsigned-integer "
    b"general symmetric skew-symmetric hermitian % # a b Gene1 \xff \xfe\xff \xef\xbb\xbf \x00 "
    b'\x1a \xc2\xb2 " \' "" \\ ; , [ ] { } ( ) : .. / 1d5 1+2j'
)
_SPACES = (b"", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b"\xc2\xa0", b"\xe2\x80\xa8")
_LONG = (b"9" * 400, b"1" * 4301, b"x" * 70_000, b"1 1 1\n", b'"a\nb"')
TOKENS = (*_WORDS.split(b" "), *_SPACES, *_LONG)

NUMBERS = (0, 1, -1, 2, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**40, 10**12, 2**62,
           2**63 - 1, -(2**31), -(2**63))  # fmt: skip

_JSON = (
    b"null true false 0 -1 1 2 1.5 -0.0 NaN Infinity -Infinity 1e400 1e308 2147483648 [] {} [[]] "
    b'1000000000000 18446744073709551616 [null] [1,2] [0,0] [-3,4] "" "a" "\\ud800" "\\u0000\\n" '
    b'"1" [1e12,3] ["rows"] ["columns","rows"] {"a":1} "float16" 1e-320 [3,4,5] [[1,2],[3]] x'
)
_DEEP = (b"[" * 100_000, b"[" * 3000 + b"]" * 3000)
VALUES = (*_JSON.split(b" "), *_DEEP, b"9" * 400, b"9" * 5000)

SHAPES: tuple[tuple[Any, ...], ...] = (
    (), (0,), (0, 0), (3,), (12, 9), (9, 12), (-1,), (-12, -9), (-12, 9), (10**12,), (10**12, 9),
    (2**31, 2**31), (2**63, 2), (0, 10**30), (0, 2**63), (True, 108), (12.0, 9.0), ("a",),
    (1,) * 70, (1, 108), (108,), (2**62, 4), (None, 9), (12, 9, 1),
)  # fmt: skip

DESCRIPTIONS: tuple[Any, ...] = (
    "|O", "<f2", "<f4", ">f4", ">f8", "<f16", ">f16", "<c8", "<i1", "<u8", ">i8", "|b1", "|S0",
    "|S4", "<U0", "<U2", "|V0", "|V4", "<M8[s]", "<m8", "<i4, <i4", [("a", "<i4")], [("a", "|O")],
    ("<i4", (2, 2)), ("<i4", (0,)), [], "", "x", None, "<i3", "<f99", "=i4", "i4", "O8",
    [("a", "<i4", (10**9,))],
)  # fmt: skip

ARRAYS: tuple[np.ndarray, ...] = (
    np.array(3), np.array([]), np.zeros((0, 3)), np.zeros((3, 0)), np.ones((2, 2, 2)),
    np.array([1, -1]), np.array([np.nan, 1]), np.array([[1e300, 1e-320]]), np.array(["a", "é"]),
    np.array([b"csr", b""]), np.array(b"csc"), np.array(b"coo"), np.array("csr"),
    np.array([1 + 2j]), np.array([None, {}], object), np.array([True, False]),
    np.array([2**63], np.uint64),
    np.array([[1, 2], [3, 4]], np.float16), np.array([["2000-01-01"]], "M8[D]"),
    np.array([1], "m8[s]"),
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.array([["1e4000"]], np.longdouble),
    np.array([["1e-4000"]], np.longdouble),
    np.array([[1, 2]], ">i2"), np.array([12, 9]), np.array([12.0, 9.0]), np.array([10**12, 9]),
    np.array([9, 12]), np.array([[12], [9]]), np.array([-12, 9]), np.array([2**63, 9], np.uint64),
    np.arange(13), np.zeros(13, np.int64), np.array([b"\xff\xfe"]),
)  # fmt: skip

_CELLS: tuple[Callable[[int], Any], ...] = (
    float, str, bool, bytes, lambda i: None, lambda i: [i], lambda i: {"a": i}, lambda i: -i,
    lambda i: float("nan"), lambda i: float("inf"), lambda i: decimal.Decimal(i) / 3,
    lambda i: decimal.Decimal(-i), lambda i: datetime.date(2000, 1, 1 + i % 9),
    lambda i: datetime.datetime(2000, 1, 1, i % 24), datetime.timedelta,
    lambda i: datetime.time(i % 24), lambda i: np.uint64(2**64 - 1 - i), lambda i: f"{i}.5",
    lambda i: None if i % 2 else i, lambda i: "" if i % 2 else "b",
    lambda i: None if i % 2 else "1",
    np.float16, lambda i: i % 2 == 0 if i % 3 else None, lambda i: "same", lambda i: 0,
    lambda i: 1e300, lambda i: "1_0", lambda i: "é\n\0", lambda i: [None] * i, lambda i: 2**62 + i,
)  # fmt: skip


def draw_column(length: int, source: random.Random) -> list[Any]:
    """Return the cells of a column of one unusual kind."""
    return list(map(source.choice(_CELLS), range(length)))
