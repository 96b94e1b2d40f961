# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the compiled module: call all of its functions with nearly valid arguments.

A call with valid arguments must give finite results; one with a damaged argument must raise or be
accepted; one with a term of the objective that the kernel does not take must raise. No call may
write outside of its items, change an input, end the process or hang, and a call that raises must
write nothing.
"""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import driver
import numpy as np
from arguments import SANITIZED
from cases import Case
from text_mutations import damage_text

from sipower import _kernels

REFUSALS = (TypeError, ValueError, IndexError, OverflowError, MemoryError)
KERNELS = [
    "gradient",
    "sums",
    "curvatures",
    "divergence",
    "gaps",
    "mu",
    "power",
    "coordinate",
    "newton",
]
KERNELS += ["power_search", "shared_newton", "projected_gradient", "solve_items", "epoch"]
# The kernels that refuse a ridge and fixed components, and prior counts but for "power".
LINEAR = {"gaps", "power", "power_search", "shared_newton", "projected_gradient", "epoch"}
MEMORY = 3 << 30


# ---- the calls -------------------------------------------------------------------------------


def call_kernel(case: Case, name: str) -> None:
    """Run a kernel on a range of items, and allow it to write its results only."""
    dense = case.source.random() < 0.5
    V, basis = case.data(dense=dense), case.basis(dense=dense or case.source.random() < 0.2)
    per_item, factor = (case.items,), (case.items, case.rank)
    shape = {"sums": (case.columns, case.rank), "divergence": per_item, "gaps": per_item}
    shape["curvatures"] = case.items, case.rank * (case.rank + 1) // 2
    without_mass = ("gradient", "sums", "curvatures", "divergence")
    kind = np.float64 if name in (*without_mass, "gaps") else case.dtype
    arguments: dict[str, Any] = {
        "V": V,
        "basis": basis,
        # The logarithm of a prior count is infinite at h = 0.
        "h": case.numbers(*factor, zeros=0.1 if case.prior is None else 0),
        "begin": case.begin,
        "end": case.end,
        "out": case.arrays.put(np.zeros(shape.get(name, factor), kind)),
    }
    if name not in without_mass:
        arguments["mass"] = case.mass
    arguments |= EXTRA.get(name, lambda case: {})(case)
    case.arrays.allow_all()
    refused = name in LINEAR and bool(case.terms - ({"prior"} if name == "power" else set()))
    sound, case.sound = case.sound, case.sound and not refused
    case.call(getattr(_kernels, name), **arguments)
    assert not (sound and refused), f"{name} takes {case.terms}"
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


def call_certify(case: Case) -> None:
    """Certify the gaps of all items."""
    case.dtype = np.float64
    case.data(dense=case.source.random() < 0.5)
    basis, factor = case.basis(dense=False), (case.items, case.rank)
    out = case.arrays.put(np.zeros(case.items))
    arguments = {
        "basis": basis,
        "g": case.numbers(*factor),
        "h": case.arrays.put(case.rng.gamma(0.5, 2.0, factor) + 1e-9),
        "mass": case.mass,
        "out": out,
    }
    case.call(_kernels.certify, **arguments)
    case.arrays.allow(case.arguments["out"])
    assert not case.sound or (np.isfinite(out).all() and (out >= 0).all()), f"certify gives {out}"


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


def call_parse_entries(case: Case) -> None:
    """Parse lines of three whole numbers, of which some are damaged."""
    source = case.source
    lines = [b"%d %d %d" % tuple(source.choices(range(1, 9), k=3)) for _ in range(case.items)]
    text = b"\n".join(lines)
    if source.random() < 0.5:
        case.sound = False
        text = damage_text(text, source)
    sizes = {"n_rows": 9, "n_columns": 9}
    flags = {"indices": True, "values": True, "whole": source.random() < 0.5}
    case.call(_kernels.parse_entries, text=text, **flags, **sizes)
    sound, rows = case.sound, case.items
    result = _kernels.parse_entries(text=text, **flags, **sizes)
    assert not sound or (len(result[2]) == rows and result[3] == -1)
    assert all((part >= 0).all() for part in result[:3])


CALLS: dict[str, Callable[[Case], None]] = {
    **{name: partial(call_kernel, name=name) for name in KERNELS},
    **{name: partial(call_sample, name=name) for name in ("sample_float32", "sample_float64")},
    "certify": call_certify,
    "row_sums": call_row_sums,
    "column_sums": call_column_sums,
    "draw_batch": call_draw_batch,
    "draw_uniform": call_draw_uniform,
    "parse_entries": call_parse_entries,
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
        import resource  # noqa: PLC0415 - Unix only

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    driver.main(target, prepare)
