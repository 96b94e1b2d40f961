# SPDX-License-Identifier: BSD-3-Clause
"""The results of `rank_selection` and `consensus`: plain data for plots and files."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sipower._files import atomic_write, shorten
from sipower.kernels import Array

Numbers = NDArray[np.float64]


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
    """

    ranks: tuple[int, ...]
    deviance: Numbers
    stability: Numbers
    best: int
    reason: str
    method: str

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
        )


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
        For each component of the medoid the mean cosine with its partner in the other replicates,
        (K,); 1 is best, NaN for a single replicate.
    similarity
        Mean cosine of matched components of two replicates, (replicates, replicates).
    divergences, gaps, statuses
        KL divergence and certified gap of each replicate, and how it ended.
    """

    W: Array
    H: Array
    medoid: int
    stability: Numbers
    similarity: Numbers
    divergences: Numbers
    gaps: Numbers
    statuses: tuple[str, ...]

    def is_sound(self) -> bool:
        """Return whether all fields have valid types and consistent shapes."""
        count = len(self.statuses)
        return (
            _are_integers(self.medoid)
            and 0 <= self.medoid < count
            and _are_strings(*self.statuses)
            and self.stability.shape == (len(self.H),)
            and self.similarity.shape == (count, count)
            and self.divergences.shape == self.gaps.shape == (count,)
        )


T = TypeVar("T", RankSelection, Consensus)


def save_outcome(outcome: RankSelection | Consensus, file: str | PathLike[str]) -> None:
    """Write an outcome as JSON, without the factors, which belong in the run folder."""
    names = [f.name for f in fields(outcome) if f.name not in ("W", "H")]
    content = {name: getattr(outcome, name) for name in names}
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in content.items()}
    with atomic_write(file) as to:
        to.write(json.dumps(nan_as_none(plain), allow_nan=False).encode())


def load_outcome(kind: type[T], file: str | PathLike[str], **factors: Array) -> T:
    """Read an outcome that `save_outcome` has written; `factors` are W and H of a consensus."""
    arrays = {f.name for f in fields(kind) if "Numbers" in str(f.type)}
    try:
        content: dict[str, Any] = json.loads(Path(file).read_text(encoding="utf-8"))
        content = {k: np.array(v, float) if k in arrays else v for k, v in content.items()}
        lists = {k: tuple(v) for k, v in content.items() if isinstance(v, list)}
        outcome = kind(**content | lists | factors)
        if not outcome.is_sound():
            raise ValueError("its fields do not fit together")
    except Exception as problem:  # a damaged file can raise any error
        raise ValueError(
            f"{file} is not a {kind.__name__} of sipower: {shorten(problem)}."
        ) from None
    return outcome


def _are_integers(*values: Any) -> bool:
    return all(isinstance(value, int) for value in values)


def _are_strings(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def nan_as_none(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by None in plain data."""
    if isinstance(value, dict):
        return {key: nan_as_none(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [nan_as_none(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
