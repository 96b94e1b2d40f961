# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the compiled module: call all of its functions with nearly valid arguments.

A call with valid arguments must give finite results; one with a damaged argument must raise or be
accepted. No call may write outside of its items, change an input, end the process or hang, and a
call that raises must write nothing.
"""

from __future__ import annotations

import operator
import random
import resource
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import driver
import numpy as np
from arguments import SANITIZED, Array, GuardedArrays, damage_argument

from sipower import _kernels

REFUSALS = (TypeError, ValueError, IndexError, OverflowError, MemoryError)
RANKS = [1, 2, 3, 4, 5, 8, 9, 20, 33, 65, 100]
CLASSES = [
    _kernels.Csr,
    _kernels.Dense,
    _kernels.BasisFloat32,
    _kernels.BasisFloat64,
    _kernels.EpochPlan,
]
KERNELS = ["gradient", "sums", "divergence", "gaps", "mu", "power", "coordinate", "newton"]
KERNELS += ["power_search", "shared_newton", "projected_gradient", "solve_items", "epoch"]
MEMORY = 3 << 30


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
        """Return the other factor, sometimes with a component of zeros."""
        B = self.numbers(self.columns, self.rank, zeros=0)
        B += self.dtype(0.01)
        if self.source.random() < 0.3:
            B[:, self.source.randrange(self.rank)] = 0
        self.arrays.allow_all()
        sums = B.sum(axis=0, dtype=np.float64, keepdims=True)
        if self.source.random() < 0.5:
            sums = sums * self.rng.uniform(0.5, 2.0, (self.items, 1))
        d = self.arrays.put(sums) if self.source.random() < 0.5 else None
        return self.make(
            getattr(_kernels, f"BasisFloat{8 * B.itemsize}"), array=B, dense=dense, d=d
        )

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


# ---- the calls -------------------------------------------------------------------------------


def call_kernel(case: Case, name: str) -> None:
    """Run a kernel on a range of items, and allow it to write its results only."""
    dense = case.source.random() < 0.5
    V, basis = case.data(dense=dense), case.basis(dense=dense or case.source.random() < 0.2)
    per_item, factor = (case.items,), (case.items, case.rank)
    shape = {"sums": (case.columns, case.rank), "divergence": per_item, "gaps": per_item}
    kind = np.float64 if name in ("gradient", "sums", "divergence", "gaps") else case.dtype
    arguments: dict[str, Any] = {
        "V": V,
        "basis": basis,
        "h": case.numbers(*factor),
        "begin": case.begin,
        "end": case.end,
        "out": case.arrays.put(np.zeros(shape.get(name, factor), kind)),
    }
    if name not in ("gradient", "sums", "divergence"):
        arguments["mass"] = case.mass
    arguments |= EXTRA.get(name, lambda case: {})(case)
    case.arrays.allow_all()
    case.call(getattr(_kernels, name), **arguments)
    begin, end = (operator.index(case.arguments[bound]) for bound in ("begin", "end"))
    for result in {"out", "gap", "passes"} & case.arguments.keys():
        array = case.arguments[result]
        part = array if name == "sums" else array[begin:end]
        case.arrays.allow(part)
        if case.sound:
            assert np.isfinite(part).all(), f"{name} gives {part}"
            assert name == "divergence" or (part >= 0).all(), f"{name} gives {part}"


EXTRA: dict[str, Callable[[Case], dict[str, Any]]] = {
    "power": lambda case: {"step": case.source.choice([0.5, 1.0, 1.9])},
    "power_search": lambda case: {"exponent": case.source.choice([1, 2, 8, 64])},
    "coordinate": lambda case: {
        "sweeps": case.source.randint(0, 4),
        "order": case.source.choice(["cyclic", "active", "random"]),
        "key": case.key(),
        "place": case.place(),
    },
    "newton": lambda case: {"steps": case.source.randint(0, 4)},
    "shared_newton": lambda case: {"correlations": case.correlations()},
    "solve_items": lambda case: {
        "tol": 1e-6,
        "max_rounds": case.source.randint(0, 20),
        "min_sampled_nonzeros": case.source.choice([0, 3, 2**40]),
        "gap": case.arrays.put(np.zeros(case.items)),
        "passes": case.arrays.put(np.zeros(case.items)),
    },
    "epoch": lambda case: {"plan": case.plan()},
}


def call_row_sums(case: Case) -> None:
    """Sum the rows of data."""
    V = case.data(dense=case.source.random() < 0.5)
    sums = V.row_sums()
    assert not case.sound or np.isin(sums, case.mass).all()


def call_column_sums(case: Case) -> None:
    """Sum the columns of a basis."""
    sums = case.basis(dense=False).column_sums
    assert not case.sound or (np.isfinite(sums).all() and len(sums) == case.rank)


def call_sample(case: Case, name: str) -> None:
    """Draw the batches of all items."""
    V = case.data(dense=False)
    values, columns, counts = case.call(
        getattr(_kernels, name),
        V=V,
        key=case.key(),
        place=case.place(),
        share=case.source.choice([0.01, 0.5, 1.0]),
        weighted=case.source.random() < 0.5,
        replace=case.source.random() < 0.5,
    )
    assert len(values) == len(columns) == counts.sum()
    assert not case.sound or (np.isfinite(values).all() and (columns < case.columns).all())


def call_draw_batch(case: Case) -> None:
    """Draw s of n rows."""
    n = case.source.choice([1, 2, 10, 1000])
    s = case.source.randint(1, n)
    arguments = {"key": case.key(), "place": case.place(), "n": n, "s": s}
    rows = case.call(_kernels.draw_batch, **arguments, replace=case.source.random() < 0.5)
    n, s, replace = (case.arguments[name] for name in ("n", "s", "replace"))
    assert len(rows) == s
    assert rows.min() >= 0
    assert rows.max() < n
    assert replace or len(np.unique(rows)) == s


def call_draw_uniform(case: Case) -> None:
    """Draw n numbers from (0, 1)."""
    n = case.source.choice([0, 1, 100])
    numbers = case.call(_kernels.draw_uniform, key=case.key(), place=case.place(), n=n)
    assert len(numbers) == case.arguments["n"]
    assert ((numbers > 0) & (numbers < 1)).all()


CALLS: dict[str, Callable[[Case], None]] = {
    **{name: partial(call_kernel, name=name) for name in KERNELS},
    **{name: partial(call_sample, name=name) for name in ("sample_float32", "sample_float64")},
    "row_sums": call_row_sums,
    "column_sums": call_column_sums,
    "draw_batch": call_draw_batch,
    "draw_uniform": call_draw_uniform,
}


def target(source: random.Random) -> str:
    """Run one input and return the function and the outcome."""
    name = source.choice(list(CALLS))
    case = Case(source)
    try:
        CALLS[name](case)
        word = "sound" if case.sound else "accepted"
    except REFUSALS:
        if case.sound:
            raise
        word = "refused"
    assert not case.arrays.has_changed(), "the call wrote to memory that it must not change"
    return f"{name:14} {word}"


def prepare() -> None:
    """Limit memory, so that huge allocations fail at once."""
    warnings.simplefilter("ignore")  # NumPy warns about the damage
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    driver.main(target, prepare)
