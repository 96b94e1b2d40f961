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

__all__ = ["REGISTRY", "Deflation", "Point", "Problem", "Sampling", "drawn_rows", "register"]

Point = NDArray[Any]

REGISTRY: dict[str, type[Problem]] = {}
DIFFERENCE = 1e-5  # of central differences: errors of 1e-10 from curvature and from rounding


def register(name: str) -> Any:
    """Class decorator: enter a problem into the registry under its name."""

    def enter(cls: type[Problem]) -> type[Problem]:
        REGISTRY[name] = cls
        return cls

    return enter


@dataclass(frozen=True)
class Sampling:
    """How a batch is drawn: the share s/n of the terms, by which scheme, with replacement or not.

    A problem whose terms are single vectors knows the scheme "vectors" only.
    """

    share: float
    scheme: Scheme = "vectors"
    replace: bool = False


class Deflation:
    """Directions found before, (r, d): a search for one more is orthogonal to them."""

    def __init__(self, found: Any, d: int) -> None:
        basis = np.zeros((0, d)) if found is None else np.atleast_2d(np.asarray(found, float))
        if basis.shape[1] != d or not np.isfinite(basis).all():
            raise ValueError(f"found has shape {basis.shape}, expected (r, {d}) finite numbers.")
        _, sizes, rows = np.linalg.svd(basis, full_matrices=False)
        self.basis: NDArray[Any] = rows[sizes > 1e-10 * sizes.max(initial=0.0)]
        if len(self.basis) == d:
            raise ValueError(f"found spans all {d} dimensions: nothing is left to search.")

    def __call__(self, x: Point) -> Point:
        """x without its part along what was found, also where rounding is all that remains."""
        for _ in range(2):
            x = np.asarray(x - (x @ self.basis.T) @ self.basis)
        return x


def drawn_rows(A: Any, sampling: Sampling, draw: Draw) -> Any:
    """s of the n rows of A: the batch of a problem whose terms are samples."""
    if sampling.scheme != "vectors":
        raise ValueError(
            f"This problem draws whole samples: use scheme='vectors', not {sampling.scheme!r}."
        )
    n = A.shape[0]
    return A[draw.batch(n, batch_size(sampling.share, n), replace=sampling.replace)]


class Problem(ABC):
    """A scale invariant problem; see the module for its symbols.

    A subclass gives `degree`, `shape`, `value`, `gradient` and `batch`; the rest follows. Points
    handed to the methods have unit norm item by item.
    """

    degree: float
    maximise: ClassVar[bool] = True
    sequential: ClassVar[bool] = False  # items interact: they are swept one after another
    evaluation_passes: float = 1.5  # one gradient for the residual, half of one for the value
    value_passes: float = 0.5
    batch_passes: float = 2.0  # ∇f_S(x) and ∇f_S(x₀), as a share of a pass over the batch
    quadratic: ClassVar[bool] = False  # the Hessian is the same everywhere
    smooth: bool = True  # has a Hessian everywhere

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(items, d)."""

    @abstractmethod
    def value(self, x: Point) -> float:
        """f(x)."""

    @abstractmethod
    def gradient(self, x: Point, S: Any = None) -> Point:
        """∇f(x), or its unbiased estimate ∇f_S(x) from a batch."""

    @abstractmethod
    def batch(self, sampling: Sampling, draw: Draw) -> Any:
        """Draw a batch S with E[∇f_S] = ∇f."""

    @property
    def terms(self) -> int | None:
        """n, where the scheme "vectors" chooses s of n terms; None: unknown to the theory."""
        return None

    def single(self, item: int) -> Problem:
        """The problem of one item alone, for problems that have several."""
        if self.shape[0] != 1:
            raise ValueError("The items of this problem cannot be told apart.")
        return self

    def anchored(self, x: Point, x0: Point, alpha: Any, S: Any) -> Point:
        """∇f_S(x) − α ∇f_S(x₀), what a batch adds to α ∇f(x₀)."""
        return np.asarray(self.gradient(x, S) - alpha * self.gradient(x0, S))

    def hessian(self, x: Point, S: Any = None) -> NDArray[Any]:
        """∇²f(x), or that of f_S, of every item: (items, d, d); here by central differences."""
        items, d = self.shape
        out = np.empty((items, d, d))
        for k in range(d):
            e = DIFFERENCE * self.project(np.eye(1, d, k))
            out[:, k] = (self.gradient(x + e, S) - self.gradient(x - e, S)) / (2 * DIFFERENCE)
        return (out + out.transpose(0, 2, 1)) / 2

    @property
    def item_weights(self) -> NDArray[np.float64]:
        """`value` is the sum over the items of weight times f, up to a constant."""
        return np.ones(self.shape[0])

    def item_gradient(self, x: Point, item: int) -> NDArray[Any]:
        """Row `item` of ∇f(x); a sequential problem has a quicker way."""
        return np.asarray(self.gradient(x)[item])

    def inner(self, x: Point, y: Point) -> NDArray[np.float64]:
        """x·y, item by item."""
        return np.asarray(np.einsum("jk,jk->j", x, y, dtype=np.float64))

    def project(self, x: Point) -> Point:
        """The part of x in the subspace that is searched; here all of it."""
        return x

    def normalise(self, x: Point) -> Point:
        """x/‖x‖ of the projected x, item by item; a zero item stays zero."""
        x = self.project(x)
        norm = np.sqrt(self.inner(x, x))
        return (x / np.where(norm > 0, norm, 1)[:, None]).astype(x.dtype, copy=False)

    def scale(self, x: Point, g: Point) -> NDArray[np.float64]:
        """|λ| = |x·∇f(x)| as a column, one where it vanishes: divides f to make η a true step."""
        size = np.abs(self.inner(x, g))
        return np.where(size > 0, size, 1.0)[:, None]

    def retract(self, x_new: Point, x: Point, threshold: float) -> Point:
        """Bring the step x → x_new back to the feasible set; here, to the sphere.

        Where no direction is left (∇f = 0) x stays. `threshold` serves problems with a sign
        constraint.
        """
        new = self.normalise(x_new)
        return np.where(new.any(axis=1, keepdims=True), new, x)

    def start(self, seed: int) -> Point:
        """A random point of the sphere."""
        items, d = self.shape
        u, v = Draw(seed, Stream.POINT).uniform(2, items, d)
        return self.normalise(np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v))

    def residual(self, x: Point) -> float:
        """‖∇f(x) − λx‖/|λ|, the largest over the items."""
        g = self.gradient(x)
        multiplier = self.inner(x, g)
        off = g - multiplier[:, None] * x
        unit = np.abs(off).max(axis=1, keepdims=True)  # squares of a small gradient would be zero
        off = np.divide(off, unit, out=np.zeros_like(off), where=unit > 0)
        norm, size = unit[:, 0] * np.sqrt(self.inner(off, off)), np.abs(multiplier)
        with np.errstate(divide="ignore"):  # λ = 0 with a gradient is as far from optimal as can be
            return float(np.max(np.where(norm == 0, 0.0, norm / np.where(norm == 0, 1.0, size))))

    def quick_value(self, x: Point) -> float:
        """f(x) to `rounding`, by the fastest way there is; here `value` itself."""
        return float(self.value(x))

    def rounding(self, value: float) -> float:
        """How far two equal objectives may differ by rounding alone."""
        return 8 * float(np.finfo(np.float64).eps) * abs(value)

    def is_finite(self, x: Point) -> bool:
        """Whether x holds neither NaN nor infinity."""
        return bool(np.isfinite(x).all())
