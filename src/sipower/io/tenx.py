# SPDX-License-Identifier: BSD-3-Clause
"""Matrix Market files with the names beside them, and the folders of 10x Genomics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sipower._files import shorten as shown
from sipower.io.coordinates import open_coordinates
from sipower.io.streams import Stream
from sipower.io.table import ReadError
from sipower.io.text import lines_of

__all__ = ["kinds_remark", "open_folder", "open_matrix_market", "told_apart"]

_MATRIX = "matrix.mtx"
_FEATURES = ("features.tsv", "genes.tsv")
_KINDS = 10  # of features, in a remark


def open_folder(folder: Path) -> Stream:
    """Open a folder with matrix.mtx, barcodes.tsv and features.tsv or genes.tsv, each maybe .gz."""
    matrix = _found(folder, (_MATRIX,))
    if matrix is None or _beside(matrix) is None:
        raise ReadError(
            f"{folder} is a folder, but none of 10x: matrix.mtx, barcodes.tsv and features.tsv or "
            "genes.tsv (each may end in .gz) do not all lie in it."
        )
    return open_matrix_market(matrix)


def open_matrix_market(path: Path) -> Stream:
    """Open a Matrix Market file as written; with 10x's names beside it, cells become samples.

    ``name_matrix.mtx`` has its names in ``name_barcodes.tsv`` and ``name_features.tsv``.
    """
    source, beside = open_coordinates(path), _beside(path)
    if beside is None:
        return Stream(source)
    barcodes, features = (lines_of(file) for file in beside)
    fields = [line.split("\t") for line in features]
    named = Stream(
        source,
        samples=tuple(line.split("\t")[0] for line in barcodes),
        features=told_apart([f[min(1, len(f) - 1)] for f in fields], [f[0] for f in fields]),
        notes=kinds_remark({field[2] for field in fields if len(field) > 2}),
    )
    size, rows, columns = (len(barcodes), len(features)), *source.shape
    if size == (columns, rows):  # genes x cells, as 10x writes it
        return replace(named, turned=True)
    if size == (rows, columns):
        remark = f"{path.name} is written as cells x genes, as the names beside it show."
        return replace(named, notes=(*named.notes, remark))
    raise ReadError(
        f"{path} is {rows} x {columns}, but beside it {beside[1].name} has {len(features)} names "
        f"and {beside[0].name} has {len(barcodes)}: these files do not belong together."
    )


def told_apart(names: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
    """Names of genes; where several share one, each has its id added: TBCE (ENSG00000284770)."""
    often = Counter(names)
    pairs = zip(names, ids, strict=True)
    return tuple(f"{name} ({key})" if often[name] > 1 else name for name, key in pairs)


def kinds_remark(kinds: set[str]) -> tuple[str, ...]:
    """Tell the user if features of several kinds are mixed."""
    if len(kinds) < 2:
        return ()
    named, more = ", ".join(map(shown, sorted(kinds)[:_KINDS])), len(kinds) - _KINDS
    named += f" and {more} more" if more > 0 else ""
    return (f"The features are of several kinds, all of them kept: {named}.",)


def _beside(matrix: Path) -> tuple[Path, Path] | None:
    """Files of the barcodes and of the features that lie beside a matrix."""
    prefix, known, _ = matrix.name.rpartition(_MATRIX)
    prefix = prefix if known else ""
    barcodes = _found(matrix.parent, (f"{prefix}barcodes.tsv",))
    features = _found(matrix.parent, tuple(prefix + name for name in _FEATURES))
    return None if barcodes is None or features is None else (barcodes, features)


def _found(folder: Path, names: tuple[str, ...]) -> Path | None:
    files = (folder / (name + ending) for name in names for ending in ("", ".gz"))
    return next((file for file in files if file.is_file()), None)
