# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of HTML: names and numbers as text, tables, images. Nothing else writes markup by hand."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.results.describe import readable

__all__ = ["Html", "image", "name", "number", "paragraph", "table", "text"]

SHOWN, IN_TITLE = 64, 500  # characters of a name; a hash has 64


class Html(str):
    """Markup, safe to put into the page as it is."""

    __slots__ = ()


def text(value: Any) -> Html:
    """Anything as text, escaped; markup stays as it is."""
    if isinstance(value, Html):
        return value
    lines = str(value).split("\n")
    return Html("\n".join(escape(readable(line, len(line))) for line in lines))


def name(value: str) -> Html:
    """A name from the data: cut if it is long, with the rest of it in a title."""
    whole, shown = (escape(readable(value, most)) for most in (IN_TITLE, SHOWN))
    title = f' title="{whole}"' if len(value) > SHOWN else ""
    return Html(f"<bdi{title}>{shown}</bdi>")


def number(value: float) -> str:
    """Write a number for reading: whole with separators, in four digits, or as a power of 10."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-3 else f"{value:.2e}"


def paragraph(*sentences: object) -> Html:
    """Sentences, one after another."""
    return Html(f"<p>{' '.join(map(text, sentences))}</p>")


def table(label: str, head: Sequence[str], rows: Iterable[Sequence[Any]], **ids: str) -> Html:
    """A table in a box of its own that scrolls; a number sorts as a number, whatever it shows.

    A cell is a text, or a pair of a number to sort by and a text.
    """
    attributes = "".join(f' {key}="{text(value)}"' for key, value in ids.items())
    titles = "".join(f'<th scope="col">{text(title)}</th>' for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return Html(
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{text(label)}">'
        f"<table{attributes}><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Any) -> str:
    if isinstance(cell, tuple):
        value, shown = cell
        return f'<td class="number" data-value="{float(value):.9g}">{text(shown)}</td>'
    return f"<td>{text(cell)}</td>"


def image(pixels: NDArray[np.float64], label: str) -> Html:
    """Grey pixels from 0 (black) to the largest value (white) as a PNG within the page."""
    brightest = max(pixels.max(), np.finfo(np.float64).tiny)
    grey = np.rint(255 * pixels / brightest).astype(np.uint8)
    code = base64.b64encode(_png(grey)).decode()
    height, width = grey.shape
    return Html(
        f'<img alt="{text(label)}" width="{width}" height="{height}" '
        f'src="data:image/png;base64,{code}">'
    )


def _png(grey: NDArray[np.uint8]) -> bytes:
    height, width = grey.shape
    lines = np.insert(grey, 0, 0, axis=1).tobytes()  # each line begins with its filter: none
    header = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)  # 8 bits of grey
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
