# SPDX-License-Identifier: BSD-3-Clause
"""`write_store`: writes blocks of rows as a store that appears only once it is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower import kernels
from sipower._files import name_in_errors
from sipower.data.fingerprint import Fingerprint
from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import EntryError, as_matrix, by_rows, check_total
from sipower.store.append_only import AppendOnlyArray
from sipower.store.external_sort import Entries, ranges, sort_records
from sipower.store.layout import CONTENT, PARTS, SIDES, Layout, is_store, write_layout
from sipower.store.workspace import MIN_MEMORY, Progress, Workspace, byte_size

__all__ = ["write_store"]


def write_store(  # noqa: PLR0913 - all options are keyword-only
    blocks: Any,
    path: str | PathLike[str],
    *,
    rows_only: bool = False,
    memory_limit: str | int = "512MB",
    samples: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    feature_ids: Sequence[str] | None = None,
    force: bool = False,
    on_block: Progress | None = None,
) -> None:
    """Write data as a store: CSR on disk in both orientations, for data larger than memory.

    Parameters
    ----------
    blocks
        List or generator of blocks of rows, in the order of the rows. A block is anything that
        `as_matrix` accepts, and all blocks have the same columns. Thousands of rows make a good
        block. A single array or sparse matrix is cut into blocks.
    path
        Folder to create, by convention ending in ``.sipower``. It appears only when complete.
    rows_only
        Whether to leave out the transpose. This halves the disk space, but the store works only
        with update rules that need only sums over the rows.
    memory_limit
        Memory to use, in bytes or as text such as "512MB". The memory of `blocks` and of a few
        numbers per row and column is not included.
    samples, features, feature_ids
        Names of the rows and columns, and ids of the columns. Those of a DataFrame are not used.
    force
        Whether to replace an existing store.
    on_block
        Called with three arguments: "rows" or "columns", how many of them have been written so
        far, and how many nonzeros these have.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sipower.store import read_layout, write_store
    >>> path = tempfile.mkdtemp() + "/tiny.sipower"
    >>> write_store((np.eye(2, 3) * i for i in range(1, 4)), path)
    >>> read_layout(path).shape, read_layout(path).total
    ((6, 3), 12.0)
    """
    memory = byte_size(memory_limit)
    if memory < MIN_MEMORY:
        raise ValueError(f"`memory_limit` must be at least 1MB, got {memory_limit!r}.")
    workspace = Workspace(Path(path), memory, on_block)
    with name_in_errors(path), _new_folder(workspace, force) as folder:
        rows = _RowWriter(folder, rows_only)
        for matrix in _validated_blocks(blocks, workspace.max_entries):
            rows.append(matrix)
            workspace.report("rows", rows.items, rows.nonzeros)
        layout = rows.layout()
        names = {"samples": samples, "features": features, "feature_ids": feature_ids}
        sizes = *layout.shape, layout.shape[1]
        for size, (side, texts) in zip(sizes, names.items(), strict=True):
            if texts is not None and len(texts) != size:
                raise ValueError(f"`{side}` must have {size} names, got {len(texts)}.")
        rows.write_columns(workspace)
        rows.finish()
        write_layout(layout, names)


# ---- blocks --------------------------------------------------------------------------------------


def _validated_blocks(blocks: Any, max_entries: int) -> Iterator[RowBlocks]:
    """Validate the blocks one after another; yield them in parts of at most `max_entries`."""
    row, first = 0, None
    for number, block in enumerate([blocks] if hasattr(blocks, "shape") else blocks, 1):
        for part in _cut_by_rows(block, max_entries):
            try:
                matrix = as_matrix(part, n_jobs=1).sparse()
            except EntryError as problem:
                raise problem.shift_rows(row) from None
            except (TypeError, ValueError) as problem:
                place = f"Block {number}, rows from {row} on: "
                raise type(problem)(f"{place}{problem}") from None
            kind = matrix.shape[1], matrix.dtype
            first = first or kind
            if kind != first:
                raise ValueError(
                    f"Block {number} has {kind[0]} columns of {kind[1]}, but the first block has "
                    f"{first[0]} of {first[1]}: all blocks must agree in both."
                )
            row += matrix.shape[0]
            yield matrix
    if row == 0:
        raise ValueError("`blocks` must have at least one row, got none.")


def _cut_by_rows(block: Any, max_entries: int) -> Iterator[Any]:
    """Cut a block by rows, if possible, into parts of at most `max_entries` entries."""
    if getattr(block, "ndim", 0) == 2 and sparse.issparse(block):
        block = by_rows(block)
    if hasattr(block, "indptr"):
        starts = block.indptr
    elif isinstance(block, np.ndarray | RowBlocks) and len(block.shape) == 2:
        starts = np.arange(block.shape[0] + 1) * block.shape[1]
    else:  # `as_matrix` converts or rejects it
        yield block
        return
    for begin, end in ranges(starts, max_entries):
        yield block.rows(begin, end) if isinstance(block, RowBlocks) else block[begin:end]


# ---- the arrays ----------------------------------------------------------------------------------


class _SideWriter:
    """A writer of the arrays of one orientation.

    `parts` maps the name of each array to the dtypes that it may have.
    """

    def __init__(self, folder: Path, parts: Mapping[str, Sequence[np.dtype[Any]]]) -> None:
        folder.mkdir()
        self.arrays = {n: AppendOnlyArray(folder / f"{n}.npy", parts[n]) for n in parts}
        if "indptr" in parts:
            self.arrays["indptr"].append(np.zeros(1, np.int64))

    @property
    def items(self) -> int:
        """The number of rows written so far."""
        return self.arrays["mass"].length

    @property
    def nonzeros(self) -> int:
        """The number of entries written so far."""
        return self.arrays["indices"].length

    def append_rows(self, block: Any, mass: NDArray[np.float64]) -> None:
        """Append the rows of `block`, a CSR array; their sums are `mass`."""
        self.arrays["indptr"].append(self.nonzeros + block.indptr[1:].astype(np.int64))
        self.arrays["indices"].append(block.indices)
        self.arrays["values"].append(block.data)
        self.arrays["mass"].append(mass)

    def finish(self) -> None:
        """Write the headers of all arrays."""
        for array in self.arrays.values():
            array.finish()


class _RowWriter(_SideWriter):
    """A writer of rows that also collects the statistics of store.json."""

    def __init__(self, folder: Path, rows_only: bool) -> None:
        super().__init__(folder / "rows", PARTS)
        self.folder, self.rows_only = folder, rows_only
        self.smallest, self.largest = np.inf, 0.0
        self.fingerprint = Fingerprint()

    def append(self, matrix: RowBlocks) -> None:
        """Append a block of rows and update the statistics."""
        block, width = matrix.array, matrix.shape[1]
        if self.items == 0:
            self.dtype = matrix.dtype
            # Per column: the sum if only rows are written, else the number of entries.
            self.columns = np.zeros(width)
        self.append_rows(block, matrix.mass)
        weights = block.data if self.rows_only else None
        self.columns += np.bincount(block.indices, weights, minlength=width)
        if matrix.nnz:
            self.smallest = min(self.smallest, float(block.data.min()))
            self.largest = max(self.largest, float(block.data.max()))
        self.fingerprint.add(block)

    def layout(self) -> Layout:
        """Return the content of store.json, once all rows are written."""
        shape = self.items, len(self.columns)
        total = float(self.arrays["mass"].read().sum())
        check_total(total, self.dtype)
        size, sha256 = self.nonzeros, self.fingerprint.hexdigest(shape)
        smallest = self.smallest if size else 0.0
        sides = SIDES[:1] if self.rows_only else SIDES
        kind = str(self.dtype)
        return Layout(self.folder, shape, size, total, kind, sha256, smallest, self.largest, sides)

    def write_columns(self, workspace: Workspace) -> None:
        """Write the transpose, or only the sums of the columns if `rows_only` is true."""
        if self.rows_only:
            side = _SideWriter(self.folder / "columns", {"mass": PARTS["mass"]})
            side.arrays["mass"].append(self.columns)
        else:
            types = PARTS | {"values": (self.arrays["values"].dtype,)}
            side = _SideWriter(self.folder / "columns", types)
            starts = np.append(0, np.cumsum(self.columns.astype(np.int64)))
            records = self._transposed_records(workspace.cached_entries)
            for block in sort_records(records, starts, self.items, workspace):
                values = block.data.astype(self.dtype, copy=False)
                data = kernels.Csr(block.indptr.astype(np.int64), block.indices, values, self.items)
                side.append_rows(block, data.row_sums())
                workspace.report("columns", side.items, side.nonzeros)
        side.finish()

    def _transposed_records(self, max_entries: int) -> Iterator[NDArray[Any]]:
        """Yield all entries, row after row, as records with rows and columns exchanged."""
        starts = self.arrays["indptr"].read()
        for begin, end in ranges(starts, max_entries):
            first, last = int(starts[begin]), int(starts[end])
            counts = np.diff(starts[begin : end + 1])
            numbers = np.repeat(np.arange(begin, end, dtype=np.int32), counts)
            indices, values = (self.arrays[n].read(first, last) for n in ("indices", "values"))
            yield Entries(indices, numbers, values).pack()


# ---- the folder ----------------------------------------------------------------------------------


@contextmanager
def _new_folder(workspace: Workspace, force: bool) -> Iterator[Path]:
    """Create a temporary folder that becomes `workspace.target` when the `with` block ends."""
    target = workspace.target
    if target.exists() or target.is_symlink():
        _check_replaceable(target, force)
    with workspace.temporary_folder() as folder:
        new, old = folder / "new", folder / "old"
        new.mkdir()
        yield new
        for file in new.rglob("*.*"):  # flush all files to disk before they replace the target
            with file.open("r+b") as stream:
                os.fsync(stream.fileno())
        try:
            if target.exists():
                _move_away(target, old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise


def _move_away(target: Path, old: Path) -> None:
    """Rename an older store; Windows refuses it while a program reads the store."""
    try:
        target.rename(old)
    except PermissionError as error:
        text = "it is in use by another program: close that first"
        raise PermissionError(error.errno, text, str(target)) from None


def _check_replaceable(target: Path, force: bool) -> None:
    """Raise ValueError unless `force` is true and the target is a store without other files."""
    if not is_store(target):
        raise ValueError(f"{target} exists and is not a store: choose another name.")
    if not force:
        raise ValueError(f"{target} is a store already: choose another name, or use force=True.")
    foreign = [file.name for file in target.iterdir() if file.name not in CONTENT]
    if foreign:
        raise ValueError(
            f"{target} also holds {foreign[0]}, which is not part of the store: move it, or choose "
            "another name."
        )
