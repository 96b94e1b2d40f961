# SPDX-License-Identifier: BSD-3-Clause
"""Data that stay on disk during a fit: stores, and .h5ad files through a cached store.

A fit from a store is many times faster than one from an .h5ad file, whose rows must be decompressed
again in every pass. So the file is converted once, into a folder beside the run folder:

================  ==============================================================================
counts.sipower    the store
source.json       which file was converted, its size and time of change, and remarks on its values
================  ==============================================================================
"""

import json
import re
from pathlib import Path
from typing import Any

from sipower._files import atomic_write, file_lock
from sipower.cli.console import Console
from sipower.cli.new_folder import make_folder
from sipower.cli.options import InputOptions
from sipower.cli.progress import ConversionProgress
from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.plausibility import count_remark
from sipower.io import Table, convert, open_h5ad, open_store
from sipower.store import is_store

HDF5 = (".h5ad", ".h5")


def open_on_disk(
    data: InputOptions, console: Console, memory_limit: str | None, place: Path | None
) -> Table:
    """Open a store, or an .h5ad file through its cached store in the folder `place`.

    If `place` is None, the rows of an .h5ad file are read from the file itself.
    """
    source, limit = data.source, memory_limit or DEFAULT_LIMIT
    use_cache = place is not None and not is_store(source) and source.suffix.lower() in HDF5
    if not use_cache and any(v for name, v in data.settings().items() if name != "layer"):
        raise ValueError(
            "--transpose, --layout and the options of texts need the data in memory: pass them to "
            "sipower convert."
        )
    remarks: tuple[str, ...] | None = None
    if use_cache:
        assert place is not None
        store, remarks = _cached_store(data, console, limit, place)
        V = open_store(store, memory_limit=limit)
    elif is_store(source):
        if data.layer is not None:
            raise ValueError(f"{source} is a store and has no layers: omit --layer.")
        V = open_store(source, memory_limit=limit)
    elif source.suffix.lower() in HDF5:
        V = open_h5ad(source, data.layer, memory_limit=limit)
    else:
        needed = f"convert {source} to a store first, with sipower convert"
        raise ValueError(f"--memory-limit is for stores and .h5ad files: {needed}.")
    samples, features = (
        None if n is None else tuple(map(str, n)) for n in (V.row_names, V.column_names)
    )
    if remarks is None:
        remark = count_remark(V, V.source.origin)
        remarks = () if remark is None else (remark,)
    counts: Any = V  # used like an array
    return Table(counts, samples, features, remarks, V.source.feature_ids)


def _cached_store(
    data: InputOptions, console: Console, limit: str | int, place: Path
) -> tuple[Path, tuple[str, ...]]:
    """Return the cached store of a file and remarks on the file.

    The file is converted first if it is new or has changed.
    """
    if not data.source.is_file():
        raise ValueError(f"{data.source} does not exist.")
    cache, source = place / _cache_name(data), _describe_source(data)
    store, label = cache / "counts.sipower", cache / "source.json"
    with make_folder(cache), file_lock(cache):
        recorded = _read_label(label)
        remarks = tuple(recorded.pop("remarks", ()))
        is_reused = is_store(store) and recorded == source
        console.event("cache", store=str(store), reused=is_reused)
        if is_reused:
            console.say(f"using {cache}/, the store of this unchanged file")
            return store, remarks
        console.say(
            f"converting {data.source} to a store in {cache}/: later fits reuse it while the file "
            "is unchanged, and it can be removed at any time (--no-cache does without it)"
        )
        label.unlink(missing_ok=True)
        with ConversionProgress(console, data.source) as progress:
            remarks = tuple(
                convert(
                    data.source, store, memory_limit=limit, force=True, on_block=progress,
                    **data.settings(),
                )
            )  # fmt: skip
        with atomic_write(label) as file:
            file.write(json.dumps(source | {"remarks": remarks}).encode())
    return store, remarks


def _cache_name(data: InputOptions) -> str:
    layer = "" if data.layer is None else "." + re.sub(r"\W+", "-", data.layer)
    return f"{data.source.name}{layer}{'.transposed' if data.transpose else ''}.cache"


def _describe_source(data: InputOptions) -> dict[str, Any]:
    status = data.source.stat()
    return {
        "file": str(data.source.resolve()),
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
        "layer": data.layer,
        "transpose": data.transpose,
    }


def _read_label(label: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(label.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # missing or damaged: the file is converted again
        return {}
