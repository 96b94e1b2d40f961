# SPDX-License-Identifier: BSD-3-Clause
"""`TopicQuality`: coherence, exclusivity and diversity of components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.selection.coherence import mean_npmi

__all__ = ["TopicQuality"]

Numbers = NDArray[np.float64]
MAX_LISTED, MAX_COMPONENTS = 5, 20  # features of a component, and components, in `repr`
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MEASURES = ("npmi", "umass", "exclusivity", "frex", "pairs")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TopicQuality:
    """How coherent, exclusive and diverse components are; higher is better for all but perplexity.

    No value is NaN. A component with fewer than two positive features has no pair, coherence 0, and
    no part in the mean.

    Attributes
    ----------
    npmi, umass : ndarray of shape (K,)
        Coherence: whether the leading features occur in the same samples. NPMI is 1 if they always
        occur together, 0 if they are independent, and at least −1. UMass is at most 0.
    pairs : ndarray of shape (K,)
        Number of pairs of leading features.
    exclusivity, frex : ndarray of shape (K,)
        Means over the leading features: of the share of the component in the sum of the
        probabilities over the components, from 1/K to 1; and of the FREX score, from 0 to 1.
    diversity : float
        Share of different features among the leading ones of all components.
    effective : ndarray of shape (n_samples,)
        Effective number of components of each sample: the exponential of the entropy of its
        shares, from 1 to K; 0 for a sample without counts.
    perplexity : float or None
        Number of equally probable features among which it is as hard to guess a held-out count;
        lower is better. None: not computed.
    top : tuple of ndarray
        Positions of the leading features of each component.
    components : tuple of str
        Names of the components.
    features : tuple of str or None
        Names of the features.
    n_top : int
        Largest number of leading features.
    """

    npmi: Numbers
    umass: Numbers
    pairs: NDArray[np.int64]
    exclusivity: Numbers
    frex: Numbers
    diversity: float
    effective: Numbers
    top: tuple[NDArray[np.intp], ...]
    components: tuple[str, ...]
    features: tuple[str, ...] | None
    n_top: int
    perplexity: float | None = None

    def with_perplexity(self, perplexity: float | None) -> TopicQuality:
        """Return the same measures with a perplexity."""
        return replace(self, perplexity=perplexity)

    @property
    def mean_npmi(self) -> float:
        """The mean NPMI of the components that have at least one pair; 0 if none has."""
        return mean_npmi(self.npmi, self.pairs)

    @property
    def mean_effective(self) -> float:
        """The mean effective number of components of the samples with counts; 0 without any."""
        return float(self._effective().mean())

    def effective_quantiles(self) -> dict[float, float]:
        """Return quantiles of the effective number of components, over samples with counts."""
        values = np.quantile(self._effective(), QUANTILES)
        return dict(zip(QUANTILES, map(float, values), strict=True))

    def _effective(self) -> Numbers:
        positive = self.effective[self.effective > 0]
        return positive if len(positive) else np.zeros(1)

    def top_features(self, n: int | None = None) -> list[list[str]]:
        """Return the names of the leading features, or their numbers from 1 without names."""
        names = self.features
        return [[str(f + 1) if names is None else names[f] for f in top[:n]] for top in self.top]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each component."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        columns: dict[str, Any] = {name: getattr(self, name) for name in MEASURES}
        columns["top features"] = [", ".join(names) for names in self.top_features()]
        return pd.DataFrame(columns, index=pd.Index(self.components, name="component"))

    def __repr__(self) -> str:
        K, n = len(self.components), len(self.effective)
        lines = [
            f"Quality of {K} components, {n:,} samples, {self.n_top} leading features",
            f"  mean NPMI {self.mean_npmi:.3f}, diversity {self.diversity:.2f}, "
            f"{self.effective_quantiles()[0.5]:.1f} components in the median sample"
            + (f", perplexity {self.perplexity:.4g}" if self.perplexity is not None else ""),
        ]
        names = self.top_features(MAX_LISTED)
        for k in range(min(K, MAX_COMPONENTS)):
            lines.append(
                f"  {self.components[k]}: NPMI {self.npmi[k]:.3f}, UMass {self.umass[k]:.2f}, "
                f"exclusivity {self.exclusivity[k]:.2f}; {', '.join(names[k])}"
            )
        if K > MAX_COMPONENTS:
            lines.append(f"  and {K - MAX_COMPONENTS} more components")
        return "\n".join(lines)
