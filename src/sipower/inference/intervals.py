# SPDX-License-Identifier: BSD-3-Clause
"""`Bootstrap`: intervals of W and H and the stability of components, from saved replicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array
from sipower.selection.saved_fits import SavedFits

__all__ = ["Bootstrap", "Interval", "estimate_interval", "part_shapes", "split_factor"]

Numbers = NDArray[np.float64]
NUMBERS_PER_PART = 2**16  # of a factor in one array of a saved replicate
LOW = 0.05  # the quantile of the stability that `Bootstrap` reports


class Interval(NamedTuple):
    """A factor with its bootstrap intervals, each of its own shape.

    Attributes
    ----------
    value
        The factor of the model.
    lower, upper
        Ends of the intervals: quantiles of the replicates, moved apart where components can be
        exchanged.
    sd
        Standard deviations over the replicates.
    """

    value: Array
    lower: Array
    upper: Array
    sd: Array

    @property
    def T(self) -> Interval:  # noqa: N802
        """The same for the transpose of the factor."""
        return Interval(*(np.ascontiguousarray(part.T) for part in self))

    def widen(self, moves: tuple[Numbers, Numbers]) -> Interval:
        """Return the intervals with their ends moved by at most 0, and by at least 0."""
        lower, upper = self.lower + moves[0], self.upper + moves[1]
        dtype = self.value.dtype
        return self._replace(lower=np.maximum(lower, 0).astype(dtype), upper=upper.astype(dtype))


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Intervals of W and H and the stability of components, from replicates of a fit.

    Parameters
    ----------
    W
        Weights in counts, (n_samples, K): the sum of a row is the expected sum of the sample.
    H
        Profiles of the components, (K, n_features), which sum to 1.
    level
        Level of the intervals.
    cosines
        Cosine of each component with its partner in every replicate, (n, K).
    exchange
        Shares of the components that can be exchanged, (K, K): row k says how much more of each
        other component the profile of component k may contain without the data contradicting it.
    widening
        Widths of the intervals of each profile, added up, relative to those of the replicates
        alone, (K,); 1 where no component can be exchanged.
    divergences, gaps, statuses
        KL divergence and certified gap of each replicate, and how it ended.
    sample_names, feature_names, component_names
        Names, or None; components always have one.
    """

    W: Interval
    H: Interval
    level: float
    cosines: Numbers
    exchange: Numbers
    widening: Numbers
    divergences: Numbers
    gaps: Numbers
    statuses: tuple[str, ...]
    sample_names: Array | None
    feature_names: Array | None
    component_names: Array

    @property
    def n(self) -> int:
        """The number of replicates."""
        return len(self.statuses)

    @property
    def stability(self) -> Numbers:
        """The mean cosine of each component with its partners, (K,); 1 is best."""
        return np.asarray(self.cosines.mean(axis=0))

    @property
    def low_stability(self) -> Numbers:
        """The 5 % quantile of the cosines of each component, (K,)."""
        return np.asarray(np.quantile(self.cosines, LOW, axis=0))

    @property
    def n_converged(self) -> int:
        """The number of replicates that have converged."""
        return self.statuses.count("converged")

    def __repr__(self) -> str:
        (samples, K), features = self.W.value.shape, self.H.value.shape[1]
        stability = f"{self.stability.min():.3f} to {self.stability.max():.3f}"
        return (
            f"Bootstrap(n={self.n}, level={self.level:g}, {samples} samples, {features} features, "
            f"{K} components, stability {stability})"
        )

    def summary(self) -> str:
        """Return a table of the components: counts, stability, error and exchange of the profile.

        The error is the root of the summed variances of the profile, relative to its length. The
        exchange is the largest share of another component that the profile may contain, and the
        last column says how many times wider its intervals are for that.
        """
        lines = [
            f"{self.n} replicates ({self.n_converged} converged), {100 * self.level:g} % intervals",
            f"{'component':>12} {'counts':>12} {'stability':>10} {'5 %':>6} {'error':>7} "
            f"{'exchange':>8} {'wider':>6}",
        ]
        counts = self.W.value.sum(axis=0, dtype=np.float64)
        length = np.sqrt(np.square(self.H.value, dtype=np.float64).sum(axis=1))
        error = np.sqrt(np.square(self.H.sd, dtype=np.float64).sum(axis=1))
        error = np.divide(error, length, out=np.zeros_like(error), where=length > 0)
        exchange = self.exchange.max(axis=1)
        for k, name in enumerate(self.component_names):
            lines.append(
                f"{name:>12} {counts[k]:>12.0f} {self.stability[k]:>10.3f} "
                f"{self.low_stability[k]:>6.3f} {error[k]:>7.3f} {exchange[k]:>8.3f} "
                f"{self.widening[k]:>6.2f}"
            )
        return "\n".join(lines)

    def to_frames(self) -> dict[str, Any]:
        """Return three DataFrames: "W", "H" and "stability". It needs pandas.

        "W" has one row for each sample and component and "H" one for each component and feature,
        with the columns value, lower, upper and sd. Samples and features without names are
        numbered from 0.
        """
        import pandas as pd  # noqa: PLC0415 - optional

        names = {"sample": self.sample_names, "feature": self.feature_names}
        names["component"] = self.component_names
        frames = {}
        for key, axes in (("W", ("sample", "component")), ("H", ("component", "feature"))):
            parts: Interval = getattr(self, key)
            levels = [
                range(size) if names[axis] is None else names[axis]
                for axis, size in zip(axes, parts.value.shape, strict=True)
            ]
            index = pd.MultiIndex.from_product(levels, names=axes)
            columns = {name: part.ravel() for name, part in parts._asdict().items()}
            frames[key] = pd.DataFrame(columns, index=index).reset_index()
        stability = {"component": names["component"], "mean": self.stability}
        stability["5 % quantile"] = self.low_stability
        stability["exchange"] = self.exchange.max(axis=1)
        stability["widening"] = self.widening
        return frames | {"stability": pd.DataFrame(stability)}


# ---- factors in parts ------------------------------------------------------------------------


def _parts(name: str, items: int, K: int) -> Iterator[tuple[str, slice]]:
    """Yield the name and the items of every part of a factor (items, K)."""
    at_once = max(NUMBERS_PER_PART // K, 1)
    for begin in range(0, items, at_once):
        yield f"{name}{begin // at_once}", slice(begin, min(begin + at_once, items))


def part_shapes(name: str, items: int, K: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parts of a factor (items, K)."""
    return {part: (at.stop - at.start, K) for part, at in _parts(name, items, K)}


def split_factor(name: str, factor: Array) -> dict[str, Array]:
    """Return the parts of a factor (items, K), by name."""
    return {part: factor[at] for part, at in _parts(name, *factor.shape)}


def estimate_interval(
    name: str, value: Array, saved: SavedFits, replicates: list[str], level: float
) -> Interval:
    """Return the intervals of a factor (items, K) whose replicates were saved in parts.

    The same items of all replicates are in memory at one time.
    """
    interval = Interval(value, *(np.empty_like(value) for _ in range(3)))
    ends = [(1 - level) / 2, (1 + level) / 2]
    for part, at in _parts(name, *value.shape):
        stack = np.stack([saved.read(replicate, part) for replicate in replicates])
        # A further replicate would be below the "weibull" quantile at p with probability p.
        quantiles = np.quantile(stack, ends, axis=0, method="weibull")
        interval.lower[at], interval.upper[at] = quantiles
        interval.sd[at] = stack.std(axis=0, ddof=1, dtype=np.float64)
    return interval
