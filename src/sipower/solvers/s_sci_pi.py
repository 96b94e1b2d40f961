# SPDX-License-Identifier: BSD-3-Clause
"""`SSciPi`: Algorithm 1 of the paper, stochastic variance-reduced SCI-PI for any `Problem`.

======  =====================================================  ==========
symbol  meaning                                                shape
======  =====================================================  ==========
x₀, g̃   anchor (first point of an epoch), full gradient there  (items, d)
x_t     inner iterate, kept at unit norm                       (items, d)
α_t     ∇f(projection of x_t on x₀) = α_t g̃                    (items,)
g_t     α_t g̃ + ∇f_S(x_t) − α_t ∇f_S(x₀), unbiased for ∇f(x_t)  (items, d)
η, m    step, inner steps of an epoch                          –
======  =====================================================  ==========

Normalising x_t does not change its direction, makes α_t = (x_t·x₀)^(p−1) and removes the division
by ‖x_t‖^(p−2). Gradients are divided by λ = x₀·g̃, so that η does not depend on the scale of f.
An epoch costs 1 + 2 m s/n passes in general, 1 + 1.5 m s/n for KL and 1 + m s/n for PCA.

If no step is given, η comes from the paper's condition η√(Km) ≤ 1: K, the variance of the Hessian
of a batch along the first step, is estimated from a few batches at every anchor, and η = κ/√(Km).
The noise of the batches in an epoch then adds about κ² times the squared error of its anchor,
whatever the data. If this exceeds what m steps gain, the next anchor is worse than this one, and κ
shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sipower.data.sampling import SCHEMES, Scheme
from sipower.kernels import Draw, Stream, batch_size
from sipower.loop.protocols import ScaleInvariant
from sipower.problems.base import Point, Problem, Sampling
from sipower.solvers.sci_pi import SciPi
from sipower.solvers.state import PointState, check_positive, initial_state

MIN_COSINE = 1e-12  # lower bound of |x·x₀| in `anchor_factor` if p < 1
PROBE_BATCHES = 8  # number of batches from which K is estimated
MAX_KAPPA = 0.8  # initial and largest κ
SHRINK, GROW = 0.7, 1.1  # factors of κ if an anchor is worse than the last one, and if not
TINY = 1e-300


@dataclass(frozen=True)
class SSciPi:
    """The stochastic scale invariant power iteration, without a guard.

    Parameters
    ----------
    step
        Fixed step size η; None: chosen in every epoch from the estimated variance of the batches.
    batch
        Share s/n of the terms in a batch.
    epoch
        Number m of inner steps per full gradient.
    scheme
        Which entries are drawn; only KL-NMF has schemes other than "vectors".
    replace
        Whether batches are drawn with replacement.
    threshold
        Threshold θ: for problems with a sign constraint, an inner step reduces no coordinate to
        less than θ times its value before the step.
    """

    needs: ClassVar = (ScaleInvariant,)
    step: float | None = None
    batch: float = 0.01
    epoch: int = 120
    scheme: Scheme = "vectors"
    replace: bool = False
    threshold: float = 1e-3

    def __post_init__(self) -> None:
        if self.step is not None:
            check_positive("step", self.step)
        check_threshold(self.threshold)
        check_epoch(self.batch, self.epoch, self.scheme)

    def init(self, problem: Problem, x0: Point | None, seed: int) -> PointState:
        """Return the state before the first epoch."""
        if problem.sequential:
            raise ValueError(
                f"`SSciPi` does not support {type(problem).__name__}, whose items interact: use "
                "SciPi."
            )
        return initial_state(problem, x0, seed, MAX_KAPPA if self.step is None else self.step)

    def advance(self, problem: Problem, state: PointState) -> PointState:
        """Run one epoch: a full gradient and m inner steps."""
        x0, p = state.x, problem.degree
        g = problem.gradient(x0)
        lam = problem.scale(x0, g)
        eta: float | NDArray[np.float64] = state.step
        if self.step is None:
            state, eta = self._adapt_step(problem, state, g, lam)
        # At t = 0 the batch gradients cancel because x_t = x₀: the step uses the full gradient.
        x = problem.retract((1 - eta) * x0 + eta * g / lam, x0, self.threshold)
        for t in range(1, self.epoch):
            alpha = anchor_factor(problem.inner(x, x0), p)[:, None]
            draw = Draw(state.seed, Stream.BATCH, state.round, state.side, t)
            S = problem.batch(self._sampling, draw)
            g_t = alpha * g + problem.anchored_difference(x, x0, alpha, S)
            x = problem.retract((1 - eta) * x + eta * g_t / lam, x, self.threshold)
        batches, value_passes = self.epoch - 1, 0.0
        if self.step is None:
            batches += PROBE_BATCHES
            value_passes = 0.0 if p else problem.value_passes
        n = problem.terms
        share = self.batch if n is None else batch_size(self.batch, n) / n  # s/n with integer s
        passes = state.passes + 1 + value_passes + problem.batch_passes * batches * share
        return replace(state, x=x, round=state.round + 1, passes=passes)

    @property
    def _sampling(self) -> Sampling:
        return Sampling(self.batch, self.scheme, self.replace)

    def _adapt_step(
        self, problem: Problem, state: PointState, g: Point, lam: NDArray[np.float64]
    ) -> tuple[PointState, NDArray[np.float64]]:
        """Return the state with the new κ, and the step size η of every item, (items, 1).

        η is κ/√(Km), with √(Km) raised to at least MAX_KAPPA, so that η is at most 1. Far from a
        solution the residual may rise while f still increases, so κ shrinks only if the residual
        has risen and f has not.
        """
        x0 = state.x
        multiplier = problem.inner(x0, g)
        tangential = g - multiplier[:, None] * x0
        residual = float(np.linalg.norm(tangential / lam))
        value = float(multiplier.sum()) if problem.degree else problem.value(x0)  # λ = p f
        worse = residual > state.residual and value <= state.anchor_value
        kappa = min(MAX_KAPPA, state.step * (SHRINK if worse else GROW))
        x = problem.retract(x0 + tangential / lam, x0, self.threshold)
        cosine = problem.inner(x, x0)
        alpha = anchor_factor(cosine, problem.degree)[:, None]
        place = state.seed, Stream.PROBE, state.round, state.side
        batches = (problem.batch(self._sampling, Draw(*place, t)) for t in range(PROBE_BATCHES))
        differences = [problem.anchored_difference(x, x0, alpha, S) for S in batches]
        noise = np.sqrt(np.var(differences, axis=0, ddof=1).sum(axis=1)) / lam[:, 0]
        distance = np.linalg.norm(x - cosine[:, None] * x0, axis=1)
        noise *= np.sqrt(self.epoch)
        eta = kappa * distance / np.maximum(noise, MAX_KAPPA * distance + TINY)
        state = replace(state, step=kappa, residual=residual, anchor_value=value)
        return state, eta[:, None]

    def largest_step(self, problem: Problem) -> float:
        """Return the largest step that a guard may use: η, or κ if no step size is given."""
        return MAX_KAPPA if self.step is None else max(self.step, 1.0)

    def safe(self) -> SciPi:
        """Return the solver that a guard falls back to: SCI-PI, which uses full gradients."""
        return SciPi()


def anchor_factor(cosine: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Return α with ∇f((x·x₀)x₀) = α ∇f(x₀) for ‖x₀‖ = 1: sign(x·x₀)|x·x₀|^(p−1).

    The paper excludes x·x₀ ≤ 0; with the sign, the formula also holds for negative products. For
    p < 1 the factor grows without bound as x·x₀ approaches 0, which pulls x towards ∇f(x₀);
    |x·x₀| is raised to at least 1e-12, so that the step is finite.
    """
    size = np.maximum(np.abs(cosine), MIN_COSINE if p < 1 else 0.0)
    return np.asarray(np.where(cosine < 0, -1.0, 1.0) * size ** (p - 1))


def check_threshold(threshold: float) -> None:
    """Check that θ lies in [0, 1)."""
    if not (isinstance(threshold, Real) and 0 <= threshold < 1):
        raise ValueError(f"`threshold` must be a number in [0, 1), got {threshold}.")


def check_epoch(batch: float, epoch: int, scheme: Scheme) -> None:
    """Check the batch size, the number of inner steps and the sampling scheme of an epoch."""
    if not (isinstance(batch, Real) and 0 < batch <= 1):
        raise ValueError(f"`batch` must be a number in (0, 1], got {batch}.")
    if not isinstance(epoch, Integral) or epoch < 1:
        raise ValueError(f"`epoch` must be a positive integer, got {epoch}.")
    if scheme not in SCHEMES:
        raise ValueError(f"`scheme` must be one of {', '.join(SCHEMES)}, got {scheme!r}.")
