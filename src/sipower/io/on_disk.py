# SPDX-License-Identifier: BSD-3-Clause
"""`open_on_disk`: opens stores, and files that are converted once, as row blocks on disk."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import DTypeLike

from sipower._files import file_lock
from sipower.data.formats import CACHE
from sipower.data.from_store import open_store
from sipower.data.on_disk import DEFAULT_LIMIT, StoredMatrix
from sipower.io.backed import open_rows
from sipower.io.base import ReadError
from sipower.io.cache import VARIABLE, CacheEntry, cache_folder, make_cache_folder
from sipower.io.convert import convert
from sipower.io.source_files import describe_source, is_streamed
from sipower.store import byte_size, is_store
from sipower.store.layout import DamagedStoreError
from sipower.store.workspace import MIN_MEMORY, Progress, SpaceError

__all__ = ["open_on_disk"]

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


def open_on_disk(
    path: str | PathLike[str],
    *,
    layer: str | None = None,
    dtype: DTypeLike | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str = DEFAULT_LIMIT,
    cache: str | PathLike[str] | Literal[False] | None = None,
    on_block: Progress | None = None,
) -> StoredMatrix:
    """Open data larger than memory, from a store or from a file of counts.

    A store is opened where it is. A file is first converted to a store in a cache, which holds the
    counts by rows and by columns and is reused as long as the file is unchanged.

    Parameters
    ----------
    path
        A store, an AnnData file (``.h5ad`` or ``.zarr``), a 10x file or folder, a Matrix Market
        file or a UCI bag of words.
    layer
        Layer of an AnnData file to use in place of X; "raw" is .raw.
    dtype
        Working type, float32 or float64. None means float32 for float32 data, else float64.
    n_jobs
        Number of threads; None means all cores, or one inside a joblib or Dask worker.
    memory_limit
        Memory for the data, in bytes or as text such as "1GB". The factors need additional
        memory. The limit does not change any result, not even in the last bit.
    cache
        Cache folder. None means the folder ``$SIPOWER_CACHE`` or, if that is not set, the cache
        folder of the user, such as ``~/.cache/sipower``; ``sipower cache`` lists and clears it.
        False reads the rows from the file itself, which takes no disk space but several times as
        long, and works only with update rules that need only sums over the rows, such as "auto".
    on_block
        Called while a file is converted; see `sipower.io.convert`.

    Returns
    -------
    StoredMatrix
        Row blocks for `KLNMF`, `solve` and everything else that takes a `Matrix`. A store
        without the transpose works only with update rules that need only sums over the rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sipower import KLNMF
    >>> from sipower.io import open_on_disk, write_store
    >>> V = csr_array(np.random.default_rng(0).poisson(1.0, (60, 40)))
    >>> store = pathlib.Path(tempfile.mkdtemp(), "counts.sipower")
    >>> write_store(V, store)
    >>> in_memory, on_disk = KLNMF(3, random_state=0), KLNMF(3, random_state=0)
    >>> W = in_memory.fit_transform(V)
    >>> bool((on_disk.fit_transform(open_on_disk(store)) == W).all())
    True
    """
    file, limit = Path(path), byte_size(memory_limit)
    settings: dict[str, Any] = {"dtype": dtype, "n_jobs": n_jobs, "memory_limit": limit}
    if is_store(file):
        if layer is not None:
            raise ValueError(f"{file} is a store and has no layers: omit `layer`.")
        return open_store(file, **settings)
    if not file.exists():
        raise ReadError(f"{file} does not exist.")
    if not is_streamed(file):
        raise ValueError(
            f"{file} can only be read whole: convert {file} to a store first, with sipower convert."
        )
    if cache is False:
        return open_rows(file, layer, **settings)
    cached = _CachedFile(file, layer, CacheEntry.of_file(file, layer, cache_folder(cache)))
    stored = cached.open(describe_source(file, layer), settings)
    return cached.convert(settings, on_block) if stored is None else stored


class _CachedFile(NamedTuple):
    """A file, the layer of it to use, and its entry in the cache."""

    file: Path
    layer: str | None
    entry: CacheEntry

    def open(self, source: dict[str, Any], settings: dict[str, Any]) -> StoredMatrix | None:
        """Open the store, or return None if it is stale, unfinished, damaged or newer."""
        label = self.entry.label
        if label.get("source") != source or not CACHE.is_readable(label):
            return None
        try:
            stored = self._open_store(settings)
        except (OSError, DamagedStoreError):
            return None
        self.entry.touch()
        return stored if self.entry.label == label else None  # None if it was just replaced

    def convert(self, settings: dict[str, Any], on_block: Progress | None) -> StoredMatrix:
        """Convert the file, unless another process has just done so, and open the store."""
        entry, limit = self.entry, max(settings["memory_limit"], MIN_MEMORY)
        with _report_cache_folder(entry.folder.parent), ExitStack() as stack:
            make_cache_folder(entry.folder.parent)
            stack.enter_context(_wait_for_lock(self.file, entry.folder))
            source = describe_source(self.file, self.layer)
            stored = self.open(source, settings)
            if stored is not None:
                return stored
            stack.enter_context(_new_content(entry))
            remarks = convert(
                self.file, entry.store, layer=self.layer, memory_limit=limit, on_block=on_block
            )
            if describe_source(self.file, self.layer) != source:
                entry.clear()
                raise ReadError(f"{self.file} has changed while it was converted: open it again.")
            entry.write_label(source, remarks)
        return self._open_store(settings)

    def _open_store(self, settings: dict[str, Any]) -> StoredMatrix:
        remedy = f"remove it with sipower cache clear {self.file}, so that it is made again"
        return open_store(self.entry.store, remedy=remedy, **settings)


@contextmanager
def _new_content(entry: CacheEntry) -> Iterator[None]:
    """Empty the folder of an entry, or create it; remove it if it is still empty at the end."""
    entry.folder.mkdir(exist_ok=True)
    try:
        entry.clear()  # what is stale or damaged, or was left by a process that was killed
        yield
    finally:
        with suppress(OSError):  # it is not empty
            entry.folder.rmdir()


@contextmanager
def _wait_for_lock(file: Path, folder: Path) -> Iterator[None]:
    """Lock the folder of an entry; if another process has locked it, wait and say so."""
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(folder))
        except ValueError:
            warnings.warn(
                f"{file} is being converted by another process: waiting for it.", stacklevel=5
            )
            stack.enter_context(file_lock(folder, wait=True))
        yield


@contextmanager
def _report_cache_folder(folder: Path) -> Iterator[None]:
    """Raise an error that names the cache folder if it is full or cannot be written."""
    advice = f"choose another folder with `cache` or the environment variable {VARIABLE}"
    try:
        yield
    except SpaceError as problem:
        raise SpaceError(
            f"The cache folder {folder} is too small: {problem} Or {advice}."
        ) from None
    except OSError as problem:
        if problem.errno in _FULL:
            raise SpaceError(f"The cache folder {folder} is full: {advice}.") from None
        if problem.errno in _READ_ONLY and str(problem.filename or folder).startswith(str(folder)):
            raise ValueError(f"The cache folder {folder} cannot be written: {advice}.") from None
        raise
