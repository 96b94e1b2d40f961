# SPDX-License-Identifier: BSD-3-Clause
"""`merge_tree`: families of components, from the bounds on the increase of D by mergers.

The pair of components whose merger has the smallest bound is merged, until one is left; see
`sipower.nmf.merging` for the bound. At a minimum in W and in H, the expected counts of component k
have the row sums s_k u_k and the column sums s_k v_k. The bounds then hold for the divergence from
the data, whatever these are: D of the merged factors is at most D of the fit plus the sum of the
bounds of the mergers made.

Surplus components of a fit follow noise. The gain of a component that follows the noise of n × m
independent Poisson counts is about half the square of the largest singular value of their
standardised residuals, ½ (√n + √m)². Bounds below this are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array
from sipower.nmf.merging import Merging

__all__ = ["MergeTree", "merge_tree"]

Numbers = NDArray[np.float64]
MIN_JUMP = 1.75  # ratio of a bound and all before it; without a true jump it was at most 1.6


@dataclass(frozen=True, eq=False)
class MergeTree:
    """The mergers that lead from the components of a fit to a single one.

    Parameters
    ----------
    mergers
        The two nodes of each merger, (K − 1) pairs. Nodes 0 to K − 1 are the components of the fit,
        node K + i is the result of merger i.
    bounds
        Bound on the increase of D by each merger, (K − 1,), in nats.
    masses
        Counts that each component explains, (K,).
    noise
        Bound that a component which follows noise can have; smaller ones are not compared.
    """

    mergers: tuple[tuple[int, int], ...]
    bounds: Numbers
    masses: Numbers
    noise: float = 0.0

    def __post_init__(self) -> None:
        pairs = tuple((int(a), int(b)) for a, b in self.mergers)
        object.__setattr__(self, "mergers", pairs)

    @property
    def rank(self) -> int:
        """The number of components of the fit."""
        return len(self.masses)

    @property
    def relative_bounds(self) -> Numbers:
        """The bounds in nats per count, (K − 1,)."""
        return self.bounds / max(float(self.masses.sum()), np.finfo(float).tiny)

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """The components below every node, sorted, (2 K − 1) tuples."""
        below: list[tuple[int, ...]] = [(k,) for k in range(self.rank)]
        for a, b in self.mergers:
            below.append(tuple(sorted(below[a] + below[b])))
        return tuple(below)

    def families(self, k: int) -> tuple[tuple[int, ...], ...]:
        """Return the components of each of k families, in order of their first component."""
        if not 1 <= k <= self.rank:
            raise ValueError(f"`k` must be an integer from 1 to {self.rank}, got {k}.")
        alive = set(range(self.rank))
        for i, pair in enumerate(self.mergers[: self.rank - k]):
            alive -= set(pair)
            alive.add(self.rank + i)
        return tuple(sorted(self.members[node] for node in alive))

    def cut(self, k: int) -> NDArray[np.int64]:
        """Return the family, 0 to k − 1, of each component if there are k families, (K,)."""
        labels = np.empty(self.rank, np.int64)
        for family, members in enumerate(self.families(k)):
            labels[list(members)] = family
        return labels

    @property
    def labels(self) -> NDArray[np.int64]:
        """The family of each component at every rank, (K, K); row k − 1 is `cut(k)`."""
        return np.array([self.cut(k) for k in range(1, self.rank + 1)])

    @property
    def jumps(self) -> Numbers:
        """The ratio of each bound to the largest one before it, at least 1, (K − 1,).

        Bounds below `noise` count as `noise`. The first merger has none before it, and gets 1.
        """
        height = np.maximum(np.maximum.accumulate(self.bounds), self.noise)
        before = np.maximum(height[:-1], np.finfo(float).tiny)
        return np.concatenate([np.ones(min(1, len(height))), np.maximum(height[1:] / before, 1.0)])

    @property
    def suggested_rank(self) -> int | None:
        """The number of families before the largest jump of the bound; None without a clear one.

        A jump is clear if a bound is at least 1.75 times all before it. A fit without surplus
        components has no such jump in general.
        """
        jumps = self.jumps
        if not len(jumps) or jumps.max() < MIN_JUMP:
            return None
        return self.rank - int(np.argmax(jumps))

    def is_sound(self) -> bool:
        """Return whether the mergers make a tree and all shapes are consistent."""
        count = len(self.mergers)
        nodes = [node for pair in self.mergers for node in pair]
        return (
            len(set(nodes)) == len(nodes)
            and all(0 <= node < self.rank + i for i, p in enumerate(self.mergers) for node in p)
            and self.bounds.shape == (count,)
            and self.masses.shape == (count + 1,)
        )

    def __str__(self) -> str:
        if self.suggested_rank is None:
            return (
                f"The bounds on the increase of D by mergers of {self.rank} components have no "
                f"clear jump (at most {self.jumps.max(initial=1.0):.2f} times those before)."
            )
        families = self.families(self.suggested_rank)
        larger = [members for members in families if len(members) > 1]
        return (
            f"{self.rank} components form {len(families)} families, {len(larger)} of more than one "
            f"component; the next merger has a bound {self.jumps.max():.1f} times as large as all "
            "before it."
        )


def merge_tree(W: Any, H: Any) -> MergeTree:
    """Return which components are merged into one at every smaller rank.

    Parameters
    ----------
    W, H
        Factors of a fit, (n_samples, K) and (K, n_features).

    Examples
    --------
    >>> from sipower import KLNMF
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.selection import merge_tree
    >>> V = poisson_topics(300, 200, 4, seed=0)
    >>> model = KLNMF(8, random_state=0)
    >>> tree = merge_tree(model.fit_transform(V), model.components_)
    >>> tree.suggested_rank
    4
    """
    W, H = as_factors(W, H)
    merging = Merging(W, H.T, max_items=None)
    masses, rank = merging.mass.copy(), merging.rank
    nodes = list(range(rank))
    mergers: list[tuple[int, int]] = []
    bounds: list[float] = []
    while merging.rank > 1:
        k, l, bound = merging.merge_cheapest()  # noqa: E741
        first, second = sorted((nodes[k], nodes.pop(l)))
        mergers.append((first, second))
        nodes[k] = rank + len(bounds)
        bounds.append(max(bound, 0.0))  # rounding
    noise = 0.5 * (np.sqrt(len(W)) + np.sqrt(H.shape[1])) ** 2
    return MergeTree(tuple(mergers), np.array(bounds), masses, float(noise))


def as_factors(W: Any, H: Any) -> tuple[Array, Array]:
    """Return W and H as arrays; raise an error if their shapes or values are not valid."""
    W, H = np.asarray(W), np.asarray(H)
    if W.ndim != 2 or H.ndim != 2 or W.shape[1] != len(H) or not len(H):
        raise ValueError(
            f"`W` and `H` must have shapes (n, K) and (K, m), got {W.shape} and {H.shape}."
        )
    for name, factor in (("W", W), ("H", H)):
        if factor.dtype.kind not in "fiu" or not (np.isfinite(factor) & (factor >= 0)).all():
            raise ValueError(f"`{name}` must be finite and non-negative.")
    return W, H
