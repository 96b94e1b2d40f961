# SPDX-License-Identifier: BSD-3-Clause
"""The convergence theorem: its conditions, the largest step size it admits, and its rate ρ.

The theorem is stated for λ* = 1. Δ₀ = 1 − x₀·x* is the distance at the start of an epoch; the other
symbols are those of `theory.constants`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sipower.theory.constants import LocalSpectrum, Variance

MAX_DELTA = 1 - 1 / math.sqrt(2)  # the limit on Δ₀ in the theorem


@dataclass(frozen=True)
class Condition:
    """One condition of the theorem: value ≤ limit."""

    name: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether value ≤ limit."""
        return self.value <= self.limit


@dataclass(frozen=True)
class Conditions:
    """The conditions, the largest η and the rate of the theorem for given m, s and Δ₀."""

    near: Condition
    small_batches: Condition
    nu: dict[str, float]
    theta: dict[str, float]
    step: float
    rho: float

    def epochs(self, accuracy: float) -> float:
        """Return ⌈(1/ρ) log(1/accuracy)⌉, the epochs that shrink the error by this factor."""
        return math.ceil(math.log(1 / accuracy) / self.rho) if self.rho > 0 else math.inf


def conditions(
    at: LocalSpectrum, noise: Variance, M: float, delta: float, epoch: int
) -> Conditions:
    """Return all conditions of the theorem, the largest admissible η, and its rate ρ.

    The theorem requires that Δ₀ is small, that either L is small (the L-branch) or
    η ≤ 1/max(ν₁, ν₂, ν₃) (the η-branch), and that η ≤ 1/max(1, ν₄, ν₅). The bound η ≤ 1/ν₅ alone
    implies that ρ is at most ¼, for every m.

    Parameters
    ----------
    at, noise, M
        Constants near the solution, from `local_spectrum`, `variance` and `curvature`.
    delta
        Δ₀ at the start of an epoch.
    epoch
        Number m of inner steps.
    """
    root, m, bar = math.sqrt(delta), epoch, at.bar
    gap, drift = 1 - bar, M * root
    near = Condition("Δ₀", delta, largest_delta(at, noise, M))
    net = gap - 2 * drift  # λ* − λ̄ − 2M√Δ₀, the remaining eigengap
    small = Condition("L", noise.L, max(net, 0.0) ** 2 / 32)
    theta1 = 1 + at.sigma + M * math.sqrt(delta / 2) + 2 * math.sqrt(noise.L)
    theta2 = gap - 2 * root * (M + 2 * math.sqrt(noise.L))
    nu3 = _ratio(128 * noise.L * theta1 * m**2, theta2**2 * bar * delta**1.5)
    nu = {
        "ν₁": 2 * theta1 * m * math.sqrt(2 * delta),
        "ν₂": m + 1 - (m + 1) * (bar + drift),
        "ν₃": nu3 + 1 - (bar + drift),
        "ν₄": max(math.sqrt(noise.K * m), _ratio(64 * noise.K, net)) - drift,
        "ν₅": drift + max(2 * m * net, 4 * m * drift / math.log(2)),
    }
    binding = ("ν₄", "ν₅") if small.holds else tuple(nu)
    admissible = near.holds and net > 0 and theta2 > 0
    eta = 1 / max(1.0, *(nu[name] for name in binding)) if admissible else 0.0
    rho = eta * m * net / (2 * (1 - eta * drift)) if eta else 0.0
    return Conditions(near, small, nu, {"θ₁": theta1, "θ₂": theta2}, eta, rho)


def largest_delta(at: LocalSpectrum, noise: Variance, M: float) -> float:
    """Return the largest Δ₀ that the theorem allows, which is 0 if there is no eigengap."""
    allowed = _ratio(max(1 - at.bar, 0.0) ** 2, 4 * (M + 2 * math.sqrt(noise.L0)) ** 2)
    return min(MAX_DELTA, allowed)


def _ratio(a: float, b: float) -> float:
    if a == 0:
        return 0.0
    return a / b if b > 0 else math.inf
