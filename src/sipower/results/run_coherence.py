# SPDX-License-Identifier: BSD-3-Clause
"""The coherence of the components of a run, which is recorded because it needs the counts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from sipower.data.names import Items, data_items, match_all
from sipower.data.validate import as_matrix
from sipower.kernels import Array
from sipower.results.run import Run
from sipower.selection.coherence import N_TOP, Coherence, coherence, top_features

__all__ = ["item_positions", "recorded_coherence", "with_coherence"]

KEY = "coherence"  # in the facts of a run


def with_coherence(run: Run, V: Any, n_top: int = N_TOP) -> Run:
    """Return the run with the coherence of its components in the counts V, (samples, features)."""
    matrix = as_matrix(V)
    shape = len(run.W), run.H.shape[1]
    if matrix.shape != shape:
        raise ValueError(f"`V` must have the shape {shape} of the run, got {matrix.shape}.")
    places = item_positions(run, V, 1)
    top = [places[features] for features in top_features(run.H, n_top)]
    measured = coherence(matrix, top)
    content = {f.name: np.asarray(getattr(measured, f.name)).tolist() for f in fields(measured)}
    return replace(run, facts=run.facts | {KEY: content})


def item_positions(run: Run, V: Any, side: int) -> Array:
    """Return the row (side 0) or column (side 1) of V for each sample or feature of a run.

    They are matched by name; a run without names has the order of V.
    """
    names = (run.samples, run.features)[side]
    if names is None:
        return np.arange((run.W, run.H.T)[side].shape[0])
    other = data_items(V, "`V`")[side]
    own = Items(other.kind, len(names), names, None, "`run`", plain_form="the pair (W, H)")
    return match_all(own, other)[0]


def recorded_coherence(run: Run) -> Coherence | None:
    """Return the coherence that was recorded, or None; raise an error if it is not valid."""
    content = run.facts.get(KEY)
    if content is None:
        return None
    try:
        npmi, umass, pairs = (np.array(content[name], float) for name in ("npmi", "umass", "pairs"))
        shapes, finite = {a.shape for a in (npmi, umass, pairs)}, np.isfinite([npmi, umass, pairs])
        if shapes != {(len(run.H),)} or not finite.all() or not 0 <= int(content["n_top"]) < 2**31:
            raise ValueError
        return Coherence(npmi, umass, pairs.astype(np.int64), int(content["n_top"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError(
            f"The coherence of the run must have finite numbers for its {len(run.H)} components."
        ) from None
