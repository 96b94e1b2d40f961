# SPDX-License-Identifier: BSD-3-Clause
"""`Profiled`: a solver in which W is always the exact solution for H.

The solver minimises F(H) = min over W ≥ 0 of D(V ‖ W Hᵀ). The minimiser W(H) is computed row by row
from the uniform start.

At W(H) a step of H needs only two sums over the rows, which are no larger than H:
g = Σ_i (v_i ⊘ z_i) w_iᵀ and d = Σ_i w_i (Σ_i X_ij w_i if entries have weights). So the rows may be
in memory, on disk or on the workers of a cluster. W(H) depends on H alone: a lost block of rows can
be recomputed to the same bits. The step of H is a SCI-PI step,

    h_j ← h_j ∘ G_j², scaled to its mass c_j,   G_j = g_j / d,

extrapolated as in `Extrapolated`. If F has risen, the round is undone and the multiplicative step
h ∘ G follows, which cannot raise F.

The other terms of the model (`ModelTerms`) need a few more sums of size K (`RowSums`). With a
ridge, prior counts or fixed entries a step of H minimises the bound of MU. W(H) is the minimum over
W, so a step that does not raise the objective for the present W does not raise F. For the same
reason H and the sums may first be scaled to the smallest penalties. Prior counts leave the scale
free, and every component sums to 1. For tall data without a given start the first H comes from
batches of rows (see `online`): a fitted sample, a pass of online EM, then anchored epochs.

======  =========================================  ========
symbol  meaning                                    shape
======  =========================================  ========
g       ratio sums of the features                 (m, K)
d       column sums of W, or Σ_i X_ij W_ik         (K,) or (m, K)
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
from sipower.nmf.guided_start import guide_components
from sipower.nmf.momentum import Momentum, extrapolate
from sipower.nmf.mu import minimise_bound
from sipower.nmf.online import fit_sample, is_tall, run_anchored_epoch, run_averaged_pass
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rows import multiplier
from sipower.nmf.terms import ModelTerms
from sipower.problems.item_terms import Terms

__all__ = ["ProfileState", "Profiled", "draw_start"]

ROW_PASSES = 25.0  # approximate cost of solving all rows, in passes
GROWTH = 0.5  # how much an entry of H that is almost zero may grow, as a share of β (G − 1) c
NO_BATCHES = (
    "The data are available by row only, but `batch` also needs their columns: convert the data to "
    "a store with both orientations."
)


@dataclass(frozen=True)
class ProfileState(Momentum):
    """The state of `Profiled`; if `plain` is true, the next round is a multiplicative step."""

    non_negative: ClassVar[bool] = True
    W: Array
    H: Array
    g: Array
    d: Array
    weighted: Array
    H_last: Array
    epochs: int = -1  # anchored epochs after a pass of online EM; if negative, neither is run

    @property
    def x(self) -> Factors:
        """The current point (W, H)."""
        return Factors(self.W, self.H)

    @property
    def sums(self) -> RowSums:
        """What the terms of the features need of W."""
        return RowSums(self.d, self.weighted)


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
        terms, m = problem.terms, problem.V.shape[1]
        if terms.exposure is not None and terms.exposure.effects is not None:
            raise ValueError(NO_BATCHES)
        epochs = self.epochs if x0 is None and terms.is_plain and is_tall(problem.V) else -1
        start = draw_start(problem, seed) if x0 is None else x0
        W, H = (np.array(factor, problem.dtype, order="C") for factor in start)
        H = _within_bounds(problem, H, H)
        d = np.zeros((m, problem.rank) if terms.has_own_d else problem.rank)
        sums = np.zeros(H.shape), d, np.zeros((4, problem.rank))
        return ProfileState(W, H, *sums, H, epochs, step=1.0, seed=seed)

    def advance(self, problem: Any, state: ProfileState) -> ProfileState:
        """Find a new H and compute the exact W for it."""
        if state.round == 0:
            H = state.H
            if state.epochs >= 0:
                H = fit_sample(problem.V, problem.rank, state.seed)
                H = run_averaged_pass(problem.V, H, state.seed)
                state = replace(state, passes=state.passes + ROW_PASSES)
            return self._move_to(problem, state, _within_bounds(problem, H, state.H))
        if state.round <= state.epochs:
            H = run_anchored_epoch(problem.V, state.x, state.g, state.seed, state.round)
            state = replace(state, passes=state.passes + ROW_PASSES)
            return self._move_to(problem, state, _within_bounds(problem, H, state.H))
        return self._step(problem, state)

    def _move_to(self, problem: Any, state: ProfileState, H: Array) -> ProfileState:
        """Return the state at a new H and the exact W for it."""
        rows = problem.profile(H)
        passes = state.passes + ROW_PASSES + 1.5
        return replace(
            state,
            W=rows.W, H=H, g=rows.g, d=rows.d, weighted=rows.sums.weighted, H_last=H,
            value=rows.value, round=state.round + 1, passes=passes,
        )  # fmt: skip

    def _step(self, problem: Any, state: ProfileState) -> ProfileState:
        scaled = _balance(problem.terms, state)
        new = _update(problem, scaled)
        H = extrapolate(new, scaled.H_last, state.beta)
        if problem.terms.prior is not None:
            scale = problem.terms.normalising_scale(H)
            new, H = new * scale, H * scale
        tried = self._move_to(problem, state, _within_bounds(problem, H, state.H))
        allowed = state.value + (problem.rounding(state.value) if state.plain else 0.0)
        if not tried.value <= allowed:
            undone = replace(state.slow_down(), H_last=state.H)
            return replace(undone, round=tried.round, passes=tried.passes)
        return replace(tried, H_last=new).accelerate()


def draw_start(problem: Any, seed: int) -> Factors:
    """Draw a random start, in which half of every guided component is its prior."""
    start: Factors = problem.start(seed)
    guided = guide_components(problem.terms, start.H, problem.column_mass)
    return start if guided is None else start._replace(H=guided[0])


def _balance(terms: ModelTerms, state: ProfileState) -> ProfileState:
    """Return the state with the scales of W and H that have the smallest penalty.

    Only H and the sums over W are scaled, because a step of H needs no more.
    """
    if terms.prior is not None or not terms.has_penalty:
        return state
    scale = terms.best_scale(state.H, state.sums.penalties)
    if scale is None:
        return state
    d, weighted = state.sums.rescale(scale)
    assert d is not None
    H, H_last = state.H * scale, state.H_last * scale
    return replace(state, H=H, g=state.g / scale, d=d, weighted=weighted, H_last=H_last)


def _update(problem: Any, state: ProfileState) -> Array:
    """Return H after a step: a SCI-PI step where there is one, or the minimum of the bound of MU.

    In a plain round it is always the minimum of the bound, which for d alone is h ∘ G.
    """
    H = state.H
    terms = problem.terms.feature_terms(H, state.sums, safe=state.plain)
    if problem.terms.is_plain:
        return _power_step(problem, state, terms)
    bound = minimise_bound(terms, H * state.g)
    new = bound
    if terms.is_linear and not state.plain:
        new = _power_step(problem, state, terms)
    grown = np.maximum(new, _growth(problem.column_mass, state, terms, multiplier(bound, H)))
    prior = problem.terms.prior
    if prior is not None and prior.columns is not None:  # prior counts let entries grow at once
        grown = np.where(prior.columns > 0, new, grown)
    return np.asarray(grown if terms.fixed is None else np.where(terms.fixed, H, grown), H.dtype)


def _power_step(problem: Any, state: ProfileState, terms: Terms) -> Array:
    """Return h ∘ G in a plain round, else h ∘ G² scaled to its mass."""
    d: Any = terms.d
    new = state.H * multiplier(state.g, d) ** (1 if state.plain else 2)
    if not state.plain:
        mass = new @ d if d.ndim == 1 else np.einsum("jk,jk->j", new, d)
        c = problem.column_mass
        new *= np.divide(c, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    return np.asarray(new, state.H.dtype)


def _growth(c: Array, state: ProfileState, terms: Terms, G: Array) -> Array:
    """Return the values to which entries of H grow at least, however small they are, (m, K).

    The bound of MU multiplies an entry by G, so one that is almost zero would need very many
    rounds. Its share of the mass of its feature should grow by about G − 1, as the gap does.
    """
    share = GROWTH * state.beta * np.clip(G - 1, 0, 1) * c[:, None]
    return multiplier(share, np.asarray(terms.d))


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
