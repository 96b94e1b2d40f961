# SPDX-License-Identifier: BSD-3-Clause
"""The problem of a model and its data as `sipower.verification` needs it, in the user's scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.guides import as_guides
from sipower.estimators.observation import Observation, as_boolean
from sipower.estimators.parameters import in_order
from sipower.estimators.prior import DEFAULT_STRENGTH
from sipower.verification import ProblemStatement, weighted_total

__all__ = ["state_problem"]

Float = NDArray[np.float64]


def state_problem(
    model: Any,
    V: RowBlocks,
    observation: Observation,
    rank: int,
    effects: Any = None,
    *,
    sum_data: Callable[[], float] | None = None,
) -> ProblemStatement:
    """Return the problem that a model solves on some data.

    Parameters
    ----------
    model
        A `KLNMF`; its parameters are used, and the labels `batches_` if there are batches.
    V, observation
        The data and how they were observed.
    rank
        Number of components K.
    effects
        Batch effects (batches, m).
    sum_data
        A function that returns the sum of the weighted data; None: their rows are here.
    """
    (n, m), weights = V.shape, observation.weights
    alpha_W = model.alpha_W * m
    alpha_H = (model.alpha_W if model.alpha_H == "same" else model.alpha_H) * n
    fixed, values = _fixed(model, rank, V)
    has_known = model.components_fixed is not None
    known = len(model.components_fixed) if has_known else 0
    guides = as_guides(model.guides, V)
    has_prior = bool(guides) or np.any(model.prior_W) or np.any(np.asarray(model.prior_H))
    observed: dict[str, Any] = {
        "sample_weight": weights.rows, "feature_weight": weights.columns,
        "entry_weight": weights.entries, "offsets": observation.offsets,
    }  # fmt: skip
    if observation.batch is not None:
        batch, effects = _number_batches(observation.batch, model.batches_, effects)
        observed |= {"batch": batch, "effects": effects, "batch_prior": model.batch_prior}
    prior_H = None
    if guides or np.any(np.asarray(model.prior_H)):
        counts = np.asarray(in_order(model, "prior_H", V, warn=False), np.float64)
        prior_H = np.array(np.broadcast_to(counts, (rank, m)).T)
        strength = model.guide_strength
        if guides and strength is None:
            sum_data = sum_data or partial(weighted_total, V, ProblemStatement(**observed))
            strength = DEFAULT_STRENGTH * sum_data() / rank
        for component, guide in enumerate(guides, known):
            prior_H[guide.features, component] += strength * guide.weights
    return ProblemStatement(
        **observed,
        can_scale_effects=not (has_known or has_prior),
        l1=(model.l1_ratio * alpha_W, model.l1_ratio * alpha_H),
        ridge=((1 - model.l1_ratio) * alpha_W, (1 - model.l1_ratio) * alpha_H),
        prior_W=_as_vector(model.prior_W, rank) if np.any(model.prior_W) else None,
        prior_H=prior_H,
        fixed=fixed,
        values=values,
    )


def _as_vector(values: Any, length: int) -> Float:
    return np.broadcast_to(np.asarray(values, np.float64), length)


def _fixed(model: Any, rank: int, V: RowBlocks) -> tuple[NDArray[np.bool_] | None, Float | None]:
    """Return which entries of H (m, K) the parameters give, and their values."""
    names = "components_fixed", "components_zero"
    known, zero = (in_order(model, name, V, warn=False) for name in names)
    if known is None and zero is None:
        return None, None
    shape = rank, V.shape[1]
    fixed, values = np.zeros(shape, bool), np.zeros(shape)
    if zero is not None:
        fixed |= as_boolean("components_zero", zero)
    if known is not None:
        fixed[: len(known)], values[: len(known)] = True, known
    return fixed.T, values.T


def _number_batches(labels: Any, fitted: Any, effects: Any) -> tuple[NDArray[np.int64], Float]:
    """Return the number of the batch of every sample, and the effects; 1 for a new batch."""
    places = {label: at for at, label in enumerate(np.asarray(fitted).tolist())}
    numbers = np.array([places.get(label, len(places)) for label in labels.tolist()], np.int64)
    effects = np.asarray(effects, np.float64)
    if (numbers == len(places)).any():
        effects = np.vstack([effects, np.ones(effects.shape[1])])
    return numbers, effects
