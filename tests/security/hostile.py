# SPDX-License-Identifier: BSD-3-Clause
"""What a stranger would put into a file: code that waits to be run, and names that command."""

import io
import pickle
from pathlib import Path

import numpy as np

NAMES = (
    "<script>window.pwned=1</script>",
    "</script><img src=x onerror=window.pwned=1>",
    "<!--<script>window.pwned=1",
    '" onmouseover="window.pwned=1" x=\'',
    "javascript:window.pwned=1",
    "\x1b[31mred",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;cHduZWQ=\x07",
    "return\rback\b\b\bbell\x07delete\x7f",
    "one-byte \x9b31m escape \x85",
    "NUL \x00, separators \u2028 \u2029",
    "right to left \u202e gnp.exe \u2066",
    "[red]markup[/red] [link=https://example.org]x[/link]",
    "=cmd|' /C calc'!A0",
    "$title ${body} %{x} {{y}} $\\frac{1}{2}$",
    "end of line\nforged line",
    # Longer than what is shown of a name, so that the rest goes into an attribute.
    '"><img src=x onerror=window.pwned=1>' * 3,
)


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def pickle_bytes(marker: Path) -> bytes:
    return pickle.dumps(Payload(marker))


def object_array(marker: Path) -> bytes:
    """A .npy file whose one element is the payload."""
    file = io.BytesIO()
    np.save(file, np.array([[Payload(marker)]], object), allow_pickle=True)
    return file.getvalue()


def object_record(marker: Path) -> bytes:
    """The payload hidden in a field of a record."""
    file = io.BytesIO()
    np.save(file, np.array([(Payload(marker),)], [("a", object)]), allow_pickle=True)
    return file.getvalue()


def object_archive(marker: Path) -> bytes:
    """A .npz file with the payload under every name that a reader may ask for."""
    file, array = io.BytesIO(), np.array([[Payload(marker)]], object)
    names = ("W", "H", "V", "header", "format", "shape", "data", "indices", "indptr")
    np.savez(file, allow_pickle=True, **dict.fromkeys(names, array))
    return file.getvalue()


def source_as_head(marker: Path) -> bytes:
    """A .npy file whose head, which is Python source, is a call."""
    head = f"__import__('pathlib').Path({str(marker)!r}).touch()".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


CODE = (pickle_bytes, object_array, object_record, object_archive, source_as_head)


def commands(text: str) -> list[str]:
    """Characters that a terminal would obey."""
    return [c for c in text if c not in "\n\t" and (c < " " or "\x7f" <= c <= "\x9f")]
