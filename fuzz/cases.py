# SPDX-License-Identifier: BSD-3-Clause
"""`Case`: valid arguments of the compiled functions, and calls with one of them damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from arguments import Array, GuardedArrays, damage_argument

from sipower import _kernels

__all__ = ["Case"]

RANKS = [1, 2, 3, 4, 5, 8, 9, 20, 33, 65, 100]
CLASSES = [
    _kernels.Csr,
    _kernels.Dense,
    _kernels.BasisFloat32,
    _kernels.BasisFloat64,
    _kernels.EpochPlan,
]


class Case:
    """One input: its sizes, its arrays, and the number of arguments left to damage."""

    def __init__(self, source: random.Random) -> None:
        self.source, self.arrays = source, GuardedArrays()
        self.rng = np.random.default_rng(source.getrandbits(64))
        self.damages = source.choice([0, 0, 1, 1, 1, 1, 2, 3])
        self.sound = True
        self.objects: list[Any] = [kind.__new__(kind) for kind in CLASSES]
        self.items = source.choice([0, 1, 3, 6, 17])
        self.columns = source.choice([0, 1, 5, 40, 200])
        self.rank, self.dtype = source.choice(RANKS), source.choice([np.float32, np.float64])
        self.begin, self.end = self.random_range(0, self.items)

    def random_range(self, first: int, last: int) -> tuple[int, int]:
        """Return the whole range, or a part of it."""
        if self.source.random() < 0.5:
            return first, last
        begin, end = sorted(self.source.randint(first, last) for _ in range(2))
        return begin, end

    def call(self, function: Callable[..., Any], **arguments: Any) -> Any:
        """Call a function with one argument damaged, or none."""
        if self.damages and self.source.random() < 0.5:
            self.damages -= 1
            self.sound = False
            name = self.source.choice(list(arguments))
            if type(arguments[name]) in CLASSES:
                arguments[name] = self.source.choice([*self.objects, None])
            else:
                arguments[name] = damage_argument(arguments[name], self.source, self.arrays)
        self.arguments = arguments
        return function(**arguments)

    def make(self, kind: Callable[..., Any], **arguments: Any) -> Any:
        """Create an object of the module, and rarely initialise it a second time."""
        instance = self.call(kind, **arguments)
        self.objects.append(instance)
        if self.source.random() < 0.01:
            self.sound = False
            instance.__init__(**arguments)
        return instance

    # ---- valid arguments ---------------------------------------------------------------------

    def numbers(self, *shape: int, zeros: float = 0.1) -> Array:
        """Return non-negative numbers of the working type with some zeros."""
        values = self.rng.random(shape) * (self.rng.random(shape) >= zeros)
        return self.arrays.put(values.astype(self.dtype))

    def counts(self, *shape: int) -> Array:
        """Return counts with many zeros, in one of the types that data may have."""
        kind = self.source.choice([np.uint8, np.uint16, np.float32, np.float64])
        return self.rng.poisson(self.source.choice([0.1, 1, 30]), shape).astype(kind)

    def data(self, *, dense: bool) -> Any:
        """Return data of either layout, and store their masses and their window of items."""
        V = self.counts(self.items, self.columns)
        self.mass = self.arrays.put(V.sum(axis=1, dtype=np.float64))
        rows, columns = np.nonzero(V)
        indptr = np.searchsorted(rows, np.arange(self.items + 1)).astype(np.int64)
        self.indptr = self.arrays.put(indptr)
        if dense:
            return self.make(_kernels.Dense, values=self.arrays.put(V))
        window = self.random_range(0, self.items)
        self.begin, self.end = self.random_range(*window)
        stored = slice(indptr[window[0]], indptr[window[1]])
        return self.make(
            _kernels.Csr,
            indptr=self.indptr,
            indices=self.arrays.put(columns[stored].astype(np.int32)),
            values=self.arrays.put(V[rows, columns][stored]),
            n_columns=self.columns,
            window=window if window != (0, self.items) else None,
        )

    def basis(self, *, dense: bool) -> Any:
        """Return the other factor and the terms, sometimes with a component of zeros."""
        B = self.numbers(self.columns, self.rank, zeros=0)
        B += self.dtype(0.01)
        if self.source.random() < 0.3:
            B[:, self.source.randrange(self.rank)] = 0
        self.arrays.allow_all()
        sums = B.sum(axis=0, dtype=np.float64, keepdims=True)
        self.add_terms(sums)
        if self.source.random() < 0.5:
            sums = sums * self.rng.uniform(0.5, 2.0, (self.items, 1))
        return self.make(
            getattr(_kernels, f"BasisFloat{8 * B.itemsize}"),
            array=B,
            dense=dense,
            d=self.arrays.put(sums) if self.source.random() < 0.5 else None,
            prior=self.prior,
            fixed=self.fixed,
            ridge=self.ridge,
        )

    def add_terms(self, sums: Array) -> None:
        """Draw prior counts, fixed components and a ridge; often none of them.

        A component without a linear term has no prior counts: the objective would have no minimum.
        """
        self.prior = self.fixed = self.ridge = None
        alive = sums > 0
        if self.source.random() < 0.5 or not alive.any():
            return
        rows = self.source.choice([1, self.items])
        if self.source.random() < 0.5:
            counts = (self.rng.gamma(0.5, 2.0, (rows, self.rank)) + 0.1) * alive
            self.prior = self.arrays.put(counts * (self.rng.random(counts.shape) < 0.7))
        if not alive.all():
            return
        if self.source.random() < 0.5:
            mask = self.rng.random((rows, self.rank)) < self.source.choice([0.1, 0.5, 1.0])
            self.fixed = self.arrays.put(mask.astype(np.uint8))
        if rows > 0 and self.source.random() < 0.5:
            self.ridge = self.arrays.put(self.rng.uniform(1e-3, 2.0, rows))

    @property
    def terms(self) -> set[str]:
        """The terms of the last basis besides d."""
        terms = {"prior": self.prior, "fixed": self.fixed, "ridge": self.ridge}
        return {name for name, term in terms.items() if term is not None}

    def correlations(self) -> Array:
        """Return a positive semidefinite matrix (rank, rank) with a unit diagonal."""
        factor = self.rng.normal(size=(self.rank, self.rank + 1))
        return self.arrays.put(np.atleast_2d(np.corrcoef(factor)))

    def key(self) -> tuple[int, int]:
        """Return a key for the random numbers of a kernel."""
        return self.source.getrandbits(64), self.source.getrandbits(64)

    def place(self) -> tuple[int, int, int, int]:
        """Return a place in the stream of random numbers of a kernel."""
        return self.source.getrandbits(20), self.source.randrange(2), 0, self.source.randrange(9)

    def plan(self) -> Any:
        """Return the plan of an epoch."""
        scheme = self.source.choice(["vectors", "stratified", "weighted", "elements"])
        length = self.source.randint(1, 5)
        return self.make(
            _kernels.EpochPlan,
            step=self.source.choice([0.1, 1.0, 1.5]),
            full_step=1.0,
            batch=self.source.choice([0.01, 0.3, 1.0]),
            length=length,
            threshold=0.01,
            shortest=self.source.choice([0, 1, 3, 50]),
            scheme=scheme,
            replace=self.source.random() < 0.5,
            key=self.key(),
            at_round=self.source.randrange(9),
            side=self.source.randrange(2),
            indptr=self.indptr if scheme == "elements" else None,
        )
