# SPDX-License-Identifier: BSD-3-Clause
"""`write_store`: blocks of rows become a store on disk, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sipower._files import name_in_errors as naming
from sipower.data.memory import Matrix
from sipower.data.validate import EntryError, as_matrix, by_rows
from sipower.store.buckets import Progress, Room, Scratch, ranges
from sipower.store.layout import CONTENT, Names, write_layout, write_names
from sipower.store.sides import Rows, write_column_mass, write_columns
from sipower.store.sizes import byte_size

__all__ = ["write_store"]

_LEAST_MEMORY = 1_000_000


def write_store(  # noqa: PLR0913 - a public door, whose options are all by name
    blocks: Any,
    path: str | PathLike[str],
    *,
    rows_only: bool = False,
    memory_limit: str | int = "512MB",
    samples: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    force: bool = False,
    on_block: Progress | None = None,
) -> None:
    """Write data as a store: CSR on disk, of both orientations, for what memory cannot hold.

    Parameters
    ----------
    blocks
        Blocks of rows in their order, each anything that `as_matrix` takes, all with the same
        columns: a list or a generator. Thousands of rows make a good block. A single array or
        sparse matrix is cut into blocks.
    path
        Folder to make, by convention ending in ``.sipower``. It appears when all is written.
    rows_only
        Leave out the transpose: half of the disk, for the rules that need sums alone.
    memory_limit
        Memory to use beside the blocks given and a few numbers per row and column.
    samples, features
        Names of the rows and columns. Those of a DataFrame are not taken by themselves.
    force
        Replace a store that is there already.
    on_block
        Called with "rows" or "columns", and how many of them and of their nonzeros are written.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower.store import read_layout, write_store
    >>> path = tempfile.mkdtemp() + "/tiny.sipower"
    >>> write_store((np.eye(2, 3) * i for i in range(1, 4)), path)
    >>> read_layout(path).shape, read_layout(path).total
    ((6, 3), 12.0)
    """
    room = Room(Path(path), _memory(memory_limit), on_block)
    with naming(path), _made(room, force) as scratch:
        rows = Rows(scratch, rows_only)
        for block in _cut(blocks, room.most):
            rows.append(block)
            room.tell("rows", rows.side.items, rows.side.nonzeros)
        layout = rows.layout()
        rows_named = _names(samples, layout.shape[0], "samples")
        columns_named = _names(features, layout.shape[1], "features")
        if rows_only:
            write_column_mass(scratch, rows.columns)
        else:
            write_columns(rows, room)
        rows.side.close()
        write_names(scratch.folder, rows_named, columns_named)
        write_layout(layout)


def _memory(limit: str | int) -> int:
    memory = byte_size(limit)
    if memory < _LEAST_MEMORY:
        raise ValueError(f"The memory limit is {limit!r}: at least 1MB is needed.")
    return memory


def _names(given: Sequence[str] | None, size: int, side: str) -> Names | None:
    if given is not None and len(given) != size:
        raise ValueError(f"There are {len(given)} names of {side}, but {size} {side}.")
    return None if given is None else tuple(map(str, given))


# ---- blocks --------------------------------------------------------------------------------------


def _cut(blocks: Any, most: int) -> Iterator[Matrix]:
    """Validate the blocks one after another, in parts of at most so many entries."""
    row, first = 0, None
    for number, block in enumerate([blocks] if hasattr(blocks, "shape") else blocks, 1):
        for part in _parts(block, most):
            try:
                matrix = as_matrix(part, n_jobs=1).sparse()
            except EntryError as problem:
                raise problem.moved(row) from None
            except (TypeError, ValueError) as problem:
                place = f"Block {number}, rows from {row} on: "
                raise type(problem)(f"{place}{problem}") from None
            found = matrix.shape[1], matrix.dtype
            first = first or found
            if found != first:
                raise ValueError(
                    f"Block {number} has {found[0]} columns for {found[1]}, the first {first[0]} "
                    f"for {first[1]}: give all blocks alike."
                )
            row += matrix.shape[0]
            yield matrix
    if row == 0:
        raise ValueError("There are no blocks: a store has at least one row.")


def _parts(block: Any, most: int) -> Iterator[Any]:
    """Cut what can be cut by rows into parts of at most so many entries."""
    if getattr(block, "ndim", 0) == 2 and sparse.issparse(block):
        block = by_rows(block)
    if hasattr(block, "indptr"):
        starts = block.indptr
    elif isinstance(block, np.ndarray | Matrix) and len(block.shape) == 2:
        starts = np.arange(block.shape[0] + 1) * block.shape[1]
    else:  # for `as_matrix` to judge
        yield block
        return
    for begin, end in ranges(starts, most):
        yield block.rows(begin, end) if isinstance(block, Matrix) else block[begin:end]


# ---- the folder ----------------------------------------------------------------------------------


@contextmanager
def _made(room: Room, force: bool) -> Iterator[Scratch]:
    """Make a folder beside the target that takes its place in the end."""
    target = room.beside
    if target.exists() or target.is_symlink():
        if not (target / "store.json").is_file():
            raise ValueError(f"{target} is there already and no store: choose another name.")
        if not force:
            raise ValueError(f"{target} is a store already: choose another name, or force.")
        foreign = next((file.name for file in target.iterdir() if file.name not in CONTENT), None)
        if foreign is not None:
            raise ValueError(
                f"{target} holds {foreign} beside the store: move it, or choose another name."
            )
    with room.scratch() as scratch:
        new = scratch.folder / "new"
        new.mkdir()
        yield replace(scratch, folder=new)
        _settle(new)
        old = scratch.folder / "old"
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise


def _settle(folder: Path) -> None:
    """Wait until all files are on the disk."""
    for file in folder.rglob("*.*"):
        with file.open("r+b") as stream:
            os.fsync(stream.fileno())
