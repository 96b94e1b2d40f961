# SPDX-License-Identifier: BSD-3-Clause
"""Warnings about a fit: too many components, no counts, not converged, confounded batches."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from sipower._files import quote
from sipower.data.row_blocks import RowBlocks
from sipower.estimators.fit import Fit
from sipower.kernels import Array
from sipower.loop.forecast import forecast_passes, format_duration
from sipower.loop.solve import Status, is_inner
from sipower.nmf.batch_effects import BatchFactorization, BatchFactors
from sipower.nmf.confounding import find_confounding

__all__ = ["confounding_remark", "warn_about_data", "warn_unless_converged"]

# Passes that "auto" needs to a gap of 1e-3 on most sets of benchmarks/zoo, and the time of one of
# them relative to a pass of a simple rule.
AUTO_PASSES, AUTO_PASS_TIME = (200, 800), 2.0

_REMEDIES = {
    Status.STALLED: "The objective no longer falls: accept the gap with a larger `tol`, or use "
    "another `random_state`.",
    Status.WORKING_PRECISION: "The objective no longer falls in float32: use dtype=float64, or "
    "accept the gap with a larger `tol`.",
}


def warn_about_data(V: RowBlocks, n_components: Any) -> None:
    """Warn if the data are all zero or a given number of components exceeds a dimension of V.

    The warnings point to the caller of the function that calls this one.
    """
    if not V.total > 0:
        warnings.warn(
            "The data are all zero: W and H are zero, and no component was learned.", stacklevel=3
        )
    elif isinstance(n_components, Integral) and int(n_components) > min(V.shape):
        samples, features = V.shape
        warnings.warn(
            f"`n_components` is {n_components}, but {min(V.shape)} components reproduce "
            f"{samples:,} samples x {features:,} features exactly: choose fewer, for example by "
            "sipower.rank_selection.",
            stacklevel=3,
        )


def warn_unless_converged(fit: Fit, tol: float, solver: str | None = None) -> None:
    """Warn if a fit has not converged, and say what it would take, from the rounds so far.

    `solver` is the name of the solver if "auto" could take its place, else None. The warning points
    to the call of `fit_transform`.
    """
    if tol > 0 and fit.status in _REMEDIES:
        reached = f"the certified gap is {fit.gap:.2e}, tol is {tol:.2e}. "
        text = f"Not converged after {fit.rounds} rounds: {reached}{_REMEDIES[fit.status]}"
    elif tol > 0 and fit.status in (Status.MAX_ROUNDS, Status.NOT_FINITE):
        reached = f"the certified gap is {fit.gap:.2e}, tol is {tol:.2e}. "
        text = f"Not converged after {fit.rounds} rounds: {reached}{_advice(fit, tol, solver)}"
    elif fit.status is Status.NOT_VERIFIED and fit.verification is not None:
        text = (
            f"Not verified: the certified gap is {fit.gap:.6e} with a divergence of "
            f"{fit.divergence:.10g} by the solver, but {fit.verification.gap:.6e} with "
            f"{fit.verification.divergence:.10g} by the verifier. Do not rely on W and "
            "`components_`; please report the data."
        )
    else:
        return
    warnings.warn(text, ConvergenceWarning, stacklevel=3)


def _advice(fit: Fit, tol: float, solver: str | None) -> str:
    last, total = fit.trace[-1], forecast_passes(fit.trace, tol)
    per_pass = last.seconds / max(last.passes, 1.0)
    text = "Increase `max_iter` or `tol`"
    before = next((r for r in reversed(fit.trace) if r.round < last.round), None)
    if total is not None and before is not None:
        per_round = (last.passes - before.passes) / (last.round - before.round)
        rounds = float(f"{last.round + (total - last.passes) / per_round:.2g}")
        duration = format_duration(total * per_pass)
        text += f" (the gap so far suggests about {rounds:,.0f} rounds, {duration} in all)"
    if solver in (None, "auto"):
        return f"{text}."
    low, high = (format_duration(n * per_pass * AUTO_PASS_TIME) for n in AUTO_PASSES)
    return (
        f"{text}, or use solver='auto', which needs {AUTO_PASSES[0]} to {AUTO_PASSES[1]} passes on "
        f"most data, here {low} to {high}."
    )


def confounding_remark(problem: Any, fit: Fit, batches: Array | None) -> str | None:
    """Return a remark on batches whose effects cannot be told from their components, or None.

    A fit that a function makes for a result of its own, such as one of `rank_selection` with far
    too many components, is not checked.

    Parameters
    ----------
    problem, fit
        The problem and its result, in the scale of the solver.
    batches
        The labels of the batches; None: there are none.
    """
    is_over = fit.status in (Status.MAX_SECONDS, Status.INTERRUPTED)
    if batches is None or is_over or is_inner() or not isinstance(problem, BatchFactorization):
        return None
    try:
        found = find_confounding(problem, BatchFactors(fit.W, fit.H, fit.effects))
    except KeyboardInterrupt:  # the fit is complete and must not be lost
        return (
            "`batch`: the check whether the effects of a batch can be told from its components was "
            "interrupted: fit again to have it."
        )
    if not found:
        return None
    named = _name_features(found[0].features, problem.V.column_names)
    others = [quote(batches[other.batch]) for other in found[1:]]
    also = "" if not others else f" (also found for {', '.join(others)})"
    return (
        f"`batch`: the effects of batch {quote(batches[found[0].batch])}, for example on {named}, "
        f"cannot be told from a component that only this batch contains{also}: fit without "
        "`batch`, add batches that share this component, use fewer components, or increase "
        "`batch_prior`."
    )


def _name_features(features: Array, names: Array | None) -> str:
    """Return the names of features for a message, or their numbers."""
    texts = [str(j) if names is None else quote(names[j]) for j in features]
    text = " and ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)
    text = f"feature{'s' if len(texts) > 1 else ''} {text}"
    return text if names is not None else f"{text} (counted from 0)"
