# SPDX-License-Identifier: BSD-3-Clause
"""Names of the components of a model: those of known and of guided components."""

from __future__ import annotations

from typing import Any

__all__ = ["known_names"]


def known_names(model: Any, rank: int) -> list[str | None] | None:
    """Return the names of the known and the guided components of a model, or None if none has one.

    The names are those of the rows of `components_fixed`, if it is a data frame, and those of
    `guides`, whose components come next. The result has `rank` entries, None for other components.
    """
    fixed, guides = (getattr(model, name, None) for name in ("components_fixed", "guides"))
    names: list[str | None] = []
    if fixed is not None:
        rows = list(getattr(fixed, "index", ()))
        names = [row if isinstance(row, str) else None for row in rows] or [None] * len(fixed)
    if guides is not None:
        names += [str(name) for name in getattr(guides, "index", guides)]
    names = [*names, *[None] * (rank - len(names))][:rank]
    return names if any(name is not None for name in names) else None
