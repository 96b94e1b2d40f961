# SPDX-License-Identifier: BSD-3-Clause
"""The data of a fit: one or more files, in memory, on disk or on Dask workers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from sipower.cli import run_folder
from sipower.cli.cluster import check_memory
from sipower.cli.console import Console, name_options
from sipower.cli.on_disk import load_on_disk
from sipower.cli.options import InputFiles, InputOptions, LongRunOptions
from sipower.estimators import KLNMF
from sipower.io import Table, read
from sipower.store import is_store


def load_files(
    files: InputFiles,
    console: Console,
    long_run: LongRunOptions,
    model: KLNMF,
    cache: Path | Literal[False] | None = None,
    client: Any = None,
) -> tuple[Table, list[dict[str, Any]]]:
    """Read files here, or on the workers of a Dask client, and print a summary of the data.

    With a memory limit they stay on disk; `cache` is as in `sipower.io.open_on_disk`. Returns the
    data and, for several files, the path and the number of samples of each.
    """
    if client is not None:
        table, rows = _read_on_workers(files, console, long_run, (cache, client), model)
    elif files.others:
        table, rows = _stack(files, long_run.memory_limit)
    else:
        return run_folder.load(files, console, long_run.memory_limit, cache), []
    table = replace(table, remarks=tuple(map(name_options, table.remarks)))
    samples, features = table.counts.shape
    console.say(f"{files.name}: {samples:,} samples x {features:,} features")
    for remark in table.remarks:
        console.say(remark)
    pairs = zip(files.sources, rows, strict=True)
    parts = [{"file": str(path), "samples": count} for path, count in pairs]
    shape, remarks = [samples, features], list(table.remarks)
    console.event("read", file=files.name, shape=shape, remarks=remarks, files=parts)
    return table, parts if files.others else []


def _stack(files: InputFiles, memory_limit: str | None) -> tuple[Table, list[int]]:
    """Read several files into memory, and return them as one table and their numbers of rows."""
    store = next((file for file in files.sources if is_store(file)), None)
    if store is not None or memory_limit is not None:
        what = "--memory-limit" if store is None else f"{store}, a store,"
        raise ValueError(f"{what} is for a single file: add --workers 2 to fit several from disk.")
    tables = [read(one.source, **one.settings()) for one in files.each()]
    _check_features(files.sources, tables)
    parts: list[Any] = [table.counts for table in tables]
    dense = all(isinstance(part, np.ndarray) for part in parts)
    counts: Any = np.vstack(parts) if dense else sp.csr_array(sp.vstack(parts, format="csr"))
    named = next((table for table in tables if table.features is not None), tables[0])
    samples = join_samples(files.sources, [table.samples for table in tables])
    remarks = _join_remarks(files.sources, [table.remarks for table in tables])
    table = Table(counts, samples, named.features, remarks, named.feature_ids)
    return table, [part.shape[0] for part in parts]


def _read_on_workers(
    files: InputFiles,
    console: Console,
    long_run: LongRunOptions,
    place: tuple[Path | Literal[False] | None, Any],
    model: KLNMF,
) -> tuple[Table, list[int]]:
    """Read files on workers; `place` is the cache and the client."""
    from sipower.dask import Files  # noqa: PLC0415 - optional
    from sipower.dask.read_table import read_table  # noqa: PLC0415

    (cache, client), paths = place, files.sources
    transpose = bool(files.transpose)
    source = Files(paths, transpose, files.layout, files.layer)
    if long_run.memory_limit is not None:
        limit = long_run.memory_limit
        stores = tuple(_store(one, console, limit, cache) for one in files.each())
        source = Files(stores, transpose, memory_limit=limit)
    console.say(f"reading {files.name} on the workers")
    console.event("loading", text="reading files on the workers", files=list(map(str, paths)))
    table, facts = read_table(client, source, model.dtype)
    counts: Any = table.counts
    check_memory(counts, model.n_components)
    samples = join_samples(paths, [fact.samples for fact in facts])
    remarks = _join_remarks(paths, [fact.remarks for fact in facts])
    return replace(table, samples=samples, remarks=remarks), [fact.rows for fact in facts]


def _store(
    one: InputOptions, console: Console, limit: str, cache: Path | Literal[False] | None
) -> Path:
    """Return the path of a store, or of the cached store of a file."""
    counts: Any = load_on_disk(one, console, limit, cache).counts
    path = Path(counts.source.path)
    if not is_store(path):
        raise ValueError(f"--no-cache: Dask workers need {one.source} as a store: omit it.")
    return path


def join_samples(
    paths: Sequence[Path], names: Sequence[Sequence[str] | None]
) -> tuple[str, ...] | None:
    """Return the names of the samples of all files, or None if a file has none.

    If two files have a sample of the same name, the name of the file is appended to all names, as
    by anndata.concat with `index_unique`.
    """
    known = [part for part in names if part is not None]
    if len(known) < len(names):
        return None
    uses = Counter(name for part in known for name in set(part))
    if max(uses.values(), default=1) == 1:
        return tuple(name for part in known for name in part)
    stems = [path.name.partition(".")[0] for path in paths]
    if len(set(stems)) < len(stems):
        stems = [str(path) for path in paths]
    return tuple(f"{name}-{stem}" for stem, part in zip(stems, known, strict=True) for name in part)


def _join_remarks(paths: Sequence[Path], remarks: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the remarks on all files; those on one of several begin with its name."""
    if len(paths) == 1:
        return tuple(remarks[0])
    pairs = zip(paths, remarks, strict=True)
    return tuple(f"{path}: {remark}" for path, part in pairs for remark in part)


def _check_features(paths: Sequence[Path], tables: Sequence[Table]) -> None:
    """Raise an error unless all tables have the same features in the same order."""
    reference = next((at for at, table in enumerate(tables) if table.features is not None), 0)
    first, expected = paths[reference], tables[reference]
    for path, table in zip(paths, tables, strict=True):
        if table.counts.shape[1] != expected.counts.shape[1]:
            raise ValueError(
                f"{path} has {table.counts.shape[1]} features, {first} has "
                f"{expected.counts.shape[1]}: all must be the same."
            )
        if expected.features is None or table.features in (None, expected.features):
            continue
        pairs = zip(table.features or (), expected.features, strict=True)
        at, (name, other) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise ValueError(
            f"{path} has other features than {first}: feature {at} is {name}, not {other}."
        )
