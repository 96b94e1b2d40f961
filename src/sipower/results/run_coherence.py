# SPDX-License-Identifier: BSD-3-Clause
"""The coherence of the components of a run, which is recorded because it needs the counts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from sipower.data.validate import as_matrix
from sipower.results.run import Run
from sipower.selection.coherence import N_TOP, Coherence, coherence, top_features

__all__ = ["recorded_coherence", "with_coherence"]

KEY = "coherence"  # in the facts of a run


def with_coherence(run: Run, V: Any, n_top: int = N_TOP) -> Run:
    """Return the run with the coherence of its components in the counts V, (samples, features)."""
    matrix = as_matrix(V)
    shape = len(run.W), run.H.shape[1]
    if matrix.shape != shape:
        raise ValueError(f"`V` must have the shape {shape} of the run, got {matrix.shape}.")
    measured = coherence(matrix, top_features(run.H, n_top))
    content = {f.name: np.asarray(getattr(measured, f.name)).tolist() for f in fields(measured)}
    return replace(run, facts=run.facts | {KEY: content})


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
