# SPDX-License-Identifier: BSD-3-Clause
"""Factors described by numbers that do not depend on their scale or order.

V ≈ W H reads as probabilities: a count comes from component k with probability size_k, then from
feature f with probability profile_kf. Components are named by number from 1 in order of size:
"1" is the largest, wherever it is in W and H.
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

# Bidirectional control characters reorder the text around them, so that a name could be displayed
# as another.
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@dataclass(frozen=True, eq=False)
class Description:
    """Sizes, profiles and memberships; entry 0 along every axis of components is component "1".

    Parameters
    ----------
    order
        Where each component stands in the columns of W and the rows of H, (K,).
    sizes
        Share of all counts that a component explains, (K,); they sum to 1.
    profiles
        p(feature | component), (K, features); zero for a component of size 0.
    overall
        p(feature), (features,): the profiles averaged by size.
    memberships
        Share of a sample's counts that a component explains, (samples, K); zero for a zero row.
    """

    order: Indices
    sizes: Numbers
    profiles: Numbers
    overall: Numbers
    memberships: Numbers

    def lift(self) -> Numbers:
        """p(feature | component) / p(feature), (K, features); 0 where both are 0."""
        return _divide(self.profiles, self.overall)

    def distinctiveness(self) -> Numbers:
        """p(feature | component) · log2(lift), in bits, (K, features).

        It is large for features that are frequent in a component and more so than elsewhere;
        the lift alone would put the rarest ones first. A row sums to the information that the
        component gives about the feature, its KL divergence from the overall profile.
        """
        lift = self.lift()
        return self.profiles * np.log2(lift, where=lift > 0, out=np.zeros_like(lift))

    def leading_samples(self) -> Indices:
        """The number of samples in which each component is the largest, (K,)."""
        leaders = self.memberships.argmax(axis=1)[self.memberships.any(axis=1)]
        return np.bincount(leaders, minlength=len(self.sizes))


def describe(W: Array, H: Array) -> Description:
    """Read the factors (samples, K) and (K, features) as probabilities.

    Components are numbered by size in this W; other samples may order them differently.

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
                f"{name} has {value} in row {row}, column {column} (from 0): "
                "expected finite values of at least 0."
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
    """Divide; 0 where the divisor is 0."""
    zero = np.zeros(np.broadcast_shapes(above.shape, below.shape))
    return np.divide(above, below, where=np.broadcast_to(below > 0, zero.shape), out=zero)


def convergence(run: Run) -> dict[str, Numbers]:
    """Return the trace: "seconds", "passes", "excess" and "gap", NaN where nothing was evaluated.

    Gap and excess, the objective above its lowest value, are shares of the sum of the counts. The
    lowest value itself has no logarithm: its excess is NaN.
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
    """The sum of the counts or, if it is not recorded, of W H; at the minimum both are equal."""
    recorded = (run.facts.get("input") or {}).get("total")
    if recorded:
        return float(recorded)
    return float(run.W.sum(axis=0, dtype=np.float64) @ run.H.sum(axis=1, dtype=np.float64))


def correlations(columns: Array) -> Numbers:
    """Pearson's correlations of the columns; NaN for a column that does not vary.

    Of the memberships they say which components share samples, of the transposed profiles which
    ones share features.
    """
    centred: Numbers = columns - columns.mean(axis=0, dtype=np.float64)
    norms = np.linalg.norm(centred, axis=0)
    varies = norms > 1e-12 * np.linalg.norm(columns, axis=0)  # above the rounding of the mean
    scaled: Numbers = centred / np.where(varies, norms, np.nan)
    return (scaled.T @ scaled).clip(-1, 1)


def largest(values: Array, n: int) -> Indices:
    """Return the positions of the n largest positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:n]
    return order[values[order] > 0]


def choose_evenly(count: int, max_count: int) -> Indices:
    """Return at most `max_count` numbers of ``range(count)``, evenly spaced, with both ends."""
    return np.linspace(0, count - 1, min(count, max_count)).round().astype(np.intp)


def order_by_similarity(memberships: Array) -> Indices:
    """Order samples so that similar ones are neighbours: the leaves of Ward's tree.

    Distances are Hellinger's, those between square roots of probabilities. Time and memory grow
    with the square of the number of samples: a few thousand at most.
    """
    if len(memberships) < 3:
        return np.arange(len(memberships))
    tree: Any = hierarchy.linkage(np.sqrt(memberships), method="ward")
    return np.asarray(hierarchy.leaves_list(tree), dtype=np.intp)


def readable(name: str, max_length: int) -> str:
    """Show a name on one line: a sign for what cannot be printed, "…" for the end of a long one."""
    text = "".join(map(_sign, name[:max_length]))
    return text if len(name) <= max_length else text[:-1] + "…"


def _sign(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))  # Unicode's pictures of control characters
    hidden = unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
    return "\ufffd" if hidden or character in DIRECTION_MARKS else character
