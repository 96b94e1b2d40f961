# SPDX-License-Identifier: BSD-3-Clause
"""`differential`: which features distinguish the components, and how certain that is.

Every feature is regressed on the weights (`regression`). The log fold changes between components
have standard errors from the Fisher information (`fold_changes`) and are shrunk towards zero
(`shrinkage`). Whether the differences appear again in independent counts is checked by splitting
the counts (`replication`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sipower.data.containers import refuse_type
from sipower.data.names import arrange, data_items
from sipower.data.plausibility import warn_about_values, warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.observation import (
    ARGUMENTS,
    as_given,
    as_observation,
    match_arguments,
)
from sipower.estimators.prepared import Prepared, prepare
from sipower.estimators.verdict import divergence_remark, fitted_divergence
from sipower.inference.differences import Differences
from sipower.inference.fold_changes import CONTRASTS, fold_changes
from sipower.inference.regression import DEFAULT_PRIOR, regress_prepared
from sipower.inference.replication import TOL, Replication, check_replication
from sipower.inference.shrinkage import shrink
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed

__all__ = ["differential"]

Float = NDArray[np.float64]
LOG2 = float(np.log(2))


def differential(  # noqa: PLR0913 - all options are keyword-only
    V: Any,
    model: Any,
    *,
    contrast: str = "least extreme",
    prior: float = DEFAULT_PRIOR,
    level: float = 0.95,
    check: bool = True,
    random_state: int = DEFAULT_SEED,
    rng: RNG = None,
    component_names: Sequence[str] | None = None,
    on_stage: Callable[[str], object] | None = None,
    **observed: Any,
) -> Differences:
    """Estimate for every feature how much more frequent it is in each component than in others.

    Parameters
    ----------
    V
        Counts, (n_samples, n_features).
    model
        A fitted `KLNMF`, or weights W (n_samples, K) from anywhere.
    contrast
        What a component is compared with: the other component in which the feature is most
        similar ("least extreme"), all data together ("null"), or each other component
        ("pairwise").
    prior
        Prior counts of every feature and component, which keep estimates finite. With fewer, the
        interval of a feature that a component does not have at all is wider.
    level
        Posterior probability of the intervals.
    check
        Whether to check on independent counts that the differences are no noise. The check fits
        the model again, to one half of the counts.
    random_state
        Seed of the check.
    rng
        Seed or NumPy generator, instead of `random_state`.
    component_names
        Names of the components; None: those of guides, else "component 1" and so on.
    on_stage
        Called with a sentence when a stage begins.
    **observed
        Arguments of `KLNMF.fit` that say how the data were observed, such as `offsets`, `mask` or
        `batch`.

    Returns
    -------
    Differences
        Log2 fold changes with standard errors, shrunken estimates, intervals and local false sign
        rates.

    Warns
    -----
    UserWarning
        If the differences do not appear again in independent counts.

    Examples
    --------
    >>> from sipower import KLNMF, differential
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(300, 100, 3, seed=0)
    >>> model = KLNMF(3, random_state=0).fit(V)
    >>> differences = differential(V, model)
    >>> differences.lfsr.shape, differences.replication.is_supported
    ((3, 100), True)
    """
    _check_options(contrast, prior, level)
    random_state = choose_seed(rng, "random_state", random_state)
    say = on_stage or (lambda _: None)
    observed = match_arguments(V, observed)
    matrix, prepared, W = _weights(V, model, observed)
    if not matrix.has_columns:
        raise ValueError(
            "`V` is available by row only, but every feature is regressed on its own: convert the "
            "data to a store with both orientations."
        )
    say("regressing every feature on the weights")
    regression = regress_prepared(prepared, W, prior)
    changes = fold_changes(regression, contrast)
    say("shrinking the fold changes")
    shrunken = [shrink(*row, level) for row in zip(changes.estimates, changes.errors, strict=True)]
    profiles = (regression.h / regression.h.sum(axis=0)).T
    replication = Replication(reason="`check` is False")
    if check:
        say("checking the differences on independent counts")
        half = _half_model(model, W.shape[1], random_state)
        replication = check_replication(matrix, half, profiles, prior, observed)
    rates = np.maximum([s.false_sign for s in shrunken], changes.min_false_sign)
    differences = Differences(
        pairs=changes.pairs,
        against=changes.against,
        log2_fold_change=changes.estimates / LOG2,
        standard_error=changes.errors / LOG2,
        posterior_mean=np.array([s.mean for s in shrunken]) / LOG2,
        lower=np.array([s.lower for s in shrunken]) / LOG2,
        upper=np.array([s.upper for s in shrunken]) / LOG2,
        lfsr=rates,
        profiles=profiles,
        counts=prepared.V.column_mass,
        features=None if matrix.column_names is None else np.asarray(matrix.column_names),
        components=_names(model, component_names, W.shape[1]),
        contrast=contrast,
        level=level,
        shrinkage_gaps=np.array([s.gap for s in shrunken]),
        replication=replication,
    )
    if replication.is_supported is False:
        warnings.warn(f"`model`: {replication}", UserWarning, stacklevel=2)
    return differences


def _check_options(contrast: str, prior: float, level: float) -> None:
    if contrast not in CONTRASTS:
        raise ValueError(f"`contrast` must be one of {', '.join(CONTRASTS)}, got {contrast!r}.")
    if not prior > 0:
        raise ValueError(f"`prior` must be positive, got {prior}.")
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, got {level}.")


def _weights(V: Any, model: Any, observed: dict[str, Any]) -> tuple[RowBlocks, Prepared, Float]:
    """Return the data, the weighted data and the weights W in float64."""
    given = as_given(observed)
    if isinstance(model, KLNMF):
        check_is_fitted(model)
        matrix, observation = model._observe(V, given, reset=False)
        prepared = model._prepare(matrix, observation)
        W = model._exact_rows(matrix, observation.without_sample_weights())
        fitted = None if any(part is not None for part in given) else fitted_divergence(model)
        remark = divergence_remark(matrix, W, model.components_, fitted)
        if remark is not None:
            warn_user(remark)
    else:
        matrix = as_matrix(V)
        warn_about_values(V, matrix)
        if given[ARGUMENTS.index("batch")] is not None:
            raise ValueError("`batch` needs the batch effects of a fitted KLNMF as `model`.")
        prepared = prepare(matrix, as_observation(matrix.shape, given))
        W = _as_weights(arrange("model", model, data_items(V)[0], None), matrix.shape[0])
    if W.shape[1] < 2:
        raise ValueError("`model` must have at least two components to compare.")
    if not W.any():
        raise ValueError("`V` must have counts, got data that are all zero for `model`.")
    return matrix, prepared, np.asarray(W, np.float64)


def _as_weights(model: Any, samples: int) -> Float:
    refuse_type("`model`", getattr(model, "dtype", None))
    try:
        W = np.array(model, np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(
            f"`model` must be a fitted KLNMF or an array of weights, got a {type(model).__name__}."
        ) from None
    if W.ndim != 2 or len(W) != samples:
        raise ValueError(
            f"`model` must have one row of weights for each of the {samples} samples, got shape "
            f"{W.shape}."
        )
    if not (np.isfinite(W).all() and (W >= 0).all() and W.any()):
        raise ValueError("`model`: weights must be finite, non-negative and not all zero.")
    return W


def _half_model(model: Any, rank: int, seed: int) -> KLNMF:
    """Return a model with the parameters of the fit, for one half of the counts."""
    if not isinstance(model, KLNMF):
        return KLNMF(rank, random_state=seed, tol=TOL)
    half = clone(model)
    init = "auto" if model.init == "custom" else model.init
    half.set_params(
        n_components=rank, random_state=seed, tol=max(TOL, model.tol), init=init, verbose=0,
        on_round=None, checkpoint=None,
    )  # fmt: skip
    half.set_output(transform="default")
    return half  # type: ignore[no-any-return]


def _names(model: Any, names: Sequence[str] | None, rank: int) -> tuple[str, ...]:
    if names is not None:
        if len(names) != rank:
            raise ValueError(
                f"`component_names` must have one name for each of the {rank} components, got "
                f"{len(names)}."
            )
        return tuple(map(str, names))
    labels = [f"component {k + 1}" for k in range(rank)]
    for guide in getattr(model, "guides_", ()):
        labels[guide.component] = guide.name
    return tuple(labels)
