# SPDX-License-Identifier: BSD-3-Clause
"""What a file or folder of each format holds, one function per format.

`FOLDERS`, `JSON_FILES` and `ARCHIVES` name the functions: by the file that a folder of the format
has, with the files that are a part of it; by a key of the JSON object; and by an array of the .npz
file.
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

__all__ = [
    "ARCHIVES",
    "FOLDERS",
    "JSON_FILES",
    "Describe",
    "Facts",
    "differences",
    "read_arrays",
    "read_json",
    "table",
]

Facts = dict[str, Any]
Describe = Callable[[Path], Facts]
MANY_NAMES = 3  # names that are listed; of longer lists the first ones


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
        **_stamp(formats.STORE.name, read_json(path / "store.json")),
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
        **_stamp("rank selection", read_json(file)),
        "components": list(selection.ranks),
        "replicates": selection.deviance.shape[1],
        "best": selection.best,
        "method": selection.method,
        "status": selection.reason,
    }


def _consensus(path: Path) -> Facts:
    facts = read_json(path)
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
    facts = read_json(path)
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
    return {**_stamp("merge tree", read_json(path)), "components": tree.rank}


def _flows(path: Path) -> Facts:
    flows = load_outcome(ComponentFlows, path)
    return {**_stamp("component flows", read_json(path)), "components": list(flows.ranks)}


def _fits(path: Path) -> Facts:
    facts = read_json(path / "task.json")
    formats.FITS.check(facts, path)
    return {
        **_stamp(formats.FITS.name, facts),
        "files": len(list(path.glob("*.npz"))),
        "task": {key: facts[key] for key in sorted(facts) if key not in formats.KEYS},
    }


# ---- single files --------------------------------------------------------------------------------


def _checkpoint(path: Path) -> Facts:
    arrays = read_arrays(path)
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
    arrays = read_arrays(path)
    stamp = {key: arrays[key].item() for key in formats.KEYS if key in arrays}
    format_.check(stamp, path)
    samples = arrays.get("samples")
    return {
        **_stamp(format_.name, stamp),
        "shape": list(arrays[main].shape),
        "components": arrays[main].shape[1],
        "samples": _some(None if samples is None else samples.tolist()),
    }


def differences(path: Path) -> Facts:
    """Describe a table of differences, or the JSON file beside it."""
    beside = path.with_suffix(".json")
    tables = [path] if path != beside else [path.with_suffix(ending) for ending in ENDINGS]
    found = read_differences(next((t for t in tables if t.is_file()), tables[0]))
    features = None if found.features is None else found.features.tolist()
    return {
        **_stamp(formats.DIFFERENCES.name, read_json(beside)),
        "shape": list(found.lfsr.shape),
        "components": len(found.components),
        "contrast": found.contrast,
        "level": found.level,
        "status": str(found.replication),
        "features": _some(features),
        "component_names": _some(found.components),
    }


def table(path: Path) -> Facts:
    """Describe a table of names and numbers, of which nothing says what it is."""
    known = open_components(path)
    return {
        **_stamp("plain table, such as a catalogue or counts", {"format": None}),
        "shape": list(known.values.shape),
        "rows": _some(known.names),
        "columns": _some(known.features),
    }


FOLDERS: dict[str, tuple[Describe, Sequence[str]]] = {
    "run.json": (_run, FILES),
    "store.json": (_store, ("store.json", "names.json")),
    "source.json": (_cache, ("source.json",)),
    "rank.json": (_rank, ("rank.json", "rank.csv")),
    "task.json": (_fits, ("task.json",)),
}
JSON_FILES: dict[str, Describe] = {
    "deviance": _rank,
    "medoid": _consensus,
    "by_group": _programs,
    "mergers": _tree,
    "flows": _flows,
    "replication": differences,
}
ARCHIVES: dict[str, Describe] = {"header": _checkpoint, "exposures": _refit, "shares": _weights}


def _stamp(kind: str, facts: Mapping[str, Any]) -> Facts:
    return {"kind": kind, "format": facts.get("format", 1), "sipower": facts.get("sipower")}


def _some(names: Sequence[str] | None) -> Facts | None:
    """Return how many names there are, and the first ones."""
    return None if names is None else {"count": len(names), "first": list(names[:MANY_NAMES])}


def read_json(path: Path) -> Facts:
    """Return the object in a JSON file; say in a sentence that a file is damaged."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise ReadError(f"{path} is damaged: {shorten(error)}; write it again.") from None


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
    """Return the named arrays of an .npz file, or all; say in a sentence that it is damaged."""
    try:
        return read_archive(path, names)
    except DamagedError as damage:
        raise ReadError(f"{path} {damage}.") from None
