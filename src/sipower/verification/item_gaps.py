# SPDX-License-Identifier: BSD-3-Clause
"""The certified gap of every item, from its definition (docs/general_model.md).

    min over h ≥ 0 of  f(h) = d·h + ½ r ‖h‖² − Σ_i v_i log z_i − Σ_k a_k log h_k,   z_i = b_i·h

======  =====================================================  ==================
symbol  meaning                                                shape
======  =====================================================  ==================
h       factor                                                 (items, K)
g       ratio sums Σ_i b_i v_i/z_i                             (items, K)
c       masses Σ_i v_i                                         (items,)
d       linear term                                            (K,) or (items, K)
r       ridge                                                  (items, 1)
a       prior counts                                           (K,) or (items, K)
t       multiple of v/z that is the point u of the dual        (items, 1)
======  =====================================================  ==================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div, xlogy

from sipower.verification.statement import Float

__all__ = ["dual_gaps", "linear_gaps"]

MAX_STEPS = 60
TINY = np.finfo(float).tiny


def linear_gaps(h: Float, g: Float, d: Float, c: Float) -> Float:
    """Return how much the objective of every item can fall if d is its only term, (items,).

    Scaling h to the mass d·h = c lowers it by kl_div(c, d·h). For G = g/d at the scaled h, it can
    then fall by at most c (max G − 1), because it is convex.
    """
    mass = (d * h).sum(axis=1)
    G = np.divide(g, d, out=np.zeros_like(g), where=d > 0).max(axis=1)
    G *= np.divide(mass, c, out=np.ones_like(c), where=c > 0)
    return np.asarray(kl_div(c, mass) + c * np.maximum(G - 1, 0))


def dual_gaps(
    h: Float, g: Float, d: Float, c: Float, *, a: Any = 0.0, r: Any = 0.0, fixed: Any = False
) -> Float:
    """Return f(h) less the dual objective along u = t v/z, for any terms, (items,).

        dual(t) = C + C log t − t s + Σ_k min over h ≥ 0 of [e_k h + ½ r h² − a_k log h],
        e = d − t g,   C = Σ v,   s = the part Σ_i (v_i/z_i) z⁰_i of the fixed components.

    Each t gives a lower bound of the minimum, so the search for the best one need not be exact. The
    terms −Σ v log z of both sides cancel.
    """
    free = np.broadcast_to(~np.asarray(fixed, bool), h.shape)
    d, a, r = (np.broadcast_to(np.asarray(part, np.float64), h.shape) for part in (d, a, r))
    s = (g * h).sum(axis=1, where=~free, keepdims=True)
    primal = (d * h + r * h * h / 2 - xlogy(a, h)).sum(axis=1, where=free)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = _largest(g, d, c[:, None], s, a, r, free)
    return np.asarray(np.maximum(primal - best, 0))


def _largest(
    g: Float, d: Float, c: Float, s: Float, a: Float, r: Float, free: NDArray[np.bool_]
) -> Float:
    """Return the largest dual objective that Newton's method with bisection finds, (items,)."""

    def minimiser(e: Float) -> Float:
        root = np.sqrt(e**2 + 4 * r * a)
        curved = np.where(e > 0, 2 * a / (e + root), (root - e) / (2 * r))
        return np.where(r > 0, curved, np.where(a > 0, a / e, 0))

    def dual(t: Float) -> Float:
        e = d - t * g
        x = minimiser(e)
        q = np.where(r > 0, e * x, a) + r * x**2 / 2 - xlogy(a, x)  # without a ridge e x = a
        value = (xlogy(c, t) + c - t * s)[:, 0] + q.sum(axis=1, where=free)
        return np.where(np.isfinite(value), value, -np.inf)

    def slopes(t: Float) -> tuple[Float, Float]:
        e = d - t * g
        x = minimiser(e)
        bend = np.where(r > 0, x / np.sqrt(e**2 + 4 * r * a), np.where(a > 0, x**2 / a, 0))
        first = c / t - s - (g * x).sum(axis=1, where=free, keepdims=True)
        bend = np.where(x > 0, bend, 0)
        second = -c / t**2 - (g**2 * bend).sum(axis=1, where=free, keepdims=True)
        return first, second

    # Without a ridge, t is at most min_k d_k/g_k.
    bounded = np.where(free & (r == 0) & (g > 0), d / g, np.inf)
    last = bounded.min(axis=1, keepdims=True)
    is_open = np.any(free & (a > 0), axis=1, keepdims=True)
    low, high = np.zeros_like(last), last.copy()
    t = np.where(last > 1, 1.0, np.where(is_open, 0.999, 1.0) * last)
    best = dual(t)
    for _ in range(MAX_STEPS):
        first, second = slopes(t)
        low, high = np.where(first >= 0, t, low), np.where(first < 0, t, high)
        newton = t - first / second
        middle = (low + np.where(np.isfinite(high), high, 4 * t)) / 2
        inside = (newton > low) & (newton < high)
        at_end = (first > 0) & (newton >= last) & ~is_open
        new = np.where(inside, newton, np.where(at_end, last, middle))
        settled = (np.abs(first) * t <= 1e-15 * c) | ~(new > TINY)
        new = np.where(settled, t, new)
        done = np.abs(new - t) <= 1e-15 * t
        t = new
        best = np.maximum(best, dual(t))
        if done.all():
            break
    return best
