# SPDX-License-Identifier: BSD-3-Clause
"""Text files, plain or compressed by gzip, read in blocks of numbered lines."""

from __future__ import annotations

import gzip
import math
import re
import unicodedata
import zlib
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from sipower._files import open_regular, quote, shorten
from sipower.io.base import ReadError

_MAX_LINE = 1 << 24
_READ = 1 << 20
# The ends of problems with numbers that are otherwise valid.
NEGATIVE = "is negative"
TINY = "is not 0, but too close to 0 for a float64"
_WHOLE = re.compile(r"\s*[+-]?[0-9]{16,308}\s*", re.ASCII)  # that float64 may not hold
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def open_text(path: Path) -> BinaryIO:
    """Open a file in binary mode and decompress it if its first two bytes are those of gzip."""
    with open_regular(path) as file:
        zipped = file.read(2) == _GZIP
    return gzip.open(path, "rb") if zipped else open_regular(path)  # type: ignore[return-value]


class Lines:
    """The lines of a text, read one at a time or in blocks.

    Line ends are those of Unix or Windows, and a UTF-8 byte order mark is skipped. `number` is the
    number of the last line returned; `unfinished` is true if the text ended within a line.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.number, self.unfinished = path, 0, False
        self._stream = open_text(path)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def one(self) -> bytes | None:
        """Return the next line, or None at the end."""
        text = self._read(0)
        self.number += bool(text)
        return text.rstrip(b"\r\n") if text else None

    def block(self) -> list[bytes]:
        """Return the next lines, or an empty list at the end; `number` is that of the last one."""
        lines = self._read(min(_READ, _MAX_LINE)).splitlines()
        self.number += len(lines)
        return lines

    def text(self) -> bytes:
        """Return the next lines with their ends, or nothing at the end of the file.

        Here only a newline ends a line; `number` is that of the last line.
        """
        text = self._read(min(_READ, _MAX_LINE))
        newlines = np.frombuffer(text, np.uint8) == ord("\n")  # faster than text.count
        self.number += int(np.count_nonzero(newlines)) + (text[-1:] not in (b"\n", b""))
        return text

    def _read(self, size: int) -> bytes:
        """Read `size` bytes and the rest of the last line."""
        try:
            text = self._stream.read(size)
            while text[-1:] != b"\n" and (rest := self._stream.readline(_READ)):
                text += rest
                if len(text) - text.rfind(b"\n", 0, -1) > _MAX_LINE + 1:
                    number = self.number + text.count(b"\n", 0, -1) + 1
                    raise ReadError(
                        f"{self.path}, line {number}, is longer than {_MAX_LINE} bytes: this is "
                        "not text of the expected kind."
                    )
        except (EOFError, OSError, zlib.error) as problem:
            raise ReadError(
                f"{self.path}, line {_readable_lines(self.path)}: the compressed data are "
                f"truncated or damaged ({shorten(problem)}); copy or download the file again."
            ) from None
        self.unfinished = text[-1:] != b"\n" if text else self.unfinished
        return text if self.number else text.removeprefix(_BYTE_ORDER_MARK)


def _readable_lines(path: Path) -> int:
    """Return the number of the line in which truncated or damaged data end."""
    count = 1
    with open_text(path) as stream, suppress(EOFError, OSError, zlib.error):
        while content := stream.read1(_MAX_LINE):  # type: ignore[attr-defined]
            count += content.count(b"\n")
    return count


def read_lines(path: Path) -> list[str]:
    """Read all lines of a UTF-8 text, except for empty lines at its end."""
    texts: list[str] = []
    with Lines(path) as lines:
        while block := lines.block():
            for line in block:
                try:
                    texts.append(line.decode("utf-8"))
                except UnicodeDecodeError:
                    raise ReadError(
                        f"{path}, line {len(texts) + 1}, is not UTF-8 text: save the file as UTF-8."
                    ) from None
    while texts and not texts[-1].strip():
        texts.pop()
    return texts


def parse_number(text: str) -> float:
    """Return the number in a text, or NaN."""
    try:
        # Python accepts more texts as numbers than pandas and NumPy do.
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def hidden_character(text: str) -> str | None:
    """Return the character, such as a no-break space, without which a text would be a number."""
    hidden = next((c for c in text if not c.isascii() and (c.isspace() or not c.isprintable())), "")
    return hidden if hidden and math.isfinite(parse_number(text.replace(hidden, ""))) else None


def rounding_problem(text: str) -> str | None:
    """Return that float64 would round a whole number of many digits, or None."""
    if not _WHOLE.fullmatch(text) or int(text) == int(float(text)):
        return None
    return (
        f"the count {shorten(text)} is a whole number beyond 2^53, which float64 would round to "
        f"{shorten(int(float(text)))}; correct or rescale it"
    )


def count_problem(text: str) -> str | None:
    """Return why a text is not a count, or None if it is one."""
    value = parse_number(text)
    if value == 0 and text.lower().partition("e")[0].strip(" +-0."):
        return f"the count {shorten(text)} {TINY}"
    if math.isfinite(value):
        return f"the count {shorten(text)} {NEGATIVE}" if value < 0 else None
    hidden = hidden_character(text)
    if hidden is not None:
        name = unicodedata.name(hidden, "invisible character").lower()
        number = shorten(text.replace(hidden, ""))
        return f"the number {number} is written with a {name} (U+{ord(hidden):04X}); remove it"
    return f"{quote(text)} is not a finite number" if text.strip() else "a count is missing"
