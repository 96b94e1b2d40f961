# SPDX-License-Identifier: BSD-3-Clause
"""`read_table`: files that Dask workers read and hold, with their names, as a `Table`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from numpy.typing import DTypeLike

from sipower.dask.chunks import Files, StorePart
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.waiting import map_chunks
from sipower.dask.worker_rows import WorkerRows
from sipower.data.plausibility import count_remark
from sipower.io import Table

__all__ = ["FileFacts", "read_table"]


class FileFacts(NamedTuple):
    """What is known about a file besides its counts."""

    path: str
    rows: int
    samples: Sequence[str] | None
    feature_ids: Sequence[str] | None
    remarks: Sequence[str]
    largest: float = 0.0


def read_table(
    client: Any, files: Files, dtype: DTypeLike | None = None
) -> tuple[Table, list[FileFacts]]:
    """Read files on the workers of a client, and return them as one table.

    The counts of the table are `WorkerRows`, which `sipower.dask.KLNMF` fits without reading the
    files again. The table has no names of samples and no remarks; those of each file are returned
    beside it.
    """
    V = WorkerRows(client, files, dtype)
    chunks = map_chunks(client, "names", _describe_file, V.futures)
    facts = list(_join_parts(V, chunks))
    # `measure_values` looks for the largest value here.
    V = V._copy(source=SimpleNamespace(largest=max(f.largest for f in facts)))
    features = None if V.column_names is None else tuple(map(str, V.column_names))
    ids = next((f.feature_ids for f in facts if f.feature_ids is not None), None)
    counts: Any = V  # used like an array
    return Table(counts, None, features, (), None if ids is None else tuple(ids)), facts


def _join_parts(V: WorkerRows, chunks: list[FileFacts]) -> Iterator[FileFacts]:
    """Yield the facts of every file; those of a store that workers share are joined."""
    paths = [chunk.origin.name for chunk in V.chunks]
    if not isinstance(V.chunks[0].data, StorePart):
        for path, facts in zip(paths, chunks, strict=True):
            yield facts._replace(path=path)
        return
    filled = [facts for facts in chunks if facts.rows]
    names = [facts.samples for facts in filled if facts.samples is not None]
    samples = [name for part in names for name in part] if len(names) == len(filled) else None
    yield filled[0]._replace(path=paths[0], rows=V.shape[0], samples=samples)


# ---- on the workers --------------------------------------------------------------------------


def _describe_file(chunk: LoadedChunk) -> FileFacts:
    V, remarks = chunk.matrix, chunk.remarks or ()
    if V is None:
        return FileFacts("", 0, None, None, remarks)
    source = getattr(V, "source", None)  # of data on disk
    names = None if V.row_names is None else [str(name) for name in V.row_names]
    if source is None:
        array: Any = V.array
        largest = float((array if V.dense else array.data).max(initial=0))
        return FileFacts("", V.shape[0], names, chunk.feature_ids, remarks, largest)
    remark = count_remark(V, source.origin)
    remarks = () if remark is None else (remark,)
    return FileFacts("", V.shape[0], names, source.feature_ids, remarks, float(source.largest))
