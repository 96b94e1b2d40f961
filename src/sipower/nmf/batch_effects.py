# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF with an effect of every batch on every feature, fitted together with W and H.

    V ~ X ∘ (W Hᵀ),   X_ij = β_{b(i), j} ω_ij

    min  D(V ‖ X ∘ W Hᵀ) + a Σ_bj [β_bj − 1 − log β_bj]   over W, H, β ≥ 0

The prior counts a shrink the effects to 1, so that a small batch does not absorb biology. Given W
and H, the best effects are

    β_bj = (N_bj + a)/(M_bj + a),   N = counts, M = Σ_{i in b} ω_ij z_ij,   z = W Hᵀ,

which needs sums over the rows of W only, and no pass over V. The product of β and W Hᵀ does not
change if a feature is multiplied by t_j in H and divided by it in β, or a batch in W. The penalty
is smallest where the effects of every feature, and of every batch, have the mean 1, so they are
scaled to that after every update. A feature of H with fixed entries cannot be scaled: its effects
are restricted to mean 1. All these steps are exact minimisations: the objective never rises. The
penalty is always that of the effects with mean 1, however a model presents them (`centre`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div

from sipower.data.row_blocks import RowBlocks
from sipower.kernels import Array
from sipower.loop.protocols import Solvable
from sipower.nmf.auto import Auto, AutoState
from sipower.nmf.exposure import Exposure
from sipower.nmf.factorization import Factorization
from sipower.nmf.factors import Factors
from sipower.nmf.terms import ModelTerms
from sipower.problems.item_problem import Terms

__all__ = ["BatchEffects", "BatchFactorization", "BatchFactors", "centre"]

Float = NDArray[np.float64]
MAX_NEWTON_STEPS = 60


class BatchFactors(NamedTuple):
    """The factors W (n, K), H (m, K) and the effects β (batches, m)."""

    W: Array
    H: Array
    effects: Any


class BatchFactorization:
    """The problem in W, H and the batch effects.

    Parameters
    ----------
    V
        Data, (n, m).
    rank
        Number of components K.
    terms
        Other terms of the model; its exposure has the batches and the weights.
    prior
        Prior counts a of every effect.
    """

    maximise = False
    value_passes = 0.5

    def __init__(self, V: RowBlocks, rank: int, terms: ModelTerms, prior: float) -> None:
        self.V, self.rank, self.terms, self.prior = V, rank, terms, prior
        assert terms.exposure is not None
        self.exposure: Exposure = terms.exposure

    def with_effects(self, effects: Float) -> Factorization:
        """Return the factorisation with given effects."""
        exposure = replace(self.exposure, effects=effects)
        return Factorization(self.V, self.rank, replace(self.terms, exposure=exposure))

    def row_terms(self, x: BatchFactors) -> Terms:
        """Return the terms of the row problems."""
        return self.with_effects(x.effects).row_terms(Factors(x.W, x.H))

    @property
    def evaluation_passes(self) -> float:
        """The passes that one evaluation costs."""
        return self.with_effects(np.ones((1, 1))).evaluation_passes

    def penalty(self, effects: Float) -> float:
        """Return a Σ [β − 1 − log β]."""
        return self.prior * float(kl_div(1.0, effects).sum())

    def value(self, x: BatchFactors) -> float:
        """Return D and all penalties, in float64."""
        return self.with_effects(x.effects).value(Factors(x.W, x.H)) + self.penalty(x.effects)

    def without_penalties(self, value: float, x: BatchFactors) -> float:
        """Return D, given the value with the penalties."""
        rest = self.with_effects(x.effects).without_penalties(value, Factors(x.W, x.H))
        return rest - self.penalty(x.effects)

    def residual(self, x: BatchFactors) -> float:
        """Return the certified gaps of W, of H and of β, relative to ΣV."""
        expected = self.exposure.expected(x.W, x.H)
        gap = self.loss(x.effects, expected) - self.loss(self.best(expected), expected)
        rest = self.with_effects(x.effects).residual(Factors(x.W, x.H))
        return rest + max(gap, 0.0) / max(self.V.total, 1e-300)

    def best(self, expected: Float) -> Float:
        """Return the best effects, given the sums M that W and H expect."""
        assert self.exposure.counts is not None
        counts, expected = self.exposure.counts + self.prior, expected + self.prior
        effects: Float = counts / expected
        fixed = self.terms.fixed_features
        if np.any(fixed):
            effects[:, fixed] = _with_mean_one(counts[:, fixed], expected[:, fixed])
        return effects

    def loss(self, effects: Float, expected: Float) -> float:
        """Return the part of the objective that depends on the effects."""
        assert self.exposure.counts is not None
        parts = effects * expected - self.exposure.counts * np.log(effects)
        return float(parts.sum()) + self.penalty(effects)

    def rounding(self, value: float) -> float:
        """Return the rounding error that a value may have."""
        return self.with_effects(np.ones((1, 1))).rounding(value)

    def is_finite(self, x: BatchFactors) -> bool:
        """Return whether the factors contain neither NaN nor infinity."""
        return all(bool(np.isfinite(factor.sum(dtype=np.float64))) for factor in x)


@dataclass(frozen=True)
class BatchState(AutoState):
    """The state of `Auto` with the batch effects."""

    effects: Array = None  # type: ignore[assignment]  # always given

    @property
    def x(self) -> Any:
        """The current point (W, H, β)."""
        return BatchFactors(self.W, self.H, self.effects)


@dataclass(frozen=True)
class BatchEffects:
    """A solver that updates the batch effects after every round of `Auto`.

    Parameters
    ----------
    near, sample
        As in `Auto`.
    """

    needs: ClassVar = (Solvable,)
    near: bool = False
    sample: bool = False

    @property
    def _auto(self) -> Auto:
        return Auto(self.near, sample=self.sample)

    def init(self, problem: BatchFactorization, x0: Any, seed: int) -> BatchState:
        """Return the state at x0 = (W, H) or (W, H, β); without β, the effects are 1."""
        effects = getattr(x0, "effects", None)
        if effects is None:
            assert problem.exposure.counts is not None
            effects = np.ones(problem.exposure.counts.shape)
        start = None if x0 is None else Factors(x0[0], x0[1])
        inner = self._auto.init(problem.with_effects(effects), start, seed)
        values = {f.name: getattr(inner, f.name) for f in fields(inner)}
        state = BatchState(**values, effects=effects)
        return replace(state, value=inner.value + problem.penalty(effects))

    def advance(self, problem: BatchFactorization, state: BatchState) -> BatchState:
        """Run one round of `Auto` with the effects fixed, then update the effects."""
        penalty = problem.penalty(state.effects)
        without = {name: getattr(state, name) - penalty for name in ("value", "power_value")}
        before = replace(state, **without)
        new: BatchState = self._auto.advance(problem.with_effects(state.effects), before)
        expected = problem.exposure.expected(new.W, new.H)
        effects = problem.best(expected)
        change = problem.loss(effects, expected) - problem.loss(state.effects, expected)
        feature = np.where(problem.terms.fixed_features, 1.0, effects.mean(axis=0))
        sample = np.ones(len(effects))
        if not np.any(problem.terms.fixed_features):
            sample = (effects / feature).mean(axis=1)
        scaled = effects / feature / sample[:, None]
        saved = problem.penalty(effects) - problem.penalty(scaled)
        h = feature.astype(new.H.dtype)[:, None]
        w = sample.astype(new.W.dtype)[problem.exposure.batch][:, None]
        return replace(
            new,
            W=new.W * w, W_ahead=new.W_ahead * w, H=new.H * h, H_last=new.H_last * h,
            effects=scaled, value=new.value + penalty + change - saved,
            power_value=new.power_value + penalty,
        )  # fmt: skip


def _with_mean_one(counts: Float, expected: Float) -> Float:
    """Return β = counts/(expected + λ) with λ such that the mean over the batches is 1.

    These are the best effects of features whose effects must have mean 1. Newton's method starts
    where the mean is at least 1. The mean is convex and decreasing in λ, so it converges. No effect
    exceeds the number of batches, so no denominator is below `least`, but for rounding errors.
    """
    least = counts / len(counts)
    multiplier = (least - expected).max(axis=0)
    for _ in range(MAX_NEWTON_STEPS):
        denominator = np.maximum(expected + multiplier, least)
        effects = counts / denominator
        slope = (effects / denominator).mean(axis=0)
        multiplier = multiplier + (effects.mean(axis=0) - 1) / slope
    return np.asarray(counts / np.maximum(expected + multiplier, least))


def centre(x: BatchFactors, batch: Array) -> BatchFactors:
    """Return the same model with effects whose logarithms have the mean 0 for features and batches.

    H and W take up what is common to all batches, and to all features of a batch.
    """
    logs = np.log(x.effects)
    feature = logs.mean(axis=0)
    sample = (logs - feature).mean(axis=1)
    W = x.W * np.exp(sample)[batch][:, None].astype(x.W.dtype)
    H = x.H * np.exp(feature)[:, None].astype(x.H.dtype)
    return BatchFactors(W, H, np.exp(logs - feature - sample[:, None]))
