# SPDX-License-Identifier: BSD-3-Clause
"""What is finished of a long task, one file a piece, so that an interrupted one goes on."""

from __future__ import annotations

import json
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sipower.archive import Archive, DamagedError
from sipower.files import replacing

__all__ = ["Store", "forget_pieces"]


class Store:
    """Pieces of one task in a folder; without a folder nothing is kept.

    Parameters
    ----------
    folder
        Where the pieces lie, or None.
    task
        Data and parameters. A folder of another task is refused.
    """

    def __init__(self, folder: str | PathLike[str] | None, task: dict[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        seed = task["model"]["random_state"]
        if not isinstance(seed, Integral):
            raise ValueError(f"random_state is {seed}: a task with a folder needs a whole number.")
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / "task.json"
        text = json.dumps(task, sort_keys=True, default=str).encode()
        if not note.exists():
            with replacing(note) as file:
                file.write(text)
        elif note.read_bytes() != text:
            raise ValueError(
                f"{self.folder} holds pieces of another task (other data or parameters): choose "
                "another folder, or remove it."
            )

    def load(self, name: str, **shapes: tuple[int, ...]) -> dict[str, Any] | None:
        """The arrays of a piece, or None if it is not there; a damaged one is not.

        Those that are named must have their shapes, where -1 is any number.
        """
        if self.folder is None:
            return None
        try:
            with Archive(self.folder / f"{name}.npz") as piece:
                arrays = dict(piece)
        except (OSError, DamagedError):
            return None
        whole = all(_has_shape(arrays.get(key), shape) for key, shape in shapes.items())
        return arrays if whole else None

    def save(self, name: str, arrays: dict[str, Any]) -> None:
        """Write a piece as a whole."""
        if self.folder is not None:
            with replacing(self.folder / f"{name}.npz") as file:
                np.savez(file, allow_pickle=False, **arrays)


def forget_pieces(folder: Path) -> None:
    """Remove the pieces of a task from its folder, and nothing else."""
    if (folder / "task.json").exists():
        for piece in (*folder.glob("replicate-*.npz"), folder / "task.json"):
            piece.unlink()


def _has_shape(array: Any, shape: tuple[int, ...]) -> bool:
    found = None if array is None else array.shape
    return (
        found is not None
        and len(found) == len(shape)
        and all(wanted in (-1, size) for size, wanted in zip(found, shape, strict=True))
    )
