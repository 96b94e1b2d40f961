# SPDX-License-Identifier: BSD-3-Clause
"""Finished fits of a long task, one file each, so that an interrupted task can be resumed."""

from __future__ import annotations

import json
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import DamagedError, atomic_write, read_archive
from sipower.data.formats import FITS, NewerFormatError, without_stamp
from sipower.estimators.fingerprints import describe_value


class SavedFits:
    """The finished fits of one task in a folder; without a folder nothing is saved.

    Parameters
    ----------
    folder
        Folder of the files, or None.
    task
        Description of data and parameters. A folder of another task is rejected.
    """

    def __init__(self, folder: str | PathLike[str] | None, task: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        seed = task["model"]["random_state"]
        if not isinstance(seed, Integral):
            raise ValueError(f"`random_state` must be an integer if `folder` is given, got {seed}.")
        # Verification changes no fit, and folders of earlier versions do not name it.
        model = {name: value for name, value in task["model"].items() if name != "verify"}
        task = task | {"model": model}
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / "task.json"
        text = json.dumps(FITS.stamp() | task, sort_keys=True, default=describe_value)
        if not note.exists():
            with atomic_write(note) as file:
                file.write(text.encode())
        elif self._read_task(note) != without_stamp(json.loads(text)):
            raise ValueError(
                f"{self.folder} holds fits of another task (other data or parameters): choose "
                "another folder, or remove it."
            )

    def _read_task(self, note: Path) -> dict[str, Any] | None:
        """Return the task that the folder is of, or None if its file is damaged."""
        try:
            saved = dict(json.loads(note.read_bytes()))
            FITS.check(saved, self.folder)
        except NewerFormatError:
            raise
        except (ValueError, TypeError, RecursionError):
            return None
        return without_stamp(saved)

    def load(self, name: str, **shapes: tuple[int, ...]) -> dict[str, Any] | None:
        """Return the arrays of a fit, or None if its file is missing or damaged.

        Arrays that are named in `shapes` must have that shape, where -1 stands for any size.
        """
        if self.folder is None:
            return None
        try:
            arrays = read_archive(self.folder / f"{name}.npz")
        except (OSError, DamagedError):
            return None
        complete = all(_has_shape(arrays.get(key), shape) for key, shape in shapes.items())
        return arrays if complete else None

    def read(self, name: str, array: str) -> Any:
        """Return one array of a saved fit, without reading the others."""
        if self.folder is None:
            raise ValueError("`folder` must be given: nothing is saved without one.")
        path = self.folder / f"{name}.npz"
        try:
            found = read_archive(path, [array]).get(array)
        except DamagedError as damage:
            raise ValueError(f"{path} {damage}.") from None
        if found is None:
            raise ValueError(f"{path} has no array {array!r}: remove it and repeat the call.")
        return found

    def save(self, name: str, arrays: dict[str, Any]) -> None:
        """Write the arrays of a fit."""
        if self.folder is not None:
            with atomic_write(self.folder / f"{name}.npz") as file:
                np.savez(file, allow_pickle=False, **arrays)


def remove_saved_fits(folder: Path) -> None:
    """Remove the saved fits of a task from its folder, and nothing else."""
    if (folder / "task.json").exists():
        for pattern in (
            "replicate-*.npz",
            "programs.npz",
            "dispersion.npz",
            "start.npz",
            "task.json",
        ):
            for file in folder.glob(pattern):
                file.unlink()


def _has_shape(array: Any, shape: tuple[int, ...]) -> bool:
    if array is None or array.ndim != len(shape):
        return False
    return all(expected in (-1, size) for size, expected in zip(array.shape, shape, strict=True))
