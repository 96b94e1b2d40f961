# SPDX-License-Identifier: BSD-3-Clause
"""Prior counts of the parameters `prior_W`, `prior_H` and `guides`, for the weighted data.

A sample of weight ρ counts like ρ equal samples, each with the prior counts of its own weights, so
its prior counts are multiplied by ρ, and those of a feature by its weight φ (`Prepared`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.containers import as_numbers
from sipower.estimators.guides import Guide
from sipower.estimators.parameters import in_order
from sipower.estimators.penalties import penalties
from sipower.estimators.prepared import Prepared
from sipower.kernels import Array
from sipower.nmf.prior_counts import PriorCounts
from sipower.nmf.terms import ModelTerms

__all__ = ["check_prior", "has_prior", "prior_counts", "row_model", "row_prior"]

Float = NDArray[np.float64]
DEFAULT_STRENGTH = 0.01  # of the counts per component; tuned on generated topics


def has_prior(estimator: Any) -> bool:
    """Return whether the parameters give W or H prior counts."""
    values = estimator.prior_W, estimator.prior_H
    return bool(estimator.guides is not None or any(np.any(np.asarray(value)) for value in values))


def check_prior(estimator: Any) -> None:
    """Check that prior counts are not combined with penalties."""
    if has_prior(estimator) and (estimator.alpha_W or estimator.alpha_H not in ("same", 0)):
        raise ValueError(
            "`prior_W`, `prior_H` and `guides` cannot be combined with `alpha_W` and `alpha_H`, "
            "which depend on the scale of H: leave one out."
        )


def row_model(estimator: Any, prepared: Prepared, rank: int) -> ModelTerms:
    """Return the terms of the model that the rows of W have, given H."""
    l1, ridge = penalties(estimator, prepared)
    prior = row_prior(estimator, prepared, rank)
    return ModelTerms(prepared.exposure, prior=prior, l1=l1, ridge=ridge)


def row_prior(estimator: Any, prepared: Prepared, rank: int) -> PriorCounts | None:
    """Return the prior counts of the weights of samples alone."""
    if not np.any(estimator.prior_W):
        return None
    b = _as_counts("prior_W", estimator.prior_W, [(rank,)])
    rows = np.broadcast_to(b, rank).copy()
    if not prepared.V.has_items:  # the workers that hold the rows have their rates
        return PriorCounts(rows)
    mass = prepared.V.mass
    if prepared.sample_weight is not None or not mass.all():  # a sample without counts has W = 0
        weight = 1.0 if prepared.sample_weight is None else prepared.sample_weight
        rows = np.ascontiguousarray(np.where(mass > 0, weight, 0.0)[:, None] * rows)
    totals = rows.sum(axis=-1)
    rates = np.divide(totals, mass, out=np.zeros_like(mass), where=mass > 0)
    return PriorCounts(rows, rates)


def prior_counts(
    estimator: Any,
    prepared: Prepared,
    guides: list[Guide],
    fixed: Array | None,
    known: int,
    rank: int,
) -> PriorCounts | None:
    """Return all prior counts; None if there are none, or if all data are zero.

    Parameters
    ----------
    estimator
        The `KLNMF` whose parameters are used.
    prepared
        Weighted data.
    guides
        Guides of the components that follow the known ones.
    fixed
        Entries of H that are fixed, bool, (m, K).
    known
        Number of known components, which come first.
    rank
        Number of all components.
    """
    if not prepared.V.total > 0:  # W is zero, and nothing bounds the scale of H
        return None
    rows = row_prior(estimator, prepared, rank) or PriorCounts()
    columns = _column_prior(estimator, prepared, guides, known, rank)
    if columns is not None:
        if fixed is not None:
            columns[fixed] = 0
        if prepared.column_scale is not None:
            columns *= prepared.column_scale[:, None]
    if columns is None and rows.rows is None:
        return None
    return PriorCounts(rows.rows, rows.rates, columns)


def _column_prior(
    estimator: Any, prepared: Prepared, guides: list[Guide], known: int, rank: int
) -> Float | None:
    """Return the prior counts of the profiles, (m, K), or None."""
    if not np.any(np.asarray(estimator.prior_H)) and not guides:
        return None
    m = prepared.V.shape[1]
    a = _as_counts("prior_H", in_order(estimator, "prior_H", prepared.V), [(m,), (rank, m)])
    columns = np.array(np.broadcast_to(a, (rank, m)).T, order="C")
    if known + len(guides) > rank:
        taken = f"{known} known components and {len(guides)}" if known else f"{len(guides)}"
        raise ValueError(
            f"`guides` must leave at most n_components = {rank} components, got {taken} guides."
        )
    strength = estimator.guide_strength
    if strength is None:
        strength = DEFAULT_STRENGTH * prepared.V.total / rank
    for component, guide in enumerate(guides, known):
        columns[guide.features, component] += strength * guide.weights
    return columns


def _as_counts(name: str, values: Any, shapes: list[tuple[int, ...]]) -> Float:
    counts = as_numbers(name, values, "a number or an array of numbers")
    if counts.ndim and counts.shape not in shapes:
        allowed = " or ".join(map(str, shapes))
        raise ValueError(f"`{name}` must be a number or have shape {allowed}, got {counts.shape}.")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError(f"`{name}` must be finite and non-negative.")
    return counts
