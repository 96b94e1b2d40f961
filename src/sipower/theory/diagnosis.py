# SPDX-License-Identifier: BSD-3-Clause
"""`diagnose`: what the convergence theorem says about a problem near its optimum, as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sipower.problems.base import Point, Problem
from sipower.problems.kl import KLBlock
from sipower.solvers.s_sci_pi import check_epoch
from sipower.theory.constants import (
    Curvature,
    LocalSpectrum,
    Variance,
    curvature,
    local_spectrum,
    variance,
)
from sipower.theory.kl import KLSpectrum, kl_spectrum
from sipower.theory.theorem import Conditions, conditions, largest_delta

START_SHARE = 0.25  # default Δ₀ as a share of the largest, at which no eigengap may remain
MAX_RESIDUAL = 1e-4  # largest residual of a point that counts as a solution
MIN_RATE = 1e-4  # a smaller rate has no practical meaning: 10,000 epochs for a factor e


@dataclass(frozen=True)
class Diagnosis:
    """The constants, conditions and rates of the theorem at a solution; prints as a table."""

    at: LocalSpectrum
    noise: Variance
    third: Curvature
    theorem: Conditions
    spectrum: KLSpectrum | None
    verdict: str
    batch: float
    epoch: int

    def __str__(self) -> str:
        at, noise, th = self.at, self.noise, self.theorem
        free = ("ν₁", "ν₂", "ν₃") if th.small_batches.holds else ()
        rows = [
            ("λ*", at.multiplier, f"x·∇f(x); all below in units of it; residual {at.residual:.1e}"),
            ("λ̄", at.bar, "largest |eigenvalue| of the Hessian off x*"),
            ("σ", at.sigma, "norm of the Hessian"),
            ("rate of SCI-PI", at.rate, "(λ̄/λ*)², of 1 − (x·x*)² in a round"),
            ("K", noise.K, noise.method),
            ("L", noise.L, "largest ‖G_S‖²"),
            ("L₀", noise.L0, "the same for batches of one term"),
            ("M", self.third.M, self.third.method),
            *((name, value, "") for name, value in th.theta.items()),
            *(
                (name, value, "not needed: L is small" if name in free else "η ≤ 1 / it")
                for name, value in th.nu.items()
            ),
        ]
        for condition in (th.near, th.small_batches):
            verdict = "holds" if condition.holds else "FAILS"
            rows.append((condition.name, condition.value, f"≤ {condition.limit:.3g}: {verdict}"))
        rows += [
            ("largest η", th.step, f"admissible for s/n = {self.batch:g}, m = {self.epoch}"),
            ("ρ", th.rho, "the error falls by 1 − ρ an epoch; never above 1/4"),
            ("epochs", th.epochs(1e-10), "predicted for ten digits"),
        ]
        if self.spectrum is not None:
            rows += [
                ("b_min, median", float(np.median(self.spectrum.smallest)), "slowest mode of MU"),
                ("b₂, largest", float(self.spectrum.largest.max()), "SCI-PI's factor is 1 − 2b"),
                ("stable η", float(self.spectrum.stable_step.min()), "every item converges under"),
                ("best exponent", float(np.median(self.spectrum.best_exponent)), "median"),
            ]
        lines = [f"{name:16} {value:12.6g}   {words}".rstrip() for name, value, words in rows]
        return "\n".join([*lines, self.verdict])

    __repr__ = __str__


def diagnose(
    problem: Problem,
    x: Point,
    *,
    batch: float = 0.1,
    epoch: int = 10,
    item: int | None = None,
    delta: float | None = None,
) -> Diagnosis:
    """Evaluate the convergence theorem for a problem near its optimum x.

    Parameters
    ----------
    problem, x
        A problem and its solution (items, d), for instance from `solve`.
    batch, epoch
        Share s/n of the terms in a batch and number m of inner steps of S-SCI-PI.
    item
        Number of the item; None: the one on which SCI-PI converges most slowly.
    delta
        Δ₀ = 1 − x₀·x* of the start; None: a quarter of the largest that the theorem allows.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import SciPi, diagnose, solve
    >>> from sipower.problems import PCA
    >>> problem = PCA(np.random.default_rng(0).normal(size=(12, 2)) * [4, 1])
    >>> report = diagnose(problem, solve(problem, SciPi()).x, batch=0.9, epoch=3)
    >>> report.noise.method
    'exact: all batches, the Hessian is constant'
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"`problem` must be a Problem, got a {type(problem).__name__}.")
    x = np.asarray(x, np.float64)
    if problem.sequential:
        raise ValueError(
            f"`diagnose` does not support {type(problem).__name__}, whose items interact: the "
            "theorem is about a single item."
        )
    if x.shape != problem.shape or not problem.is_finite(x):
        raise ValueError(f"`x` must be finite and of shape {problem.shape}, got {x.shape}.")
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"`delta` must be 1 − x₀·x* of the start, in (0, 1), got {delta}.")
    check_epoch(batch, epoch, "vectors")
    j = _slowest_item(problem, x) if item is None else item
    at = local_spectrum(problem, x, j)
    noise = variance(problem, x, batch, item=j)
    third = curvature(problem, x, item=j)
    start = START_SHARE * largest_delta(at, noise, third.M) if delta is None else delta
    if not problem.quadratic:  # constants of the neighbourhood, not of x* alone
        radius = math.sqrt(2 * start)
        noise = variance(problem, x, batch, item=j, radius=radius)
        third = curvature(problem, x, item=j, radius=radius)
        nearest = min(start, START_SHARE * largest_delta(at, noise, third.M))
        start = nearest if delta is None else delta
    theorem = conditions(at, noise, third.M, start, epoch)
    spectrum = kl_spectrum(problem, x) if isinstance(problem, KLBlock) else None
    if spectrum is not None and not len(spectrum.items):
        spectrum = None
    return Diagnosis(
        at, noise, third, theorem, spectrum, _verdict(problem, at, theorem), batch, epoch
    )


def _slowest_item(problem: Problem, x: Point) -> int:
    items = np.flatnonzero(problem.inner(x, problem.gradient(x)) > 0)
    return max((int(j) for j in items), key=lambda j: local_spectrum(problem, x, j).bar, default=0)


def _verdict(problem: Problem, at: LocalSpectrum, theorem: Conditions) -> str:
    """Return in words whether the theorem applies, and if not, why."""
    if not problem.smooth:
        return "The theorem does not apply: f has no Hessian everywhere (p < 2)."
    if at.residual > MAX_RESIDUAL:
        return f"The theorem does not apply: x has the residual {at.residual:.1e}; solve first."
    if at.bar >= 1:
        return "The theorem does not apply: λ̄ ≥ λ*, but it needs λ̄ < λ*."
    if not theorem.near.holds:
        return "The theorem does not apply: Δ₀ is too large; start nearer to x*."
    branch = "L-branch" if theorem.small_batches.holds else "η-branch"
    if theorem.rho < MIN_RATE:
        why = "ν₃ grows as Δ₀^(−3/2)" if branch == "η-branch" else "η is tiny"
        return (
            f"Vacuous ({branch}): the promised rate is ρ = {theorem.rho:.1e}, because {why}. "
            "In practice far larger steps converge."
        )
    ball = "" if problem.quadratic else " Constants are of the neighbourhood, not of the ball."
    return f"The theorem holds ({branch}) with ρ = {theorem.rho:.3g}.{ball}"
