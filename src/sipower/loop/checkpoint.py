# SPDX-License-Identifier: BSD-3-Clause
"""`Checkpoint`: the state of a run and the notes of the loop, in one .npz file without pickle.

It is replaced atomically (temporary file, fsync, rename), so that the file is complete at every
moment. It describes the run that it belongs to; a checkpoint of another run is refused.
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
    """A file that holds the state of a run, from which the run can be resumed.

    Parameters
    ----------
    path
        The file.
    every
        Seconds of work that may be lost.
    run
        Description of the run. A checkpoint is only read if all of it agrees; measured numbers, in
        a list, up to rounding.
    memory
        What the caller wants to save beside the state.
    read
        Whether to resume from the file; if not, it is only written.
    """

    path: str | PathLike[str]
    every: float = 60.0
    run: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    read: bool = True

    def save(self, state: Any, notes: Any = None) -> None:
        """Write a state and the notes of its loop."""
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
        """Return a state of the kind and shapes of `like`, and its notes; None without a file."""
        content = self._read() if self.read else None
        if content is None:
            return None
        header, arrays = content
        expected, expected_arrays = _fields(like)
        expected_shapes, shapes = (
            {name: (v.shape, v.dtype) for name, v in fields.items()}
            for fields in (expected_arrays, arrays)
        )
        if header["state"] != type(like).__qualname__ or shapes != expected_shapes:
            raise self._mismatch_error("problem or solver")
        if set(header["scalars"]) | set(arrays) != set(expected):
            raise self._mismatch_error("version")
        alike = all(_has_kind(value, expected[name]) for name, value in header["scalars"].items())
        smallest = 0.0 if getattr(like, "non_negative", False) else -math.inf
        if not alike or not all(_is_bounded(array, smallest) for array in arrays.values()):
            raise self._damage_error()
        if header["scalars"].get("seed") != expected.get("seed"):
            raise self._mismatch_error("seed")
        return type(like)(**arrays, **header["scalars"]), header["notes"]

    def load_memory(self) -> Any:
        """Return the caller's memory in the file, or None without a file."""
        content = self._read()
        return None if content is None else content[0]["memory"]

    @contextmanager
    def report_damage(self) -> Iterator[None]:
        """Report errors of the block, which reads notes or memory, as damage of the file."""
        try:
            yield
        except (KeyError, TypeError, ValueError):
            raise self._damage_error() from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the checkpoint until the block ends, and remove unfinished files of killed runs."""
        if not Path(self.path).name or Path(self.path).is_dir():
            raise ValueError(f"`checkpoint` must be a file, got the folder {str(self.path)!r}.")
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
        except Exception as error:  # the readers of a damaged archive raise many types
            raise self._damage_error() from error
        if version != FORMAT:
            raise self._mismatch_error("version")
        if not complete:
            raise self._damage_error()
        for name, value in json.loads(json.dumps(dict(self.run))).items():
            if not _agree(run.get(name), value):
                raise self._mismatch_error(
                    name, f" ({shorten(run.get(name))}, not {shorten(value)})"
                )
        return header, arrays

    def _damage_error(self) -> ValueError:
        return ValueError(f"{self.path} is not a checkpoint or is damaged: choose another file.")

    def _mismatch_error(self, what: str, detail: str = "") -> ValueError:
        return ValueError(
            f"{self.path} is a checkpoint of another {what}{detail}: choose another file, or "
            "remove this one."
        )


def _fields(state: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return all fields of a state, and those that are arrays."""
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    return fields, {name: v for name, v in fields.items() if isinstance(v, np.ndarray)}


def _agree(saved: Any, expected: Any) -> bool:
    """Return whether two descriptions are equal; measured numbers, in lists, up to rounding."""
    if not isinstance(saved, list) or not isinstance(expected, list) or len(saved) != len(expected):
        return bool(saved == expected)
    return all(
        a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9))
        for a, b in zip(saved, expected, strict=True)
    )


def _has_kind(value: Any, like: Any) -> bool:
    """Return whether a scalar of a file has the kind of another; a float may be an integer."""
    scalar, kind = np.asarray(value), np.asarray(like).dtype.kind
    return scalar.ndim == 0 and scalar.dtype.kind in (kind, "i" if kind == "f" else kind)


def _is_bounded(array: Array, smallest: float) -> bool:
    """Return whether all numbers are finite and at least `smallest`."""
    return bool(np.isfinite(array).all() and (array >= smallest).all())


def save_state(path: str | PathLike[str], state: Any) -> None:
    """Write a state atomically: temporary file, fsync, rename."""
    Checkpoint(path).save(state)


def load_state(path: str | PathLike[str], like: S) -> S:
    """Read a state of the same kind and shapes as `like`; without a file, return `like`."""
    saved = Checkpoint(path).load(like)
    return like if saved is None else saved[0]


class CheckpointWriter:
    """Reads the checkpoint of a loop at its start, and writes it at intervals.

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
        """Save the state if another round as long as the last one could lose too many seconds."""
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
        except OSError as problem:  # a full disk must not end the run
            warnings.warn(
                f"The checkpoint {checkpoint.path} could not be written "
                f"({problem.strerror or problem}): its previous content is kept.",
                RuntimeWarning,
                stacklevel=2,
            )
