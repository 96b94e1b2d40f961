# SPDX-License-Identifier: BSD-3-Clause
"""`component_flows`: how the components of fits with different K split and merge.

Between two fits, the flow from component a to component b is the number of counts that both explain
(`expected_counts`). At minima of D, the flows of a component sum to the counts that it explains: no
count is lost, and nothing has to be matched.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sipower.data.names import arrange, data_items
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators import KLNMF
from sipower.kernels import Array
from sipower.selection.expected_counts import shared_counts
from sipower.selection.merge_tree import as_factors

__all__ = ["ComponentFlows", "component_flows"]

Numbers = NDArray[np.float64]
MIN_SHARE = 0.25  # of a component that splits, in each part


@dataclass(frozen=True, eq=False)
class ComponentFlows:
    """The counts that components of consecutive fits share.

    Parameters
    ----------
    ranks
        Numbers of components of the fits, ascending.
    flows
        For each pair of consecutive fits the counts that two components share, (K, K'), in float64.
    """

    ranks: tuple[int, ...]
    flows: tuple[Numbers, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "flows", tuple(np.array(table, float) for table in self.flows))

    def masses(self, fit: int) -> Numbers:
        """Return the counts that the components of a fit explain, (K,)."""
        is_last = fit == len(self.flows)
        return np.asarray(self.flows[-1].sum(axis=0) if is_last else self._table(fit).sum(axis=1))

    def parents(self, fit: int) -> NDArray[np.int64]:
        """Return for each component of fit + 1 the one of `fit` that it shares most counts with."""
        return np.asarray(self._table(fit).argmax(axis=0), np.int64)

    def children(self, fit: int) -> tuple[tuple[int, ...], ...]:
        """Return the components of fit + 1 whose parent is each component of `fit`."""
        parents = self.parents(fit)
        return tuple(tuple(np.flatnonzero(parents == a).tolist()) for a in range(self.ranks[fit]))

    def splits(self, fit: int, min_share: float = MIN_SHARE) -> dict[int, tuple[int, ...]]:
        """Return the components of `fit` that split, and their parts in fit + 1.

        A component splits if at least two components whose parent it is contain `min_share` of its
        counts each.
        """
        shares = self.shares(fit)
        parts = {
            a: tuple(b for b in below if shares[a, b] >= min_share)
            for a, below in enumerate(self.children(fit))
        }
        return {a: below for a, below in parts.items() if len(below) > 1}

    def shares(self, fit: int) -> Numbers:
        """Return the flows as shares of the counts of each component of `fit`, (K, K')."""
        table = self._table(fit)
        total = table.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(table, total, out=np.zeros_like(table), where=total > 0))

    def _table(self, fit: int) -> Numbers:
        if not 0 <= fit < len(self.flows):
            raise ValueError(
                f"`fit` must be an integer from 0 to {len(self.flows) - 1}, got {fit}."
            )
        return self.flows[fit]

    def is_sound(self) -> bool:
        """Return whether all fields have consistent shapes."""
        pairs = zip(self.ranks, self.ranks[1:], strict=False)
        shapes = [table.shape for table in self.flows]
        return (
            len(self.ranks) > 1
            and all(isinstance(k, int) for k in self.ranks)
            and (shapes == list(pairs))
        )


def component_flows(V: Any, fits: Sequence[Any]) -> ComponentFlows:
    """Return how the components of several fits to the same data relate to each other.

    Parameters
    ----------
    V
        The data, (samples, features): anything `KLNMF` accepts.
    fits
        Two or more fitted `KLNMF`, or pairs (W, H). They are sorted by K.

    Examples
    --------
    >>> from sipower import KLNMF
    >>> from sipower.datasets import poisson_topics
    >>> from sipower.selection import component_flows
    >>> V = poisson_topics(300, 200, 4, seed=0)
    >>> flows = component_flows(V, [KLNMF(k, random_state=0).fit(V) for k in (3, 4)])
    >>> len(flows.splits(0))  # one of three components was two topics
    1
    """
    if len(fits) < 2:
        raise ValueError(f"`fits` must have two or more fits, got {len(fits)}.")
    data = as_matrix(V)
    factors = sorted((_factors(data, V, fit) for fit in fits), key=lambda pair: len(pair[1]))
    tables = [shared_counts(data, *pair) for pair in itertools.pairwise(factors)]
    return ComponentFlows(tuple(len(H) for _, H in factors), tuple(tables))


def _factors(data: RowBlocks, V: Any, fit: Any) -> tuple[Array, Array]:
    if isinstance(fit, KLNMF):
        check_is_fitted(fit)
        if hasattr(fit, "batch_effects_"):
            raise ValueError("`fits`: a model with batch effects must be given as a pair (W, H).")
        W, H = np.asarray(fit.transform(V)), fit.components_
    elif isinstance(fit, tuple | list) and len(fit) == 2:
        samples, features = data_items(V)
        W, H = (
            arrange("fits", factor, *axes)
            for factor, axes in zip(fit, ((samples, None), (None, features)), strict=True)
        )
        W, H = as_factors(W, H)
    else:
        raise TypeError(
            f"`fits` must hold fitted KLNMF or pairs (W, H), got a {type(fit).__name__}."
        )
    if (len(W), H.shape[1]) != data.shape:
        raise ValueError(
            f"`fits` must be of data of shape {data.shape}, got factors of {(len(W), H.shape[1])}."
        )
    return W, H
