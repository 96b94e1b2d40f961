# SPDX-License-Identifier: BSD-3-Clause
"""Whether names say that samples and features are swapped."""

from __future__ import annotations

import re
from itertools import islice

__all__ = ["orientation_remark"]

_BARCODE = re.compile(r"[ACGT]{8,}(-\d+)?")
_FEATURES = {
    "genes": re.compile(r"ENS[A-Z]*[GT]\d{6,}(\.\d+)?"),
    "kinds of mutation": re.compile(r"[ACGT]\[[CT]>[ACGT]\][ACGT]"),
}
_ENOUGH = 200
Names = tuple[str, ...]


def orientation_remark(samples: Names | None, features: Names | None) -> tuple[str, ...]:
    """Say so if the features have names of cells, or the samples names of features."""
    looks = [("features", "barcodes of cells")] if _mostly(_BARCODE, features) else []
    looks += [("samples", kind) for kind, p in _FEATURES.items() if _mostly(p, samples)]
    return tuple(
        f"The {side} look like {kind}: if samples and features are swapped, ask for transpose."
        for side, kind in looks[:1]
    )


def _mostly(pattern: re.Pattern[str], names: Names | None) -> bool:
    first = list(islice(names or (), _ENOUGH))
    return sum(bool(pattern.fullmatch(name)) for name in first) > len(first) / 2
