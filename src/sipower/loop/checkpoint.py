# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints: the state of a solver and the trace of its run in one .npz file without pickle.

The file is replaced atomically. It records to which run it belongs, and no other run can resume
from it.
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

from sipower._files import atomic_write, file_lock, read_archive, remove_unfinished, shorten
from sipower.data.formats import CHECKPOINT, NewerFormatError
from sipower.kernels import Array
from sipower.loop.protocols import S, State
from sipower.loop.trace import Trace

__all__ = ["Checkpoint", "CheckpointWriter", "load_state", "save_state"]


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds the state of a run, and from which the run can be resumed.

    Parameters
    ----------
    path
        The file.
    every
        Maximum number of seconds of work that are lost if the run is killed, or one round if that
        takes longer.
    run
        Settings that identify the run, such as the data and the seed. Reading a checkpoint with
        other settings raises ValueError. Floats in lists may differ by rounding errors, because
        they are computed from the data.
    memory
        Data that the caller saves in addition to the state.
    read
        Whether to resume from the file; if False, the file is only written.
    """

    path: str | PathLike[str]
    every: float = 60.0
    run: Mapping[str, Any] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    read: bool = True

    def save(self, state: Any, notes: Any = None) -> None:
        """Write `state` to the file, with `notes`, which is the snapshot of the trace."""
        fields, arrays = _fields(state)
        header = {
            **CHECKPOINT.stamp(),
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
        """Return the saved state and notes, or None if no file exists or `read` is False.

        The saved state must have the type, the array shapes and the seed of `like`.
        """
        content = self._read() if self.read else None
        if content is None:
            return None
        header, arrays = content
        scalars = header["scalars"]
        expected, expected_arrays = _fields(like)
        if header["state"] != type(like).__qualname__ or _types(arrays) != _types(expected_arrays):
            raise self._mismatch_error("problem or solver")
        if set(scalars) | set(arrays) != set(expected):
            raise self._mismatch_error("version")
        smallest = 0.0 if getattr(like, "non_negative", False) else -math.inf
        in_range = all(np.isfinite(a).all() and (a >= smallest).all() for a in arrays.values())
        if not in_range or not all(_is_like(v, expected[name]) for name, v in scalars.items()):
            raise self._damage_error()
        if scalars.get("seed") != expected.get("seed"):
            raise self._mismatch_error("seed")
        return type(like)(**arrays, **scalars), header["notes"]

    def load_memory(self) -> Any:
        """Return the `memory` that is saved in the file, or None if no file exists."""
        content = self._read()
        return None if content is None else content[0]["memory"]

    @contextmanager
    def report_damage(self) -> Iterator[None]:
        """Report any exception but that of a newer format or of memory as a damaged file."""
        try:
            yield
        except (MemoryError, NewerFormatError):
            raise
        except Exception:  # reading a damaged file can raise any exception
            raise self._damage_error() from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the file until the block ends, and remove temporary files of a killed run."""
        if not Path(self.path).name or Path(self.path).is_dir():
            raise ValueError(f"`checkpoint` must be a file, got the folder {str(self.path)!r}.")
        with file_lock(Path(self.path)):
            remove_unfinished(self.path)
            yield

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the header and the arrays of the file, which must belong to this run."""
        if not Path(self.path).exists():
            return None
        with self.report_damage():
            arrays = read_archive(self.path)
            header = json.loads(arrays.pop("header").tobytes())
            run, version = dict(header["run"]), CHECKPOINT.check(header, self.path)
        if version < CHECKPOINT.oldest:
            raise self._mismatch_error("version")
        parts = {"state", "memory", "notes", "scalars"}
        if not parts <= set(header) or not isinstance(header["scalars"], dict):
            raise self._damage_error()
        for name, value in json.loads(json.dumps(dict(self.run))).items():
            if not _agree(run.get(name), value):
                raise self._mismatch_error(
                    name, f" (checkpoint: {shorten(run.get(name))}; this run: {shorten(value)})"
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
    """Return a dictionary of all fields of a state, and one of those that are arrays.

    A factor that is elsewhere has a shape too; NumPy gathers it when it is saved.
    """
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    return fields, {name: v for name, v in fields.items() if getattr(v, "shape", ())}


def _types(arrays: Mapping[str, Array]) -> dict[str, Any]:
    return {name: (array.shape, array.dtype) for name, array in arrays.items()}


def _agree(stored: Any, current: Any) -> bool:
    """Return whether two values are equal; floats in lists may differ by rounding errors."""
    if not isinstance(stored, list) or not isinstance(current, list) or len(stored) != len(current):
        return bool(stored == current)
    return all(
        a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9))
        for a, b in zip(stored, current, strict=True)
    )


def _is_like(value: Any, example: Any) -> bool:
    """Return whether a scalar has the type of `example`; an integer may replace a float."""
    scalar, kind = np.asarray(value), np.asarray(example).dtype.kind
    return scalar.ndim == 0 and scalar.dtype.kind in (kind, "i" if kind == "f" else kind)


def save_state(path: str | PathLike[str], state: Any) -> None:
    """Write a state to a file, which is replaced atomically.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from sipower import SciPi, save_state, solve
    >>> from sipower.problems import PCA
    >>> state = solve(PCA(np.diag([3.0, 2.0, 1.0])), SciPi()).state
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state.npz", state)
    ...     pathlib.Path(folder, "state.npz").exists()
    True
    """
    Checkpoint(path).save(state)


def load_state(path: str | PathLike[str], like: S) -> S:
    """Read a state of the same type and shapes as `like`; return `like` if no file exists.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from sipower import SciPi, load_state, save_state, solve
    >>> from sipower.problems import PCA
    >>> state = solve(PCA(np.diag([3.0, 2.0, 1.0])), SciPi()).state
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state.npz", state)
    ...     bool((load_state(f"{folder}/state.npz", like=state).x == state.x).all())
    True
    """
    loaded = Checkpoint(path).load(like)
    return like if loaded is None else loaded[0]


class CheckpointWriter:
    """The part of `solve` that reads and writes the checkpoint.

    Parameters
    ----------
    checkpoint
        The file; None: nothing is read or written.
    trace
        The trace of the run, which is saved with the state.
    """

    def __init__(self, checkpoint: Checkpoint | None, trace: Trace) -> None:
        self.checkpoint, self.trace = checkpoint, trace
        self.last_save = self.last_round = trace.clock.wall()

    def resume(self, state: S) -> S:
        """Return the saved state and restore the trace; return `state` if nothing is saved."""
        saved = None if self.checkpoint is None else self.checkpoint.load(state)
        if self.checkpoint is None or saved is None:
            return state
        state, notes = saved
        with self.checkpoint.report_damage():
            self.trace.restore(notes, state)
        return state

    def write(self, state: State, *, at_once: bool) -> None:
        """Save the state if `at_once`, or if more than `every` seconds could be lost otherwise.

        The next round is expected to take as long as the last one.
        """
        if self.checkpoint is None:
            return
        now = self.trace.clock.wall()
        at_risk, self.last_round = 2 * now - self.last_round - self.last_save, now
        if not at_once and at_risk < self.checkpoint.every:
            return
        try:
            self.checkpoint.save(state, self.trace.snapshot())
        except OSError as problem:  # a full disk must not end the run as well
            warnings.warn(
                f"The checkpoint {self.checkpoint.path} could not be written "
                f"({problem.strerror or problem}): its previous content is kept.",
                RuntimeWarning,
                stacklevel=2,
            )
        self.last_save = self.last_round = self.trace.clock.wall()
