# SPDX-License-Identifier: BSD-3-Clause
"""Deliberately wrong arguments, and arrays in guarded memory."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["GuardedArrays", "damage_argument"]

Array = NDArray[Any]

# A sanitizer's `new` ends the process where it should raise, so sizes stay small with one.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
# Bytes on either side of an array, a multiple of every alignment. A sanitizer checks the edges of a
# block itself, reads included, but does not see accesses to the guard, so there is none with it.
GUARD = int(os.environ.get("FUZZ_GUARD", "0" if SANITIZED else "256"))
LARGE = [2**20, 2**20 + 1] if SANITIZED else [2**20 + 1, 2**31 - 1, 2**31, 2**32, 2**40, 2**60]
INTEGERS = [-1, 0, 1, 2, 7, 2**63, 2**64, -(2**63), -(2**70), 10**30, *LARGE]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 5e-324, 1e-310, 1e300, 1.0000001, 2, "1", 1j]
TEXTS = ["", "cyclic", "active", "random", "elements", "weighted", "stratified", "vectors", "\0"]
TYPES = "?bBhHiIlLefdgFDOSUM"


class GuardedMemory(NamedTuple):
    """The memory of an array and of its guards, and a copy of its expected bytes."""

    memory: Array
    expected: bytes


class GuardedArrays:
    """The arrays of one input, each between guards that nothing may write to."""

    def __init__(self) -> None:
        self.memories: list[GuardedMemory] = []
        self.arrays: list[Array] = []

    def put(self, values: Array, shift: int = 0) -> Array:
        """Copy values into guarded memory, `shift` bytes off their alignment."""
        memory = np.full(GUARD + shift + values.nbytes + GUARD, 0xA5, np.uint8)
        start = GUARD + shift
        inside = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
        inside[...] = values
        self.memories.append(GuardedMemory(memory, memory.tobytes()))
        self.arrays.append(inside)
        return inside

    def has_changed(self) -> bool:
        """Return whether any byte differs from the expected ones."""
        return any(memory.tobytes() != expected for memory, expected in self.memories)

    def allow(self, part: Array) -> None:
        """Expect the present bytes of a contiguous array."""
        first, size = part.ctypes.data, part.nbytes
        for number, (memory, expected) in enumerate(self.memories):
            offset = first - memory.ctypes.data
            if 0 <= offset <= memory.nbytes - size:
                new = expected[:offset] + part.tobytes() + expected[offset + size :]
                self.memories[number] = GuardedMemory(memory, new)

    def allow_all(self) -> None:
        """Expect the present bytes of all arrays."""
        self.memories = [GuardedMemory(memory, memory.tobytes()) for memory, _ in self.memories]


class FailingArray:
    """An object that promises an array or an index and raises when asked for it."""

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise ZeroDivisionError

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError

    def __index__(self) -> int:
        raise ZeroDivisionError


def damage_argument(value: Any, source: random.Random, arrays: GuardedArrays) -> Any:
    """Return a replacement of an argument that is wrong, or unusual but valid."""
    if source.random() < 0.07:
        objects = [None, [], "text", b"bytes", object(), FailingArray(), 3, 0.5, (), int]
        return source.choice([*objects, np.zeros(()), *arrays.arrays])
    if isinstance(value, np.ndarray):
        return source.choice(ARRAY_DAMAGES)(value, source, arrays)
    if isinstance(value, tuple):
        return damage_tuple(value, source, arrays)
    return source.choice(replacements(value))


def replacements(value: Any) -> list[Any]:
    """Return replacements of bytes, a text, a truth value, an integer or a number."""
    if isinstance(value, bytes):
        return [value.decode("latin-1"), bytearray(value), value + b"\0", value * 1000]
    if isinstance(value, str):
        return [*TEXTS, "\ud800", value.upper(), value * 1000, value.encode()]
    if isinstance(value, bool):
        return [not value, int(value), np.bool_(value), 2, None, "yes"]
    if isinstance(value, int):
        near = [value - 1, value + 1, -value, 2 * value, float(value), str(value)]
        return [*INTEGERS, *near, np.int8(value % 100), np.float64(value)]
    return NUMBERS


def damage_tuple(value: tuple[Any, ...], source: random.Random, arrays: GuardedArrays) -> Any:
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
    parts[at] = damage_argument(parts[at], source, arrays)
    return tuple(parts)


# ---- arrays ----------------------------------------------------------------------------------


def change_type(a: Array, source: random.Random, arrays: GuardedArrays) -> Any:
    """Convert to another type or byte order."""
    if source.random() < 0.3:
        return a.astype(a.dtype.newbyteorder())
    real = np.nan_to_num(a, posinf=0, neginf=0)
    kind = np.dtype(source.choice(TYPES))
    return real.astype(np.int64).astype("M8[s]") if kind.kind == "M" else real.astype(kind)


def change_strides(a: Array, source: random.Random, arrays: GuardedArrays) -> Any:
    """Return the same shape with negative, wide, Fortran or zero strides."""
    match source.randrange(5):
        case 0:
            return arrays.put(a[::-1])[::-1]
        case 1:
            return arrays.put(np.repeat(a, 2, axis=-1))[..., ::2]
        case 2:
            return arrays.put(a.T).T
        case 3:
            return np.broadcast_to(a[:1], a.shape) if len(a) else a
    return arrays.put(np.repeat(a, 2, axis=0))[::2]


def change_shape(a: Array, source: random.Random, arrays: GuardedArrays) -> Any:
    """Add or remove rows, columns or dimensions, or return an empty array."""
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
    return arrays.put(np.ascontiguousarray(source.choice(shapes)()))


def change_values(a: Array, source: random.Random, arrays: GuardedArrays) -> Any:
    """Replace some or all values by invalid ones, or permute them."""
    new = a.copy()
    if not new.size:
        return new
    if source.random() < 0.2:
        return arrays.put(np.random.default_rng(source.getrandbits(32)).permutation(new))
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
    return arrays.put(new)


def change_memory(a: Array, source: random.Random, arrays: GuardedArrays) -> Any:
    """Make the array read-only or unaligned, or share its memory with another argument."""
    match source.randrange(3):
        case 0:
            read_only = a.view()
            read_only.flags.writeable = False
            return read_only
        case 1:
            return arrays.put(a, shift=source.choice([1, 2, 4, 7]))
    alike = [other for other in arrays.arrays if other.dtype == a.dtype and other.ndim == a.ndim]
    other = source.choice(alike)
    if other.size < a.size:
        return other
    at = source.randrange(other.size - a.size + 1)
    return other.ravel()[at : at + a.size].reshape(a.shape)


ARRAY_DAMAGES = [
    change_type,
    change_strides,
    change_shape,
    change_values,
    change_values,
    change_memory,
]
