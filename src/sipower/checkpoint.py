# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint is exactly the `State`: its arrays and scalars in one .npz file, without pickle."""

from __future__ import annotations

import dataclasses
import json
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sipower.files import replacing

__all__ = ["load_state", "save_state"]

FORMAT = 1
S = TypeVar("S")


def save_state(path: str | PathLike[str], state: Any, run: str = "") -> None:
    """Write a state atomically: temporary file, fsync, rename.

    `run` describes solver and problem; only the same description can be read again.
    """
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
    arrays = {name: v for name, v in fields.items() if isinstance(v, np.ndarray)}
    scalars = {name: v for name, v in fields.items() if name not in arrays}
    kind = type(state).__qualname__
    header = {"format": FORMAT, "state": kind, "run": run, "scalars": scalars}
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, header=text, **arrays)


def load_state(path: str | PathLike[str], like: S, run: str = "") -> S:
    """Read a state of the same kind and shapes as `like`; without a file, return `like`."""
    if not Path(path).exists():
        return like
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            parts = {name: archive[name] for name in archive.files}
        header = json.loads(parts.pop("header").tobytes())
    except Exception as error:
        raise ValueError(f"{path} is not a checkpoint or is damaged: remove it.") from error
    _check_fit(path, header, parts, like)
    if header.get("run") != run:
        raise ValueError(
            f"{path} is a checkpoint of another run ({header.get('run')}): choose another file."
        )
    if header["scalars"].get("seed") != getattr(like, "seed", None):
        raise ValueError(f"{path} is a checkpoint with another seed: choose another file.")
    state: S = type(like)(**parts, **header["scalars"])
    return state


def _check_fit(path: Any, header: dict[str, Any], arrays: dict[str, Any], like: Any) -> None:
    wanted = {f.name: getattr(like, f.name) for f in dataclasses.fields(like)}
    shapes = {n: (v.shape, v.dtype) for n, v in wanted.items() if isinstance(v, np.ndarray)}
    found = {name: (value.shape, value.dtype) for name, value in arrays.items()}
    same = header.get("format") == FORMAT and header.get("state") == type(like).__qualname__
    if not same or shapes != found or set(header["scalars"]) | set(found) != set(wanted):
        raise ValueError(
            f"{path} is a checkpoint of another problem, solver or version: choose another file."
        )
