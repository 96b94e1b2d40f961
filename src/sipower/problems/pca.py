# SPDX-License-Identifier: BSD-3-Clause
"""PCA: max ½ xᵀCx over ‖x‖ = 1, C = AᵀA/n; degree p = 2.

f_i(x) = ½(a_i·x)², ∇f_i(x) = (a_i·x) a_i. SCI-PI is the power iteration: near a solution a round
multiplies the squared error by (λ₂/λ₁)², where λ₁ and λ₂ are the two largest eigenvalues of C.
S-SCI-PI is VR Power (C. Kim, D. Klabjan 2020). The data are not centred.

======  ===================  ======
symbol  meaning              shape
======  ===================  ======
A       samples a_i as rows  (n, d)
x       direction, one item  (1, d)
======  ===================  ======
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from sipower.problems.base import DirectionProblem, Point, register


@register("pca")
class PCA(DirectionProblem):
    """The first principal direction of the rows of A, or the first orthogonal to given directions.

    Parameters
    ----------
    A
        Samples as rows, (n, d), dense or sparse. They are not centred.
    orthogonal_to
        Directions (r, d) that the solution must be orthogonal to (deflation); None: none.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower import SSciPi, Stop, solve
    >>> from sipower.problems import PCA
    >>> A = np.random.default_rng(0).normal(size=(500, 5)) * [3, 2, 1, 1, 1]
    >>> r = solve(PCA(A), SSciPi(), stop=Stop(tol=1e-10))
    >>> bool(abs(np.linalg.svd(A)[2][0] @ r.x[0]) > 1 - 1e-12)
    True
    """

    degree = 2.0
    quadratic = True
    batch_passes = 1.0  # an inner step needs one product, C_S(x − αx₀)

    def __init__(self, A: Any, *, orthogonal_to: Any = None) -> None:
        A = check_array(A, accept_sparse="csr", dtype=[np.float64, np.float32])
        largest, limit = float(abs(A).max()), float(np.finfo(A.dtype).max) ** 0.25
        if not largest > 0:
            raise ValueError("`A` must have a nonzero entry: zero data have no direction.")
        if not 1 / limit < largest < limit:
            raise ValueError(
                f"`A` must have its largest entry between {1 / limit:.0e} and {limit:.0e} in "
                f"{A.dtype}, got {largest}: rescale it."
            )
        super().__init__(A, orthogonal_to)

    def __repr__(self) -> str:
        norm, removed = float(abs(self.A).sum()), len(self.removed)
        return f"PCA({self.A.shape}, norm {norm!r}, {removed} directions removed)"

    def value(self, x: Point) -> float:
        """Return ½ xᵀCx."""
        u = self.A @ x[0]
        return float(u @ u / (2 * self.A.shape[0]))

    def gradient(self, x: Point, S: Any = None) -> Point:
        """Return Cx or C_S x, deflated."""
        A = self.A if S is None else S
        g: NDArray[Any] = A.T @ (A @ x[0]) / A.shape[0]
        return self.project(g[None, :])

    def anchored_difference(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """Return C_S(x − αx₀), which is ∇f_S(x) − α ∇f_S(x₀)."""
        return self.gradient(x - alpha * x0, S)

    def hessian(self, x: Point, S: Any = None) -> NDArray[Any]:
        """Return C or C_S, deflated, (1, d, d)."""
        A = self.A if S is None else S
        C = A.T @ A / A.shape[0]
        dense = C if isinstance(C, np.ndarray) else C.toarray()
        return self.project_hessian(dense)

    def rounding(self, value: float) -> float:
        """Return the rounding error that f = `value` may have: 8 eps |f|, eps of the dtype of A."""
        return 8 * float(np.finfo(self.A.dtype).eps) * abs(value)
