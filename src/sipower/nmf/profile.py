# SPDX-License-Identifier: BSD-3-Clause
"""`Profiled`: a solver in which W is always the exact solution for H.

The solver minimises F(H) = min over W ≥ 0 of D(V ‖ W Hᵀ). The minimiser W(H) is computed row by row
from the uniform start.

At W(H) a step of H needs only two sums over the rows, which are no larger than H:
g = Σ_i (v_i ⊘ z_i) w_iᵀ and d = Σ_i w_i. So the rows may be in memory, on disk or on the workers of
a cluster. W(H) depends on H alone: a lost block of rows can be recomputed to the same bits. The
step of H is a SCI-PI step,

    h_j ← h_j ∘ G_j², scaled to its mass c_j,   G_j = g_j / d,

extrapolated as in `Extrapolated`. If F has risen, the round is undone and the multiplicative step
h ∘ G follows, which cannot raise F. For tall data without a given start the first H comes from
batches of rows (see `online`): a fitted sample, a pass of online EM, then anchored epochs.

======  =========================================  ========
symbol  meaning                                    shape
======  =========================================  ========
g       ratio sums of the features                 (m, K)
d       column sums of W                           (K,)
c       masses: column sums of V                   (m,)
Ĥ       extrapolated H, the next trial point       (m, K)
======  =========================================  ========
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sipower.kernels import FLOOR, Array
from sipower.loop.protocols import Profilable
from sipower.nmf.factors import Factors
from sipower.nmf.init import initial_factors
from sipower.nmf.momentum import Momentum, extrapolate
from sipower.nmf.online import fit_sample, is_tall, run_anchored_epoch, run_averaged_pass
from sipower.nmf.rows import multiplier

__all__ = ["ProfileState", "Profiled"]

ROW_PASSES = 25.0  # approximate cost of solving all rows, in passes


@dataclass(frozen=True)
class ProfileState(Momentum):
    """The state of `Profiled`; if `plain` is true, the next round is a multiplicative step."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array
    g: Array
    d: Array
    H_last: Array
    epochs: int = -1  # anchored epochs after a pass of online EM; if negative, neither is run

    @property
    def x(self) -> Factors:
        """The current point (W, H)."""
        return Factors(self.W, self.H)


@dataclass(frozen=True)
class Profiled:
    """A solver that takes power steps on H and solves the rows of W exactly after each step.

    Parameters
    ----------
    epochs
        Number of anchored epochs after the pass of online EM (see `online`). Both are run only for
        tall data without a given start.
    """

    needs: ClassVar = (Profilable,)
    epochs: int = 1

    def init(self, problem: Any, x0: Any, seed: int) -> ProfileState:
        """Return the state at x0 = (W, H), of which only H is used, or at a random start."""
        if not problem.terms.is_plain:
            raise ValueError(_no_terms(problem.V.has_columns))
        epochs = self.epochs if x0 is None and is_tall(problem.V) else -1
        if x0 is None:
            x0 = initial_factors(problem.V, problem.rank, seed)
        W, H = (np.array(factor, problem.dtype, order="C") for factor in x0)
        H = _lift_to_floor(H, problem.column_mass)
        g, d = np.zeros(H.shape), np.zeros(H.shape[1])
        return ProfileState(W, H, g, d, H, epochs, step=1.0, seed=seed)

    def advance(self, problem: Any, state: ProfileState) -> ProfileState:
        """Find a new H and compute the exact W for it."""
        if state.round == 0:
            H = state.H
            if state.epochs >= 0:
                H = fit_sample(problem.V, problem.rank, state.seed)
                H = run_averaged_pass(problem.V, H, state.seed)
                state = replace(state, passes=state.passes + ROW_PASSES)
            return self._move_to(problem, state, _lift_to_floor(H, problem.column_mass))
        if state.round <= state.epochs:
            H = run_anchored_epoch(problem.V, state.x, state.g, state.seed, state.round)
            state = replace(state, passes=state.passes + ROW_PASSES)
            return self._move_to(problem, state, _lift_to_floor(H, problem.column_mass))
        return self._step(problem, state)

    def _move_to(self, problem: Any, state: ProfileState, H: Array) -> ProfileState:
        """Return the state at a new H and the exact W for it."""
        rows = problem.profile(H)
        passes = state.passes + ROW_PASSES + 1.5
        return replace(
            state,
            W=rows.W, H=H, g=rows.g, d=rows.d, H_last=H,
            value=rows.value, round=state.round + 1, passes=passes,
        )  # fmt: skip

    def _step(self, problem: Any, state: ProfileState) -> ProfileState:
        c = problem.column_mass
        new = _power_step(state, c, power=1 if state.plain else 2)
        H = _lift_to_floor(extrapolate(new, state.H_last, state.beta), c)
        tried = self._move_to(problem, state, H)
        allowed = state.value + (problem.rounding(state.value) if state.plain else 0.0)
        if not tried.value <= allowed:
            undone = replace(state.slow_down(), H_last=state.H)
            return replace(undone, round=tried.round, passes=tried.passes)
        return replace(tried, H_last=new).accelerate()


def _no_terms(has_columns: bool) -> str:
    """Return why other terms of the model are refused, and what to use instead."""
    terms = "weights of single entries, missing values, batches and fixed components"
    if has_columns:
        return f"solver='profile' does not take {terms}: use solver='auto'."
    return (
        f"The data are available by row only, but {terms} also need their columns: convert the "
        "data to a store with both orientations."
    )


def _power_step(state: ProfileState, c: Array, power: int) -> Array:
    """Return h ∘ G for power 1, or h ∘ G² scaled to its mass for power 2."""
    new = state.H * multiplier(state.g, state.d) ** power
    if power == 2:
        mass = new @ state.d
        new *= np.divide(c, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    return np.asarray(new, state.H.dtype)


def _lift_to_floor(H: Array, c: Array) -> Array:
    """Return H, raised to a small floor for features with counts and set to 0 for the others."""
    floor = (FLOOR * H.max(axis=0)).astype(H.dtype)
    return np.ascontiguousarray(np.where(c[:, None] > 0, np.maximum(H, floor), 0), H.dtype)
