# SPDX-License-Identifier: BSD-3-Clause
"""10x Genomics folders, and Matrix Market files with 10x files of names beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sipower._files import shorten
from sipower.io.base import ReadError
from sipower.io.matrix_market import open_matrix
from sipower.io.sources import OpenCounts
from sipower.io.text import read_lines

_MATRIX = "matrix.mtx"
_FEATURES = ("features.tsv", "genes.tsv")
_MAX_TYPES = 10  # largest number of types that a remark names


def is_tenx(folder: Path) -> bool:
    """Return whether a folder has a matrix.mtx."""
    return _find_file(folder, (_MATRIX,)) is not None


def find_tenx_files(path: Path) -> list[Path]:
    """Return the matrix of a 10x folder, or a Matrix Market file, and the files of names."""
    matrix = _find_file(path, (_MATRIX,)) if path.is_dir() else path
    return [] if matrix is None else [matrix, *(_name_files(matrix) or ())]


def open_folder(folder: Path) -> OpenCounts:
    """Open a folder with matrix.mtx, barcodes.tsv and features.tsv or genes.tsv, plain or .gz."""
    matrix = _find_file(folder, (_MATRIX,))
    if matrix is None or _name_files(matrix) is None:
        raise ReadError(
            f"{folder} is not a 10x folder: it must contain matrix.mtx, barcodes.tsv and "
            "features.tsv or genes.tsv, each of which may end in .gz; a folder of texts contains "
            "files that end in .txt."
        )
    return open_matrix_market(matrix)


def open_matrix_market(path: Path) -> OpenCounts:
    """Open a Matrix Market file; if 10x files of names are beside it, cells are the samples.

    The names for ``x_matrix.mtx`` are in ``x_barcodes.tsv`` and ``x_features.tsv``.
    """
    source, name_files = open_matrix(path), _name_files(path)
    if name_files is None:
        return OpenCounts(source)
    barcodes, features = (read_lines(file) for file in name_files)
    fields = [line.split("\t") for line in features]
    named = OpenCounts(
        source,
        samples=tuple(line.split("\t")[0] for line in barcodes),
        features=tuple(f[min(1, len(f) - 1)] for f in fields),
        feature_ids=tuple(f[0] for f in fields),
        notes=feature_type_remark({field[2] for field in fields if len(field) > 2}),
    )
    size, rows, columns = (len(barcodes), len(features)), *source.shape
    if size == (columns, rows):  # genes x cells, as 10x writes it
        return replace(named, transposed=True)
    if size == (rows, columns):
        remark = f"{path.name} was read as cells x genes to match the names beside it."
        return replace(named, notes=(*named.notes, remark))
    raise ReadError(
        f"{path} is {rows} x {columns}, but {name_files[1].name} has {len(features)} names and "
        f"{name_files[0].name} has {len(barcodes)}: these files do not belong together."
    )


def feature_type_remark(kinds: set[str]) -> tuple[str, ...]:
    """Return a remark if features of several kinds are mixed."""
    if len(kinds) < 2:
        return ()
    named, more = ", ".join(map(shorten, sorted(kinds)[:_MAX_TYPES])), len(kinds) - _MAX_TYPES
    named += f" and {more} more" if more > 0 else ""
    return (f"The features are of several kinds, all of them kept: {named}.",)


def _name_files(matrix: Path) -> tuple[Path, Path] | None:
    """Return the files of barcodes and features in the folder of a matrix, or None."""
    prefix, separator, _ = matrix.name.rpartition(_MATRIX)
    prefix = prefix if separator else ""
    barcodes = _find_file(matrix.parent, (f"{prefix}barcodes.tsv",))
    features = _find_file(matrix.parent, tuple(prefix + name for name in _FEATURES))
    return None if barcodes is None or features is None else (barcodes, features)


def _find_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    files = (folder / (name + ending) for name in names for ending in ("", ".gz"))
    return next((file for file in files if file.is_file()), None)
