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

from sipower.archive import shown
from sipower.files import naming

__all__ = ["Row", "Run", "append", "key_of", "read"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What is to be run; everything that decides its objective values is here.

    Parameters
    ----------
    experiment, dataset, method
        Names.
    params
        Of the method, sorted by name.
    seed
        Of the start and of the method.
    seconds
        Of the solver, evaluations not counted.
    """

    experiment: str
    dataset: str
    method: str
    params: tuple[tuple[str, Any], ...] = ()
    seed: int = 0
    seconds: float = 1.0

    @property
    def key(self) -> str:
        """The same for the same run, in every session."""
        return json.dumps(asdict(self) | {"params": dict(self.params)}, sort_keys=True)


def key_of(row: Row) -> str:
    """The key of the run that a row tells of."""
    params = tuple(sorted(row["params"].items()))
    what = row["experiment"], row["dataset"], row["method"]
    return Run(*what, params, row["seed"], row["seconds_allowed"]).key


def append(file: Path, row: Row) -> None:
    """Add one line by one write, safe beside other writers, and on the disk when this returns."""
    line = json.dumps(row, sort_keys=True).encode() + b"\n"
    with naming(file), file.open("ab+", buffering=0) as end:
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
        raise ValueError(f"{file} cannot be read: {shown(problem)}.") from None


def _finished(lines: Iterable[bytes]) -> dict[str, Row]:
    rows = {}
    for line in lines:
        with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
            row = json.loads(line)
            rows[key_of(row)] = row
    return rows
