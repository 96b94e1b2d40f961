# SPDX-License-Identifier: BSD-3-Clause
"""`verify`: objective and certified gap of given factors, recomputed from the data."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from sipower.data.containers import as_frame, as_numbers
from sipower.data.names import arrange, data_items, has_labels
from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.certificate import state_problem
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.missing import hide_unobserved, split_missing
from sipower.estimators.model import Model
from sipower.estimators.new_data import check_features, check_fitted_batches
from sipower.estimators.observation import ARGUMENTS, as_observation, match_observed
from sipower.estimators.parameters import check_supported
from sipower.estimators.prepared import Prepared
from sipower.estimators.prior import check_prior
from sipower.estimators.verdict import is_same_divergence
from sipower.kernels import Array
from sipower.verification import Verification, verify_factors

__all__ = ["verify"]


def verify(  # noqa: PLR0913 - the arguments of `KLNMF.fit`
    V: Any,
    W: Any,
    H: Any = None,
    *,
    model: KLNMF | None = None,
    sample_weight: Any = None,
    feature_weight: Any = None,
    weights: Any = None,
    mask: Any = None,
    offsets: Any = None,
    batch: Any = None,
) -> Verification:
    """Recompute the objective and the certified gap of factors from the data, in float64.

    The verifier is plain NumPy and shares no code with the solvers and their kernels. It reads the
    rows of V once, some at a time.

    Parameters
    ----------
    V
        The data, (n_samples, n_features): anything that `KLNMF.fit` accepts.
    W, H
        Factors, (n_samples, K) and (K, n_features). H may be left out if `model` is fitted.
    model
        A `KLNMF`: its penalties, prior counts, guides, known components and fitted batch effects
        are part of the problem. None: the plain problem.
    sample_weight, feature_weight, weights, mask, offsets, batch
        As in `KLNMF.fit`.

    Returns
    -------
    Verification
        Divergence, objective and gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import KLNMF, verify
    >>> V = np.random.default_rng(0).poisson(3.0, (40, 30))
    >>> model = KLNMF(n_components=3, random_state=0)
    >>> W = model.fit_transform(V)
    >>> verify(V, W, model.components_).is_converged(model.tol)
    True
    """
    if model is not None and not hasattr(model, "prior_W"):
        raise TypeError(f"`model` must be a KLNMF, got {type(model).__name__}.")
    if H is None:
        if not hasattr(model, "components_"):
            raise ValueError("`H` must be given unless `model` is a fitted KLNMF.")
        H = model.components_  # type: ignore[union-attr]
    given = (sample_weight, feature_weight, weights, mask, offsets, batch)
    table, is_missing = V, None
    given = match_observed(V, given)
    mask = given[ARGUMENTS.index("mask")]
    if mask is not None:
        V = hide_unobserved(V, mask)
    if model is not None and model.missing == "nan":
        V, is_missing = split_missing(V)
    matrix = V if isinstance(V, RowBlocks) else as_matrix(V, dtype=np.float64)
    observation = as_observation(matrix.shape, given, missing=is_missing)
    if has_labels(W) or has_labels(H):
        samples, features = data_items(matrix)
        W, H = arrange("W", W, samples, None), arrange("H", H, None, features)
    W, H = _as_factors(W, H, matrix.shape)
    if model is not None:
        _check_model(model, table, matrix, len(H))
    effects = _fitted_effects(model, observation.batch)
    statement = state_problem(model or KLNMF(), matrix, observation, len(H), effects)
    found = verify_factors(matrix, W, np.ascontiguousarray(H.T), statement)
    fitted = getattr(model, "kl_divergence_", None)
    if fitted is not None and not is_same_divergence(found.divergence, fitted, matrix):
        warn_user(
            f"`V`, `W` and `H` are not those of the fit of `model`: the divergence is "
            f"{found.divergence:.6g}, that of the fit is {fitted:.6g}."
        )
    return found


def _check_model(model: Any, table: Any, matrix: RowBlocks, rank: int) -> None:
    """Check the parameters of a model as its fit does, and the names of the features."""
    model._validate_params()
    check_supported(model)
    check_prior(model)
    if isinstance(model.n_components, Integral) and model.n_components != rank:
        raise ValueError(
            f"`W` and `H` must have the n_components = {model.n_components} of `model`, got {rank}."
        )
    if hasattr(model, "n_features_in_"):
        check_features(model, as_frame(table), matrix, reset=False)
    Model(model, Prepared(matrix), 0).check_parameters(rank)


def _fitted_effects(model: KLNMF | None, batch: Array | None) -> Array | None:
    if batch is None:
        if hasattr(model, "batch_effects_"):
            raise ValueError("`batch` must be given, because `model` was fitted with batches.")
        return None
    if model is None:
        raise ValueError("`batch` needs `model`, a fitted KLNMF with batch effects.")
    check_fitted_batches(model, batch)
    return model.batch_effects_


def _as_factors(W: Any, H: Any, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return W (n, K) and H (K, m), validated."""
    W, H = _as_factor("W", W), _as_factor("H", H)
    if (W.shape[0], H.shape[1]) != shape or W.shape[1] != H.shape[0]:
        raise ValueError(
            f"`W` and `H` must have the shapes ({shape[0]}, K) and (K, {shape[1]}), got {W.shape} "
            f"and {H.shape}: give the factors of these data."
        )
    return W, H


def _as_factor(name: str, values: Any) -> Array:
    factor = as_numbers(name, values, "a dense array of numbers")
    if factor.ndim != 2 or 0 in factor.shape:
        raise ValueError(
            f"`{name}` must have two dimensions, none of them 0, got shape {factor.shape}."
        )
    if not np.isfinite(factor).all() or (factor < 0).any():
        raise ValueError(f"`{name}` must be finite and non-negative.")
    return factor
