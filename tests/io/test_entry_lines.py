# SPDX-License-Identifier: BSD-3-Clause
"""The compiled parser of entries against Python's `float`, `int` and `split`, on random lines."""

import random
import re

import numpy as np
import pytest

from sipower._kernels import parse_entries  # a door of C++, which public functions call for files

WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")
DECIMAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
CHARACTERS = [*"0123456789" * 3, *"+-.eE \t\r\v\f\n\n\0", "dD", "nan", "inf", "_", "\x85", "\x1c"]


def parse_by_python(text, indices, values, whole, n_rows, n_columns):
    """Parse by Python: a list of entries, and the first line that is not valid, or -1."""
    entries = []
    for number, line in enumerate(text.split(b"\n")):
        cells = line.split()
        kinds = [WHOLE, WHOLE] * indices + [WHOLE if whole else DECIMAL] * values
        if not cells:
            continue
        if len(cells) != len(kinds) or not all(map(re.fullmatch, kinds, cells)):
            return entries, number
        row, column = map(int, cells[:2]) if indices else (1, 1)
        value = (int if whole else float)(cells[-1]) if values else 1
        lost = value == 0 and not whole and cells[-1].lower().split(b"e")[0].strip(b"+-.0")
        if not (1 <= row <= n_rows and 1 <= column <= n_columns and 0 <= value < np.inf) or lost:
            return entries, number
        entries.append((row - 1, column - 1, value))
    return entries, -1


def same(text, *settings):
    rows, columns, values, bad = parse_entries(text, *settings)
    expected, line = parse_by_python(text, *settings)
    assert bad == line, text
    if bad < 0:
        columns_of = list(zip(*expected, strict=True)) or [(), (), ()]
        assert not settings[0] or (rows.tolist(), columns.tolist()) == tuple(
            map(list, columns_of[:2])
        )
        assert not settings[1] or values.tolist() == list(columns_of[2]), text
    return bad


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("indices", "values"), [(True, True), (True, False), (False, True)])
def test_random_lines_are_parsed_as_python_does(indices, values, whole) -> None:
    source, bad = random.Random(0), 0
    for _ in range(4000):
        fields = 2 * indices + values
        lines = [
            " ".join(str(source.randint(1, 9)) for _ in range(fields))
            for _ in range(source.randint(0, 4))
        ]
        text = list("\n".join(lines))
        for _ in range(source.choice([0, 1, 1, 2, 5])):
            text.insert(source.randint(0, len(text)), source.choice(CHARACTERS))
        bad += same("".join(text).encode("latin-1"), indices, values, whole, 30, 12) >= 0
    assert 1000 < bad < 3500  # both kinds of lines were tried


def digits(source: random.Random) -> str:
    """Return a number with any number of digits, often near the middle of two doubles."""
    match source.randrange(6):
        case 0:
            return repr(source.random() * 10.0 ** source.randint(-330, 308))
        case 1:
            return f"{source.getrandbits(source.randint(1, 70))}e{source.randint(-60, 40)}"
        case 2:
            return f"{2 * source.randint(2**52, 2**53) + 1}{'0' * source.randint(0, 3)}"
        case 3:
            return f"{(2 * source.randint(2**51, 2**52) + 1) / 4:.{source.randint(1, 25)}f}"
        case 4:
            return f"{source.random():.{source.randint(0, 40)}e}"
    return f"{source.choice(['', '0', '00012'])}.{source.getrandbits(60):030}"


def test_decimals_are_rounded_as_float_does() -> None:
    source = random.Random(1)
    texts = [text for text in (digits(source) for _ in range(60_000)) if 0 < float(text) < np.inf]
    values, bad = parse_entries("\n".join(texts).encode(), False, True, False, 1, 1)[2:]
    assert bad == -1
    np.testing.assert_array_equal(values, np.array([float(text) for text in texts]))
    assert len(texts) > 50_000


def test_the_first_of_two_bad_lines_is_named_though_the_second_is_found_earlier() -> None:
    assert same(b"1\n1e-400\n2\nx\n", False, True, False, 1, 1) == 1
    assert same(b"1\nx\n2\n1e-400\n", False, True, False, 1, 1) == 1
    assert same(b"1\n1e400", False, True, False, 1, 1) == 1
    assert same(b"", True, True, True, 1, 1) == -1
    assert same(b"\0", True, True, True, 1, 1) == 0


def test_rows_that_int32_does_not_hold_are_refused() -> None:
    for line in (b"2147483648 1 1", b"1 2147483648 1"):
        assert parse_entries(line, True, True, True, 2**40, 2**40)[3] == 0
    rows = parse_entries(b"2147483647 1 1", True, True, True, 2**40, 2**40)[0]
    assert rows.tolist() == [2**31 - 2]
