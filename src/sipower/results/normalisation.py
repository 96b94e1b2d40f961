# SPDX-License-Identifier: BSD-3-Clause
"""The order and the units of components: by size, as profiles, in counts and as shares.

W and H are determined up to a factor m_k for each component, since W H = (W m) (H / m). With m_k
the sum of row k of H, the rows of H are profiles that sum to 1, and W_ik is the number of counts of
sample i that component k explains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Array

Indices = NDArray[np.intp]


def explained_counts(W: Array, H: Array) -> NDArray[np.float64]:
    """Return the number of counts that each component explains, (K,)."""
    with np.errstate(invalid="ignore"):  # 0 · ∞ in factors that `describe` refuses
        return np.asarray(W.sum(axis=0, dtype=np.float64) * _mass(H))


def order_by_size(W: Array, H: Array) -> Indices:
    """Return the positions of the components, the largest first."""
    return np.argsort(-explained_counts(W, H), kind="stable")


def to_profiles(H: Array) -> Array:
    """Return H with rows that sum to 1; a zero row stays zero."""
    return divide(H, _mass(H)[:, np.newaxis]).astype(H.dtype, copy=False)


def to_counts(W: Array, H: Array) -> Array:
    """Return W in counts: the sum of a row is the sum of the sample's row of W H."""
    return np.asarray((W * _mass(H)).astype(W.dtype, copy=False))


def to_shares(W: Array, H: Array) -> Array:
    """Return the share of each sample's counts that a component explains; zero for a zero row."""
    counts = W * _mass(H)
    return divide(counts, counts.sum(axis=1, keepdims=True)).astype(W.dtype, copy=False)


def divide(above: Array, below: Array) -> NDArray[np.float64]:
    """Return the quotient, or 0 where the divisor is 0."""
    zero = np.zeros(np.broadcast_shapes(above.shape, below.shape))
    return np.divide(above, below, where=np.broadcast_to(below > 0, zero.shape), out=zero)


def _mass(H: Array) -> Any:
    return H.sum(axis=1, dtype=np.float64)
