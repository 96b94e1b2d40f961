# SPDX-License-Identifier: BSD-3-Clause
"""The dispersion of counts: how much more they vary than Poisson counts of the same mean.

Counts with the mean Λ_ij and the dispersion φ have the variance Λ_ij + φ Λ_ij²; φ = 0 for Poisson
counts. One φ is estimated for all entries by the method of moments, from a fit Z = W H with as many
components as will be tried:

    φ = Σ_ij u_ij [(V_ij − Z_ij)² / f − Z_ij] / Σ_ij u_ij Z_ij²,    u_ij = 1 / (1 + Z_ij)²,

where f = 1 − K (n + m − K) / (n m) is the share of the freedom of V that the fit leaves. The
weights u keep large counts from deciding alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower.data.row_blocks import RowBlocks
from sipower.data.weighting import Weights
from sipower.estimators import KLNMF
from sipower.estimators.observation import as_given, as_observation

NOTHING: Mapping[str, Any] = MappingProxyType({})
MAX_ENTRIES = 20_000_000  # of the rows that the dispersion is estimated from
MIN_FREEDOM = 0.2
MIN_DISPERSION = 1e-3
STANDARD_ERRORS = 3.0  # a smaller estimate is not distinguished from 0
ROWS_AT_A_TIME = 256


def estimate_dispersion(model: KLNMF, V: RowBlocks, observed: Mapping[str, Any] = NOTHING) -> float:
    """Fit the model to V, or to some rows of large data, and return the dispersion, at least 0.

    The result is 0 if the estimate cannot be told from 0, and if the data are so small that the
    fit explains nearly everything.
    """
    K: Any = model.n_components
    n, m = V.shape
    rows = min(n, max(MAX_ENTRIES // m, 2 * K))
    chosen = np.arange(rows) * n // rows
    given = as_observation(V.shape, as_given(observed)).take(chosen)
    is_used = _is_used(given.weights, (rows, m))
    n_used, m_used = (is_used.any(axis=axis).sum() for axis in (1, 0))
    freedom = 1 - K * (n_used + m_used - K) / max(is_used.sum(), 1)
    if freedom < MIN_FREEDOM:
        return 0.0
    part: Any = V.take(chosen)
    W = model.fit_transform(part, **given.arguments())
    sizes = np.ones(rows) if given.offsets is None else given.offsets
    excess, scale, variance = 0.0, 0.0, 0.0
    for at in range(0, rows, ROWS_AT_A_TIME):
        block = slice(at, at + ROWS_AT_A_TIME)
        # No BLAS: the same bits for any number of threads.
        z = np.einsum("ik,kj->ij", W[block], model.components_, dtype=np.float64)
        z *= sizes[block, None]
        if given.batch is not None:
            z *= model.batch_effects_[np.searchsorted(model.batches_, given.batch[block])]
        weight = 1 / np.square(1 + z)
        weight *= is_used[block]
        excess += float((weight * (np.square(_dense(part[block]) - z) / freedom - z)).sum())
        scale += float((weight * z * z).sum())
        # For Poisson counts (v − z)² has the variance 2 z² + z.
        variance += float((weight * weight * (2 * z * z + z)).sum())
    if not scale > 0:
        return 0.0
    dispersion = excess / scale
    threshold = max(STANDARD_ERRORS * np.sqrt(variance) / scale, MIN_DISPERSION)
    return dispersion if dispersion > threshold else 0.0


def _is_used(weights: Weights, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which entries have a positive weight."""
    used = np.ones(shape, bool)
    if weights.rows is not None:
        used &= weights.rows[:, None] > 0
    if weights.columns is not None:
        used &= weights.columns > 0
    if weights.entries is not None:
        hidden = sparse.csr_array(weights.entries)
        hidden.data = (hidden.data == 0).astype(np.float64)
        used &= hidden.toarray() == 0
    return used


def _dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows, np.float64)
