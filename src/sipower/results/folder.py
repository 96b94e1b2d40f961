# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing of a run as a folder of files, none of which is a pickle.

================  ==============================================================================
factors.npz       W (samples, K) and H (K, features), the largest component first, and `order`,
                  the position of each component in the fitted model; `batch_effects`, if any
names.json        names of the samples and features, and ids of these, where the data have them;
                  names of known and guided components, and of batches, where the fit has them
run.json          parameters, seed, input and its hash, status, certified gap, versions
trace.csv         round, passes, seconds, objective, gap, step
spectra.npz       `median_units` and `z_scores` (K, features) and `median_total`, if computed
================  ==============================================================================
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import astuple, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import DamagedError, atomic_write, read_archive, shorten
from sipower.data.formats import RUN, NewerFormatError
from sipower.inference.spectra import Spectra
from sipower.loop.solve import Record
from sipower.results.run import Names, Run
from sipower.results.run_coherence import recorded_coherence
from sipower.selection import Consensus, load_outcome

__all__ = [
    "FILES",
    "MEASUREMENTS",
    "load_consensus",
    "load_run",
    "order_consensus",
    "save_run",
    "save_spectra",
]

_TABLES = tuple(
    f"{name}.{ending}"
    for name in ("W", "H", "shares", "batch_effects", "z_scores", "median_units")
    for ending in ("csv", "parquet")
)
_DIFFERENCES = tuple(f"differential.{e}" for e in ("csv", "parquet", "json"))
_TOPIC_TABLES = ("doc_topic.csv", "topic_word.csv")
DERIVED_FILES = (
    "report.html", "run.h5ad", "consensus.json", "programs.json", "programs.csv", "spectra.npz",
    *_TABLES, *_DIFFERENCES, *_TOPIC_TABLES,
)  # fmt: skip
FILES = ("run.json", "factors.npz", "names.json", "trace.csv", *DERIVED_FILES)
MEASUREMENTS = ("certified_gap", "divergence", "rounds", "passes", "seconds")
# Types that readers of run.json rely on; each key may be missing.
_TYPES: dict[str, Any] = {"parameters": dict, "input": dict, "status": str, "command": str}
_TYPES |= {"remarks": list, "coherence": dict}
_TYPES |= dict.fromkeys((*MEASUREMENTS, "whole_numbers"), int | float)
_TYPES_OF_INPUT: dict[str, Any] = {"file": str, "layer": str, "transpose": bool, "texts": dict}
_TYPES_OF_INPUT |= {"nonzeros": int | float, "total": int | float}
_SPECTRA = ("median_units", "z_scores", "median_total")  # arguments of `Run.with_spectra`
_MAX_INTEGER = 2**1000  # larger integers cannot be converted to floats


def save_run(run: Run, folder: str | PathLike[str]) -> Path:
    """Write a run to a folder.

    The files replace older ones once all of them are on disk, `run.json` last. Files derived from
    an older run (report, tables) are removed.

    Examples
    --------
    >>> import tempfile
    >>> from sipower.results import Run, save_run
    >>> run = Run([[3.0], [1.0]], [[0.5, 0.5]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(file.name for file in save_run(run, f"{folder}/fruit").iterdir())
    ['factors.npz', 'names.json', 'run.json', 'trace.csv']
    """
    to = Path(folder)
    to.mkdir(parents=True, exist_ok=True)
    replaces_a_run = (to / "run.json").exists()
    facts = {**run.facts, **RUN.stamp()}
    names = {kind: getattr(run, kind) for kind in ("samples", "features", "feature_ids")}
    for kind, values in (("components", run.component_names), ("batches", run.batches)):
        names |= {} if values is None else {kind: values}
    effects = {} if run.batch_effects is None else {"batch_effects": run.batch_effects}
    texts = {
        "run.json": json.dumps(facts, indent=2, default=_as_python) + "\n",
        "names.json": json.dumps(names),
        "trace.csv": _trace_table(run.trace),
    }
    with ExitStack() as replacements:  # closed in reverse order, so run.json is replaced last
        for name, text in texts.items():
            file = replacements.enter_context(atomic_write(to / name))
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        file = replacements.enter_context(atomic_write(to / "factors.npz"))
        np.savez(file, allow_pickle=False, W=run.W, H=run.H, order=run.order, **effects)
    for name in DERIVED_FILES if replaces_a_run else ():
        (to / name).unlink(missing_ok=True)
    if run.spectra is not None:
        save_spectra(run.spectra, to)
    return to


def save_spectra(spectra: Spectra, folder: str | PathLike[str]) -> Path:
    """Write the spectra of a run to its folder, and return the file."""
    path = Path(folder) / "spectra.npz"
    arrays = {name: getattr(spectra, name) for name in _SPECTRA}
    with atomic_write(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
    return path


def _as_python(value: Any) -> Any:
    """Convert NumPy numbers and arrays to Python numbers and lists."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"run.json cannot hold {value!r}: use numbers, strings, lists and dicts only.")


def _trace_table(trace: Sequence[Record]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(f.name for f in fields(Record))
    writer.writerows(map(astuple, trace))
    return table.getvalue()


def load_run(folder: str | PathLike[str]) -> Run:
    """Read a run from a folder written by `save_run`, of this or an older format.

    Examples
    --------
    >>> import tempfile
    >>> from sipower.results import Run, load_run, save_run
    >>> run = Run([[3.0], [1.0]], [[0.5, 0.5]], samples=["Monday", "Tuesday"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_run(save_run(run, folder)).samples
    ('Monday', 'Tuesday')
    """
    place = Path(folder)
    if not (place / "run.json").is_file():
        raise ValueError(f"{place} is not a run of sipower: it has no run.json.")
    try:
        facts = json.loads((place / "run.json").read_text(encoding="utf-8"))
        _check_types(facts, _TYPES)
        RUN.check(facts, place)
        return _read_run(place, facts)
    except (MemoryError, NewerFormatError):
        raise
    except Exception as error:  # damaged files can raise nearly anything
        reason = f"factors.npz {error}" if isinstance(error, DamagedError) else shorten(error)
        raise ValueError(f"{place} is damaged: {reason}; run the fit again.") from None


def order_consensus(consensus: Consensus, run: Run) -> Consensus:
    """Return a consensus with its components in the order of its run."""
    return replace(consensus, W=run.W, H=run.H, stability=consensus.stability[run.order])


def load_consensus(run: Run, folder: str | PathLike[str]) -> Consensus:
    """Read the consensus of a run from the folder that the run was loaded from."""
    file = Path(folder) / "consensus.json"
    consensus = load_outcome(Consensus, file, W=run.W, H=run.H)
    return order_consensus(consensus, run) if run.facts.get("format") == 1 else consensus


def _read_run(place: Path, facts: dict[str, Any]) -> Run:
    _check_types(facts.get("input") or {}, _TYPES_OF_INPUT)
    names = json.loads((place / "names.json").read_text(encoding="utf-8"))
    samples, features = (_checked_names(names[side]) for side in ("samples", "features"))
    # Older runs have none of these.
    ids, batches = (_checked_names(names.get(kind)) for kind in ("feature_ids", "batches"))
    components = names.get("components")
    if components is not None:
        components = [None if name is None else str(name) for name in components]
    with (place / "trace.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    trace = [Record(int(row[0]), *map(float, row[1:])) for row in rows]
    factors = read_archive(place / "factors.npz")
    W, H = factors["W"], factors["H"]
    effects = factors.get("batch_effects")
    for factor in (W, H, *([] if effects is None else [effects])):
        if factor.dtype.kind != "f" or not ((factor >= 0) & (factor < np.inf)).all():
            raise ValueError("W or H holds negative or infinite values")
    try:
        run = Run(
            W, H, trace, facts, samples, features, feature_ids=ids, order=factors.get("order"),
            component_names=components, batches=batches, batch_effects=effects,
        )  # fmt: skip
    except ValueError:
        raise ValueError("W, H, their order and the names differ in size") from None
    recorded_coherence(run)  # raises an error if it is damaged
    return _read_spectra(run, place / "spectra.npz")


def _read_spectra(run: Run, file: Path) -> Run:
    """Return the run with the spectra of a file, if it exists."""
    if not file.exists():
        return run
    try:
        arrays = read_archive(file)
        parts = [np.asarray(arrays[name], np.float64) for name in _SPECTRA]
        if [part.shape for part in parts] != [run.H.shape, run.H.shape, ()]:
            raise ValueError("its arrays differ in size from H")
        if not all(np.isfinite(part).all() for part in parts):
            raise ValueError("it holds values that are not finite")
        return run.with_spectra(parts[0], parts[1], float(parts[2]))
    except (DamagedError, KeyError, ValueError) as error:
        raise ValueError(f"spectra.npz: {error}") from None


def _checked_names(names: Any) -> Names | None:
    if not isinstance(names, list | None):
        raise TypeError("names.json holds something other than lists of names")
    return None if names is None else tuple(map(str, names))


def _check_types(facts: Any, types: dict[str, Any]) -> None:
    if not isinstance(facts, dict):
        raise TypeError("run.json is not a JSON object")
    for key, kind in types.items():
        value = facts.get(key)
        too_large = isinstance(value, int) and abs(value) > _MAX_INTEGER
        if too_large or not isinstance(value, kind | None):
            raise TypeError(f"{key} in run.json is {shorten(repr(value))}")
