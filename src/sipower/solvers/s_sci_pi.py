# SPDX-License-Identifier: BSD-3-Clause
"""S-SCI-PI, Algorithm 1 of the paper: stochastic variance-reduced SCI-PI for any `Problem`.

======  =====================================================  ==========
symbol  meaning                                                shape
======  =====================================================  ==========
x₀, g̃   anchor and full gradient there                         (items, d)
x_t     inner iterate, kept at unit norm                       (items, d)
α_t     ∇f(projection of x_t on x₀) = α_t g̃                    (items,)
g_t     α_t g̃ + ∇f_S(x_t) − α_t ∇f_S(x₀), unbiased for ∇f(x_t)  (items, d)
η, m    step, inner steps of an epoch                          –
======  =====================================================  ==========

Normalising x_t changes no direction, makes α_t = (x_t·x₀)^(p−1) and removes the division by
‖x_t‖^(p−2). f is divided by λ = x₀·g̃ at the anchor, so that η is a true step. An epoch costs
1 + 2 m s/n passes; for KL 1 + 1.5 m s/n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from sipower.kernels import Draw
from sipower.matrix import SCHEMES, Scheme
from sipower.problems.base import Point, Problem, Sampling
from sipower.solvers.sci_pi import SciPi
from sipower.solvers.state import PointState, check_positive, start

__all__ = ["SSciPi", "anchor_factor"]

LEAST_COSINE = 0.5  # to the anchor; an item that turned further waits for a new full gradient


@dataclass(frozen=True)
class SSciPi:
    """Stochastic scale invariant power iteration with fixed step η and no guard.

    Parameters
    ----------
    step
        η.
    batch
        Share s/n of the terms in a batch.
    epoch
        m, inner steps between two full gradients.
    scheme, replace
        How batches are drawn.
    threshold
        θ: where a problem keeps signs, a step shrinks no coordinate below θ times its value.
    """

    step: float = 0.5
    batch: float = 0.1
    epoch: int = 10
    scheme: Scheme = "vectors"
    replace: bool = False
    threshold: float = 1e-3

    def __post_init__(self) -> None:
        check_positive("step", self.step)
        check_threshold(self.threshold)
        check_epoch(self.batch, self.epoch, self.scheme)

    def init(self, problem: Problem, x0: Point | None, seed: int) -> PointState:
        """State before the first epoch."""
        if problem.sequential:
            raise ValueError("The items of this problem interact: use SciPi, not SSciPi.")
        return start(problem, x0, seed, self.step)

    def advance(self, problem: Problem, state: PointState) -> PointState:
        """One epoch: a full gradient and m inner steps."""
        eta, p = state.step, problem.degree
        sampling = Sampling(self.batch, self.scheme, self.replace)
        x0 = state.x
        g = problem.gradient(x0)
        lam = problem.scale(x0, g)
        # At t = 0 the batch cancels (x_t = x₀): the step is the full one.
        x = problem.retract((1 - eta) * x0 + eta * g / lam, x0, self.threshold)
        for t in range(1, self.epoch):
            cosine = problem.inner(x, x0)
            near = cosine >= LEAST_COSINE
            alpha = anchor_factor(np.where(near, cosine, 1.0), p)[:, None]
            S = problem.batch(sampling, Draw(state.seed, 0, state.round, state.side, t))
            g_t = alpha * g + problem.gradient(x, S) - alpha * problem.gradient(x0, S)
            x_next = problem.retract((1 - eta) * x + eta * g_t / lam, x, self.threshold)
            x = np.where(near[:, None], x_next, x)
        passes = state.passes + 1 + problem.batch_passes * (self.epoch - 1) * self.batch
        return replace(state, x=x, round=state.round + 1, passes=passes)

    def largest_step(self, problem: Problem) -> float:
        """A guard lets the step grow up to this."""
        return max(self.step, 1.0)

    def safe(self) -> SciPi:
        """What a guard falls back to: a full step."""
        return SciPi()


def anchor_factor(cosine: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """α with ∇f((x·x₀)x₀) = α ∇f(x₀) for ‖x₀‖ = 1: sign(x·x₀)|x·x₀|^(p−1)."""
    return np.asarray(np.sign(cosine) * np.abs(cosine) ** (p - 1))


def check_threshold(threshold: float) -> None:
    """Refuse a θ outside [0, 1)."""
    if not 0 <= threshold < 1:
        raise ValueError(f"threshold is {threshold}, expected a number in [0, 1).")


def check_epoch(batch: float, epoch: int, scheme: Scheme) -> None:
    """Refuse parameters of an epoch that make no sense, in one sentence."""
    if not 0 < batch <= 1:
        raise ValueError(f"batch is {batch}, expected a share of the terms in (0, 1].")
    if not isinstance(epoch, Integral) or epoch < 1:
        raise ValueError(f"epoch is {epoch}, expected a whole number of at least 1 inner step.")
    if scheme not in SCHEMES:
        raise ValueError(f"scheme is {scheme!r}, expected one of {', '.join(SCHEMES)}.")
