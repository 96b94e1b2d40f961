# SPDX-License-Identifier: BSD-3-Clause
"""Parameters of a model in the form of `run.json`, and the names that they give to components."""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower.estimators.fingerprints import describe_value

__all__ = ["known_names", "recorded_parameters"]

_NOT_RECORDED = ("on_round", "checkpoint", "checkpoint_every")  # they do not change the factors


def recorded_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that determine the factors of a model, in the form of `run.json`."""
    parameters = {k: v for k, v in model.get_params().items() if k not in _NOT_RECORDED}
    if parameters.get("dtype") is not None:
        parameters["dtype"] = np.dtype(parameters["dtype"]).name
    return {name: describe_value(value) for name, value in parameters.items()}


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
