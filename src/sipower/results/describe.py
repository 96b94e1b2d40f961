# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of factors that do not depend on their scale or order.

V ≈ W H is read as a probability model: a count belongs to component k with probability size_k, and
then to feature f with probability profile_kf. Components are numbered from 1 in decreasing order of
size, whatever their order in W and H.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy

from sipower.kernels import Array
from sipower.results.run import Run

__all__ = [
    "Description",
    "choose_evenly",
    "convergence",
    "correlations",
    "describe",
    "largest",
    "order_by_similarity",
    "readable",
    "total",
]

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]

# Bidirectional control characters reorder the text around them, so one name could look like
# another.
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True, eq=False)
class Description:
    """The sizes, profiles and memberships of the components of a factorisation.

    Index 0 along every axis of components is component "1", the largest.

    Parameters
    ----------
    order
        Position of each component in the columns of W and the rows of H, (K,).
    sizes
        Share of all counts that a component explains, (K,); they sum to 1.
    profiles
        p(feature | component), (K, features); zero for a component of size 0.
    overall
        p(feature), (features,): the average of the profiles, weighted by size.
    memberships
        Share of a sample's counts that a component explains, (samples, K); zero for a zero row.
    """

    order: Indices
    sizes: Numbers
    profiles: Numbers
    overall: Numbers
    memberships: Numbers

    def lift(self) -> Numbers:
        """Return p(feature | component) / p(feature), (K, features); 0 where both are 0."""
        return _divide(self.profiles, self.overall)

    def distinctiveness(self) -> Numbers:
        """Return p(feature | component) · log2(lift), in bits, (K, features).

        It is large for features that are frequent in a component and less frequent elsewhere;
        the lift alone would rank the rarest features first. Each row sums to the KL divergence
        of the component's profile from the overall profile.
        """
        lift = self.lift()
        return self.profiles * np.log2(lift, where=lift > 0, out=np.zeros_like(lift))

    def leading_samples(self) -> Indices:
        """Return the number of samples in which each component is the largest, (K,)."""
        leaders = self.memberships.argmax(axis=1)[self.memberships.any(axis=1)]
        return np.bincount(leaders, minlength=len(self.sizes))


def describe(W: Array, H: Array) -> Description:
    """Describe the factors W (samples, K) and H (K, features) as probabilities.

    Components are numbered by their size in this W; with other samples the order may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.results.describe import describe
    >>> describe(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).sizes
    array([0.75, 0.25])
    """
    for name, factor in (("W", W), ("H", H)):
        wrong = np.argwhere(~(np.isfinite(factor) & (factor >= 0)))
        if len(wrong):
            row, column = wrong[0]
            value = factor[row, column]
            raise ValueError(
                f"{name} has {value} in row {row}, column {column} (counted from 0): "
                "expected finite, non-negative values."
            )
    mass = H.sum(axis=1, dtype=np.float64)
    counts = W.sum(axis=0, dtype=np.float64) * mass
    if not counts.any():
        raise ValueError("`W` and `H` must have a positive product, got zero everywhere.")
    order = np.argsort(-counts, kind="stable")
    sizes = counts[order] / counts.sum()
    profiles = _divide(H[order], np.where(sizes > 0, mass[order], 0)[:, np.newaxis])
    explained = W[:, order] * mass[order]
    memberships = _divide(explained, explained.sum(axis=1, keepdims=True))
    return Description(order, sizes, profiles, sizes @ profiles, memberships)


def _divide(above: Array, below: Array) -> Numbers:
    """Return the quotient, or 0 where the divisor is 0."""
    zero = np.zeros(np.broadcast_shapes(above.shape, below.shape))
    return np.divide(above, below, where=np.broadcast_to(below > 0, zero.shape), out=zero)


def convergence(run: Run) -> dict[str, Numbers]:
    """Return "seconds", "passes", "excess" and "gap" of the trace, with NaN if not evaluated.

    The excess is the objective minus its lowest value. Gap and excess are relative to the sum of
    the counts. At the lowest value the excess is NaN instead of 0, which has no logarithm.
    """
    seconds, passes, objective, gap = (
        np.array([getattr(record, name) for record in run.trace], dtype=np.float64)
        for name in ("seconds", "passes", "objective", "gap")
    )
    finite = objective[np.isfinite(objective)]
    excess = (objective - finite.min()) / total(run) if len(finite) else objective
    excess = np.where(excess > 0, excess, np.nan)
    return {"seconds": seconds, "passes": passes, "excess": excess, "gap": gap}


def total(run: Run) -> float:
    """Return the sum of the counts, or of W H if it is not recorded; both agree at the minimum."""
    recorded = (run.facts.get("input") or {}).get("total")
    if recorded:
        return float(recorded)
    return float(run.W.sum(axis=0, dtype=np.float64) @ run.H.sum(axis=1, dtype=np.float64))


def correlations(columns: Array) -> Numbers:
    """Return the Pearson correlations of the columns; NaN for a column that does not vary.

    Applied to the memberships, they show which components share samples; applied to the transposed
    profiles, which components share features.
    """
    centred: Numbers = columns - columns.mean(axis=0, dtype=np.float64)
    norms = np.linalg.norm(centred, axis=0)
    varies = norms > 1e-12 * np.linalg.norm(columns, axis=0)  # above rounding error
    scaled: Numbers = centred / np.where(varies, norms, np.nan)
    return (scaled.T @ scaled).clip(-1, 1)


def largest(values: Array, n: int) -> Indices:
    """Return the positions of the n largest positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:n]
    return order[values[order] > 0]


def choose_evenly(count: int, max_count: int) -> Indices:
    """Return at most `max_count` evenly spaced numbers of ``range(count)``, with both ends."""
    return np.linspace(0, count - 1, min(count, max_count)).round().astype(np.intp)


def order_by_similarity(memberships: Array) -> Indices:
    """Order samples by the leaves of Ward's clustering tree, so that similar ones are adjacent.

    The distance is the Hellinger distance, between square roots of probabilities. Time and memory
    grow with the square of the number of samples, so use a few thousand samples at most.
    """
    if len(memberships) < 3:
        return np.arange(len(memberships))
    tree: Any = hierarchy.linkage(np.sqrt(memberships), method="ward")
    return np.asarray(hierarchy.leaves_list(tree), dtype=np.intp)


def readable(name: str, max_length: int) -> str:
    """Return a name on one line, with symbols for unprintable characters, shortened with "…"."""
    text = "".join(map(_sign, name[:max_length]))
    return text if len(name) <= max_length else text[:-1] + "…"


def _sign(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))  # Unicode's symbols for control characters
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return "\ufffd" if hidden or character in DIRECTION_MARKS else character
