# SPDX-License-Identifier: BSD-3-Clause
"""One door to all formats: the ending of a file decides, then its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path

from sipower.io.arrays import read_npy, read_npz
from sipower.io.coordinates import is_docword, open_docword
from sipower.io.frames import read_csv, read_parquet
from sipower.io.hdf5 import open_hdf5
from sipower.io.orientation import orientation_remark
from sipower.io.streams import Held, Stream
from sipower.io.table import ReadError, Table
from sipower.io.tenx import open_folder, open_matrix_market

__all__ = ["FORMATS", "opened", "read"]

_TABLE = "a table: samples by features, or lines of sample, feature and count"
FORMATS: dict[str, str] = {
    ".mtx": "Matrix Market; genes x cells if barcodes.tsv and features.tsv lie beside it",
    ".mtx.gz": "the same, compressed",
    ".h5": "10x Genomics, features x barcodes",
    ".h5ad": "AnnData, obs x var",
    ".npz": "a sparse matrix of SciPy",
    ".npy": "an array of NumPy",
    ".csv": _TABLE,
    ".csv.gz": "the same, compressed",
    ".tsv": f"{_TABLE}, separated by tabs",
    ".tsv.gz": "the same, compressed",
    ".parquet": _TABLE,
    ".txt": "a bag of words of UCI (docword), documents x words; any other text as .tsv",
    ".txt.gz": "the same, compressed",
}
_HDF5 = (".h5", ".h5ad")
Opener = Callable[[Path], AbstractContextManager[Stream]]


def _plain(open_stream: Callable[[Path], Stream]) -> Opener:
    return lambda file: nullcontext(open_stream(file))


def _held(read_whole: Callable[[Path], Table]) -> Opener:
    """Open a format that can only be read whole."""

    def open_stream(file: Path) -> Stream:
        table = read_whole(file)
        return Stream(Held(table), table.samples, table.features)

    return _plain(open_stream)


_OPENERS = {".mtx": _plain(open_matrix_market), ".npz": _held(read_npz), ".npy": _held(read_npy)}


def read(
    path: str | PathLike[str],
    *,
    transpose: bool = False,
    layout: str | None = None,
    layer: str | None = None,
) -> Table:
    r"""Read counts of samples by features from a file or a folder of 10x Genomics.

    Parameters
    ----------
    path
        A file of a format of `FORMATS`, or a folder with ``matrix.mtx``, ``barcodes.tsv`` and
        ``features.tsv`` or ``genes.tsv``, each plain or ending in ``.gz``.
    transpose
        Exchange samples and features. Without it each format follows its own convention: samples
        are the obs of AnnData, the barcodes of 10x, the documents of a bag of words and the rows
        of everything else.
    layout : {"wide", "long", None}
        Of a table. ``"wide"``: a line holds the counts of a sample, after its name if the first
        column has no heading or is no number throughout. ``"long"``: a line holds sample, feature
        and count. None: long if there are three columns of which the first two are text.
    layer
        Layer of an AnnData file to read in place of X.

    Returns
    -------
    Table

    Raises
    ------
    ReadError
        One sentence with the file, and for a text the line, of what cannot be read: whatever is
        damaged or torn, negative, not finite, out of range or there twice.

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
    with opened(Path(path), layout, layer) as stream, _readable(Path(path)):
        table = (stream.transposed() if transpose else stream).table()
        return replace(
            table, remarks=table.remarks + orientation_remark(table.samples, table.features)
        )


@contextmanager
def opened(file: Path, layout: str | None, layer: str | None) -> Iterator[Stream]:
    """Open counts of samples by features, to be read whole or in blocks."""
    if layout not in (None, "wide", "long"):
        raise ReadError(f"the layout {layout!r} is unknown: choose wide or long.")
    if not file.exists():
        raise ReadError(f"{file} does not exist.")
    if file.is_file() and file.stat().st_size == 0:
        raise ReadError(f"{file} is empty.")
    with ExitStack() as stack:
        with _readable(file):
            stream = stack.enter_context(_opener(file, layout, layer)(file))
        rows, columns = stream.shape
        if rows == 0 or columns == 0:
            raise ReadError(f"{file} holds no counts: it has {rows} rows and {columns} columns.")
        yield stream


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """Say in one sentence what the system says."""
    try:
        yield
    except OSError as problem:
        raise ReadError(f"{file} cannot be read: {problem.strerror or problem}.") from None
    except MemoryError:
        raise ReadError(f"{file} needs more memory than there is.") from None


def _opener(file: Path, layout: str | None, layer: str | None) -> Opener:
    if (file / "store.json").exists():
        raise ReadError(
            f"{file} is a store already: fit it as it is, or open it by sipower.io.open_store."
        )
    if file.is_dir():
        _refuse(file, layer, layout)
        return _plain(open_folder)
    ending = "".join(file.suffixes[-2:] if file.suffix.lower() == ".gz" else file.suffixes[-1:])
    kind = ending.lower().removesuffix(".gz")
    if ending.lower() not in FORMATS:
        raise ReadError(
            f"{file} has an unknown ending: sipower reads {', '.join(FORMATS)} and folders of 10x."
        )
    if kind in _HDF5:
        _refuse(file, None, layout)
        return partial(open_hdf5, layer=layer)
    _refuse(file, layer, None)
    if kind in _OPENERS or (kind == ".txt" and is_docword(file)):
        _refuse(file, None, layout)
        return _OPENERS.get(kind, _plain(open_docword))
    return _held(partial(read_parquet if kind == ".parquet" else read_csv, layout=layout))


def _refuse(file: Path, layer: str | None, layout: str | None) -> None:
    """Say that an option means nothing for a file, rather than pass over it."""
    if layer is not None:
        raise ReadError(f"{file} has no layers: only AnnData files have.")
    if layout is not None:
        raise ReadError(f"{file} is no table: leave the layout out.")
