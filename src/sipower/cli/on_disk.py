# SPDX-License-Identifier: BSD-3-Clause
"""Data that stay on disk during a fit: stores, and files through their cached stores."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from sipower.cli.console import Console
from sipower.cli.options import InputOptions
from sipower.cli.progress import ConversionProgress
from sipower.data.on_disk import DEFAULT_LIMIT
from sipower.data.plausibility import count_remark, orientation_remark, total_remarks
from sipower.io import Table, open_on_disk
from sipower.io.base import unique_names
from sipower.io.cache import CacheEntry, cache_folder
from sipower.io.source_files import is_streamed
from sipower.store import is_store


def load_on_disk(
    data: InputOptions,
    console: Console,
    memory_limit: str | None,
    cache: Path | Literal[False] | None,
) -> Table:
    """Open a store, or a file through its cached store, as a table; see `open_on_disk`."""
    source = data.source
    options = data.settings().items()
    if any(value for name, value in options if name not in ("layer", "transpose")):
        raise ValueError(
            "--layout and the options of texts need the data in memory: pass them to sipower "
            "convert."
        )
    entry = None
    if cache is not False and source.exists() and not is_store(source) and is_streamed(source):
        entry = CacheEntry.of_file(source, data.layer, cache_folder(cache))
        _announce(entry, source, console)
    limit = memory_limit or DEFAULT_LIMIT
    is_converted = entry is not None and entry.status != "current"
    with ConversionProgress(console, source) if is_converted else nullcontext() as progress:
        V = open_on_disk(
            source, layer=data.layer, memory_limit=limit, cache=cache, on_block=progress
        )
    value_remark = count_remark(V, V.source.origin)
    remarks = (() if value_remark is None else (value_remark,)) if entry is None else entry.remarks
    samples, features = (
        None if n is None else tuple(map(str, n)) for n in (V.row_names, V.column_names)
    )
    feature_ids = V.source.feature_ids
    remarks += total_remarks(V, samples, features)
    if data.transpose:
        about_orientation = orientation_remark(samples, features)
        remarks = tuple(remark for remark in remarks if remark not in about_orientation)
        V, samples, features, feature_ids = V.T, features, samples, None
        features = None if features is None else unique_names(features)
    counts: Any = V  # used like an array
    return Table(counts, samples, features, remarks, feature_ids)


def _announce(entry: CacheEntry, source: Path, console: Console) -> None:
    """Print whether a file is converted now or was converted before."""
    is_reused = entry.status == "current"
    console.event("cache", store=str(entry.store), reused=is_reused)
    if is_reused:
        console.say(f"using {entry.folder}, the store of this unchanged file")
    else:
        console.say(
            f"converting {source} to a store in {entry.folder}: later fits reuse it while the file "
            "is unchanged (sipower cache lists and clears such stores)"
        )
