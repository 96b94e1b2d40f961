# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that are wrong on purpose, and arrays whose surroundings are watched."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Yard", "damaged"]

Array = NDArray[Any]

# A sanitizer's `new` ends the process where it should raise, so what is counted stays small in it.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
# Bytes on either side of an array, a multiple of every alignment. A sanitizer watches the edges of
# a block itself, and sees reads as well, but none that stays within the guard.
GUARD = int(os.environ.get("FUZZ_GUARD", "0" if SANITIZED else "256"))
LARGE = [2**20, 2**20 + 1] if SANITIZED else [2**20 + 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**60]
INTEGERS = [-1, 0, 1, 2, 7, 2**63, 2**64, -(2**63), -(2**70), 10**30, *LARGE]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-310, 1e300, 1.0000001, 2, "1", 1j]
TEXTS = ["", "cyclic", "active", "random", "elements", "weighted", "stratified", "vectors", "\0"]
TYPES = "?bBhHiIlLefdgFDOSUM"


class Place(NamedTuple):
    """Memory around an array, and what was in all of it before."""

    memory: Array
    before: bytes


class Yard:
    """Arrays of one input, each in the middle of memory that nothing may write to."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.arrays: list[Array] = []

    def put(self, values: Array, shift: int = 0) -> Array:
        """Copy values into guarded memory, `shift` bytes away from where they are aligned."""
        memory = np.full(GUARD + shift + values.nbytes + GUARD, 0xA5, np.uint8)
        start = GUARD + shift
        inside = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
        inside[...] = values
        self.places.append(Place(memory, memory.tobytes()))
        self.arrays.append(inside)
        return inside

    def changed(self) -> bool:
        """Whether anything is different from what was put."""
        return any(place.memory.tobytes() != place.before for place in self.places)

    def allow(self, part: Array) -> None:
        """Take the contiguous bytes of an array as they are now."""
        first, size = part.ctypes.data, part.nbytes
        for number, (memory, before) in enumerate(self.places):
            at = first - memory.ctypes.data
            if 0 <= at <= memory.nbytes - size:
                new = before[:at] + part.tobytes() + before[at + size :]
                self.places[number] = Place(memory, new)

    def note(self) -> None:
        """Take everything as it is now."""
        self.places = [Place(place.memory, place.memory.tobytes()) for place in self.places]


class Refuses:
    """An object that offers an array and then fails."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise ZeroDivisionError

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    def __index__(self) -> int:
        raise ZeroDivisionError


def damaged(value: Any, source: random.Random, yard: Yard) -> Any:
    """Return something in the place of an argument that is wrong, or unusual but right."""
    if source.random() < 0.07:
        others = [None, [], "text", b"bytes", object(), Refuses(), 3, 0.5, (), int, np.zeros(())]
        return source.choice([*others, *yard.arrays])
    if isinstance(value, np.ndarray):
        return source.choice(ARRAY_DAMAGES)(value, source, yard)
    if isinstance(value, tuple):
        return damaged_tuple(value, source, yard)
    return source.choice(instead_of(value))


def instead_of(value: Any) -> list[Any]:
    """Return what may stand for a text, a truth value, an integer or a number."""
    if isinstance(value, str):
        return [*TEXTS, "\ud800", value.upper(), value * 1000, value.encode()]
    if isinstance(value, bool):
        return [not value, int(value), np.bool_(value), 2, None, "yes"]
    if isinstance(value, int):
        near = [value - 1, value + 1, -value, 2 * value, float(value), str(value)]
        return [*INTEGERS, *near, np.int8(value % 100), np.float64(value)]
    return NUMBERS


def damaged_tuple(value: tuple[Any, ...], source: random.Random, yard: Yard) -> Any:
    """Return a tuple with a member that is wrong, one too many or too few, or a list."""
    parts = list(value)
    match source.randrange(4):
        case 0:
            return parts
        case 1:
            return tuple(parts[1:])
        case 2:
            return (*parts, 0)
    at = source.randrange(len(parts))
    parts[at] = damaged(parts[at], source, yard)
    return tuple(parts)


# ---- arrays ----------------------------------------------------------------------------------


def other_type(a: Array, source: random.Random, yard: Yard) -> Any:
    """Other numbers, other byte order, no numbers at all."""
    if source.random() < 0.3:
        return a.astype(a.dtype.newbyteorder())
    real = np.nan_to_num(a, posinf=0, neginf=0)
    kind = np.dtype(source.choice(TYPES))
    return real.astype(np.int64).astype("M8[s]") if kind.kind == "M" else real.astype(kind)


def other_strides(a: Array, source: random.Random, yard: Yard) -> Any:
    """The same shape, held otherwise: backwards, with gaps, in columns, without any length."""
    match source.randrange(5):
        case 0:
            return yard.put(a[::-1])[::-1]
        case 1:
            return yard.put(np.repeat(a, 2, axis=-1))[..., ::2]
        case 2:
            return yard.put(a.T).T
        case 3:
            return np.broadcast_to(a[:1], a.shape) if len(a) else a
    return yard.put(np.repeat(a, 2, axis=0))[::2]


def other_shape(a: Array, source: random.Random, yard: Yard) -> Any:
    """A row or column more or less, another number of dimensions, nothing at all."""
    axis = source.randrange(a.ndim)
    shapes: list[Callable[[], Array]] = [
        lambda: np.delete(a, [0] if a.shape[axis] else [], axis),
        lambda: np.concatenate([a, a], axis),
        lambda: np.insert(a, 0, 0, axis),
        lambda: a[..., None],
        a.ravel,
        lambda: a.T,
        lambda: np.zeros((0,) * a.ndim, a.dtype),
        lambda: np.zeros((2**62, 0)[-a.ndim :], a.dtype),
        lambda: np.zeros((0, 2**33)[-a.ndim :] if a.ndim == 2 else 0, a.dtype),
    ]
    return yard.put(np.ascontiguousarray(source.choice(shapes)()))


def other_values(a: Array, source: random.Random, yard: Yard) -> Any:
    """Numbers that no valid array holds, some or all; or its own ones in another order."""
    new = a.copy()
    if not new.size:
        return new
    if source.random() < 0.2:
        return yard.put(np.random.default_rng(source.getrandbits(32)).permutation(new))
    if new.dtype.kind == "f":
        bad: list[Any] = [np.nan, np.inf, -np.inf, -1, 0, 1e-40, np.finfo(new.dtype).max]
    else:
        limits = np.iinfo(new.dtype)
        bad = [limits.min, limits.max, limits.min // 2 - 1, limits.max // 2 + 1, 0, 1]
        bad += [
            int(new.max()) + d for d in (-1, 1) if limits.min <= int(new.max()) + d <= limits.max
        ]
        bad += [-1] if limits.min < 0 else []
    wrong = source.choice(bad)
    if source.random() < 0.1:
        new[...] = wrong
    else:
        for _ in range(source.choice([1, 1, 1, 2, 5])):
            new.flat[source.randrange(new.size)] = source.choice([wrong, source.choice(bad)])
    return yard.put(new)


def other_memory(a: Array, source: random.Random, yard: Yard) -> Any:
    """Not to be written, not aligned, or shared with another argument."""
    match source.randrange(3):
        case 0:
            fixed = a.view()
            fixed.flags.writeable = False
            return fixed
        case 1:
            return yard.put(a, shift=source.choice([1, 2, 4, 7]))
    alike = [other for other in yard.arrays if other.dtype == a.dtype and other.ndim == a.ndim]
    other = source.choice(alike)
    if other.size < a.size:
        return other
    at = source.randrange(other.size - a.size + 1)
    return other.ravel()[at : at + a.size].reshape(a.shape)


ARRAY_DAMAGES = [other_type, other_strides, other_shape, other_values, other_values, other_memory]
