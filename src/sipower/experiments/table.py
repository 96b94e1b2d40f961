# SPDX-License-Identifier: BSD-3-Clause
"""The table of results: one JSON line a finished run, appended at once and never changed."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    with file.open("ab+", buffering=0) as end:
        if end.tell():
            end.seek(-1, os.SEEK_END)
            if end.read(1) != b"\n":
                line = b"\n" + line  # what a killed process left of its line stays alone
        end.write(line)
        os.fsync(end.fileno())


def read(file: Path) -> list[Row]:
    """All finished runs, each once; a line that a killed process left torn is passed over."""
    if not file.is_file():
        return []
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
        rows = list(_rows(lines))
    return list({key_of(row): row for row in rows}.values())


def _rows(lines: Iterable[bytes]) -> Iterable[Row]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue
