# SPDX-License-Identifier: BSD-3-Clause
"""`ProblemStatement`: the problem whose solution is verified, as its user states it.

    min  Σ_ij Ω_ij [V_ij log(V_ij/E_ij) − V_ij + E_ij] + penalties,   E_ij = s_i β_bj (W Hᵀ)_ij,
    Ω_ij = ρ_i φ_j ω_ij,   b = the batch of sample i

The divergence is homogeneous, so it is that of V' = Ω∘V from X∘(W' H'ᵀ) with W'_i = ρ_i s_i W_i,
H'_j = φ_j H_j and X_ij = ω_ij β_bj. All gaps are computed in this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Float", "ProblemStatement"]

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProblemStatement:
    """What the model has besides V, W (n, K) and H (m, K); None means absent.

    Parameters
    ----------
    sample_weight, feature_weight, offsets
        ρ (n,), φ (m,) and s (n,).
    entry_weight
        ω in CSR, (n, m); an entry that is not stored has the weight 1.
    batch, effects, batch_prior
        Number of the batch of every sample (n,), β (batches, m), and its prior counts a.
    can_scale_effects
        Whether the effects are presented in another scale than the penalised one, whose means over
        the batches and over the features are 1.
    l1, ridge
        Penalties λ Σ h and ½ r Σ h² of W and of H.
    prior_W, prior_H
        Prior counts of the weights, (K,), and of the profiles, (m, K).
    fixed, values
        Entries of H that are given, bool, (m, K), and their values; others are no solutions.
    """

    sample_weight: Float | None = None
    feature_weight: Float | None = None
    offsets: Float | None = None
    entry_weight: Any = None
    batch: NDArray[np.int64] | None = None
    effects: Float | None = None
    batch_prior: float = 0.0
    can_scale_effects: bool = True
    l1: tuple[float, float] = (0.0, 0.0)
    ridge: tuple[float, float] = (0.0, 0.0)
    prior_W: Float | None = None  # noqa: N815 - the paper's letters
    prior_H: Float | None = None  # noqa: N815
    fixed: NDArray[np.bool_] | None = None
    values: Float | None = None

    @property
    def has_prior(self) -> bool:
        """Whether W or H has prior counts."""
        return self.prior_W is not None or self.prior_H is not None

    def row_scale(self, begin: int, end: int) -> Float:
        """Return ρ_i s_i of some rows."""
        return _part(self.sample_weight, begin, end) * _part(self.offsets, begin, end)

    def column_scale(self, m: int) -> Float:
        """Return φ_j, (m,)."""
        return _part(self.feature_weight, 0, m)

    def weigh(self, V: Any, begin: int) -> tuple[Any, Float | None]:
        """Return the rows of V' from row `begin` on, and their ω as an array; None: all 1."""
        n, m = V.shape
        rho = _part(self.sample_weight, begin, begin + n)
        omega = None
        if self.entry_weight is not None:
            omega = self._entry_weights(begin, begin + n)
        if isinstance(V, np.ndarray):
            weights = rho[:, None] * self.column_scale(m)
            return V * (weights if omega is None else weights * omega), omega
        V = V.astype(np.float64)
        rows = np.repeat(np.arange(n), np.diff(V.indptr))
        if self.sample_weight is not None:
            V.data *= rho[rows]
        if self.feature_weight is not None:
            V.data *= self.feature_weight[V.indices]
        if omega is not None:
            V.data *= omega[rows, V.indices]
        return V, omega

    def _entry_weights(self, begin: int, end: int) -> Float:
        stored = self.entry_weight[begin:end].tocoo()
        omega = np.ones(stored.shape)
        omega[stored.row, stored.col] = stored.data
        return omega

    def is_feasible(self, H: Float) -> bool:
        """Return whether H has the given entries, to single precision."""
        if self.fixed is None or self.values is None:
            return True
        with np.errstate(over="ignore"):
            found, given = H.astype(np.float32), self.values.astype(np.float32)
        return bool((found == given)[self.fixed].all())

    def penalised_effects(self) -> Float:
        """Return β in the scale of its penalty: the scale in which the penalty is smallest."""
        assert self.effects is not None
        effects = np.array(self.effects, np.float64)
        for _ in range(MAX_SCALINGS if self.can_scale_effects else 0):
            effects /= effects.mean(axis=0)
            means = effects.mean(axis=1, keepdims=True)
            effects /= means
            if np.abs(means - 1).max() < 1e-15:
                break
        return effects


MAX_SCALINGS = 1000


def _part(values: Any, begin: int, end: int) -> Float:
    return np.ones(end - begin) if values is None else np.asarray(values[begin:end], np.float64)
