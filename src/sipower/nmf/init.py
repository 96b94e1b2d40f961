# SPDX-License-Identifier: BSD-3-Clause
"""Initial factors of KL-NMF: random, or non-negative double SVD with its zeros kept or filled."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.extmath import randomized_svd

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array, Draw, Stream

__all__ = ["INITS", "Init", "initial_factors", "random_factor"]

Init = Literal["random", "nndsvd", "nndsvda", "nndsvdar"]
INITS: tuple[Init, ...] = ("random", "nndsvd", "nndsvda", "nndsvdar")


def initial_factors(
    V: RowBlocks, rank: int, seed: int, init: Init = "random"
) -> tuple[Array, Array]:
    """Return the initial factors: W of shape (n, K) and H of shape (m, K)."""
    factors = random_factors(V, rank, seed) if init == "random" else nndsvd(V, rank, seed, init)
    W, H = (np.ascontiguousarray(factor, V.dtype) for factor in factors)
    return W, H


def random_factors(V: RowBlocks, rank: int, seed: int) -> tuple[Array, Array]:
    """Draw Uniform(0, 1) factors, scaled so that W Hᵀ has the mean of V."""
    return random_factor(V, rank, seed, 0), random_factor(V, rank, seed, 1)


def random_factor(V: RowBlocks, rank: int, seed: int, side: int) -> Array:
    """Draw W (side 0) or H (side 1) at random. Only the shape and the total of V are used."""
    scale = 2 * np.sqrt(_mean(V) / rank)
    return np.asarray(scale * Draw(seed, Stream.FACTOR, side=side).uniform(V.shape[side], rank))


def nndsvd(V: RowBlocks, rank: int, seed: int, init: Init) -> tuple[Array, Array]:
    """Return the non-negative double SVD of V (Boutsidis & Gallopoulos 2008).

    For each pair of singular vectors, the positive or the negative part is kept, whichever has the
    larger norm. Zeros stay zero ("nndsvd") or are replaced by the mean of V ("nndsvda") or by small
    random numbers ("nndsvdar").
    """
    if rank > min(V.shape):
        raise ValueError(
            f"init={init!r} needs n_components <= min(V.shape) = {min(V.shape)}, got {rank}: "
            "use init='random'."
        )
    U, S, Vt = randomized_svd(_as_float(V), rank, random_state=seed % 2**32)
    W, H = np.zeros((V.shape[0], rank)), np.zeros((V.shape[1], rank))
    for k in range(rank):
        pairs = [(np.maximum(s * U[:, k], 0), np.maximum(s * Vt[k], 0)) for s in (1, -1)]
        weights = [float(np.linalg.norm(u) * np.linalg.norm(v)) for u, v in pairs]
        (u, v), weight = max(zip(pairs, weights, strict=True), key=lambda pair: pair[1])
        if weight > 0:
            W[:, k] = np.sqrt(S[k] * weight) * u / np.linalg.norm(u)
            H[:, k] = np.sqrt(S[k] * weight) * v / np.linalg.norm(v)
    if init == "nndsvd":
        return W, H
    mean = _mean(V)
    for side, factor in enumerate((W, H)):
        fill = Draw(seed, Stream.FACTOR, side=side).uniform(*factor.shape) / 100
        factor[factor == 0] = mean if init == "nndsvda" else (mean * fill)[factor == 0]
    return W, H


def _mean(V: Any) -> float:
    return float(V.total / (V.shape[0] * V.shape[1]))


def _as_float(V: RowBlocks) -> Any:
    return V.array.astype(V.dtype, copy=False)
