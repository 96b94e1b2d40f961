# SPDX-License-Identifier: BSD-3-Clause
"""`RowRounds`: a solver for data of which only the rows are held, in memory, on disk or on workers.

A round visits the rows once. It sends H to them and gets sums back that are no larger than H or
its curvatures:

    W ← sweep(Ŵ | Ĥ),  D(V ‖ W Ĥᵀ),  Ŵ = W + β (W − W_last),  g, d and Q at (Ŵ, Ĥ);
    H ← step(Ĥ | g, d, Q),  Ĥ = H + β (H − H_last)

The sweep is one of coordinate descent (`coordinate`). Steps of H need these sums alone
(`feature_step`): power steps first, as long as they gain more per counted pass than a share of
their average gain, then Newton steps on every feature, with the extrapolation of `Extrapolated`.
Power steps are not extrapolated: on KOS (one seed) that raised D at equal
passes. Curvatures need memory for
K (K + 1)/2 numbers of each feature; beyond MAX_CURVATURES numbers, power steps continue.

If the objective has risen, the round is undone. The next one takes a step that cannot raise it, so
the objective never rises. Decisions use the objective and counted passes alone, never a clock.

The other terms of the model (`ModelTerms`) need a few more sums of size K (`RowSums`). Before a
step, H is scaled to the smallest penalties; prior counts leave the scale free, and every component
sums to 1. The rows divide their W by the same numbers. For tall data without a given start the
first H comes from a sample of the rows (`row_sample`).

======  =============================================  ================
symbol  meaning                                        shape
======  =============================================  ================
W, Ĥ    the pair that is kept                          (n, K), (m, K)
Ŵ       extrapolated W, start of the next sweep        (n, K)
H_last  H before extrapolation                         (m, K)
g       ratio sums of the features                     (m, K)
Q       curvatures of the features, upper triangles    (m, K (K + 1)/2)
d       column sums of W, or Σ_i X_ij W_ik             (K,) or (m, K)
======  =============================================  ================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sipower.kernels import FLOOR, Array
from sipower.loop.protocols import RowSolvable
from sipower.nmf.factors import Factors
from sipower.nmf.feature_step import bound_step, grow_entries, newton_step, power_step
from sipower.nmf.guided_start import guide_components
from sipower.nmf.momentum import Momentum, extrapolate
from sipower.nmf.newton import MAX_COMPONENTS
from sipower.nmf.row_sample import ROW_TOL, START_PASSES, fit_sample, is_tall
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rows import FeatureSums, RowTask, RowUpdate, curvature_shape

__all__ = ["RowRounds", "RowState", "draw_start"]

# The most curvatures that are used: 128 MiB, which every group of rows sends to the client in every
# round, and of which each keeps one copy.
MAX_CURVATURES = 2**24
MIN_RELATIVE_GAIN = 0.4  # as in `Auto`; 0.2 gave about the same D on KOS
NO_BATCHES = (
    "The data are available by row only, but `batch` also needs their columns: convert the data to "
    "a store with both orientations."
)


@dataclass(frozen=True)
class RowState(Momentum):
    """The state of `RowRounds`; the field `H` holds Ĥ and `W_ahead` holds Ŵ.

    `phase` is "power", "newton" or, if there is no room for curvatures, "first order". If
    `is_stale`, the sums do not belong to (Ŵ, Ĥ) and are computed before the next step.
    """

    non_negative: ClassVar[bool] = True
    W: Any
    H: Array
    W_ahead: Any
    H_last: Array
    g: Array
    Q: Array
    d: Array
    weighted: Array
    phase: str = "power"
    is_stale: bool = False
    from_sample: bool = False  # whether the first H comes from a sample of the rows
    power_value: float = 0.0  # objective before the first power step
    power_passes: float = 0.0  # passes before the first power step

    @property
    def x(self) -> Factors:
        """The current point (W, H)."""
        return Factors(self.W, self.H)

    @property
    def sums(self) -> FeatureSums:
        """The sums over the rows."""
        return FeatureSums(self.g, self.Q, RowSums(self.d, self.weighted))

    @property
    def beta(self) -> float:
        """The β of the next round; only Newton steps are extrapolated."""
        return 0.0 if self.plain or self.phase != "newton" else self.momentum


@dataclass(frozen=True)
class RowRounds:
    """A solver whose rounds visit the rows once and update H from sums over them.

    Parameters
    ----------
    near
        Whether the start is near a solution; power steps are then skipped.
    """

    needs: ClassVar = (RowSolvable,)
    near: bool = False

    def init(self, problem: Any, x0: Any, seed: int) -> RowState:
        """Return the state at x0 = (W, H), or at a random H with the uniform W."""
        terms, (m, K) = problem.terms, (problem.V.shape[1], problem.rank)
        if terms.exposure is not None and terms.exposure.effects is not None:
            raise ValueError(NO_BATCHES)
        from_sample = x0 is None and terms.is_plain and is_tall(problem.V)
        start = draw_start(problem, seed) if x0 is None else x0
        H = np.array(start.H, problem.dtype, order="C")
        H = _within_bounds(problem, H, H)
        W = problem.place_rows(None if x0 is None else start.W, H)
        affordable = m * K * (K + 1) // 2 <= MAX_CURVATURES and K <= MAX_COMPONENTS
        phase = "newton" if self.near or not terms.is_linear else "power"
        d = np.zeros((m, K) if terms.has_own_d else K)
        sums = np.zeros(H.shape), np.zeros(curvature_shape(m * affordable, K)), d
        return RowState(
            W, H, W, H, *sums, np.zeros((4, K)), phase if affordable else "first order",
            from_sample=from_sample, step=1.0, seed=seed,
        )  # fmt: skip

    def advance(self, problem: Any, state: RowState) -> RowState:
        """Take a step of H, then update the rows of W; the first round only solves the rows."""
        if state.round == 0:
            return self._begin(problem, state)
        if state.is_stale:
            sums, passes = problem.sum_rows(
                Factors(state.W_ahead, state.H), curvatures=state.phase == "newton"
            )
            state = _with_sums(state, sums)
            state = replace(state, is_stale=False, passes=state.passes + passes)
        return self._step(problem, state)

    def _begin(self, problem: Any, state: RowState) -> RowState:
        if state.from_sample:
            H = fit_sample(problem.V, problem.rank, state.seed)
            H = _within_bounds(problem, H, state.H)
            W = problem.place_rows(None, H)
            passes = state.passes + START_PASSES
            state = replace(state, W=W, W_ahead=W, H=H, H_last=H, passes=passes)
            if state.phase == "power":  # H is past the phase in which power steps are better
                state = replace(state, phase="newton")
        is_newton = state.phase == "newton"
        task = RowTask(seed=state.seed, curvatures=is_newton, row_tol=ROW_TOL)
        update = problem.update_rows(state.W, state.W_ahead, state.H, task)
        state = _move(state, update, state.H, state.H)
        return replace(state, power_value=state.value, power_passes=state.passes)

    def _step(self, problem: Any, state: RowState) -> RowState:
        scaled, scale = _balance(problem, state)
        new = _update(problem, scaled)
        H = extrapolate(new, scaled.H_last, state.beta)
        if problem.terms.prior is not None:
            scale = problem.terms.normalising_scale(H)
            new, H = new * scale, H * scale
        H = _within_bounds(problem, H, state.H)
        is_newton = state.phase == "newton"
        task = RowTask(state.beta, scale, state.round, state.seed, curvatures=is_newton)
        update = problem.update_rows(state.W, state.W_ahead, H, task)
        allowed = state.value + (problem.rounding(state.value) if state.plain else 0.0)
        if not update.value <= allowed:
            return _undo(state, update)
        moved = _move(state, update, H, new)
        return _choose_phase(state, moved.accelerate() if state.phase != "power" else moved)


def draw_start(problem: Any, seed: int) -> Factors:
    """Draw a random start, in which half of every guided component is its prior."""
    start: Factors = problem.start(seed)
    guided = guide_components(problem.terms, start.H, problem.column_mass)
    return start if guided is None else start._replace(H=guided[0])


def _move(state: RowState, update: RowUpdate, H: Array, H_last: Array) -> RowState:
    """Return the state after a round that is kept."""
    state = _with_sums(state, update.sums)
    passes, value = state.passes + update.passes, float(min(update.value, state.value))
    if not np.isfinite(state.value):
        value = float(update.value)
    return replace(
        state, W=update.W, W_ahead=update.W_ahead, H=H, H_last=H_last, value=value, passes=passes,
        round=state.round + 1,
    )  # fmt: skip


def _with_sums(state: RowState, sums: FeatureSums) -> RowState:
    """Return the state with new sums; the curvatures stay if there are no new ones."""
    Q = sums.Q if len(sums.Q) else state.Q
    return replace(state, g=sums.g, Q=Q, d=np.asarray(sums.rows.d), weighted=sums.rows.weighted)


def _undo(state: RowState, update: RowUpdate) -> RowState:
    """Return the state before a round that raised the objective; the next one cannot raise it."""
    passes, slower = state.passes + update.passes, state.slow_down()
    has_room = state.phase == "power" and len(state.Q) > 0
    return replace(
        slower, W_ahead=state.W, H_last=state.H, is_stale=True, plain=True,
        phase="newton" if has_room else state.phase, round=state.round + 1, passes=passes,
    )  # fmt: skip


def _choose_phase(before: RowState, state: RowState) -> RowState:
    """Return the state with Newton steps from now on if power steps gain too little."""
    state = replace(state, plain=False)
    if state.phase != "power":
        return state
    gain = (before.value - state.value) / (state.passes - before.passes)
    average = (state.power_value - state.value) / (state.passes - state.power_passes)
    if gain > MIN_RELATIVE_GAIN * average:
        return state
    return replace(state, phase="newton", is_stale=True)


def _balance(problem: Any, state: RowState) -> tuple[RowState, Array | None]:
    """Return the state and the scales of W and H that have the smallest penalty.

    W is not scaled here, but when its rows are updated.
    """
    terms = problem.terms
    if terms.prior is not None or not terms.has_penalty:
        return state, None
    scale = terms.best_scale(state.H, state.sums.rows.penalties)
    if scale is None:
        return state, None
    H, H_last = state.H * scale, state.H_last * scale
    return _with_sums(replace(state, H=H, H_last=H_last), state.sums.rescale(scale)), scale


def _update(problem: Any, state: RowState) -> Array:
    """Return H after a step, before extrapolation."""
    H, model, c = state.H, problem.terms, problem.column_mass
    terms = model.feature_terms(H, state.sums.rows, safe=state.plain)
    if state.phase == "newton":
        return newton_step(H, state.sums, terms, safe=state.plain)
    if state.plain:
        return bound_step(H, state.g, terms)
    new = power_step(H, state.g, terms.d, c) if terms.is_linear else bound_step(H, state.g, terms)
    if state.phase == "power":
        return new
    return grow_entries(new, H, state.sums, model, c, state.momentum)


def _within_bounds(problem: Any, H: Array, start: Array) -> Array:
    """Return H within its bounds, with the fixed entries of the model or else of `start`.

    Features with counts or prior counts are raised to a small floor, the others are set to 0.
    """
    terms, is_seen = problem.terms, problem.column_mass[:, None] > 0
    if terms.prior is not None and terms.prior.columns is not None:
        is_seen = is_seen | (terms.prior.columns > 0)
    floor = (FLOOR * H.max(axis=0)).astype(H.dtype)
    H = np.ascontiguousarray(np.where(is_seen, np.maximum(H, floor), 0), H.dtype)
    terms.raise_to_floor(H)
    terms.insert_fixed(H, start)
    return H
