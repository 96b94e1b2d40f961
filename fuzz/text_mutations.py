# SPDX-License-Identifier: BSD-3-Clause
"""Damage to bytes, to texts and to JSON documents."""

from __future__ import annotations

import json
import random
import re
import struct
from typing import Any

from strange_values import NUMBERS, TOKENS, VALUES

Source = random.Random

_CELL = re.compile(rb"[^\s,;:{}\[\]()\"']+")
_LINE_ENDS = (b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x85", b"")
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-32", "latin-1", "utf-7")


# ---- bytes and texts -----------------------------------------------------------------------------


def damage_bytes(content: bytes, source: Source) -> bytes:
    """Cut, repeat, flip or replace bytes at random places."""
    at, end = sorted(source.randrange(len(content) + 1) for _ in range(2))
    match source.randrange(6):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + content[end:]
        case 2:
            return content[:end] + content[at:]
        case 3:
            return content[:at] + source.randbytes(source.randrange(1, 9)) + content[at:]
        case 4:
            number = struct.pack("<q", source.choice(NUMBERS))[: source.choice((2, 4, 8))]
            return content[:at] + number + content[at + len(number) :]
    raw = bytearray(content or b"\0")
    for _ in range(source.randrange(1, 5)):
        raw[source.randrange(len(raw))] ^= 1 << source.randrange(8)
    return bytes(raw)


def damage_text(content: bytes, source: Source) -> bytes:
    """Change cells, lines, line ends or the encoding, up to four times."""
    for _ in range(source.choice((1, 1, 1, 2, 4))):
        content = source.choice(
            (_change_cell, _change_cell, _change_cell, _change_lines, _insert_token, _change_all)
        )(content, source)
    return content


def _change_cell(content: bytes, source: Source) -> bytes:
    cells = list(_CELL.finditer(content))
    if not cells:
        return _insert_token(content, source)
    # The first cells are few and decide most, so they are changed more often.
    cell = cells[source.randrange(min(12, len(cells)) if source.random() < 0.5 else len(cells))]
    other = source.choice(cells).group() if source.random() < 0.2 else source.choice(TOKENS)
    return content[: cell.start()] + other + content[cell.end() :]


def _insert_token(content: bytes, source: Source) -> bytes:
    at = source.randrange(len(content) + 1)
    return content[:at] + source.choice(TOKENS) + content[at:]


def _change_lines(content: bytes, source: Source) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    first, second = (source.randrange(len(lines)) for _ in range(2))
    match source.randrange(5):
        case 0:
            del lines[first]
        case 1:
            lines[first], lines[second] = lines[second], lines[first]
        case 2:
            lines.insert(second, lines[first])
        case 3:
            lines.insert(first, source.choice((b"\n", b"  \n", b"%\n", b"\0\n", b",,\n", b'"\n')))
        case 4:
            lines[first] *= source.choice((2, 3, 50))
    return b"".join(lines)


def _change_all(content: bytes, source: Source) -> bytes:
    if source.random() < 0.5:
        return content.replace(b"\n", source.choice(_LINE_ENDS), source.choice((-1, 1, 2)))
    return content.decode("latin-1").encode(source.choice(_ENCODINGS))


_TEXT_DAMAGES = 3 * [_change_cell] + [_change_lines, _insert_token, _change_all]


# ---- JSON ----------------------------------------------------------------------------------------


def damage_json(content: bytes, source: Source) -> bytes:
    """Put an invalid value somewhere into a JSON document, or delete an element."""
    if source.random() < 0.2:
        return damage_text(content, source)
    tree = {"": json.loads(content)}
    holder: Any = tree
    place: Any = ""
    while isinstance(holder[place], dict | list) and holder[place] and source.random() < 0.8:
        holder = holder[place]
        place = source.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    if holder is not tree and source.random() < 0.2:
        del holder[place]
    else:
        holder[place] = "@"
    return json.dumps(tree[""]).encode().replace(b'"@"', source.choice(VALUES), 1)
