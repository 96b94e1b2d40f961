# SPDX-License-Identifier: BSD-3-Clause
"""Steps of H from sums over the rows of W, without the data.

Far from a solution, and where curvatures would be too large, a step is a SCI-PI step,

    h_j ← h_j ∘ G_j², scaled to its mass c_j,   G_j = g_j / d,

or, with a ridge, prior counts or fixed entries, the minimum of the bound of MU. With curvatures a
step is a Newton step on every feature,

    p = argmin r·p + ½ p·Qp over h + p ≥ 0,   h ← h + t p,
    r = d + ρh − g − a ⊘ h,   Q = Σ_i (v_i/z_i²) w_i w_iᵀ + diag(ρ + a ⊘ h²)

with the ridge ρ and the prior counts a. The length t = s/(κ + ms) with s = −r·p, κ = p·Qp and
m = max_k (−p_k/h_k)₊ minimises an upper bound of the objective: −v log z is self-concordant along
p, and −(w_i·p)/z_i ≤ m for every row i, because z_i = Σ_k w_ik h_k is a sum of non-negative terms.
So a step of this length cannot raise the objective, whatever the data are. The bound is often too
careful, so t is at least MIN_LENGTH in a round that may be undone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sipower import kernels
from sipower.kernels import Array, threads
from sipower.nmf.momentum import MIN_SHARE
from sipower.nmf.mu import minimise_bound
from sipower.nmf.rows import FeatureSums, multiplier
from sipower.nmf.terms import ModelTerms
from sipower.problems.item_terms import Float, Terms

__all__ = ["bound_step", "newton_direction", "newton_step", "power_step", "step_length"]

MODEL_SWEEPS = 5  # of coordinate descent on the quadratic model; 20: about the same D on KOS
MIN_LENGTH = 0.9  # 0.7 gave about the same D on KOS; with 1, the gap was very large in early rounds
GROWTH = 0.5  # how much an entry of H that is almost zero may grow, as a share of β (G − 1) c
FEATURES_PER_BLOCK = 256


# ---- steps without curvatures ------------------------------------------------------------------


def power_step(H: Array, g: Array, d: Any, c: Array) -> Array:
    """Return h ∘ G² of every feature, scaled to its mass c."""
    new = H * multiplier(g, d) ** 2
    mass = new @ d if d.ndim == 1 else np.einsum("jk,jk->j", new, d)
    new *= np.divide(c, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    return np.asarray(new, H.dtype)


def bound_step(H: Array, g: Array, terms: Terms) -> Array:
    """Return the minimum of the bound of MU, which for d alone is h ∘ G; fixed entries stay."""
    new = minimise_bound(terms, H * g)
    return np.asarray(new if terms.fixed is None else np.where(terms.fixed, H, new), H.dtype)


def grow_entries(
    new: Array, H: Array, sums: FeatureSums, model: ModelTerms, c: Array, share: float
) -> Array:
    """Return H after a step with entries that grow by a minimum, however small they are.

    A step that multiplies entries needs very many rounds for one that is almost zero. Its share of
    the mass of its feature should grow by about G − 1, as the gap does. Prior counts let entries
    grow at once.
    """
    terms = model.feature_terms(H, sums.rows, safe=False)
    G = multiplier(minimise_bound(terms, H * sums.g), H)
    least = multiplier(GROWTH * share * np.clip(G - 1, 0, 1) * c[:, None], np.asarray(terms.d))
    stays = np.zeros(H.shape, bool) if terms.fixed is None else np.asarray(terms.fixed, bool)
    if model.prior is not None and model.prior.columns is not None:
        stays = stays | (model.prior.columns > 0)
    return np.asarray(np.where(stays, new, np.maximum(new, least)), H.dtype)


# ---- Newton steps ------------------------------------------------------------------------------


def newton_step(H: Array, sums: FeatureSums, terms: Terms, *, safe: bool) -> Array:
    """Return H after a Newton step on every feature; if `safe`, no step can raise the objective.

    A feature whose curvatures are not finite takes a step of MU instead.
    """
    h = H.astype(np.float64)
    r, Q, room = _model(h, sums, terms)
    p, kappa = newton_direction(r, Q, room)
    t = step_length(h, r, p, kappa)
    if not safe:
        t = np.maximum(t, MIN_LENGTH)
    with np.errstate(invalid="ignore"):
        new = np.maximum(h + t[:, None] * p, 0)
    sound = np.isfinite(new).all(axis=1)
    if not sound.all():
        new[~sound] = bound_step(H, sums.g, terms)[~sound]
    new = new if terms.fixed is None else np.where(terms.fixed, H, new)
    return np.asarray(new, H.dtype)


def _model(h: Float, sums: FeatureSums, terms: Terms) -> tuple[Float, Float, Float]:
    """Return r, Q and how much every entry may decrease, which is negative if it is fixed."""
    d: Any = terms.d
    r, room, diagonal = d - sums.g, h.copy(), np.zeros(h.shape)
    if terms.has_ridge:
        ridge = np.reshape(terms.ridge, (-1, 1))
        r, diagonal = r + ridge * h, diagonal + ridge
    if terms.prior is not None:
        ratio = np.divide(terms.prior, h, out=np.zeros(h.shape), where=h > 0)
        diagonal = diagonal + np.divide(ratio, h, out=np.zeros(h.shape), where=h > 0)
        r, room = r - ratio, np.where(ratio > 0, (1 - MIN_SHARE) * h, h)
    if terms.fixed is not None:
        room = np.where(terms.fixed, -1.0, room)
    Q = sums.Q
    if diagonal.any():
        rank, Q = h.shape[1], Q.copy()
        Q[:, [k * rank - k * (k - 1) // 2 for k in range(rank)]] += diagonal
    return np.ascontiguousarray(r), Q, np.ascontiguousarray(room)


def newton_direction(r: Float, Q: Float, room: Float) -> tuple[Float, Float]:
    """Return p ≥ −room of every feature, (m, K), and κ = p·Qp, (m,)."""
    p, kappa = np.zeros(r.shape), np.zeros(len(r))

    def task(block: int) -> None:
        begin = FEATURES_PER_BLOCK * block
        end = min(begin + FEATURES_PER_BLOCK, len(r))
        kernels.model_steps(Q, r, room, begin, end, MODEL_SWEEPS, p, kappa)

    count = -(-len(r) // FEATURES_PER_BLOCK)
    threads.run_blocks(count, task, threads.count_threads(None))
    return p, kappa


def step_length(h: Float, r: Float, p: Float, kappa: Float) -> Float:
    """Return t = s/(κ + ms), at most 1, of every feature, (m,)."""
    s = -np.einsum("jk,jk->j", r, p)
    m = np.divide(-p, h, out=np.zeros_like(h), where=h > 0).max(axis=1).clip(0)
    bound = kappa + m * s
    t = np.divide(s, bound, out=np.zeros_like(s), where=bound > 0)
    return np.asarray(np.clip(t, 0, 1))
