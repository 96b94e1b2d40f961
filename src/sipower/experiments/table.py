# SPDX-License-Identifier: BSD-3-Clause
"""The table of results: one JSON line a finished run, appended at once and never changed."""

from __future__ import annotations

import errno
import gzip
import json
import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sipower._files import name_in_errors, shorten

__all__ = ["Row", "Run", "append", "key_of", "read"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """A run that the protocol asks for; everything that decides its objective values is here.

    Parameters
    ----------
    problem
        "nmf", "subproblem" (one factor given the other) or "signs" (of the gradients there).
    dataset, method
        Names.
    params
        Parameters of the method, sorted by name.
    seed
        Seed of the start and of the method.
    passes, seconds
        The run ends after the round in which it reaches the one or the other. Seconds are those of
        the solver, without evaluations of the objective.
    """

    problem: str
    dataset: str
    method: str
    params: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    passes: float = 1.0
    seconds: float = 1.0

    @property
    def key(self) -> str:
        """A text that is the same for the same run in every session."""
        return json.dumps(asdict(self) | {"params": dict(self.params)}, sort_keys=True)


def key_of(row: Row) -> str:
    """Return the key of the run that a row is the result of."""
    params = tuple(sorted(row["params"].items()))
    names = row["problem"], row["dataset"], row["method"]
    return Run(*names, params, row["seed"], row["max_passes"], row["max_seconds"]).key


def append(file: Path, row: Row) -> None:
    """Add one line by one write, safe beside other writers, and on the disk when this returns."""
    line = json.dumps(row, sort_keys=True).encode() + b"\n"
    with name_in_errors(file), file.open("ab+", buffering=0) as end:
        if end.tell():
            end.seek(-1, os.SEEK_END)
            if end.read(1) != b"\n":
                line = b"\n" + line  # what a killed process left of its line stays alone
        if end.write(line) < len(line):  # a disk that has become full takes a part in silence
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(end.fileno())


def read(file: Path) -> list[Row]:
    """All finished runs, each once; a line that a killed process left torn is passed over."""
    if not file.is_file():
        return []
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
            return list(_finished(lines).values())
    except (EOFError, OSError, zlib.error) as problem:
        raise ValueError(f"{file} cannot be read: {shorten(problem)}.") from None


def _finished(lines: Iterable[bytes]) -> dict[str, Row]:
    rows = {}
    for line in lines:
        with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
            row = json.loads(line)
            rows[key_of(row)] = row
    return rows
