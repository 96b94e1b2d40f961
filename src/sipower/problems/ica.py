# SPDX-License-Identifier: BSD-3-Clause
"""ICA by kurtosis: max ± E[¼(w·x)⁴ − ¾‖w‖⁴] over ‖w‖ = 1 for whitened x; degree p = 4.

∇f(w) = ±(E[(w·x)³x] − 3‖w‖²w), so the SCI-PI step is the FastICA step (Hyvärinen & Oja 1997). For
independent sources, λ at a solution is the kurtosis of one source and the Hessian vanishes on the
tangent space, so convergence is superlinear. Sub-Gaussian sources have negative kurtosis; for them
the sign is −.

======  =============================================  ======
symbol  meaning                                        shape
======  =============================================  ======
A       whitened samples x_i as rows                   (n, d)
w       direction, one item                            (1, d)
======  =============================================  ======
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_array

from sipower.kernels import Array
from sipower.problems.base import DirectionProblem, Point, register


@register("ica")
class ICA(DirectionProblem):
    """A direction of largest absolute kurtosis: one independent component of the data.

    Parameters
    ----------
    X
        Samples as rows, (n, d). They are whitened first unless ``whitened=True``.
    sign
        1 for super-Gaussian sources (positive kurtosis), −1 for sub-Gaussian ones. `SSciPi` and
        ``Guarded(SciPi())`` increase f and find a source of this kind. `SciPi` alone is FastICA,
        which flips the sign of w when f < 0 and may converge to a source of the other kind.
    orthogonal_to
        Directions (r, d) that the solution must be orthogonal to (deflation); None: none.
    whitened
        Whether X is whitened already.
    """

    degree = 4.0

    def __init__(
        self, X: Any, sign: Literal[1, -1] = 1, *, orthogonal_to: Any = None, whitened: bool = False
    ) -> None:
        X = check_array(X, dtype=np.float64)
        super().__init__(X if whitened else whiten(X)[0], orthogonal_to)
        if sign not in (1, -1):
            raise ValueError(f"`sign` must be 1 or -1, got {sign}.")
        self.sign = sign

    def __repr__(self) -> str:
        return f"ICA({self.A.shape}, sign {self.sign}, {len(self.removed)} directions removed)"

    def value(self, w: Point) -> float:
        """Return ±(¼E[(w·x)⁴] − ¾‖w‖⁴)."""
        u, norm = self.A @ w[0], float(w[0] @ w[0])
        return float(self.sign * ((u**4).mean() / 4 - 0.75 * norm**2))

    def gradient(self, w: Point, S: Array | None = None) -> Point:
        """Return ±(E[(w·x)³x] − 3‖w‖²w), deflated."""
        A = self.A if S is None else S
        g = self.sign * ((A @ w[0]) ** 3 @ A / len(A) - 3 * (w[0] @ w[0]) * w[0])
        return self.project(g[None, :])

    def hessian(self, w: Point, S: Array | None = None) -> Array:
        """Return ±(3 E[(w·x)² x xᵀ] − 3‖w‖² I − 6 w wᵀ), deflated, (1, d, d)."""
        A, w = self.A if S is None else S, self.project(w)
        u = A @ w[0]
        H = (A.T * u**2) @ A / len(A) - np.eye(len(w[0])) * (w[0] @ w[0]) - 2 * w.T @ w
        return self.project_hessian(3 * self.sign * H)


def whiten(X: Array) -> tuple[Array, Array]:
    """Return centred data Z with identity covariance, and M with Z = (X − mean) @ M."""
    # Dividing by a power of two is exact and prevents squares from overflowing.
    unit = 2.0 ** (np.frexp(np.abs(X).max(initial=0.0))[1] - 1)
    centred = X / unit
    centred -= centred.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    if not values[0] > 1e-12 * values[-1]:
        raise ValueError("`X` has a singular covariance matrix: reduce its dimension first.")
    M = vectors / np.sqrt(values)
    return centred @ M, M / unit
