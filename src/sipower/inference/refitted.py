# SPDX-License-Identifier: BSD-3-Clause
"""`Refit`: exposures to known components, their uncertainty and the goodness of fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Refit"]

Float = NDArray[np.float64]
MAX_LISTED = 10  # components that `repr` names
POOR = 0.01  # p-value below which `repr` counts a sample as poorly explained


@dataclass(frozen=True, eq=False, kw_only=True)
class Refit:
    """The exposures of samples to known components.

    Attributes
    ----------
    exposures : ndarray of shape (samples, components)
        Expected counts of each sample by each component.
    support : ndarray of bool, (samples, components)
        Components that each sample has.
    lower, upper : ndarray of shape (samples, components) or None
        Intervals with the confidence `confidence`; None: not computed.
    log_likelihood : ndarray of shape (samples,)
        Poisson log-likelihoods.
    deviance, p_value : ndarray of shape (samples,)
        Deviances, and the probability of a larger one if the components explain the sample. Small
        values mean that a component is missing, or that the counts vary more than Poisson counts.
    left_out : ndarray of shape (samples,)
        Counts of features that no component has.
    components, samples : tuple of str
        Names of components and samples; `samples` is None if the data have none.
    sparse, level, confidence
        The arguments of `refit`.
    remarks : tuple of str
        Sentences about features that were left out.
    """

    exposures: Float
    support: NDArray[np.bool_]
    lower: Float | None
    upper: Float | None
    log_likelihood: Float
    deviance: Float
    p_value: Float
    left_out: Float
    components: tuple[str, ...]
    samples: tuple[str, ...] | None
    sparse: bool
    level: float
    confidence: float
    remarks: tuple[str, ...] = ()

    @property
    def shares(self) -> Float:
        """Exposures as shares of their sum, (samples, components); zero for an empty sample."""
        sums = self.exposures.sum(axis=1, keepdims=True)
        return np.asarray(
            np.divide(self.exposures, sums, out=np.zeros(self.exposures.shape), where=sums > 0)
        )

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names of the samples, or numbers from 1."""
        return self.samples or tuple(str(i + 1) for i in range(len(self.exposures)))

    def to_frames(self) -> dict[str, Any]:
        """Return pandas DataFrames with a row for each sample.

        "exposures", "shares" and, with intervals, "lower" and "upper" have a column for each
        component; "samples" has the number of components and the goodness of fit.
        """
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        tables = {"exposures": self.exposures, "shares": self.shares}
        if self.lower is not None and self.upper is not None:
            tables |= {"lower": self.lower, "upper": self.upper}
        index = pd.Index(self.sample_names, name="name")
        frames = {
            name: pd.DataFrame(table, index, list(self.components))
            for name, table in tables.items()
        }
        columns = ("deviance", "p_value", "log_likelihood", "left_out")
        about = {"components": self.support.sum(axis=1)}
        about |= {name: getattr(self, name) for name in columns}
        return frames | {"samples": pd.DataFrame(about, index)}

    def __repr__(self) -> str:
        samples, rank = self.exposures.shape
        poor = int((self.p_value < POOR).sum())
        how = f"selected at the level {self.level:g}" if self.sparse else "all fitted"
        lines = [
            f"Refit of {_samples(samples)} to {rank} components, {how}: "
            f"{self.support.sum() / max(samples, 1):.1f} per sample. "
            f"{_samples(poor)} {'is' if poor == 1 else 'are'} explained poorly (p < {POOR:g})."
        ]
        totals, counts = self.exposures.sum(axis=0), self.support.sum(axis=0)
        order = np.argsort(-totals, kind="stable")[:MAX_LISTED]
        share = totals / max(totals.sum(), np.finfo(float).tiny)
        lines += [
            f"  {self.components[k]}: {share[k]:.1%} of the counts, in {_samples(int(counts[k]))}"
            for k in order
            if counts[k]
        ]
        unlisted = int((counts > 0).sum()) - (len(lines) - 1)
        return "\n".join([*lines, f"  and {unlisted} other components"] if unlisted else lines)


def _samples(count: int) -> str:
    return "1 sample" if count == 1 else f"{count:,} samples"
