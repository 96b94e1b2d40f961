# SPDX-License-Identifier: BSD-3-Clause
"""Known and guided components in a selection of the rank: they are the first ones of every fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sipower.data.row_blocks import RowBlocks
from sipower.estimators import KLNMF
from sipower.estimators.guides import as_guides
from sipower.estimators.parameters import NAMED_PARAMETERS, in_order
from sipower.nmf.merging import FLOOR
from sipower.selection.matching import merge

__all__ = ["merge_free", "place_guides"]


def place_guides(
    model: KLNMF, data: RowBlocks, ranks: tuple[int, ...], counts: bool
) -> tuple[KLNMF, RowBlocks, int]:
    """Return the model with its features by position, which splits of the data keep.

    The data without names and the number of known and guided components are returned as well.
    """
    first = 0 if model.components_fixed is None else len(model.components_fixed)
    guides = as_guides(model.guides, data)
    first += len(guides)
    if first > ranks[0]:
        raise ValueError(
            f"`ranks` must be at least {first}, the number of known and guided components, got "
            f"{ranks[0]}."
        )
    if first and not counts:
        name = "guides" if guides else "components_fixed"
        raise ValueError(
            f"The data are not counts, so `{name}` cannot be used to choose a rank: leave it out, "
            "or pass raw counts."
        )
    nameless = data.with_names(None, None)
    own: dict[str, Any] = {name: in_order(model, name, data) for name in NAMED_PARAMETERS}
    if guides:
        own["guides"] = {
            g.name: dict(zip(g.features.tolist(), g.weights, strict=True)) for g in guides
        }
    return clone(model).set_params(**own), nameless, first


def merge_free(
    W: Any, H: Any, rank: int, first: int, weights: NDArray[np.float64] | None = None
) -> dict[str, Any]:
    """Return a start of a smaller rank; components before `first` are known or guided, and kept.

    With `weights` of features, the pairs are merged that raise the weighted divergence least.
    """
    if first == 0:
        return dict(zip("WH", _merge(W, H, rank, weights), strict=True))
    # Rules cannot change zeros, and a guided component must have some weight.
    parts = W[:, :first] + FLOOR * W.mean(), H[:first] + FLOOR * H.mean()
    if rank > first:
        free = _merge(W[:, first:], H[first:], rank - first, weights)
        parts = np.hstack([parts[0], free[0]]), np.vstack([parts[1], free[1]])
    return {"W": np.ascontiguousarray(parts[0]), "H": np.ascontiguousarray(parts[1])}


def _merge(W: Any, H: Any, rank: int, weights: NDArray[np.float64] | None) -> tuple[Any, Any]:
    if weights is None:
        return merge(W, H, rank)
    merged_W, merged_H = merge(W, H * weights, rank)
    return merged_W, merged_H / weights
