# SPDX-License-Identifier: BSD-3-Clause
"""The results of `rank_selection` and `consensus`, and files of results."""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from sipower._files import atomic_write, shorten
from sipower.data.formats import OUTCOME, RANK, Format, NewerFormatError, without_stamp
from sipower.kernels import Array

Numbers = NDArray[np.float64]
OUTLIER_REASONS = ("worse", "far")


@dataclass(frozen=True, eq=False)
class RankSelection:
    """The held-out error and the stability of each number of components.

    Parameters
    ----------
    ranks
        Numbers of components tried, ascending.
    deviance
        Held-out KL divergence per held-out count, (ranks, replicates); lower is better.
    stability
        Mean cosine of matched components over pairs of replicates, (ranks,); 1 is best, NaN for a
        single replicate.
    best, reason
        The recommended rank and why, in a sentence.
    method
        "thinning" (integer counts) or "bi-cross-validation".
    standard_error
        Standard error of the difference between the error of each rank and the lowest, (ranks,).
    dispersion
        Estimated φ of the average count, where counts with the mean Λ have the variance Λ + φ Λ²;
        0 for Poisson counts and for data that are no counts.
    still_falling
        Whether the largest rank tried is recommended, since every smaller one is worse by more
        than a standard error: larger ranks may be better.
    coherence
        Mean NPMI of the components, see `sipower.selection.coherence`, (ranks,): whether the
        10 leading features of a component occur in the same samples. At most 1. It has no part in
        the recommendation.
    diversity
        Share of different features among the 10 leading ones of all components, (ranks,).

    perplexity
        Held-out perplexity, (ranks,): with k, a held-out count is as hard to predict as one of k
        equally probable features. Empty for data that are no counts, and with weights or masks.
    feature_dispersion
        Estimated φ of each feature, with which the counts were split, (features,). Empty for data
        that are no counts.

    `standard_error`, `coherence`, `diversity`, `perplexity` and `feature_dispersion` are empty if
    an older version saved the outcome.
    """

    ranks: tuple[int, ...]
    deviance: Numbers
    stability: Numbers
    best: int
    reason: str
    method: str
    standard_error: Numbers = field(default_factory=lambda: np.empty(0))
    dispersion: float = 0.0
    still_falling: bool = False
    coherence: Numbers = field(default_factory=lambda: np.empty(0))
    diversity: Numbers = field(default_factory=lambda: np.empty(0))
    perplexity: Numbers = field(default_factory=lambda: np.empty(0))
    feature_dispersion: Numbers = field(default_factory=lambda: np.empty(0))

    def is_sound(self) -> bool:
        """Return whether all fields have valid types and consistent shapes."""
        count = len(self.ranks)
        return (
            _are_integers(self.best, *self.ranks)
            and self.best in self.ranks
            and _are_strings(self.reason, self.method)
            and self.deviance.ndim == 2
            and len(self.deviance) == count
            and self.stability.shape == (count,)
            and all(values.shape in ((count,), (0,)) for values in self._optional())
            and isinstance(self.dispersion, int | float)
            and self.feature_dispersion.ndim == 1
            and isinstance(self.still_falling, bool)
        )

    def _optional(self) -> tuple[Numbers, ...]:
        return self.standard_error, self.coherence, self.diversity, self.perplexity

    def table(self) -> dict[str, list[Any]]:
        """Return the results as named columns with one entry for each rank.

        What is not known is NaN.
        """
        unknown = np.full(len(self.ranks), math.nan)
        standard_error, coherence, diversity, perplexity = (
            (values if len(values) else unknown).tolist() for values in self._optional()
        )
        return {
            "rank": list(self.ranks),
            "mean error": self.deviance.mean(axis=1).tolist(),
            "standard error": standard_error,
            "stability": self.stability.tolist(),
            "coherence": coherence,
            "diversity": diversity,
            "perplexity": perplexity,
            "recommended": [rank == self.best for rank in self.ranks],
        } | {f"replicate {r + 1}": errors.tolist() for r, errors in enumerate(self.deviance.T)}


@dataclass(frozen=True, eq=False)
class Consensus:
    """The replicates of a fit from different starts, and the medoid, the most central of them.

    Parameters
    ----------
    W, H
        Factors of the medoid, (samples, K) and (K, features).
    medoid
        Number of the replicate that the factors come from.
    stability
        For each component of the medoid the mean cosine with its partner in the other replicates
        that are kept, (K,); 1 is best, NaN for a single replicate.
    similarity
        Mean cosine of matched components of two replicates, (replicates, replicates).
    divergences, gaps, statuses
        KL divergence and certified gap of each replicate, and how it ended.
    outliers
        For each replicate "" if it is kept, or why it is dropped: "worse" (a clearly higher
        divergence) or "far" (unlike all others). Empty if no replicate was examined.
    batch_effects
        Batch effects of the medoid, (batches, features); None without batches.
    samples, features
        Names, or None if the data have none. Files of outcomes do not contain them.
    """

    W: Array
    H: Array
    medoid: int
    stability: Numbers
    similarity: Numbers
    divergences: Numbers
    gaps: Numbers
    statuses: tuple[str, ...]
    outliers: tuple[str, ...] = ()
    batch_effects: Array | None = None
    samples: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None

    @property
    def is_kept(self) -> NDArray[np.bool_]:
        """A mask of the replicates that are kept, (replicates,)."""
        return np.array([not reason for reason in self.outliers or [""] * len(self.statuses)])

    @property
    def summary(self) -> str:
        """A sentence about the replicates that are dropped."""
        count, dropped = len(self.is_kept), np.flatnonzero(~self.is_kept)
        if not len(dropped):
            return f"All {count} replicates are kept."
        excess = self.divergences / max(self.divergences.min(), np.finfo(float).tiny) - 1
        why = {
            r: f"divergence {100 * excess[r]:.1f} % above the lowest"
            if self.outliers[r] == "worse"
            else "components unlike those of all others"
            for r in dropped
        }
        parts = "; ".join(f"replicate {r + 1} ({reason})" for r, reason in why.items())
        return f"{len(dropped)} of {count} replicates dropped: {parts}."

    def is_sound(self) -> bool:
        """Return whether all fields have valid types and consistent shapes."""
        count = len(self.statuses)
        return (
            _are_integers(self.medoid)
            and 0 <= self.medoid < count
            and _are_strings(*self.statuses, *self.outliers)
            and len(self.outliers) in (0, count)
            and set(self.outliers) <= {"", *OUTLIER_REASONS}
            and self.stability.shape == (len(self.H),)
            and self.similarity.shape == (count, count)
            and self.divergences.shape == self.gaps.shape == (count,)
        )


class Outcome(Protocol):
    """A dataclass that `load_outcome` can read."""

    def is_sound(self) -> bool:
        """Return whether all fields have valid types and consistent shapes."""


T = TypeVar("T", bound=Outcome)


NOT_SAVED = ("W", "H", "batch_effects", "samples", "features")  # those of the run folder


def save_outcome(outcome: Any, file: str | PathLike[str]) -> None:
    """Write an outcome as JSON, without the factors, which belong in the run folder.

    Parameters
    ----------
    outcome
        The result of `rank_selection`, `consensus`, `merge_tree` or `component_flows`.
    file
        The file to write.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from sipower import rank_selection
    >>> from sipower.selection import save_outcome
    >>> selection = rank_selection([[3, 1], [2, 4], [5, 0]], [1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_outcome(selection, f"{folder}/rank.json")
    ...     json.loads(pathlib.Path(folder, "rank.json").read_text())["ranks"]
    [1, 2]
    """
    with atomic_write(file) as to:
        stamp = _format(type(outcome)).stamp()
        to.write(json.dumps(stamp | as_plain(outcome), allow_nan=False).encode())


def load_outcome(kind: type[T], file: str | PathLike[str], **factors: Array) -> T:
    """Read an outcome that `save_outcome` has written; `factors` are W and H of a consensus.

    `kind` is `RankSelection`, `Consensus`, `MergeTree` or `ComponentFlows`.

    Examples
    --------
    >>> import tempfile
    >>> from sipower import rank_selection
    >>> from sipower.selection import RankSelection, load_outcome, save_outcome
    >>> selection = rank_selection([[3, 1], [2, 4], [5, 0]], [1, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_outcome(selection, f"{folder}/rank.json")
    ...     load_outcome(RankSelection, f"{folder}/rank.json").ranks
    (1, 2)
    """
    arrays = {f.name for f in fields(cast("Any", kind)) if str(f.type) == "Numbers"}
    try:
        content: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
        _check_kind(kind, content)
        _format(kind).check(content, file)
        content = without_stamp(content)
        content = {k: np.array(v, float) if k in arrays else v for k, v in content.items()}
        lists = {k: tuple(v) for k, v in content.items() if isinstance(v, list)}
        outcome = kind(**content | lists | factors)
        if not outcome.is_sound():
            raise ValueError("its fields do not fit together")
    except NewerFormatError:
        raise
    except Exception as problem:  # a damaged file can raise any error
        raise ValueError(
            f"{file} is not a {kind.__name__} of sipower: {shorten(problem)}."
        ) from None
    return outcome


def _check_kind(kind: type[Any], content: dict[str, Any]) -> None:
    """Refuse a result of another kind, whose format has versions of its own."""
    required = (f for f in fields(kind) if f.default is f.default_factory is MISSING)
    names = {f.name for f in required} - set(NOT_SAVED)
    if len(names - content.keys()) > len(names) / 2:
        raise ValueError("it has fields of another kind")


def _format(kind: type[Any]) -> Format:
    return RANK if kind is RankSelection else OUTCOME


def _are_integers(*values: Any) -> bool:
    return all(isinstance(value, int) for value in values)


def _are_strings(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def as_plain(value: Any) -> Any:
    """Return data for JSON: lists for arrays, a mapping without factors for a dataclass.

    NaN, which JSON does not have, becomes None.
    """
    if is_dataclass(value):
        names = [f.name for f in fields(value) if f.name not in NOT_SAVED]
        return {name: as_plain(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: as_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
