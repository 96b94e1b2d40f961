# SPDX-License-Identifier: BSD-3-Clause
"""The append-only table of results, with one JSON line for each finished run."""

from __future__ import annotations

import errno
import gzip
import json
import os
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sipower._files import name_in_errors, shorten

Row = dict[str, Any]


@dataclass(frozen=True)
class PlannedRun:
    """A planned run: everything that determines its objective values.

    Parameters
    ----------
    problem
        "nmf", "subproblem" (one factor for a given other factor) or "signs" (the share of negative
        entries in the gradients of the subproblem).
    dataset, method
        Names of the data set and of the method; the method is a key of `METHODS`.
    params
        Parameters of the method, sorted by name.
    seed
        Seed of the random start and of the random numbers of the method.
    passes, seconds
        The run ends after the round in which it reaches either limit. Seconds are solver
        time, without evaluations of the objective.
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
        """A string that identifies the run across processes."""
        return json.dumps(asdict(self) | {"params": dict(self.params)}, sort_keys=True)


def row_key(row: Row) -> str:
    """Return the key of the run whose result is in a row."""
    params = tuple(sorted(row["params"].items()))
    names = row["problem"], row["dataset"], row["method"]
    return PlannedRun(*names, params, row["seed"], row["max_passes"], row["max_seconds"]).key


def append(file: Path, row: Row) -> None:
    """Append a row as one line in a single write, and flush it to the disk.

    Several processes may append to the same file.
    """
    line = json.dumps(row, sort_keys=True).encode() + b"\n"
    with name_in_errors(file), file.open("ab+", buffering=0) as end:
        if end.tell():
            end.seek(-1, os.SEEK_END)
            if end.read(1) != b"\n":
                line = b"\n" + line  # ends the incomplete line of a killed process
        if end.write(line) < len(line):  # a full disk can cause a partial write without error
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(end.fileno())


def read(file: Path) -> list[Row]:
    """Return the rows of a table without duplicates; skip incomplete lines of killed processes."""
    if not file.is_file():
        return []
    rows = {}
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
            for line in lines:
                with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
                    row = json.loads(line)
                    rows[row_key(row)] = row
    except (EOFError, OSError, zlib.error) as problem:
        raise ValueError(f"{file} cannot be read: {shorten(problem)}.") from None
    return list(rows.values())
