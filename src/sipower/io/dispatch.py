# SPDX-License-Identifier: BSD-3-Clause
"""`read`: chooses the reader of a file by its ending, then by its content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from sipower.data.plausibility import orientation_remark
from sipower.io.base import ReadError, Table
from sipower.io.docword import is_docword, open_docword
from sipower.io.grid import parse_csv, parse_parquet
from sipower.io.hdf5 import open_hdf5
from sipower.io.numpy_files import open_npy, open_npz
from sipower.io.sources import OpenCounts
from sipower.io.tables import open_table
from sipower.io.tenx import is_tenx, open_folder, open_matrix_market
from sipower.io.words import TextSettings, open_column, open_text_folder
from sipower.io.zarr_files import is_zarr, open_zarr
from sipower.store import is_store

__all__ = ["FORMATS", "open_counts", "read"]

_TABLE = "a table: samples by features, or lines of sample, feature and count"
FORMATS: dict[str, str] = {
    ".mtx": "Matrix Market; genes x cells if barcodes.tsv and features.tsv are in its folder",
    ".mtx.gz": "the same, compressed",
    ".h5": "10x Genomics, features x barcodes",
    ".h5ad": "AnnData, obs x var",
    ".zarr": "AnnData in Zarr, obs x var; a folder",
    ".npz": "a SciPy sparse matrix, or a single NumPy array",
    ".npy": "a NumPy array",
    ".csv": _TABLE,
    ".csv.gz": "the same, compressed",
    ".tsv": f"{_TABLE}, separated by tabs",
    ".tsv.gz": "the same, compressed",
    ".parquet": _TABLE,
    ".txt": "a UCI bag of words (docword), documents x words; any other text is read as .tsv",
    ".txt.gz": "the same, compressed",
}
STREAMED = (".h5", ".h5ad", ".zarr", ".mtx")  # kinds that are converted in blocks
ANNDATA = {".h5": open_hdf5, ".h5ad": open_hdf5, ".zarr": open_zarr}
_OPENERS = {".mtx": open_matrix_market, ".npz": open_npz, ".npy": open_npy, ".txt": open_docword}


def read(
    path: str | PathLike[str],
    *,
    transpose: bool = False,
    layout: str | None = None,
    layer: str | None = None,
    text_column: str | None = None,
    text_options: Mapping[str, Any] | None = None,
) -> Table:
    r"""Read counts of samples by features from a file, a 10x Genomics folder or raw texts.

    Parameters
    ----------
    path
        A file in one of the `FORMATS`, or a folder with ``matrix.mtx``, ``barcodes.tsv`` and
        ``features.tsv`` or ``genes.tsv``, each plain or ending in ``.gz``, or a folder of texts
        that end in ``.txt``, one for each sample.
    transpose
        Exchange samples and features. Without it each format follows its own convention: samples
        are the obs of AnnData, the barcodes of 10x, the documents of a bag of words and the rows
        of everything else.
    layout : {"wide", "long", None}
        Layout of a table. ``"wide"``: each line holds the counts of a sample. The first column is
        its name if it has no heading or is not numeric. ``"long"``: each line holds a sample, a
        feature and a count. None: long if there are three columns and the first two are text.
    layer
        Layer of an AnnData file to read in place of X; "raw" is .raw.
    text_column
        Column of a table that holds texts, one for each sample. Their words are counted.
    text_options
        Options of `read_texts` for a folder of texts or a column of them.

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
    texts = TextSettings(text_column, text_options)
    with open_counts(file, layout, layer, texts) as stream, _report_system_errors(file):
        if transpose:  # which a user who has chosen it needs no advice about
            return stream.transpose().read(file)
        table = stream.read(file)
        remark = orientation_remark(table.samples, table.features)
        return replace(table, remarks=table.remarks + remark)


@contextmanager
def open_counts(
    file: Path, layout: str | None, layer: str | None, texts: TextSettings
) -> Iterator[OpenCounts]:
    """Open counts of samples by features, to be read whole or in blocks."""
    if layout not in (None, "wide", "long"):
        raise ReadError(f"`layout` must be wide or long, got {layout!r}.")
    if not file.exists():
        raise ReadError(f"{file} does not exist.")
    if file.is_file() and file.stat().st_size == 0:
        raise ReadError(f"{file} is empty.")
    with ExitStack() as stack:
        with _report_system_errors(file):
            stream = stack.enter_context(_open_stream(file, layout, layer, texts))
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
        raise ReadError(
            f"{file} needs more memory than is available: {_memory_advice(file)}."
        ) from None


def _memory_advice(file: Path) -> str:
    if file_kind(file) in STREAMED:
        return "convert it to a store with sipower convert, and use the store"
    return (
        "read it where there is more, or write the counts as .mtx or .h5ad, which sipower convert "
        "turns into a store without holding them in memory"
    )


def _open_stream(
    file: Path, layout: str | None, layer: str | None, texts: TextSettings
) -> AbstractContextManager[OpenCounts]:
    if is_store(file):
        raise ReadError(
            f"{file} is a store already: fit it directly, or open it with sipower.io.open_on_disk."
        )
    kind = file_kind(file)
    if layer is not None and kind not in ANNDATA:
        raise ReadError(f"{file} has no layers: only AnnData files have layers.")
    if kind in (".csv", ".tsv", ".parquet") or (kind == ".txt" and not is_docword(file)):
        return nullcontext(_open_table(file, kind, layout, texts))
    if layout is not None or texts.column is not None:
        name = "a text_column" if layout is None else "a layout"
        raise ReadError(f"{file} is not a table: do not give {name}.")
    if kind in ANNDATA:
        texts.refuse(file)
        return ANNDATA[kind](file, layer)
    if kind == "folder":
        return nullcontext(_open_folder(file, texts))
    texts.refuse(file)
    return nullcontext(_OPENERS[kind](file))


def file_kind(file: Path) -> str:
    """Return "folder", ".zarr" for a Zarr folder, or the ending of a file without .gz."""
    if is_zarr(file):
        return ".zarr"
    if file.is_dir():
        return "folder"
    ending = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])
    if ending.lower() == ".zarr":
        raise ReadError(f"{file} is a file, but a Zarr file is a folder: give that folder.")
    if ending.lower() not in FORMATS:
        raise ReadError(
            f"{file} has an unknown ending: sipower reads {', '.join(FORMATS)}, 10x folders and "
            "folders of .txt files."
        )
    return ending.lower().removesuffix(".gz")


def _open_table(file: Path, kind: str, layout: str | None, texts: TextSettings) -> OpenCounts:
    grid = parse_parquet(file) if kind == ".parquet" else parse_csv(file)
    if texts.column is not None:
        return open_column(grid, texts)
    texts.refuse(file)
    return open_table(grid, layout)


def _open_folder(folder: Path, texts: TextSettings) -> OpenCounts:
    """Open a 10x folder or, if it has no matrix.mtx and files that end in .txt, its texts."""
    if is_tenx(folder) or next(folder.rglob("*.txt"), None) is None:
        texts.refuse(folder)
        return open_folder(folder)
    return open_text_folder(folder, texts.options)
