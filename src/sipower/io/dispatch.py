# SPDX-License-Identifier: BSD-3-Clause
"""`read`: chooses the reader of a file by its ending, then by its content."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path

from sipower.io.base import ReadError, Table, orientation_remark
from sipower.io.docword import is_docword, open_docword
from sipower.io.hdf5 import open_hdf5
from sipower.io.numpy_files import open_npy, open_npz
from sipower.io.sources import OpenCounts
from sipower.io.tables import open_csv, open_parquet
from sipower.io.tenx import open_folder, open_matrix_market
from sipower.store import is_store

__all__ = ["FORMATS", "open_counts", "read"]

_TABLE = "a table: samples by features, or lines of sample, feature and count"
FORMATS: dict[str, str] = {
    ".mtx": "Matrix Market; genes x cells if barcodes.tsv and features.tsv are in its folder",
    ".mtx.gz": "the same, compressed",
    ".h5": "10x Genomics, features x barcodes",
    ".h5ad": "AnnData, obs x var",
    ".npz": "a SciPy sparse matrix",
    ".npy": "a NumPy array",
    ".csv": _TABLE,
    ".csv.gz": "the same, compressed",
    ".tsv": f"{_TABLE}, separated by tabs",
    ".tsv.gz": "the same, compressed",
    ".parquet": _TABLE,
    ".txt": "a UCI bag of words (docword), documents x words; any other text is read as .tsv",
    ".txt.gz": "the same, compressed",
}
_OPENERS = {".mtx": open_matrix_market, ".npz": open_npz, ".npy": open_npy, ".txt": open_docword}


def read(
    path: str | PathLike[str],
    *,
    transpose: bool = False,
    layout: str | None = None,
    layer: str | None = None,
) -> Table:
    r"""Read counts of samples by features from a file or a 10x Genomics folder.

    Parameters
    ----------
    path
        A file in one of the `FORMATS`, or a folder with ``matrix.mtx``, ``barcodes.tsv`` and
        ``features.tsv`` or ``genes.tsv``, each plain or ending in ``.gz``.
    transpose
        Exchange samples and features. Without it each format follows its own convention: samples
        are the obs of AnnData, the barcodes of 10x, the documents of a bag of words and the rows
        of everything else.
    layout : {"wide", "long", None}
        Layout of a table. ``"wide"``: each line holds the counts of a sample. The first column is
        its name if it has no heading or is not numeric. ``"long"``: each line holds a sample, a
        feature and a count. None: long if there are three columns and the first two are text.
    layer
        Layer of an AnnData file to read in place of X; "raw" reads its `raw`.

    Returns
    -------
    Table

    Raises
    ------
    ReadError
        If the content is damaged or incomplete, or an entry is negative, not finite, out of range
        or duplicate. The message names the file, and the line of a text file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sipower.io import read
    >>> file = pathlib.Path(tempfile.mkdtemp(), "fruit.csv")
    >>> _ = file.write_text("day,apples,pears\nMonday,3,0\nTuesday,1,4\n")
    >>> table = read(file, layout="wide")
    >>> table.samples, table.features, table.counts.tolist()
    (('Monday', 'Tuesday'), ('apples', 'pears'), [[3, 0], [1, 4]])
    """
    file = Path(path)
    with open_counts(file, layout, layer) as stream, _report_system_errors(file):
        table = (stream.transpose() if transpose else stream).read(file)
        remark = orientation_remark(table.samples, table.features)
        return replace(table, remarks=table.remarks + remark)


@contextmanager
def open_counts(file: Path, layout: str | None, layer: str | None) -> Iterator[OpenCounts]:
    """Open counts of samples by features, to be read whole or in blocks."""
    if layout not in (None, "wide", "long"):
        raise ReadError(f"`layout` must be wide or long, got {layout!r}.")
    if not file.exists():
        raise ReadError(f"{file} does not exist.")
    if file.is_file() and file.stat().st_size == 0:
        raise ReadError(f"{file} is empty.")
    with ExitStack() as stack:
        with _report_system_errors(file):
            stream = stack.enter_context(_open_stream(file, layout, layer))
        rows, columns = stream.shape
        if rows == 0 or columns == 0:
            raise ReadError(f"{file} holds no counts: it has {rows} rows and {columns} columns.")
        yield stream


@contextmanager
def _report_system_errors(file: Path) -> Iterator[None]:
    """Raise operating-system errors and lack of memory as `ReadError`."""
    try:
        yield
    except OSError as problem:
        raise ReadError(f"{file} cannot be read: {problem.strerror or problem}.") from None
    except MemoryError:
        raise ReadError(f"{file} needs more memory than is available.") from None


def _open_stream(
    file: Path, layout: str | None, layer: str | None
) -> AbstractContextManager[OpenCounts]:
    if is_store(file):
        raise ReadError(
            f"{file} is a store already: fit it directly, or open it with sipower.io.open_store."
        )
    ending = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])
    kind = "folder" if file.is_dir() else ending.lower().removesuffix(".gz")
    if kind != "folder" and ending.lower() not in FORMATS:
        raise ReadError(
            f"{file} has an unknown ending: sipower reads {', '.join(FORMATS)} and 10x folders."
        )
    if layer is not None and kind not in (".h5", ".h5ad"):
        raise ReadError(f"{file} has no layers: only AnnData files have layers.")
    if kind in (".csv", ".tsv", ".parquet") or (kind == ".txt" and not is_docword(file)):
        open_table = open_parquet if kind == ".parquet" else open_csv
        return nullcontext(open_table(file, layout))
    if layout is not None:
        raise ReadError(f"{file} is not a table: do not give a layout.")
    if kind in (".h5", ".h5ad"):
        return open_hdf5(file, layer)
    return nullcontext(_OPENERS.get(kind, open_folder)(file))
