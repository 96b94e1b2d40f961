# SPDX-License-Identifier: BSD-3-Clause
"""Repeated mergers of the pair of components whose merger raises D least.

Component k is s_k u_k v_kᵀ: a mass s_k, spread by u_k over the samples and v_k over the features.
Merging k and l into (s_k + s_l) u vᵀ, where u and v are the weighted means, raises the KL
divergence by no more than

    min over F in (u, v) of  (s_k + s_l) E(F) − s_k E(F_k) − s_l E(F_l),   E the entropy,

because the increase is at most the mutual information of sample and feature within the pair. This
is at most the mutual information of sample and component, and at most that of feature and
component.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from sipower.kernels import Array

__all__ = ["Merging", "merge_components"]

Numbers = NDArray[np.float64]
FLOOR = 1e-6  # times the mean: added to all entries, because some rules cannot change a zero
MAX_ITEMS = 2048  # increases are estimated from at most this many evenly spaced items of a factor


def merge_components(W: Array, H: Array, rank: int) -> tuple[Numbers, Numbers]:
    """Merge components until `rank` of them are left.

    Parameters
    ----------
    W, H
        Factors (n, K) and (m, K).
    rank
        Number of components to keep, at most K.

    Returns
    -------
    W, H
        Factors (n, rank) and (m, rank), all entries positive.
    """
    merging = Merging(W, H)
    while merging.rank > rank:
        merging.merge_cheapest()
    return merging.factors()


class Merging:
    """Components that are merged pair by pair.

    Parameters
    ----------
    W, H
        Factors (n, K) and (m, K).
    max_items
        Number of items of a factor that the bounds are estimated from; None uses all, and then
        they are bounds.
    """

    def __init__(self, W: Array, H: Array, max_items: int | None = MAX_ITEMS) -> None:
        self.sides = [_Side(np.array(F.T, np.float64), max_items) for F in (W, H)]
        sums = [side.masses.sum(axis=1) for side in self.sides]
        self.mass = sums[0] * sums[1]
        for side in self.sides:  # in both factors, the entries of component k sum to mass[k]
            side.set_mass(self.mass)
        self.costs = np.stack([_costs(self.sides, k) for k in range(len(self.mass))])

    @property
    def rank(self) -> int:
        """The number of components that are left."""
        return len(self.costs)

    def merge_cheapest(self) -> tuple[int, int, float]:
        """Merge the pair k < l with the smallest bound; return k, l and the bound.

        Component k becomes the merged one, and those after l move up by one place.
        """
        k, l = sorted(int(i) for i in np.unravel_index(np.argmin(self.costs), self.costs.shape))  # noqa: E741
        bound = float(self.costs[k, l])
        self.merge(k, l)
        return k, l, bound

    def merge(self, k: int, l: int) -> None:  # noqa: E741
        """Merge components k < l."""
        for side in self.sides:
            side.merge(k, l)
        self.costs = np.delete(np.delete(self.costs, l, 0), l, 1)
        self.costs[k] = self.costs[:, k] = _costs(self.sides, k)

    def factors(self) -> tuple[Numbers, Numbers]:
        """Return the factors (n, rank) and (m, rank), all entries positive."""
        u, v = (side.masses for side in self.sides)
        v = v / np.maximum(v.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return u.T + FLOOR * u.mean(), v.T + FLOOR * v.mean()


class _Side:
    """One factor as masses of the components, (K, items), and the entropies s_k E(F_k)."""

    def __init__(self, masses: Numbers, max_items: int | None) -> None:
        self.masses = masses
        self.stride = 1 if max_items is None else -(-masses.shape[1] // max_items)

    def set_mass(self, mass: Numbers) -> None:
        sums = self.masses.sum(axis=1)
        factor = np.divide(mass, sums, out=np.zeros_like(mass), where=sums > 0)
        self.masses *= factor[:, None]
        self.entropy = _weighted_entropy(self.masses[:, :: self.stride])

    def merge(self, k: int, l: int) -> None:  # noqa: E741
        self.masses[k] += self.masses[l]
        self.masses = np.delete(self.masses, l, 0)
        self.entropy = np.delete(self.entropy, l)
        self.entropy[k] = _weighted_entropy(self.masses[k : k + 1, :: self.stride])[0]

    def costs(self, k: int) -> Numbers:
        masses = self.masses[:, :: self.stride]
        joint = _weighted_entropy(masses + masses[k])
        return np.asarray((joint - self.entropy - self.entropy[k]) * self.stride)


def _weighted_entropy(masses: Numbers) -> Numbers:
    """Return s E of each row: s log s − Σ_i m_i log m_i, where s is the sum of the row."""
    total = masses.sum(axis=1)
    logarithms = np.log(masses, out=np.zeros_like(masses), where=masses > 0)
    return np.asarray(xlogy(total, total) - (masses * logarithms).sum(axis=1))


def _costs(sides: list[_Side], k: int) -> Numbers:
    cost = np.minimum(sides[0].costs(k), sides[1].costs(k))
    cost[k] = np.inf
    return cost
