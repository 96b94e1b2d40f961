# SPDX-License-Identifier: BSD-3-Clause
"""The formats of the files that sipower writes, and the version of each.

Every file or folder records the version of its format and the sipower that wrote it. What lacks a
version is of version 1. All versions up to the present one are read, except that checkpoints are
read from `oldest` on; a newer version is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any

from sipower._files import shorten

__all__ = ["FORMATS", "Format", "NewerFormatError"]

KEYS = ("format", "sipower")


@cache
def own_version() -> str:
    """Return the version of sipower that is running."""
    return installed_version("sipower")


class NewerFormatError(ValueError):
    """An error for a file of a newer format than this version of sipower reads."""


@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    name
        What such a file or folder is called in messages.
    version
        The version that is written.
    oldest
        The oldest version that is read.
    """

    name: str
    version: int
    oldest: int = 1

    def stamp(self) -> dict[str, Any]:
        """Return the entries that a new file has in addition to its content."""
        return dict(zip(KEYS, (self.version, own_version()), strict=True))

    def check(self, facts: Mapping[str, Any], place: object) -> int:
        """Return the version of a file; raise an error if it is newer than the one written now."""
        version = facts.get("format", 1)
        if type(version) is not int or version < 1:
            raise ValueError(f"its format {shorten(repr(version))} is unknown")
        if version > self.version:
            writer = facts.get("sipower")
            by = f"sipower {shorten(writer)}" if isinstance(writer, str) else "a newer sipower"
            raise NewerFormatError(
                f"{place} is a {self.name} of format {version}, written by {by}, but sipower "
                f"{own_version()} reads formats up to {self.version}: update it with "
                "pip install --upgrade sipower."
            )
        return version

    def is_readable(self, facts: Mapping[str, Any]) -> bool:
        """Return whether this version of sipower reads a file."""
        try:
            return self.check(facts, "") >= self.oldest
        except ValueError:
            return False


def without_stamp(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a file without the version of its format and its writer."""
    return {key: value for key, value in content.items() if key not in KEYS}


RUN = Format("run", 3)  # 1 has the components in the order of the model, and no `order`
STORE = Format("store", 2)
CACHE = Format("cache entry", 2)
CHECKPOINT = Format("checkpoint", 3, oldest=2)
DIFFERENCES = Format("table of differences", 2)
RANK = Format("rank selection", 3)  # 1 and 2 have one dispersion for all features
OUTCOME = Format("result", 2)  # of a consensus, a merge tree or flows
FITS = Format("folder of fits", 2)
WEIGHTS = Format("file of weights", 2)
REFIT = Format("refit", 2)
CATALOGUE = Format("catalogue", 1)  # a plain table, as others write it too

FORMATS = {
    "run": RUN,
    "store": STORE,
    "cache": CACHE,
    "checkpoint": CHECKPOINT,
    "differences": DIFFERENCES,
    "catalogue": CATALOGUE,
    "weights": WEIGHTS,
    "refit": REFIT,
    "rank": RANK,
    **dict.fromkeys(("consensus", "programs", "tree", "flows"), OUTCOME),
}
