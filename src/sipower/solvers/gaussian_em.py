# SPDX-License-Identifier: BSD-3-Clause
"""`GaussianEM`: a damped SCI-PI step for the weights of a Gaussian mixture, EM for the rest.

    π ← normalised(π∘((1 − η) + η G)²),  G_k = (1/n) Σ_i N_ik / Σ_l π_l N_il

The default η = 2/3 is the choice of the authors of SCI-PI and gives π ← normalised(π∘(½ + G)²). The
ordinary EM update then computes means and covariances, with responsibilities that use the new
weights.
A round evaluates the densities and their sums once, which counts as one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sipower.kernels import FLOOR, Array
from sipower.loop.protocols import Progress
from sipower.problems.gaussian_mixture import GaussianMixture, Gaussians, posterior
from sipower.problems.mixture import MixtureProportions
from sipower.solvers.sci_pi import SciPi
from sipower.solvers.state import PointState, check_positive


@dataclass(frozen=True)
class GaussianState(Progress):
    """The state of `GaussianEM`: weights, means and covariances."""

    weights: Array
    means: Array
    covariances: Array

    @property
    def x(self) -> Gaussians:
        """The current point."""
        return Gaussians(self.weights, self.means, self.covariances)


@dataclass(frozen=True)
class GaussianEM:
    """The solver of a `GaussianMixture`: SCI-PI for the weights, EM for means and covariances.

    Parameters
    ----------
    step
        Step size η of the weights. Wrap the solver in `Guarded` to make a run monotone.
    """

    step: float = 2 / 3

    def __post_init__(self) -> None:
        check_positive("step", self.step)

    def init(self, problem: GaussianMixture, x0: Any, seed: int) -> GaussianState:
        """Return the state at x0 = (weights, means, covariances), or at a k-means++ start."""
        if not isinstance(problem, GaussianMixture):
            raise ValueError(
                f"`problem` must be a GaussianMixture, got a {type(problem).__name__}."
            )
        x = problem.start(seed) if x0 is None else problem.check_start(x0)
        return GaussianState(*x, step=self.step, seed=seed)

    def advance(self, problem: GaussianMixture, state: GaussianState) -> GaussianState:
        """Update the weights, then means and covariances."""
        x = state.x
        L = problem.log_densities(x)
        # A weight of exactly zero would stay zero.
        weights = np.maximum(self.new_weights(L, x.weights, state.step), FLOOR)
        weights /= weights.sum()
        x = problem.m_step(posterior(L, weights), x._replace(weights=weights))
        state = replace(state, **x._asdict())
        return replace(state, round=state.round + 1, passes=state.passes + 1, value=math.nan)

    def new_weights(self, L: Array, weights: Array, step: float) -> Array:
        """Return the weights after one damped power step on the sphere, where y = √π."""
        proportions = MixtureProportions(L, log=True)
        state = PointState(x=np.sqrt(weights)[None, :], step=step, seed=0)
        return proportions.proportions(SciPi().advance(proportions, state).x)

    def largest_step(self, problem: GaussianMixture) -> float:
        """Return the largest step size that a guard may use."""
        return self.step

    def safe(self) -> GaussianEM:
        """Return the solver that a guard falls back to: ordinary EM, which is monotone."""
        return PlainEM()


@dataclass(frozen=True)
class PlainEM(GaussianEM):
    """The ordinary EM algorithm, π ← π∘G for the weights: slower, but monotone from any start."""

    step: float = 1.0

    def new_weights(self, L: Array, weights: Array, step: float) -> Array:
        """Return the mean responsibility of each component, which is π∘G."""
        return np.asarray(posterior(L, weights).mean(axis=0))
