# SPDX-License-Identifier: BSD-3-Clause
"""A run as one folder: factors, names, parameters and provenance, trace; no pickle anywhere.

================  ==============================================================================
factors.npz       W (samples, K) and H (K, features)
names.json        names of the samples and features, where the data have them
run.json          parameters, seed, input and its hash, status, certified gap, versions
trace.csv         round, passes, seconds, objective, gap, step
================  ==============================================================================
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sipower.archive import Archive, DamagedError, shown
from sipower.files import naming, replacing
from sipower.kernels import Array
from sipower.loop.solve import Record

__all__ = ["FILES", "MEASURED", "Run", "load_run", "save_run"]

FORMAT = 1
Names = tuple[str, ...]
_TABLES = tuple(f"{factor}.{ending}" for factor in "WH" for ending in ("csv", "parquet"))
PRODUCTS = ("report.html", "run.h5ad", "consensus.json", *_TABLES)
FILES = ("run.json", "factors.npz", "names.json", "trace.csv", *PRODUCTS)
# What readers of run.json rely on, where it is there.
MEASURED = ("certified_gap", "divergence", "rounds", "passes", "seconds")
_FACTS: dict[str, Any] = {"parameters": dict, "input": dict, "status": str, "command": str}
_FACTS |= dict.fromkeys(MEASURED, int | float)
_FACTS_OF_INPUT = {"file": str, "nonzeros": int | float, "total": int | float}
_LARGEST = 2**1000  # of a whole number, to be a float as well


@dataclass(frozen=True, eq=False)
class Run:
    """A finished fit: V ≈ W H, and everything known of it.

    Parameters
    ----------
    W, H
        (samples, K) and (K, features).
    trace
        Objective and gap over rounds, passes and seconds.
    facts
        What `run.json` holds: "parameters", "input", "status", "certified_gap", "divergence", ...
    samples, features
        Names, or None where the data have none.
    """

    W: Array
    H: Array
    trace: Sequence[Record] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    samples: Names | None = None
    features: Names | None = None

    def __post_init__(self) -> None:
        for name in ("W", "H"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        W, H = self.W.shape, self.H.shape
        if not (len(W) == len(H) == 2 and W[1] == H[0]):
            raise ValueError(f"W and H have shapes {W} and {H}, expected (n, K) and (K, m).")
        for side, size in (("samples", W[0]), ("features", H[1])):
            names = getattr(self, side)
            if names is not None:
                if len(names) != size:
                    raise ValueError(f"{len(names)} names for {size} {side}: give one each.")
                object.__setattr__(self, side, tuple(map(str, names)))

    def sample_names(self) -> Names:
        """Names of the rows of W; numbers from 1 where the data have none."""
        return self.samples or tuple(str(i + 1) for i in range(len(self.W)))

    def feature_names(self) -> Names:
        """Names of the columns of H; numbers from 1 where the data have none."""
        return self.features or tuple(str(j + 1) for j in range(self.H.shape[1]))


def save_run(run: Run, folder: str | PathLike[str]) -> Path:
    """Write a run; its files replace older ones once all are on the disk, `run.json` last.

    What was made of an older run (report, tables) is removed.
    """
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    replaced = (to / "run.json").exists()
    texts = {
        "run.json": json.dumps({"format": FORMAT, **run.facts}, indent=2, default=_plain) + "\n",
        "names.json": json.dumps({"samples": run.samples, "features": run.features}),
        "trace.csv": _table(run.trace),
    }
    with ExitStack() as finished:  # is left by the last that entered it first
        for name, text in texts.items():
            with _written(to / name, finished) as file:
                file.write(text.encode())
        with _written(to / "factors.npz", finished) as file:
            np.savez(file, allow_pickle=False, W=run.W, H=run.H)
    for name in PRODUCTS if replaced else ():
        (to / name).unlink(missing_ok=True)
    return to


@contextmanager
def _written(path: Path, finished: ExitStack) -> Iterator[BinaryIO]:
    """A file whose content is on the disk at the end, and takes its place with all others."""
    file = finished.enter_context(replacing(path))
    with naming(path):
        yield file
        file.flush()
        os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"run.json cannot hold {value!r}: give numbers, texts, lists and dicts.")


def _table(trace: Sequence[Record]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(f.name for f in fields(Record))
    writer.writerows(map(astuple, trace))
    return table.getvalue()


def load_run(folder: str | PathLike[str]) -> Run:
    """Read what `save_run` has written."""
    place = Path(folder)
    if not (place / "run.json").is_file():
        raise ValueError(f"{place} is no run of sipower: it has no run.json.")
    try:
        facts = json.loads((place / "run.json").read_text(encoding="utf-8"))
        names = json.loads((place / "names.json").read_text(encoding="utf-8"))
        with Archive(place / "factors.npz") as factors:
            W, H = factors["W"], factors["H"]
        trace = _read_trace(place / "trace.csv")
        samples, features = (_names(names[side]) for side in ("samples", "features"))
        _check_facts(facts, _FACTS)
        _check_facts(facts.get("input") or {}, _FACTS_OF_INPUT)
    except MemoryError:
        raise
    except DamagedError as problem:
        raise ValueError(f"{place} is damaged: factors.npz {problem}; run the fit again.") from None
    except Exception as problem:  # whatever damaged files make their readers raise
        raise ValueError(f"{place} is damaged: {shown(problem)}; run the fit again.") from None
    if facts.get("format") != FORMAT:
        raise ValueError(
            f"{place} is of format {shown(repr(facts.get('format')))}, this version reads {FORMAT}."
        )
    _check(place, W, H, samples, features)
    return Run(W, H, trace, facts, samples, features)


def _read_trace(file: Path) -> list[Record]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [Record(int(line[0]), *map(float, line[1:])) for line in list(csv.reader(lines))[1:]]


def _names(found: Any) -> Names | None:
    if not isinstance(found, list | None):
        raise TypeError("names.json holds no lists of names")
    return None if found is None else tuple(map(str, found))


def _check_facts(facts: Any, kinds: dict[str, Any]) -> None:
    if not isinstance(facts, dict):
        raise TypeError("run.json holds no facts")
    for key, kind in kinds.items():
        value = facts.get(key)
        if not isinstance(value, kind | None) or (isinstance(value, int) and abs(value) > _LARGEST):
            raise TypeError(f"{key} in run.json is {shown(repr(value))}")


def _check(place: Path, W: Array, H: Array, samples: Names | None, features: Names | None) -> None:
    fits = W.ndim == H.ndim == 2 and W.shape[1] == H.shape[0]
    fits = fits and (samples is None or len(samples) == len(W))
    fits = fits and (features is None or len(features) == H.shape[1])
    numbers = fits and W.dtype.kind == "f" and H.dtype.kind == "f"
    if not (numbers and all((f >= 0).all() and (f < np.inf).all() for f in (W, H))):
        raise ValueError(f"{place} is damaged: W, H and the names do not fit; run the fit again.")
