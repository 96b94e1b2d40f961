# SPDX-License-Identifier: BSD-3-Clause
"""`describe_file`: what a file or folder is that sipower has written, one function per format.

`FOLDERS`, `JSON_FILES` and `ARCHIVES` name the functions: by the file that a folder of the format
has, by a key of the JSON object, and by an array of the .npz file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import DamagedError, read_archive, shorten
from sipower.data import formats
from sipower.io import ReadError
from sipower.io.cache import CacheEntry
from sipower.io.known_components import open_components
from sipower.results import load_run
from sipower.results.differences_table import ENDINGS, read_differences
from sipower.results.folder import FILES, MEASUREMENTS
from sipower.selection import ComponentFlows, MergeTree, RankSelection, load_outcome
from sipower.store import read_layout
from sipower.store.layout import read_names

__all__ = ["describe_file"]

Facts = dict[str, Any]
TABLES = (".csv", ".tsv", ".parquet")
MANY_NAMES = 3  # names that are listed; of longer lists the first ones


def describe_file(path: Path) -> Facts:
    """Return format, version, writer and content of a file or folder; raise if it is no such file.

    Names are summarised. What a file does not record is None.
    """
    if not path.exists():
        raise ReadError(f"{path} does not exist.")
    describe = _find_folder(path) if path.is_dir() else _find_file(path)
    if describe is None:
        raise ReadError(
            f"{path} is not a file or folder that sipower has written: read a file of counts with "
            "sipower fit --dry-run, and a cache folder with sipower cache."
        )
    try:
        return describe(path)
    except (ValueError, OSError, MemoryError, ImportError):  # these say what is wrong
        raise
    except Exception as error:  # damaged files can raise nearly anything
        reason = f"{type(error).__name__}: {shorten(error)}"
        raise ReadError(f"{path} is damaged ({reason}): write it again.") from None


def _find_folder(path: Path) -> Callable[[Path], Facts] | None:
    return next((FOLDERS[name] for name in FOLDERS if (path / name).is_file()), None)


def _find_file(path: Path) -> Callable[[Path], Facts] | None:
    ending = path.suffix.lower()
    if ending == ".json":
        keys = _read_json(path)
        found = next((JSON_FILES[key] for key in JSON_FILES if key in keys), None)
        folder = FOLDERS.get(path.name)
        return found if folder is None or found else lambda file: folder(file.parent)
    if ending == ".npz":
        arrays = _read_arrays(path, ())
        return next((ARCHIVES[name] for name in ARCHIVES if name in arrays), None)
    if ending in ENDINGS and path.with_suffix(".json").is_file():
        return _differences
    return _catalogue if ending in TABLES else None


# ---- runs, stores and the cache ------------------------------------------------------------------


def _run(path: Path) -> Facts:
    run = load_run(path)
    others = {"consensus.json": "consensus", "programs.json": "programs"}
    parts = [name for file, name in others.items() if (path / file).is_file()]
    stamp = {"sipower": (run.facts.get("versions") or {}).get("sipower"), **run.facts}
    return {
        **_stamp(" and ".join(["run", *parts]), stamp),
        "shape": [len(run.W), run.H.shape[1]],
        "components": len(run.H),
        "dtype": str(run.W.dtype),
        "status": run.facts.get("status"),
        **{name: run.facts.get(name) for name in MEASUREMENTS},
        "samples": _some(run.samples),
        "features": _some(run.features),
        "component_names": _some(run.component_labels()),
        "files": [name for name in FILES if (path / name).is_file()],
    }


def _store(path: Path) -> Facts:
    layout = read_layout(path)
    samples, features = read_names(layout)
    return {
        **_stamp(formats.STORE.name, _read_json(path / "store.json")),
        "shape": list(layout.shape),
        "nonzeros": layout.nonzeros,
        "total": layout.total,
        "dtype": layout.dtype,
        "orientations": list(layout.orientations),
        "samples": _some(samples),
        "features": _some(features),
    }


def _cache(path: Path) -> Facts:
    entry = CacheEntry(path)
    formats.CACHE.check(entry.label, path)
    source = entry.source
    about = {"file": source.get("file"), "layer": source.get("layer"), "status": entry.status}
    return _store(entry.store) | _stamp(formats.CACHE.name, entry.label) | about


# ---- results of several fits ---------------------------------------------------------------------


def _rank(path: Path) -> Facts:
    file = path / "rank.json" if path.is_dir() else path
    selection = load_outcome(RankSelection, file)
    return {
        **_stamp("rank selection", _read_json(file)),
        "components": list(selection.ranks),
        "replicates": selection.deviance.shape[1],
        "best": selection.best,
        "method": selection.method,
        "status": selection.reason,
    }


def _consensus(path: Path) -> Facts:
    facts = _read_json(path)
    formats.OUTCOME.check(facts, path)
    return {
        **_stamp("consensus", facts),
        "components": len(facts["stability"]),
        "replicates": len(facts["statuses"]),
        "medoid": facts["medoid"],
        "stability": facts["stability"],
        "status": facts["statuses"][facts["medoid"]],
        "certified_gap": facts["gaps"][facts["medoid"]],
    }


def _programs(path: Path) -> Facts:
    facts = _read_json(path)
    formats.OUTCOME.check(facts, path)
    return {
        **_stamp("consensus over groups", facts),
        "components": len(facts["shared"]),
        "groups": facts["groups"],
        "shared": sum(facts["shared"]),
        "status": facts["status"],
        "certified_gap": facts["gap"],
    }


def _tree(path: Path) -> Facts:
    tree = load_outcome(MergeTree, path)
    return {**_stamp("merge tree", _read_json(path)), "components": tree.rank}


def _flows(path: Path) -> Facts:
    flows = load_outcome(ComponentFlows, path)
    return {**_stamp("component flows", _read_json(path)), "components": list(flows.ranks)}


def _fits(path: Path) -> Facts:
    facts = _read_json(path / "task.json")
    formats.FITS.check(facts, path)
    return {
        **_stamp(formats.FITS.name, facts),
        "fits": len(list(path.glob("*.npz"))),
        "task": {key: facts[key] for key in sorted(facts) if key not in formats.KEYS},
    }


# ---- single files --------------------------------------------------------------------------------


def _checkpoint(path: Path) -> Facts:
    arrays = _read_arrays(path)
    header = json.loads(arrays.pop("header").tobytes())
    formats.CHECKPOINT.check(header, path)
    records = (header.get("notes") or {}).get("records") or [[None] * 6]
    scalars = header["scalars"]
    return {
        **_stamp(formats.CHECKPOINT.name, header),
        "state": header["state"],
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
        "components": header["run"].get("rank"),
        "rounds": scalars.get("round"),
        "passes": scalars.get("passes"),
        "seconds": records[-1][2],
        "certified_gap": records[-1][4],
        "run": {key: value for key, value in header["run"].items() if value is not None},
    }


def _weights(path: Path) -> Facts:
    return _archive(path, formats.WEIGHTS, "W")


def _refit(path: Path) -> Facts:
    arrays = read_archive(path)
    names = arrays["components"].tolist()
    return _archive(path, formats.REFIT, "exposures") | {"component_names": _some(names)}


def _archive(path: Path, format_: formats.Format, main: str) -> Facts:
    arrays = _read_arrays(path)
    stamp = {key: arrays[key].item() for key in formats.KEYS if key in arrays}
    format_.check(stamp, path)
    samples = arrays.get("samples")
    return {
        **_stamp(format_.name, stamp),
        "shape": list(arrays[main].shape),
        "components": arrays[main].shape[1],
        "samples": _some(None if samples is None else samples.tolist()),
    }


def _differences(path: Path) -> Facts:
    beside = path.with_suffix(".json")
    tables = [path] if path != beside else [path.with_suffix(ending) for ending in ENDINGS]
    differences = read_differences(next((t for t in tables if t.is_file()), tables[0]))
    features = None if differences.features is None else differences.features.tolist()
    return {
        **_stamp(formats.DIFFERENCES.name, _read_json(beside)),
        "shape": list(differences.lfsr.shape),
        "components": len(differences.components),
        "contrast": differences.contrast,
        "level": differences.level,
        "status": str(differences.replication),
        "features": _some(features),
        "component_names": _some(differences.components),
    }


def _catalogue(path: Path) -> Facts:
    known = open_components(path)
    return {
        **_stamp("table, such as a catalogue", {}),
        "shape": list(known.values.shape),
        "rows": _some(known.names),
        "columns": _some(known.features),
    }


FOLDERS = {
    "run.json": _run,
    "store.json": _store,
    "source.json": _cache,
    "rank.json": _rank,
    "task.json": _fits,
}
JSON_FILES = {
    "deviance": _rank,
    "medoid": _consensus,
    "by_group": _programs,
    "mergers": _tree,
    "flows": _flows,
    "replication": _differences,
}
ARCHIVES = {"header": _checkpoint, "exposures": _refit, "shares": _weights}


def _stamp(kind: str, facts: Mapping[str, Any]) -> Facts:
    return {"kind": kind, "format": facts.get("format", 1), "sipower": facts.get("sipower")}


def _some(names: Sequence[str] | None) -> Facts | None:
    """Return how many names there are, and the first ones."""
    return None if names is None else {"count": len(names), "first": list(names[:MANY_NAMES])}


def _read_json(path: Path) -> Facts:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise ReadError(f"{path} is damaged: {shorten(error)}; write it again.") from None


def _read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return read_archive(path, names)
    except DamagedError as damage:
        raise ReadError(f"{path} {damage}.") from None
