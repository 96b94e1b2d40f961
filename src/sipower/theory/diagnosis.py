# SPDX-License-Identifier: BSD-3-Clause
"""`diagnose`: a table of what the convergence theorem predicts for a problem near its optimum."""

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

START_SHARE = 0.25  # default Δ₀ / largest allowed Δ₀, at which no eigengap may be left
MAX_RESIDUAL = 1e-4  # largest residual of a point that counts as a solution
MIN_RATE = 1e-4  # with a smaller ρ, reducing the error by a factor e takes over 10,000 epochs


@dataclass(frozen=True)
class Diagnosis:
    """The constants, conditions and rates of the theorem at a solution; `print` shows a table."""

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
            ("λ*", at.multiplier, f"x·∇f(x), the unit of all below; residual {at.residual:.1e}"),
            ("λ̄", at.bar, "largest |eigenvalue| of the Hessian on the tangent space"),
            ("σ", at.sigma, "norm of the Hessian"),
            ("rate of SCI-PI", at.rate, "(λ̄/λ*)², factor of 1 − (x·x*)² per round"),
            ("K", noise.K, noise.method),
            ("L", noise.L, "largest ‖G_S‖²"),
            ("L₀", noise.L0, "the same for batches of one term"),
            ("M", self.third.M, self.third.method),
            *((name, value, "") for name, value in th.theta.items()),
            *(
                (name, value, "not needed: L is small" if name in free else f"η ≤ 1/{name}")
                for name, value in th.nu.items()
            ),
        ]
        for condition in (th.near, th.small_batches):
            verdict = "holds" if condition.holds else "FAILS"
            rows.append((condition.name, condition.value, f"≤ {condition.limit:.3g}: {verdict}"))
        rows += [
            ("largest η", th.step, f"admissible for s/n = {self.batch:g}, m = {self.epoch}"),
            ("ρ", th.rho, "an epoch multiplies the error by 1 − ρ; ρ is at most 1/4"),
            ("epochs", th.epochs(1e-10), "predicted until 1e-10 of the error is left"),
        ]
        if self.spectrum is not None:
            rows += [
                ("b_min, median", float(np.median(self.spectrum.smallest)), "slowest mode of MU"),
                ("b₂, largest", float(self.spectrum.largest.max()), "SCI-PI's factor is 1 − 2b"),
                ("stable η", float(self.spectrum.stable_step.min()), "smaller η converge locally"),
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
    batch
        Share s/n of the terms in a batch of S-SCI-PI.
    epoch
        Number m of inner steps of S-SCI-PI.
    item
        Number of the item to evaluate; None: the item on which SCI-PI converges most slowly.
    delta
        Δ₀ = 1 − x₀·x* of the start x₀; None: a quarter of the largest Δ₀ that the theorem allows.

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
            "theorem holds for a single item only."
        )
    if x.shape != problem.shape:
        raise ValueError(f"`x` must have shape {problem.shape}, got {x.shape}.")
    if not problem.is_finite(x):
        raise ValueError("`x` must be finite, got NaN or infinity.")
    if delta is not None and not 0 < delta < 1:
        raise ValueError(f"`delta` must be 1 − x₀·x* of the start, in (0, 1), got {delta}.")
    check_epoch(batch, epoch, "vectors")
    j = _slowest_item(problem, x) if item is None else item
    at = local_spectrum(problem, x, j)
    noise = variance(problem, x, batch, item=j)
    third = curvature(problem, x, item=j)
    start = START_SHARE * largest_delta(at, noise, third.M) if delta is None else delta
    if not problem.quadratic:  # the constants are needed in a neighbourhood, not only at x*
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
    """Return a sentence that says whether the theorem applies and, if not, why not."""
    if not problem.smooth:
        return "The theorem does not apply: f does not have a Hessian everywhere (p < 2)."
    if at.residual > MAX_RESIDUAL:
        return f"The theorem does not apply: x has the residual {at.residual:.1e}; solve first."
    if at.bar >= 1:
        return "The theorem does not apply: it requires λ̄ < λ*, but λ̄ ≥ λ*."
    if not theorem.near.holds:
        return "The theorem does not apply: Δ₀ is too large; start nearer to x*."
    branch = "L-branch" if theorem.small_batches.holds else "η-branch"
    if theorem.rho < MIN_RATE:
        why = "ν₃ grows as Δ₀^(−3/2)" if branch == "η-branch" else "η is tiny"
        return (
            f"Vacuous ({branch}): the promised rate is ρ = {theorem.rho:.1e}, because {why}. "
            "In practice far larger steps converge."
        )
    ball = "" if problem.quadratic else " The constants are those near x*, not of the whole ball."
    return f"The theorem holds ({branch}) with ρ = {theorem.rho:.3g}.{ball}"
