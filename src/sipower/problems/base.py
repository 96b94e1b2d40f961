# SPDX-License-Identifier: BSD-3-Clause
"""Finite-sum scale invariant problems: max f(x) = (1/n) Σ f_i(x) over ‖x‖ = 1.

All f_i are scale invariant with the same degree p: f_i(cx) = |c|^p f_i(x). The case
f_i(cx) = f_i(x) + w_i log|c| is called degree p = 0. In both cases c ∇f(cx) = |c|^p ∇f(x).

======  =======================================================  ==========
symbol  meaning                                                  shape
======  =======================================================  ==========
x       point: one unit vector per item                          (items, d)
∇f(x)   gradient, item by item                                   (items, d)
λ       x·∇f(x), the multiplier of the constraint                (items,)
S       batch, of a type that the problem defines                –
======  =======================================================  ==========
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sipower.data.sampling import Scheme
from sipower.kernels import Draw, Stream, batch_size

Point = NDArray[Any]

REGISTRY: dict[str, type[Problem]] = {}
DIFFERENCE = 1e-5  # step of central differences; truncation and rounding errors are about 1e-10


def register(name: str) -> Any:
    """Return a class decorator that adds a problem to the registry under a name."""

    def add(cls: type[Problem]) -> type[Problem]:
        REGISTRY[name] = cls
        return cls

    return add


@dataclass(frozen=True)
class Sampling:
    """The settings of a random batch.

    Parameters
    ----------
    share
        Share s/n of the terms of the finite sum that a batch contains, in (0, 1].
    scheme
        Which entries are drawn; only KL-NMF has schemes other than "vectors".
    replace
        Whether to draw with replacement.
    """

    share: float
    scheme: Scheme = "vectors"
    replace: bool = False


def drawn_rows(A: Any, sampling: Sampling, draw: Draw) -> Any:
    """Draw s of the n rows of A, which form a batch if the terms of a problem are samples."""
    if sampling.scheme != "vectors":
        raise ValueError(
            f"`scheme` must be 'vectors' for this problem, which draws whole samples, got "
            f"{sampling.scheme!r}."
        )
    n = A.shape[0]
    return A[draw.batch(n, batch_size(sampling.share, n), replace=sampling.replace)]


class Problem(ABC):
    """A finite-sum scale invariant problem, the base class of all problems on the sphere.

    A subclass defines `degree`, `shape`, `value`, `gradient` and `batch`; all other methods have
    defaults. Every item of a point that is passed to a method has unit norm.
    """

    degree: float
    maximise: ClassVar[bool] = True
    sequential: ClassVar[bool] = False  # whether items interact and are updated one after another
    evaluation_passes: float = 1.5  # one pass for the residual and half a pass for the value
    value_passes: float = 0.5
    batch_passes: float = 2.0  # passes over a batch per inner step: ∇f_S(x) and ∇f_S(x₀)
    quadratic: ClassVar[bool] = False  # whether the Hessian is the same everywhere
    smooth: bool = True  # whether the Hessian exists everywhere

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The shape of a point, (items, d)."""

    @abstractmethod
    def value(self, x: Point) -> float:
        """Return f(x)."""

    @abstractmethod
    def gradient(self, x: Point, S: Any = None) -> Point:
        """Return ∇f(x), or its unbiased estimate ∇f_S(x) if a batch S is given."""

    @abstractmethod
    def batch(self, sampling: Sampling, draw: Draw) -> Any:
        """Draw a batch S with E[∇f_S] = ∇f."""

    @property
    def terms(self) -> int | None:
        """The number n of terms that the scheme "vectors" draws from; None if it is not known."""
        return None

    def single_item(self, item: int) -> Problem:
        """Return the problem of one item alone; problems with several items override this."""
        if self.shape[0] != 1:
            raise ValueError(
                f"{type(self).__name__} does not define the problem of a single item: override "
                "`single_item`."
            )
        return self

    def anchored_difference(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """Return ∇f_S(x) − α ∇f_S(x₀), which S-SCI-PI adds to α ∇f(x₀) to estimate ∇f(x)."""
        return np.asarray(self.gradient(x, S) - alpha * self.gradient(x0, S))

    def hessian(self, x: Point, S: Any = None) -> NDArray[Any]:
        """Return the Hessians of all items, (items, d, d).

        They are ∇²f(x), or the estimates ∇²f_S(x) if a batch S is given. The base class computes
        them by central differences.
        """
        items, d = self.shape
        out = np.empty((items, d, d))
        for k in range(d):
            e = DIFFERENCE * self.project(np.eye(1, d, k))
            out[:, k] = (self.gradient(x + e, S) - self.gradient(x - e, S)) / (2 * DIFFERENCE)
        return (out + out.transpose(0, 2, 1)) / 2

    @property
    def item_weights(self) -> NDArray[np.float64]:
        """The weights w_j with `value` = Σ_j w_j f_j up to a constant, (items,)."""
        return np.ones(self.shape[0])

    def item_gradient(self, x: Point, item: int) -> NDArray[Any]:
        """Return row `item` of ∇f(x); sequential problems override it with a faster method."""
        return np.asarray(self.gradient(x)[item])

    def inner(self, x: Point, y: Point) -> NDArray[np.float64]:
        """Return x·y, item by item, (items,)."""
        return np.asarray(np.einsum("jk,jk->j", x, y, dtype=np.float64))

    def project(self, x: Point) -> Point:
        """Return the projection of x on the feasible subspace; the base class returns x itself."""
        return x

    def normalise(self, x: Point) -> Point:
        """Project x and divide every item by its norm; a zero item stays zero."""
        x = self.project(x)
        norm = np.sqrt(self.inner(x, x))
        return (x / np.where(norm > 0, norm, 1)[:, None]).astype(x.dtype, copy=False)

    def scale(self, x: Point, g: Point) -> NDArray[np.float64]:
        """Return |λ| = |x·∇f(x)| as a column, with zeros replaced by 1.

        Solvers divide ∇f by |λ|, so that the step size η does not depend on the scale of f.
        """
        size = np.abs(self.inner(x, g))
        return np.where(size > 0, size, 1.0)[:, None]

    def retract(self, x_new: Point, x: Point, threshold: float) -> Point:
        """Map x_new, the result of a step from x, back to the feasible set.

        The base class normalises every item; an item whose x_new is zero keeps its x. Only problems
        with a sign constraint use `threshold`.
        """
        new = self.normalise(x_new)
        return np.where(new.any(axis=1, keepdims=True), new, x)

    def start(self, seed: int) -> Point:
        """Draw a random point of the sphere."""
        items, d = self.shape
        u, v = Draw(seed, Stream.POINT).uniform(2, items, d)
        return self.normalise(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v))

    def residual(self, x: Point) -> float:
        """Return the maximum of ‖∇f(x) − λx‖/|λ| over the items."""
        g = self.gradient(x)
        multiplier = self.inner(x, g)
        error = g - multiplier[:, None] * x
        unit = np.abs(error).max(axis=1, keepdims=True)  # else squares of small errors underflow
        error = np.divide(error, unit, out=np.zeros_like(error), where=unit > 0)
        norm, size = unit[:, 0] * np.sqrt(self.inner(error, error)), np.abs(multiplier)
        with np.errstate(divide="ignore"):  # λ = 0 with ∇f ≠ 0 gives infinity
            return float(np.max(np.where(norm == 0, 0.0, norm / np.where(norm == 0, 1.0, size))))

    def quick_value(self, x: Point) -> float:
        """Return f(x) with an error of at most `rounding`; the base class returns `value`."""
        return float(self.value(x))

    def rounding(self, value: float) -> float:
        """Return the rounding error that a difference of two objectives near `value` may have."""
        return 8 * float(np.finfo(np.float64).eps) * abs(value)

    def is_finite(self, x: Point) -> bool:
        """Return whether x holds neither NaN nor infinity."""
        return bool(np.isfinite(x).all())


class DirectionProblem(Problem):
    """The base class of PCA and ICA: the point is one direction, and the terms are samples.

    Parameters
    ----------
    A
        Samples as rows, (n, d), which the subclass has validated.
    orthogonal_to
        Directions (r, d) that the solution must be orthogonal to (deflation); None: none. They
        need not be orthogonal to each other.
    """

    def __init__(self, A: Any, orthogonal_to: Any) -> None:
        self.A, d = A, A.shape[1]
        rows = np.zeros((0, d)) if orthogonal_to is None else orthogonal_to
        removed = np.atleast_2d(np.asarray(rows, float))
        if removed.shape[1] != d or not np.isfinite(removed).all():
            raise ValueError(
                f"`orthogonal_to` must be finite and of shape (r, {d}), got shape {removed.shape}."
            )
        _, sizes, rows = np.linalg.svd(removed, full_matrices=False)
        self.removed: NDArray[Any] = rows[sizes > 1e-10 * sizes.max(initial=0.0)]
        if len(self.removed) == d:
            raise ValueError(
                f"`orthogonal_to` spans all {d} dimensions: no direction is left to search."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a direction, (1, d)."""
        return 1, int(self.A.shape[1])

    @property
    def terms(self) -> int:
        """The number of samples n."""
        return int(self.A.shape[0])

    def batch(self, sampling: Sampling, draw: Draw) -> Any:
        """Draw s of the n samples."""
        return drawn_rows(self.A, sampling, draw)

    def project(self, x: Point) -> Point:
        """Return x without its component along the directions in `orthogonal_to`.

        The projection is applied twice, because the rounding errors of the first one matter if
        little of x remains.
        """
        for _ in range(2):
            x = np.asarray(x - (x @ self.removed.T) @ self.removed)
        return x

    def project_hessian(self, H: NDArray[Any]) -> NDArray[Any]:
        """Return a Hessian (d, d), projected on the feasible subspace, as an array (1, d, d)."""
        return self.project(self.project(H).T)[None]
