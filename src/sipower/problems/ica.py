# SPDX-License-Identifier: BSD-3-Clause
"""ICA by kurtosis: max ± E[¼(w·x)⁴ − ¾‖w‖⁴] over ‖w‖ = 1, x whitened; degree p = 4.

∇f(w) = ±(E[(w·x)³x] − 3‖w‖²w): the SCI-PI step is the FastICA step (Hyvärinen & Oja 1997). For
independent sources λ* is the kurtosis of one of them and λ̄ = 0, so convergence is superlinear.
Sub-Gaussian sources have negative kurtosis: there −f is maximised.

======  =============================================  ======
symbol  meaning                                        shape
======  =============================================  ======
X       whitened samples x_i as rows                   (n, d)
w       direction, one item                            (1, d)
======  =============================================  ======
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils import check_array

from sipower.kernels import Array, Draw
from sipower.problems.base import Deflation, Point, Problem, Sampling, drawn_rows, register

__all__ = ["ICA", "whiten"]


@register("ica")
class ICA(Problem):
    """A direction of largest absolute kurtosis: one independent component of the data.

    Parameters
    ----------
    X
        Samples as rows, (n, d). They are whitened first unless ``whitened=True``.
    sign
        1 for super-Gaussian sources (positive kurtosis), −1 for sub-Gaussian ones. `SSciPi` and
        ``Guarded(SciPi())`` increase f and find such a source. `SciPi` alone is FastICA, which
        flips the sign of x where f < 0 and may converge to a source of the other kind.
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
        self.X: Array = X if whitened else whiten(X)[0]
        if sign not in (1, -1):
            raise ValueError(f"`sign` must be 1 or -1, got {sign}.")
        self.sign = sign
        self.deflate = Deflation(orthogonal_to, self.X.shape[1])

    def __repr__(self) -> str:
        removed = len(self.deflate.basis)
        return f"ICA({self.X.shape}, sign {self.sign}, {removed} directions removed)"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of w, (1, d)."""
        return 1, self.X.shape[1]

    def value(self, w: Point) -> float:
        """Return ±(¼E[(w·x)⁴] − ¾‖w‖⁴)."""
        u, norm = self.X @ w[0], float(w[0] @ w[0])
        return float(self.sign * ((u**4).mean() / 4 - 0.75 * norm**2))

    def gradient(self, w: Point, S: Array | None = None) -> Point:
        """Return ±(E[(w·x)³x] − 3‖w‖²w), deflated."""
        X = self.X if S is None else S
        g = self.sign * ((X @ w[0]) ** 3 @ X / len(X) - 3 * (w[0] @ w[0]) * w[0])
        return self.deflate(g[None, :])

    def hessian(self, w: Point, S: Array | None = None) -> Array:
        """Return ±(3 E[(w·x)² x xᵀ] − 3‖w‖² I − 6 w wᵀ), deflated, (1, d, d)."""
        X, w = self.X if S is None else S, self.project(w)
        u = X @ w[0]
        H = (X.T * u**2) @ X / len(X) - np.eye(len(w[0])) * (w[0] @ w[0]) - 2 * w.T @ w
        return self.deflate(self.deflate(3 * self.sign * H).T)[None]

    def batch(self, sampling: Sampling, draw: Draw) -> Array:
        """Draw s of the n samples."""
        return np.asarray(drawn_rows(self.X, sampling, draw))

    @property
    def terms(self) -> int:
        """The number of samples n."""
        return len(self.X)

    def project(self, x: Point) -> Point:
        """Return x without its part along the removed directions."""
        return self.deflate(x)


def whiten(X: Array) -> tuple[Array, Array]:
    """Return centred data Z with identity covariance, and M with Z = (X − mean) @ M."""
    # Scaled by a power of two, which is exact, so that no square overflows.
    unit = 2.0 ** (np.frexp(np.abs(X).max(initial=0.0))[1] - 1)
    centred = X / unit
    centred -= centred.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    if not values[0] > 1e-12 * values[-1]:
        raise ValueError("`X` has a singular covariance matrix: reduce its dimension first.")
    M = vectors / np.sqrt(values)
    return centred @ M, M / unit
