# SPDX-License-Identifier: BSD-3-Clause
"""Guided components: prior counts on the features that a component should have.

A guide names features with weights. Its component has the prior counts `guide_strength`, divided
among these features by their weights. Whether the data support a guide is checked without a model:
with the excess r_ij = v_ij − c_i c_j/ΣV of feature j in sample i over independence,

    T_j = Σ_i r_ij Σ_{l ≠ j} r_il,   var T_j ≈ Σ_i (c_i c_j/ΣV) (Σ_{l ≠ j} r_il)²,

a feature supports the guide if T_j is more than `MIN_SCORE` standard deviations above zero: it
occurs with the other features of the guide more often than by chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.data.row_blocks import RowBlocks
from sipower.estimators.observation import is_sparse
from sipower.estimators.prepared import row_chunks
from sipower.kernels import Array

__all__ = ["Guide", "GuideReport", "as_guides", "report_guides"]

Float = NDArray[np.float64]
MIN_SCORE = 3.0  # standard deviations
MAX_NAMES = 5  # number of features that a message names


@dataclass(frozen=True, eq=False)
class Guide:
    """A guide: the features of a component and their weights, which sum to 1."""

    name: str
    features: NDArray[np.int64]
    weights: Float


@dataclass(frozen=True)
class GuideReport:
    """What a fit says about a guide.

    Attributes
    ----------
    name
        Name of the guide.
    component
        Its component: a row of `components_`.
    features
        Names of its features or, if the data have none, their positions.
    unsupported
        Those features that do not occur with the others more often than by chance.
    share
        Share of the component that lies in the features of the guide.
    """

    name: str
    component: int
    features: tuple[Any, ...]
    unsupported: tuple[Any, ...]
    share: float

    @property
    def is_supported(self) -> bool:
        """Whether at least half of the features support the guide."""
        return 2 * len(self.unsupported) <= len(self.features)

    def __str__(self) -> str:
        holds = f"{self.share:.0%} of its component in {len(self.features)} features"
        if not self.unsupported:
            return f"Guide {self.name!r}: {holds}; all of them occur together."
        count, names = len(self.unsupported), _join_names(self.unsupported)
        verdict = "" if self.is_supported else " The data do not support this guide."
        return (
            f"Guide {self.name!r}: {holds}; {count} of them {'do' if count > 1 else 'does'} not "
            f"occur with the others more often than by chance: {names}.{verdict}"
        )


def as_guides(guides: Any, V: RowBlocks) -> list[Guide]:
    """Validate the parameter `guides` and find its features in the data.

    Parameters
    ----------
    guides
        Mapping from names to features, or to mappings from features to weights; a DataFrame
        (guides, features) of weights; or None.
    V
        The data. Features are given by name or, if the data have no names, by position.
    """
    if guides is None:
        return []
    if hasattr(guides, "columns") and hasattr(guides, "index"):
        tables = zip(guides.index, guides.to_numpy(), strict=True)
        guides = {
            str(name): {f: w for f, w in zip(guides.columns, row, strict=True) if w != 0}
            for name, row in tables
        }
    if not isinstance(guides, Mapping):
        raise TypeError(
            "`guides` must be a mapping from names to lists of features, or a DataFrame of "
            f"weights, got a {type(guides).__name__}."
        )
    places = _places(V)
    return [_as_guide(str(name), features, places) for name, features in guides.items()]


def _places(V: RowBlocks) -> Mapping[Any, int]:
    if V.column_names is None:
        return {at: at for at in range(V.shape[1])}
    return {str(name): at for at, name in enumerate(V.column_names)}


def _as_guide(name: str, features: Any, places: Mapping[Any, int]) -> Guide:
    if isinstance(features, str) or not isinstance(features, Mapping | list | tuple | np.ndarray):
        raise TypeError(
            f"`guides`: {name!r} must have a list of features, or a mapping from features to "
            f"weights, got {features!r}."
        )
    weights = features if isinstance(features, Mapping) else dict.fromkeys(features, 1.0)
    known = {key: float(w) for key, w in weights.items() if _key(key, places) in places}
    missing = tuple(key for key in weights if key not in known)
    if not known:
        names = "" if isinstance(next(iter(places)), str) else "; the data have no feature names"
        absent = _join_names(missing) or "none given"
        raise ValueError(
            f"`guides`: no feature of {name!r} is in the data ({absent}){names}: correct the "
            "names, or leave the guide out."
        )
    values = np.array(list(known.values()))
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise ValueError(f"`guides`: the weights of {name!r} must be positive and finite.")
    if missing:
        warnings.warn(
            f"`guides`: {len(missing)} of {len(weights)} features of {name!r} are not in the data: "
            f"{_join_names(missing)}.",
            UserWarning,
            stacklevel=2,
        )
    positions = np.array([places[_key(key, places)] for key in known], np.int64)
    return Guide(name, positions, values / values.sum())


def _key(feature: Any, places: Mapping[Any, int]) -> Any:
    """Return the key of a feature: columns of a DataFrame that are numbers have texts as names."""
    if not isinstance(feature, Integral):
        return feature
    return int(feature) if feature in places else str(feature)


def _join_names(features: tuple[Any, ...]) -> str:
    more = ", ..." if len(features) > MAX_NAMES else ""
    return ", ".join(str(feature) for feature in features[:MAX_NAMES]) + more


def report_guides(guides: list[Guide], V: RowBlocks, H: Array, first: int) -> list[GuideReport]:
    """Return a report on every guide, and warn about those that the data do not support.

    Parameters
    ----------
    guides
        The guides.
    V
        The data, (n, m).
    H
        Fitted components, (K, m).
    first
        Component of the first guide.
    """
    reports = []
    for component, guide in enumerate(guides, first):
        names = guide.features if V.column_names is None else V.column_names[guide.features]
        names = names.tolist()
        scores = _scores(V, guide.features)
        unsupported = tuple(f for f, z in zip(names, scores, strict=True) if z < MIN_SCORE)
        profile = H[component].astype(np.float64)
        share = float(profile[guide.features].sum() / max(profile.sum(), 1e-300))
        report = GuideReport(guide.name, component, tuple(names), unsupported, share)
        reports.append(report)
        if not report.is_supported:
            warnings.warn(f"`guides`: {report}", UserWarning, stacklevel=7)
    return reports


def _scores(V: RowBlocks, features: NDArray[np.int64]) -> Float:
    """Return T_j over its standard deviation for the features of a guide; infinite for one alone.

    A feature without counts has the score 0.
    """
    if len(features) == 1:
        return np.full(1, np.inf)
    share = V.column_mass[features] / max(V.total, 1e-300)
    score, variance = V.reduce(_score_sums, features, share)
    return np.divide(score, np.sqrt(variance), out=np.zeros_like(score), where=variance > 0)


def _score_sums(V: RowBlocks, features: NDArray[np.int64], share: Float) -> tuple[Float, Float]:
    """Return T_j and its variance, which are sums over the rows."""
    score, variance = np.zeros((2, len(features)))
    for begin, end, rows in row_chunks(V):
        counts: Any = rows[:, features]
        counts = counts.toarray() if is_sparse(counts) else counts
        expected = V.mass[begin:end, None] * share
        excess = counts - expected
        others = excess.sum(axis=1, keepdims=True) - excess
        score += (excess * others).sum(axis=0)
        variance += (expected * others**2).sum(axis=0)
    return score, variance
