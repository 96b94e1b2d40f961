# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files: numbers and headers that neither reader accepts, and numbers that both do.

`read` reads a file at once and `convert` in blocks. Both refuse with the same sentence.
"""

import gzip

import numpy as np
import pytest
from scipy import sparse

from sipower.io import ReadError, convert, open_on_disk, read

HEADERS = {
    "integer": "%%MatrixMarket matrix coordinate integer general\n% a comment\n3 4 3\n",
    "real": "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 3\n",
    "pattern": "%%MatrixMarket matrix coordinate pattern general\n% a comment\n3 4 3\n",
    "symmetric": "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n4 4 3\n",
    "array": "%%MatrixMarket matrix array real general\n% a comment\n3 1\n",
}
DAMAGED = "this is not a Matrix Market file, or it is damaged."
FINITE = f"is not a finite number; {DAMAGED}"
WHOLE = f"is not a whole number of at most 18 digits; {DAMAGED}"
FIELDS = {
    3: "expected 3 (row, column, value)",
    2: "expected 2 (row, column)",
    1: "expected 1 (value)",
}

# What stands for the value of the second entry, and the end of the sentence or a part of it.
VALUES = [
    ("real", "3-5", f"'3-5' {FINITE}"),
    ("real", "3+5", f"'3+5' {FINITE}"),
    ("real", "5+3", f"'5+3' {FINITE}"),
    ("real", "1.5.7", f"'1.5.7' {FINITE}"),
    ("real", "1e2e2", f"'1e2e2' {FINITE}"),
    ("real", "1d5", f"'1d5' {FINITE}"),
    ("real", "1.5D+03", f"'1.5D+03' {FINITE}"),
    ("real", "1e", f"'1e' {FINITE}"),
    ("real", "1e+", f"'1e+' {FINITE}"),
    ("real", "e5", f"'e5' {FINITE}"),
    ("real", ".", f"'.' {FINITE}"),
    ("real", "+", f"'+' {FINITE}"),
    ("real", "+.e1", f"'+.e1' {FINITE}"),
    ("real", "--3", f"'--3' {FINITE}"),
    ("real", "+-3", f"'+-3' {FINITE}"),
    ("real", "1e2.5", f"'1e2.5' {FINITE}"),
    ("real", "1,5", f"'1,5' {FINITE}"),
    ("real", "1_0", f"'1_0' {FINITE}"),
    ("real", "0x18", f"'0x18' {FINITE}"),
    ("real", "1/2", f"'1/2' {FINITE}"),
    ("real", "1.5x", f"'1.5x' {FINITE}"),
    ("real", "nan", f"'nan' {FINITE}"),
    ("real", "inf", f"'inf' {FINITE}"),
    ("real", "-Infinity", f"'-Infinity' {FINITE}"),
    ("real", "1e400", f"'1e400' {FINITE}"),
    ("real", "9" * 400, FINITE),
    ("real", "1\0", FINITE),
    ("real", "1\x1c", FINITE),
    ("real", "1\xa0", FINITE),
    ("real", "(1)", f"'(1)' {FINITE}"),
    ("real", '"1"', FINITE),
    ("real", "1%", f"'1%' {FINITE}"),
    ("real", "1e-400", "the count 1e-400 is not 0, but too close to 0 for a float64; write 0, or"),
    ("real", f"0.{'0' * 400}1", "is not 0, but too close to 0 for a float64; write 0, or"),
    ("real", "-1e-400", "the count -1e-400 is not 0, but too close to 0 for a float64"),
    ("real", "-0.5", "the count -0.5 is negative; KL-NMF needs non-negative data."),
    ("real", "1.5 7", f"4 numbers in a line, {FIELDS[3]}"),
    ("real", "3 0", f"4 numbers in a line, {FIELDS[3]}"),
    ("real", "1\r3", f"4 numbers in a line, {FIELDS[3]}"),
    ("real", "", f"2 numbers in a line, {FIELDS[3]}"),
    ("integer", "5+3", f"'5+3' {FINITE}"),
    ("integer", "3-5", f"'3-5' {FINITE}"),
    ("integer", "7.5", f"'7.5' {WHOLE}"),
    ("integer", "1.0", f"'1.0' {WHOLE}"),
    ("integer", "1.", f"'1.' {WHOLE}"),
    ("integer", "1e3", f"'1e3' {WHOLE}"),
    ("integer", "1" * 19, WHOLE),
    ("integer", "99999999999999999999999", WHOLE),
    ("integer", "0x18", f"'0x18' {FINITE}"),
    ("integer", "-7", "the count -7 is negative; KL-NMF needs non-negative data."),
    ("pattern", "1", f"3 numbers in a line, {FIELDS[2]}"),
]
# What stands for the second line.
LINES = [
    ("real", "1 1.0 5", "the column '1.0' is not a whole number"),
    ("real", "1.5 1 5", "the row '1.5' is not a whole number"),
    ("integer", "1 1.0 5", "the column '1.0' is not a whole number"),
    ("integer", "1.0 1 5", "the row '1.0' is not a whole number"),
    ("integer", "1e0 1 5", "the row '1e0' is not a whole number"),
    ("integer", "1 1+0 5", "the column '1+0' is not a whole number"),
    ("integer", "1,1,5", f"1 numbers in a line, {FIELDS[3]}"),
    ("integer", "2;1;5", f"1 numbers in a line, {FIELDS[3]}"),
    ("integer", "0 1 5", "the row 0 is outside 3 x 4"),
    ("integer", "-1 1 5", "the row -1 is outside 3 x 4"),
    ("integer", "4 1 5", "the row 4 is outside 3 x 4"),
    ("integer", "1 5 5", "the column 5 is outside 3 x 4"),
    ("integer", "4294967297 1 5", "the row 4294967297 is outside 3 x 4"),
    ("integer", "99999999999999999999 1 5", "the row '99999999999999999999' is not a whole number"),
    ("integer", "% 2 1 5", f"4 numbers in a line, {FIELDS[3]}"),
    ("pattern", "1 1.5", "the column '1.5' is not a whole number"),
    ("pattern", "1-1", f"1 numbers in a line, {FIELDS[2]}"),
    ("pattern", "1 1-1", "the column '1-1' is not a whole number"),
    ("pattern", "1", f"1 numbers in a line, {FIELDS[2]}"),
    ("symmetric", "3 2 1e5e1", f"'1e5e1' {FINITE}"),
    ("symmetric", "3 2.0 1", "the column '2.0' is not a whole number"),
    ("array", "1.5.7", f"'1.5.7' {FINITE}"),
    ("array", "3-5", f"'3-5' {FINITE}"),
    ("array", "1e-400", "the count 1e-400 is not 0, but too close to 0 for a float64"),
    ("array", "1 2", f"2 numbers in a line, {FIELDS[1]}"),
    ("array", "nan", f"'nan' {FINITE}"),
]
BODIES = {
    "integer": ["1 2 5", "2 1 7", "3 4 1"],
    "real": ["1 2 5.25", "2 1 7", "3 4 1e0"],
    "pattern": ["1 2", "2 1", "3 4"],
    "symmetric": ["1 1 5.25", "3 2 7", "4 4 1"],
    "array": ["1", "2", "3"],
}
# Changes of the text of an integer file, with the number of the line and what is said of it.
HEADS = [
    ("%%MatrixMarket", "%MatrixMarket", 1, "a Matrix Market file begins with"),
    ("%%MatrixMarket", "", 1, "a Matrix Market file begins with"),
    ("matrix coordinate", "coordinate", 1, "a Matrix Market file begins with"),
    ("matrix coordinate", "vector coordinate", 1, "a Matrix Market file begins with"),
    ("coordinate", "triplet", 1, "declares 'triplet integer general'"),
    ("integer", "int", 1, "declares 'coordinate int general'"),
    ("integer", "complex", 1, "declares 'coordinate complex general'"),
    ("general", "hermitian", 1, "declares 'coordinate integer hermitian'"),
    ("general", "skew-symmetric", 1, "declares 'coordinate integer skew-symmetric'"),
    ("general", "general 1", 1, "a Matrix Market file begins with"),
    ("general", "symmetric", 3, "a symmetric matrix cannot be 3 x 4"),
    ("3 4 3", "3 4", 3, "is '3 4', expected 3 whole numbers for the size"),
    ("3 4 3", "3 4 3 0", 3, "is '3 4 3 0', expected 3 whole numbers"),
    ("3 4 3", "3 4.0 3", 3, "is '3 4.0 3', expected 3 whole numbers"),
    ("3 4 3", "3 4 3e0", 3, "is '3 4 3e0', expected 3 whole numbers"),
    ("3 4 3", "3 -4 3", 3, "is '3 -4 3', expected 3 whole numbers"),
    ("3 4 3", "3,4,3", 3, "is '3,4,3', expected 3 whole numbers"),
    ("3 4 3", "3 4 99999999999999999999", 3, "expected 3 whole numbers"),
    ("3 4 3", "3 4 4", 3, "declares 4 counts and has 3"),
    ("3 4 3", "3 4 2", 3, "declares 2 counts and has more, from line 6 on"),
    ("3 4 3", "3 4000000000 3", 3, "declares 3 x 4000000000 with 3 counts, a size that"),
    ("3 4 3", "30000000 4 3", 3, "declares 30000000 x 4 with 3 counts, a size that"),
]


def same_sentence(file, tmp_path) -> str:
    """Return what both readers say."""
    messages = []
    for attempt in (lambda: read(file), lambda: convert(file, tmp_path / "s")):
        with pytest.raises(ReadError) as caught:
            attempt()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


def check_text(text: str, tmp_path, line: int, message: str) -> None:
    """Check what is said of a text, and of the same compressed with line ends of Windows."""
    file, content = tmp_path / "v.mtx", text.encode("latin-1")
    file.write_bytes(content)
    sentence = same_sentence(file, tmp_path)
    assert sentence.startswith(f"{file}, line {line}")
    assert message in sentence
    packed = tmp_path / "w.mtx.gz"
    packed.write_bytes(gzip.compress(content.replace(b"\n", b"\r\n")))
    assert same_sentence(packed, tmp_path) == sentence.replace("v.mtx", "w.mtx.gz", 1)


@pytest.mark.parametrize(("kind", "value", "message"), VALUES)
def test_no_reader_cuts_a_malformed_value_off(tmp_path, kind, value, message) -> None:
    first, _, last = BODIES[kind]
    text = "\n".join([f"{HEADERS[kind]}{first}", f"2 1 {value}", last, ""])
    check_text(text, tmp_path, 5, message)


@pytest.mark.parametrize(("kind", "line", "message"), LINES)
def test_no_reader_guesses_a_malformed_line(tmp_path, kind, line, message) -> None:
    first, _, last = BODIES[kind]
    check_text("\n".join([f"{HEADERS[kind]}{first}", line, last, ""]), tmp_path, 5, message)


@pytest.mark.parametrize(("good", "bad", "line", "message"), HEADS)
def test_both_readers_say_the_same_of_a_header(tmp_path, good, bad, line, message) -> None:
    text = HEADERS["integer"] + "\n".join([*BODIES["integer"], ""])
    check_text(text.replace(good, bad, 1), tmp_path, line, message)


GOOD = [
    "1.",
    ".5",
    "+3",
    "1E5",
    "1e+05",
    "+.5e-3",
    "00012",
    "0012.500",
    "5e-324",
    "1e-310",
    "0e999",
]
GOOD += ["1.7976931348623157e308", "0.1", "9007199254740993", "123456789012345678901234567890"]
GOOD += ["2.2250738585072011e-308", "8.41e21", "9.5367431640625e-7", "0.000000000000000000001e21"]


@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_unusual_numbers_are_those_of_float_from_both_readers(tmp_path, layout) -> None:
    file = tmp_path / "v.mtx"
    for text in GOOD:
        ones = [f"{i} 1 1" if layout == "coordinate" else "1" for i in range(1, 3)]
        last = f"3 1 {text}" if layout == "coordinate" else text
        header = HEADERS["real"].replace("coordinate", layout)
        header = header.replace("3 4 3", "3 1 3" if layout == "coordinate" else "3 1")
        file.write_text("\n".join([header + "  ", *ones, "\t", f"  {last}\t"]) + "\r\n\n")
        counts = read(file).counts
        values = counts.toarray() if sparse.issparse(counts) else counts
        assert values.ravel().tolist() == [1, 1, float(text)], text
        if 1e-15 < float(text) < 1e15 or float(text) == 0:  # else negligible beside 1
            convert(file, tmp_path / "s", force=True)
            stored = open_on_disk(tmp_path / "s").total
            assert stored == np.sum([1, 1, float(text)]), text
