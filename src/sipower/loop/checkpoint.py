# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint is the `State` and what the loop remembers, in one .npz file without pickle.

It is written to a temporary file, brought to the disk and then renamed, so that at every moment
there is a whole one. It names the run that it belongs to: another one is refused.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import Archive, atomic_write, file_lock, remove_unfinished, shorten
from sipower.kernels import Array
from sipower.loop.protocols import S, State
from sipower.loop.trace import Trace

__all__ = ["Checkpoint", "CheckpointWriter", "load_state", "save_state"]

FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A file that receives the state of a run, and from which the run can go on.

    Parameters
    ----------
    path
        The file.
    every
        Seconds of work that may be lost.
    run
        What the run is, by name: all of it must agree for a checkpoint to be read again; measured
        numbers, in a list, to rounding.
    memory
        What the caller wants to find again beside the state.
    read
        Whether to go on from what the file holds; if not, it is only written.
    """

    path: str | PathLike[str]
    every: float = 60.0
    run: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    read: bool = True

    def save(self, state: Any, notes: Any = None) -> None:
        """Write a state, and the notes of the loop that made it."""
        fields, arrays = _fields(state)
        header = {
            "format": FORMAT,
            "state": type(state).__qualname__,
            "run": dict(self.run),
            "memory": dict(self.memory),
            "notes": notes,
            "scalars": {name: v for name, v in fields.items() if name not in arrays},
        }
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with atomic_write(self.path) as file:
            np.savez(file, allow_pickle=False, header=text, **arrays)

    def load(self, like: S) -> tuple[S, Any] | None:
        """A state of the same kind and shapes as `like`, and its notes; None without a file."""
        found = self._read() if self.read else None
        if found is None:
            return None
        header, arrays = found
        wanted, wanted_arrays = _fields(like)
        shapes, found_shapes = (
            {name: (v.shape, v.dtype) for name, v in of.items()} for of in (wanted_arrays, arrays)
        )
        if header["state"] != type(like).__qualname__ or shapes != found_shapes:
            raise self._other("problem or solver")
        if set(header["scalars"]) | set(arrays) != set(wanted):
            raise self._other("version")
        alike = all(_alike(value, wanted[name]) for name, value in header["scalars"].items())
        least = 0.0 if getattr(like, "non_negative", False) else -math.inf
        if not alike or not all(_lies_above(least, array) for array in arrays.values()):
            raise self._damaged()
        if header["scalars"].get("seed") != wanted.get("seed"):
            raise self._other("seed")
        return type(like)(**arrays, **header["scalars"]), header["notes"]

    def remembered(self) -> Any:
        """The caller's memory in the file, or None without a file."""
        found = self._read()
        return None if found is None else found[0]["memory"]

    @contextmanager
    def report_damage(self) -> Iterator[None]:
        """Notes or a memory that cannot be taken up are damage."""
        try:
            yield
        except (KeyError, TypeError, ValueError):
            raise self._damaged() from None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Keep other sessions away, and remove what a killed one was writing."""
        if not Path(self.path).name or Path(self.path).is_dir():
            raise ValueError(f"The checkpoint {str(self.path)!r} is a folder, expected a file.")
        with file_lock(Path(self.path)):
            remove_unfinished(self.path)
            yield

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        if not Path(self.path).exists():
            return None
        try:
            with Archive(self.path) as archive:
                arrays = dict(archive)
            header = json.loads(arrays.pop("header").tobytes())
            version, run = header["format"], dict(header["run"])
            parts = {"state", "memory", "notes", "scalars"} <= set(header)
            complete = version != FORMAT or (parts and isinstance(header["scalars"], dict))
        except MemoryError:
            raise
        except Exception as error:  # whatever a damaged archive makes its readers raise
            raise self._damaged() from error
        if version != FORMAT:
            raise self._other("version")
        if not complete:
            raise self._damaged()
        for name, value in json.loads(json.dumps(dict(self.run))).items():
            if not _agree(run.get(name), value):
                raise self._other(name, f" ({shorten(run.get(name))}, not {shorten(value)})")
        return header, arrays

    def _damaged(self) -> ValueError:
        return ValueError(f"{self.path} is not a checkpoint or is damaged: choose another file.")

    def _other(self, what: str, detail: str = "") -> ValueError:
        return ValueError(
            f"{self.path} is a checkpoint of another {what}{detail}: choose another file, or "
            "remove this one."
        )


def _fields(state: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """All fields of a state, and those that are arrays."""
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    return fields, {name: v for name, v in fields.items() if isinstance(v, np.ndarray)}


def _agree(found: Any, wanted: Any) -> bool:
    """Equal; lists hold measured numbers, which other libraries or machines round otherwise."""
    if not isinstance(found, list) or not isinstance(wanted, list) or len(found) != len(wanted):
        return bool(found == wanted)
    return all(
        a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9))
        for a, b in zip(found, wanted, strict=True)
    )


def _alike(value: Any, wanted: Any) -> bool:
    """Whether a scalar of a file is of the kind of another; a float may be a whole number."""
    found, kind = np.asarray(value), np.asarray(wanted).dtype.kind
    return found.ndim == 0 and found.dtype.kind in (kind, "i" if kind == "f" else kind)


def _lies_above(least: float, array: Array) -> bool:
    """Whether all numbers are finite and none is below the least."""
    return bool(np.isfinite(array).all() and (array >= least).all())


def save_state(path: str | PathLike[str], state: Any) -> None:
    """Write a state atomically: temporary file, fsync, rename."""
    Checkpoint(path).save(state)


def load_state(path: str | PathLike[str], like: S) -> S:
    """Read a state of the same kind and shapes as `like`; without a file, return `like`."""
    found = Checkpoint(path).load(like)
    return like if found is None else found[0]


class CheckpointWriter:
    """The checkpoint of a loop, if it has one: read at the start, written when it is time.

    Parameters
    ----------
    checkpoint
        The file; None: nothing is read or written.
    trace
        The trace of the run, which is saved with the state.
    """

    def __init__(self, checkpoint: Checkpoint | None, trace: Trace) -> None:
        self.checkpoint, self.trace = checkpoint, trace
        self.saved = self.seen = trace.clock.wall()

    def resume(self, state: S) -> S:
        """Return the saved state, or the given one where nothing is saved."""
        saved = None if self.checkpoint is None else self.checkpoint.load(state)
        if self.checkpoint is None or saved is None:
            return state
        state, notes = saved
        with self.checkpoint.report_damage():
            self.trace.restore(notes, state)
        return state

    def write(self, state: State, *, at_once: bool) -> None:
        """Save if another round as long as the last one would put too much at risk."""
        if self.checkpoint is None:
            return
        now = self.trace.clock.wall()
        at_risk, self.seen = 2 * now - self.seen - self.saved, now
        if at_once or at_risk >= self.checkpoint.every:
            self._save(state, self.checkpoint)
            self.saved = self.seen = self.trace.clock.wall()

    def _save(self, state: State, checkpoint: Checkpoint) -> None:
        try:
            checkpoint.save(state, self.trace.snapshot())
        except OSError as problem:  # a full disk is no reason to lose the run as well
            warnings.warn(
                f"The checkpoint {checkpoint.path} could not be written "
                f"({problem.strerror or problem}): what it held before is still there.",
                RuntimeWarning,
                stacklevel=2,
            )
