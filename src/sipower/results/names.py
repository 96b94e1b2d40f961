# SPDX-License-Identifier: BSD-3-Clause
"""Names of features: which to leave out of lists, and how to show them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Exclude", "is_excluded", "readable"]

Exclude: TypeAlias = str | Sequence[str] | None  # a regular expression, or names

# Bidirectional control characters reorder the text around them, so one name could look like
# another.
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def is_excluded(names: Sequence[str], exclude: Exclude) -> NDArray[np.bool_]:
    """Return for each name whether it matches a regular expression, or is in a list of names."""
    if exclude is None:
        return np.zeros(len(names), dtype=np.bool_)
    if not isinstance(exclude, str):
        listed = set(map(str, exclude))
        return np.array([name in listed for name in names], dtype=np.bool_)
    try:
        pattern = re.compile(exclude)
    except re.error as problem:
        raise ValueError(
            f"`exclude` must be a regular expression or a list, got {exclude!r}: {problem}."
        ) from None
    return np.array([pattern.search(name) is not None for name in names], dtype=np.bool_)


def readable(name: str, max_length: int) -> str:
    """Return a name on one line, with symbols for unprintable characters, shortened with "…"."""
    text = "".join(map(_sign, name[:max_length]))
    return text if len(name) <= max_length else text[:-1] + "…"


def _sign(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))  # Unicode's symbols for control characters
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return "\ufffd" if hidden or character in DIRECTION_MARKS else character
