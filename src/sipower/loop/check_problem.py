# SPDX-License-Identifier: BSD-3-Clause
"""`check_problem`: tests of a scale invariant problem, for users who write their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sipower.kernels import Array, Draw
from sipower.kernels.seeds import DEFAULT_SEED, RNG, choose_seed
from sipower.problems.base import Problem, Sampling

DRAWS = 400  # number of batches that are averaged to check that batches are unbiased


@dataclass(frozen=True)
class Check:
    """The result of one check: the measured number and the allowed range."""

    name: str
    measured: float
    allowed: str
    holds: bool

    def __str__(self) -> str:
        verdict = "ok    " if self.holds else "FAILED"
        return f"{verdict}  {self.name:44}  {self.measured:10.2e}   (allowed: {self.allowed})"


@dataclass(frozen=True)
class Report:
    """The results of all checks of a problem."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(str(check) for check in self.checks)


def check_problem(problem: Problem, *, seed: int = DEFAULT_SEED, rng: RNG = None) -> Report:
    """Check a scale invariant problem at a random point.

    The function checks that the gradient agrees with the value (by a Taylor expansion), that
    c∇f(cx) = |c|^p ∇f(x) and ∇²f(x)x = (p−1)∇f(x), and that batches are unbiased and reproducible.

    Parameters
    ----------
    problem
        The problem to check.
    seed
        Seed of the random point and of the batches.
    rng
        Seed or NumPy generator, instead of `seed`.

    Returns
    -------
    Report
        The results of all checks, which `print` shows as a table.

    Raises
    ------
    ValueError
        If a check fails; the message is the table with all results.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import check_problem
    >>> from sipower.problems import PCA
    >>> check_problem(PCA(np.random.default_rng(0).normal(size=(40, 3)))).ok
    True
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"`problem` must be a Problem, got a {type(problem).__name__}.")
    seed = choose_seed(rng, "seed", seed)
    x = problem.start(seed)
    checks = [
        _check_slope(problem, x, seed),
        _check_scale_law(problem, x),
        _check_hessian(problem, x),
    ]
    if not problem.sequential:
        checks += _check_batches(problem, x, seed)
    report = Report(tuple(checks))
    if not report.ok:
        raise ValueError(f"`problem` fails {sum(not c.holds for c in checks)} check(s):\n{report}")
    return report


def _check_slope(problem: Problem, x: Array, seed: int) -> Check:
    """Check that |f(x(t)) − f(x) − t ∇f·v| is of order t² for x(t) = normalised(x + tv), v ⊥ x."""
    v = problem.start(seed + 1)
    v = v - problem.inner(v, x)[:, None] * x
    slope = float((problem.item_weights * problem.inner(problem.gradient(x), v)).sum())
    steps = np.array([1e-2, 1e-3])
    value = problem.value(x)
    changes = [problem.value(problem.normalise(x + t * v)) - value for t in steps]
    errors = np.abs(np.array(changes) - steps * slope) + 1e-15 * abs(value)
    order = np.inf  # for an f that is constant on the sphere, where all errors are rounding errors
    if errors.max() > min(problem.rounding(value), 1e-10 * (1 + abs(value))):
        order = float(np.log(errors[0] / errors[1]) / np.log(steps[0] / steps[1]))
    return Check("order of the Taylor error of the gradient", order, "at least 1.7", order >= 1.7)


def _check_scale_law(problem: Problem, x: Array) -> Check:
    worst = 0.0
    for c in (2.5, 0.3) if problem.sequential else (2.5, 0.3, -1.7):
        scaled, base = x.copy(), problem.gradient(x)
        if problem.sequential:  # the law holds for each row separately
            scaled[0] *= c
            left, right = c * problem.gradient(scaled)[0], c**problem.degree * base[0]
        else:
            left, right = c * problem.gradient(c * x), abs(c) ** problem.degree * base
        worst = max(worst, float(np.linalg.norm(left - right) / np.linalg.norm(right)))
    return _at_most("c ∇f(cx) = |c|^p ∇f(x)", worst, max(1e-8, _precision(problem, x)))


def _check_hessian(problem: Problem, x: Array) -> Check:
    """Check ∇²f(x)x = (p − 1)∇f(x) by central differences; if items interact, only for item 0."""
    precision = _precision(problem, x)
    h, where = max(1e-5, precision ** (1 / 3)), slice(0, 1) if problem.sequential else slice(None)
    up, down = x.copy(), x.copy()
    up[where] *= 1 + h
    down[where] *= 1 - h
    along = (problem.gradient(up) - problem.gradient(down))[where] / (2 * h)
    base = problem.gradient(x)[where]
    error = np.linalg.norm(along - (problem.degree - 1) * base) / np.linalg.norm(base)
    return _at_most("∇²f(x) x = (p − 1) ∇f(x)", float(error), max(1e-5, 10 * h**2))


def _check_batches(problem: Problem, x: Array, seed: int) -> list[Check]:
    full = problem.gradient(x)
    sampling = Sampling(0.25)
    drawn = [
        problem.gradient(x, problem.batch(sampling, Draw(seed, round=r))) for r in range(DRAWS)
    ]
    spread = np.std(drawn, axis=0) / np.sqrt(DRAWS) + 1e-12 * np.abs(full).max()
    bias = float((np.abs(np.mean(drawn, axis=0) - full) / spread).max())
    again = problem.gradient(x, problem.batch(sampling, Draw(seed, round=0)))
    whole = problem.gradient(x, problem.batch(Sampling(1.0), Draw(seed)))
    error = float(np.linalg.norm(whole - full) / np.linalg.norm(full))
    return [
        Check("bias of ∇f_S in standard errors", bias, "at most 6", bias <= 6),
        _at_most("∇f_S = ∇f for the whole batch", error, max(1e-8, _precision(problem, x))),
        _at_most("same key, same batch", float(np.abs(again - drawn[0]).max()), 0.0),
    ]


def _precision(problem: Problem, x: Array) -> float:
    """Return the relative rounding error of the objective, which is larger for float32 data."""
    value = problem.value(x)
    return 10 * problem.rounding(value) / max(abs(value), 1e-300)


def _at_most(name: str, measured: float, limit: float) -> Check:
    return Check(name, measured, f"at most {limit:.0e}", measured <= limit)
