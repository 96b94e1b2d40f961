# SPDX-License-Identifier: BSD-3-Clause
"""`Differences`: log fold changes of all features between components, and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.inference.replication import Replication

__all__ = ["Differences"]

Float = NDArray[np.float64]
MAX_LISTED = 5  # features that `repr` names for each contrast
SIGNIFICANT = 0.05  # local false sign rate
MEASURES = (
    "log2_fold_change", "standard_error", "z", "posterior_mean", "lower", "upper", "lfsr",
)  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class Differences:
    """The differences between components, with one row for each contrast.

    The contrasts are the components or, for ``contrast="pairwise"``, the pairs of components.
    Fold changes are logarithms to base 2.

    Attributes
    ----------
    log2_fold_change, standard_error : ndarray of shape (contrasts, features)
        Estimates and their standard errors.
    posterior_mean, lower, upper : ndarray of shape (contrasts, features)
        Estimates shrunk towards zero, and the interval that has the probability `level`.
    lfsr : ndarray of shape (contrasts, features)
        Local false sign rate: the probability that the sign of a change is wrong. For "least
        extreme" contrasts, that the feature is not more frequent, or rarer, than in each of the
        other components.
    against : ndarray of shape (contrasts, features)
        The component that an estimate compares with; -1: all data.
    pairs : ndarray of shape (contrasts, 2)
        The component of each contrast and, for pairs, the other one; -1: none.
    profiles : ndarray of shape (components, features)
        Components given the weights; each sums to 1.
    counts : ndarray of shape (features,)
        Sum of the counts of each feature.
    features : ndarray of str or None
        Names of the features.
    components : tuple of str
        Names of the components.
    shrinkage_gaps : ndarray of shape (contrasts,)
        Certified gaps of the proportions of the prior (mean log-likelihood).
    replication : Replication
        Whether the differences appear again in independent counts.
    """

    log2_fold_change: Float
    standard_error: Float
    posterior_mean: Float
    lower: Float
    upper: Float
    lfsr: Float
    against: NDArray[np.int64]
    pairs: NDArray[np.int64]
    profiles: Float
    counts: Float
    features: Any
    components: tuple[str, ...]
    contrast: str
    level: float
    shrinkage_gaps: Float
    replication: Replication

    @property
    def z(self) -> Float:
        """Estimates divided by their standard errors, (contrasts, features)."""
        return self.log2_fold_change / self.standard_error

    @property
    def feature_names(self) -> NDArray[Any]:
        """The names of the features or, without names, their positions."""
        return np.arange(len(self.counts)) if self.features is None else self.features

    def label(self, contrast: int) -> str:
        """Return the name of a contrast, such as "component 1" or "component 1 vs component 3"."""
        names = [self.components[k] for k in self.pairs[contrast] if k >= 0]
        return " vs ".join(names)

    def top(self, contrast: int, n: int = 20) -> NDArray[np.int64]:
        """Return the positions of the features with the largest increases, the largest first.

        Only increases whose local false sign rate is at most 0.05 are returned.
        """
        mean = np.where(self.lfsr[contrast] <= SIGNIFICANT, self.posterior_mean[contrast], -np.inf)
        order = np.argsort(-mean, kind="stable")[:n]
        return order[mean[order] > 0]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each contrast and feature."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        contrasts, features = self.lfsr.shape
        columns = {
            "feature": np.tile(self.feature_names, contrasts),
            "contrast": np.repeat([self.label(c) for c in range(contrasts)], features),
            "against": np.array([*self.components, "all"])[self.against.ravel()],
            "counts": np.tile(self.counts, contrasts),
            "share": self.profiles[self.pairs[:, 0]].ravel(),
        }
        return pd.DataFrame(columns | {name: getattr(self, name).ravel() for name in MEASURES})

    def __repr__(self) -> str:
        contrasts, features = self.lfsr.shape
        lines = [f"Differences of {features:,} features ({self.contrast}). {self.replication}"]
        for contrast in range(min(contrasts, 20)):
            count = int((self.lfsr[contrast] <= SIGNIFICANT).sum())
            names = ", ".join(str(self.feature_names[j]) for j in self.top(contrast, MAX_LISTED))
            lines.append(f"  {self.label(contrast)}: {count:,} changes with lfsr <= 0.05; {names}")
        return "\n".join(lines)
