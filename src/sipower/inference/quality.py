# SPDX-License-Identifier: BSD-3-Clause
"""`topic_quality`: whether components are coherent, exclusive and diverse.

=======  ==================================================================
φ_kj     profile: probability of feature j in component k, rows of H that sum to 1
s_ik     share of the counts of sample i that component k explains
=======  ==================================================================

Coherence and diversity are in `sipower.selection.coherence`, the perplexity in `perplexity`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from sipower.data.containers import as_frame, refuse_type
from sipower.data.names import Items, arrange, data_items, match_names
from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.estimators.exact_rows import exact_rows
from sipower.estimators.new_data import check_features
from sipower.estimators.verdict import (
    divergence_remark,
    fitted_divergence,
    is_fitted_W,
    sums_remark,
)
from sipower.inference.component_quality import TopicQuality
from sipower.inference.perplexity import held_out_perplexity
from sipower.kernels import Array
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.selection.coherence import N_TOP, Coherence, coherence, diversity, top_features
from sipower.selection.holdout import ROW_TOL, are_counts

__all__ = ["effective_components", "exclusivities", "frex_scores", "rate_factors", "topic_quality"]

Numbers = NDArray[np.float64]


def topic_quality(  # noqa: PLR0913 - all options are keyword-only
    V: Any,
    model: Any,
    W: Any = None,
    *,
    n_top: int = N_TOP,
    features: Sequence[str] | None = None,
    held_out: Any = True,
    added: float | None = None,
    random_state: int = DEFAULT_SEED,
    rng: RNG = None,
) -> TopicQuality:
    """Measure how coherent, exclusive and diverse components are, and how well they predict.

    Parameters
    ----------
    V
        Counts, (n_samples, n_features), in memory or on disk.
    model
        A fitted `KLNMF`, or components H (K, n_features) from anywhere.
    W
        Weights, (n_samples, K); None computes them from V.
    n_top
        Number of leading features of a component, those with the largest probability.
    features
        Names of the features; None: the columns of a data frame, if V is one.
    held_out
        Counts for the perplexity. True holds out a fifth of V. It is then too low, because the
        components were fitted to all of V: pass samples that the fit has not seen, of which a fifth
        is held out, or compare ranks by `rank_selection`. False computes no perplexity.
    added
        Added to the number of samples with both features of a pair in UMass. None adds 1e-12 of the
        samples, as gensim and tomotopy do; 1 is the formula of Mimno et al. (2011).
    random_state
        Seed of the counts that are held out.
    rng
        Seed or NumPy generator, instead of `random_state`.

    Returns
    -------
    TopicQuality
        Coherence (NPMI, UMass), exclusivity and FREX of each component, their diversity, the
        number of components in each sample, and the perplexity.

    Examples
    --------
    >>> from sipower import KLNMF, topic_quality
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(300, 200, 3, length=100, seed=0)
    >>> quality = topic_quality(V, KLNMF(3, random_state=0).fit(V))
    >>> quality.npmi.round(1), quality.diversity
    (array([0.7, 0.7, 0.7]), 1.0)
    """
    if n_top < 2:
        raise ValueError(f"`n_top` must be at least 2 for a pair of features, got {n_top}.")
    if added is not None and not added > 0:
        raise ValueError(f"`added` must be positive or None, got {added}.")
    random_state = choose_seed(rng, "random_state", random_state)
    matrix, H = as_matrix(V), _components(model, V)
    _check_features(matrix, H)
    if isinstance(model, KLNMF):
        check_features(model, as_frame(V), matrix, reset=False)
    if W is None:
        weights = _weights(V, model, H)
    else:
        weights = _as_weights(W, len(H), data_items(V)[0], matrix.shape[0])
    _warn_if_other(matrix, model, weights if W is not None else None)
    names = matrix.column_names if features is None else features
    quality = rate_factors(
        weights,
        H,
        coherence(matrix, top_features(H, n_top), added),
        components=_names(model, len(H)),
        features=_checked_names(names, H.shape[1]),
    )
    return quality.with_perplexity(_perplexity(matrix, model, H, held_out, random_state))


def rate_factors(
    W: Array,
    H: Array,
    measured: Coherence,
    *,
    components: tuple[str, ...],
    features: tuple[str, ...] | None,
) -> TopicQuality:
    """Return the quality of factors (samples, K) and (K, features) whose coherence is known."""
    top, masses = top_features(H, measured.n_top), H.sum(axis=1, dtype=np.float64)
    profiles = _divide_rows(np.asarray(H, np.float64), masses)
    exclusivity, frex = (
        np.array([row[f].mean() if len(f) else 0.0 for row, f in zip(scores, top, strict=True)])
        for scores in (exclusivities(profiles), frex_scores(profiles))
    )
    return TopicQuality(
        npmi=measured.npmi,
        umass=measured.umass,
        pairs=measured.pairs,
        exclusivity=exclusivity,
        frex=frex,
        diversity=diversity(top),
        effective=effective_components(np.asarray(W, np.float64) * masses),
        top=tuple(top),
        components=components,
        features=features,
        n_top=measured.n_top,
    )


def exclusivities(profiles: Array) -> Numbers:
    """Return φ_kj / Σ_l φ_lj, the exclusivity of each feature, (K, features); 0 for 0/0."""
    return _divide_rows(profiles.T, profiles.sum(axis=0)).T


def frex_scores(profiles: Array) -> Numbers:
    """Return how frequent and how exclusive each feature is, from 0 to 1, (K, features).

    It is the harmonic mean of two ranks within the component, of φ_kj and of the exclusivity, each
    divided by the number of features that occur: FREX with weight 1/2 (Bischof and Airoldi, 2012,
    "Summarizing topical content with word frequency and exclusivity").
    """
    occurs = profiles.any(axis=0)
    present = profiles[:, occurs]
    frequency, exclusive = (
        rankdata(values, method="max", axis=1) / max(values.shape[1], 1)
        for values in (present, exclusivities(present))
    )
    scores = np.zeros(profiles.shape)
    scores[:, occurs] = np.where(present > 0, 2 / (1 / frequency + 1 / exclusive), 0)
    return scores


def effective_components(weights: Array) -> Numbers:
    """Return exp(−Σ_k s_ik log s_ik), the effective number of components of every sample.

    It is 1 if one component explains the sample, K if all explain the same share of it, and 0 for a
    sample without counts. `weights` (samples, K) are proportional to s.
    """
    totals = weights.sum(axis=1)
    shares = _divide_rows(weights, totals)
    return np.where(totals > 0, np.exp(-xlogy(shares, shares).sum(axis=1)), 0.0)


def _divide_rows(values: Array, totals: Array) -> Numbers:
    return np.asarray(values / np.where(totals > 0, totals, 1.0)[:, np.newaxis])


# ---- arguments -------------------------------------------------------------------------------


def _components(model: Any, V: Any) -> Numbers:
    if isinstance(model, KLNMF):
        check_is_fitted(model)
        return np.asarray(model.components_, np.float64)
    return _as_factor("model", arrange("model", model, None, data_items(V)[1]))


def _as_factor(name: str, values: Any) -> Numbers:
    refuse_type(f"`{name}`", getattr(values, "dtype", None))
    try:
        factor = np.array(values, np.float64)
    except (TypeError, ValueError):
        also = "a fitted KLNMF or " if name == "model" else ""
        raise TypeError(
            f"`{name}` must be {also}an array of numbers, got a {type(values).__name__}."
        ) from None
    if factor.ndim != 2 or not factor.size:
        raise ValueError(f"`{name}` must have two dimensions, got shape {factor.shape}.")
    if not (np.isfinite(factor).all() and (factor >= 0).all()):
        raise ValueError(f"`{name}` must be finite and non-negative.")
    return factor


def _as_weights(W: Any, rank: int, items: Items, samples: int) -> Numbers:
    weights = _as_factor("W", arrange("W", W, items, None))
    if weights.shape != (samples, rank):
        raise ValueError(f"`W` must have shape {(samples, rank)}, got {weights.shape}.")
    return weights


def _warn_if_other(V: RowBlocks, model: Any, W: Any) -> None:
    """Warn if weights that were given do not belong to the data and the fit of a model."""
    if W is None or not isinstance(model, KLNMF) or fitted_divergence(model) is None:
        return
    remark = sums_remark(V, W, model.components_)
    if is_fitted_W(model, W):
        remark = divergence_remark(V, W, model.components_, fitted_divergence(model))
    if remark is not None:
        warn_user(remark)


def _check_features(matrix: RowBlocks, H: Array, name: str = "V") -> None:
    if matrix.shape[1] != H.shape[1]:
        raise ValueError(
            f"`{name}` must have one column for each of the {H.shape[1]} features of the "
            f"components, got {matrix.shape[1]}."
        )


def _check_same_features(V: RowBlocks, held_out: RowBlocks) -> None:
    """Check that counts that are held out have the features of the data in the same order."""
    own, other = data_items(V, "`V`")[1], data_items(held_out, "`held_out`")[1]
    if not match_names(own, other).is_same:
        raise ValueError("`held_out` must have the features of `V` in the same order: reorder it.")


def _checked_names(names: Any, features: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if len(names) != features:
        raise ValueError(f"`features` must have {features} names, got {len(names)}.")
    return tuple(map(str, names))


def _names(model: Any, rank: int) -> tuple[str, ...]:
    labels = [f"component {k + 1}" for k in range(rank)]
    for guide in getattr(model, "guides_", ()):
        labels[guide.component] = guide.name
    return tuple(labels)


def _weights(V: Any, model: Any, H: Array) -> Array:
    """Return the weights of samples for given components."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No component has feature")  # it lowers no measure
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if isinstance(model, KLNMF):
            return np.asarray(model.transform(V))
        return exact_rows(as_matrix(V, dtype=np.float64), np.ascontiguousarray(H.T), ROW_TOL)


def _perplexity(V: RowBlocks, model: Any, H: Array, held_out: Any, seed: int) -> float | None:
    if isinstance(held_out, bool):
        if not held_out or not (V.is_in_memory and are_counts(V)):
            return None
        counts = V
    else:
        counts = as_matrix(held_out)
        _check_features(counts, H, "held_out")
        if isinstance(model, KLNMF):
            check_features(model, as_frame(held_out), counts, reset=False)
        else:
            _check_same_features(V, counts)
        if not (counts.is_in_memory and are_counts(counts)):
            raise ValueError("`held_out` must hold whole numbers in memory, to be split.")
    return held_out_perplexity(counts, H, lambda part: _weights(part, model, H), seed)
