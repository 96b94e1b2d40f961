# SPDX-License-Identifier: BSD-3-Clause
"""Finite-sum scale invariant problems: max f(x) = (1/n) Σ f_i(x) over ‖x‖ = 1.

Every f_i is scale invariant of one degree p: f_i(cx) = |c|^p f_i(x), or, counted as p = 0,
f_i(cx) = f_i(x) + w_i log|c|. So c ∇f(cx) = |c|^p ∇f(x).

======  =======================================================  ==========
symbol  meaning                                                  shape
======  =======================================================  ==========
x       point: one unit vector per item                          (items, d)
∇f(x)   gradient, item by item                                   (items, d)
λ       x·∇f(x), the multiplier of the constraint                (items,)
S       batch, whatever the problem draws                        –
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
DIFFERENCE = 1e-5  # step of central differences: errors of 1e-10 from curvature and from rounding


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
        Share s/n of the terms of the finite sum, in (0, 1].
    scheme
        Which entries are drawn; only KL-NMF has schemes other than "vectors".
    replace
        Whether to draw with replacement.
    """

    share: float
    scheme: Scheme = "vectors"
    replace: bool = False


def drawn_rows(A: Any, sampling: Sampling, draw: Draw) -> Any:
    """Draw s of the n rows of A: the batch of a problem whose terms are samples."""
    if sampling.scheme != "vectors":
        raise ValueError(
            f"`scheme` must be 'vectors' for this problem, which draws whole samples, got "
            f"{sampling.scheme!r}."
        )
    n = A.shape[0]
    return A[draw.batch(n, batch_size(sampling.share, n), replace=sampling.replace)]


class Problem(ABC):
    """A finite-sum scale invariant problem, the base class of all problems on the sphere.

    The symbols are those of the module. A subclass defines `degree`, `shape`, `value`, `gradient`
    and `batch`; the rest follows. Points passed to the methods have unit norm item by item.
    """

    degree: float
    maximise: ClassVar[bool] = True
    sequential: ClassVar[bool] = False  # whether items interact and are updated one after another
    evaluation_passes: float = 1.5  # one pass for the residual and half a pass for the value
    value_passes: float = 0.5
    batch_passes: float = 2.0  # passes over the batch in an inner step: ∇f_S(x) and ∇f_S(x₀)
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
        """Return ∇f(x), or its unbiased estimate ∇f_S(x) from a batch."""

    @abstractmethod
    def batch(self, sampling: Sampling, draw: Draw) -> Any:
        """Draw a batch S with E[∇f_S] = ∇f."""

    @property
    def terms(self) -> int | None:
        """The number n of terms that the scheme "vectors" draws from; None if it is not known."""
        return None

    def single_item(self, item: int) -> Problem:
        """Return the problem of one item alone, for problems that have several."""
        if self.shape[0] != 1:
            raise ValueError(
                f"{type(self).__name__} does not define the problem of a single item: override "
                "`single_item`."
            )
        return self

    def anchored_difference(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """Return ∇f_S(x) − α ∇f_S(x₀), which a batch adds to α ∇f(x₀)."""
        return np.asarray(self.gradient(x, S) - alpha * self.gradient(x0, S))

    def hessian(self, x: Point, S: Any = None) -> NDArray[Any]:
        """Return ∇²f(x) or ∇²f_S(x) of every item, (items, d, d); here by central differences."""
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
        """Return the projection of x on the searched subspace; here, x itself."""
        return x

    def normalise(self, x: Point) -> Point:
        """Return x/‖x‖ of the projected x, item by item; a zero item stays zero."""
        x = self.project(x)
        norm = np.sqrt(self.inner(x, x))
        return (x / np.where(norm > 0, norm, 1)[:, None]).astype(x.dtype, copy=False)

    def scale(self, x: Point, g: Point) -> NDArray[np.float64]:
        """Return |λ| = |x·∇f(x)| as a column, 1 where it is zero.

        Dividing f by it makes η a step size that does not depend on the scale of f.
        """
        size = np.abs(self.inner(x, g))
        return np.where(size > 0, size, 1.0)[:, None]

    def retract(self, x_new: Point, x: Point, threshold: float) -> Point:
        """Map the step x → x_new back to the feasible set; here, to the sphere.

        An item whose x_new is zero keeps its x. `threshold` is used by problems with a sign
        constraint.
        """
        new = self.normalise(x_new)
        return np.where(new.any(axis=1, keepdims=True), new, x)

    def start(self, seed: int) -> Point:
        """Draw a random point of the sphere."""
        items, d = self.shape
        u, v = Draw(seed, Stream.POINT).uniform(2, items, d)
        return self.normalise(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v))

    def residual(self, x: Point) -> float:
        """Return ‖∇f(x) − λx‖/|λ|, the largest over the items."""
        g = self.gradient(x)
        multiplier = self.inner(x, g)
        off = g - multiplier[:, None] * x
        unit = np.abs(off).max(axis=1, keepdims=True)  # squares of a small gradient would underflow
        off = np.divide(off, unit, out=np.zeros_like(off), where=unit > 0)
        norm, size = unit[:, 0] * np.sqrt(self.inner(off, off)), np.abs(multiplier)
        with np.errstate(divide="ignore"):  # λ = 0 with ∇f ≠ 0 gives infinity
            return float(np.max(np.where(norm == 0, 0.0, norm / np.where(norm == 0, 1.0, size))))

    def quick_value(self, x: Point) -> float:
        """Return f(x) to within `rounding`, as fast as possible; the base class returns `value`."""
        return float(self.value(x))

    def rounding(self, value: float) -> float:
        """Return how far two equal objectives may differ by rounding alone."""
        return 8 * float(np.finfo(np.float64).eps) * abs(value)

    def is_finite(self, x: Point) -> bool:
        """Return whether x holds neither NaN nor infinity."""
        return bool(np.isfinite(x).all())


class DirectionProblem(Problem):
    """A problem of one direction whose terms are samples, the base class of PCA and ICA.

    Parameters
    ----------
    A
        Samples as rows, (n, d), validated.
    orthogonal_to
        Directions (r, d) that the solution must be orthogonal to (deflation), which need not be
        orthogonal to each other; None: none.
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
        """Return x without its part along the removed directions.

        The second pass removes what rounding leaves when little of x remains.
        """
        for _ in range(2):
            x = np.asarray(x - (x @ self.removed.T) @ self.removed)
        return x

    def project_hessian(self, H: NDArray[Any]) -> NDArray[Any]:
        """Return a Hessian (d, d) restricted to the searched directions, (1, d, d)."""
        return self.project(self.project(H).T)[None]
