# SPDX-License-Identifier: BSD-3-Clause
"""The paper's data sets: their sizes, the sizes in the paper's Table 1, and functions to load them.

Four of them are not distributed with this package. They are read from the folder that the
environment variable `SIPOWER_DATA` names. It holds the files that the owners of the data offer, or
arrays prepared from them. Nothing is downloaded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sipower._files import DamagedError, read_archive, shorten
from sipower.datasets.docstrings import docstrings
from sipower.datasets.originals import read_docword, read_images
from sipower.datasets.synthetic import poisson
from sipower.io import read
from sipower.io.sources import Dense, OpenCounts

FOLDER = "SIPOWER_DATA"
# Quoted, because the array types of older SciPy versions cannot be subscripted.
Counts: TypeAlias = "NDArray[np.uint8] | sparse.csr_array[np.int32, tuple[int, int]]"


@dataclass(frozen=True)
class Entry:
    """A data set of the catalogue.

    Parameters
    ----------
    what
        Description in words of the rows and columns.
    shape, nonzeros
        Numbers of rows and columns, including empty ones, and number of nonzeros. For random data,
        the expected number of nonzeros.
    printed
        Numbers of samples, features and nonzeros, and sparsity, as printed in the paper's Table 1.
    remark
        Differences between Table 1 and the data.
    owner, files
        Owner of the data, and a glob pattern that matches the owner's files.
    """

    what: str
    shape: tuple[int, int] | None = None
    nonzeros: int | None = None
    printed: tuple[int, int, int, float] | None = None
    remark: str = ""
    owner: str = ""
    files: str = ""

    @property
    def zeros(self) -> float | None:
        """The share of zeros, or None if the size is not known."""
        if self.shape is None or self.nonzeros is None:
            return None
        return 1 - self.nonzeros / (self.shape[0] * self.shape[1])

    def facts(self) -> tuple[str, str, str, str]:
        """Return shape, nonzeros, share of zeros and the row of the paper's Table 1, as texts."""
        shape, nonzeros, zeros, printed = "by versions", "–", "–", "–"
        if self.shape is not None and self.nonzeros is not None:
            shape, nonzeros = f"{self.shape[0]:,} x {self.shape[1]:,}", f"{self.nonzeros:,}"
            zeros = f"{self.zeros:.3f}"
        if self.printed is not None:
            n, m, nnz, sparsity = self.printed
            printed = f"{n:,} x {m:,}, {nnz:,}, {sparsity:g}"
        return shape, nonzeros, zeros, printed


_UCI = 'UCI Machine Learning Repository, "Bag of Words"'
_SHARE = "the table's sparsity is the share of nonzeros here, of zeros for the real sets"
CATALOGUE: dict[str, Entry] = {
    "kos": Entry(
        "documents x words of a political blog",
        (3430, 6906),
        353_160,
        (3430, 6906, 950_000, 0.960),
        "nonzeros and sparsity of KOS and NIPS are swapped; rare rows and columns are not removed",
        _UCI,
        "docword.kos.txt.gz",
    ),
    "nips": Entry(
        "papers x words of a conference",
        (1500, 12419),
        746_316,
        (1500, 12419, 280_000, 0.985),
        "nonzeros and sparsity of KOS and NIPS are swapped; rare rows and columns are not removed",
        _UCI,
        "docword.nips.txt.gz",
    ),
    "mitf": Entry(
        "pixels x faces",
        (361, 2429),
        876_834,
        (361, 2429, 877_000, 0.0),
        "the samples are 2,429 faces of 361 pixels",
        "CBCL Face Database #1 of MIT",
        "**/face[0-9]*.pgm",
    ),
    "wt": Entry(
        "pixels x frames of a video",
        (19200, 287),
        5_510_361,
        (287, 19200, 5_510_000, 0.0),
        "",
        'Wallflower test images of Microsoft Research, "WavingTrees"',
        "**/b[0-9][0-9][0-9][0-9][0-9].bmp",
    ),
    "pois1": Entry(
        "independent counts", (1000, 1000), 900_000, (1000, 1000, 900_000, 0.90), _SHARE
    ),
    "pois2": Entry(
        "independent counts", (3000, 3000), 900_000, (3000, 3000, 900_000, 0.10), _SHARE
    ),
    "pois3": Entry(
        "independent counts",
        (9000, 9000),
        810_000,
        (9000, 9000, 900_000, 0.01),
        f"0.01 of 81 million is 810,000; {_SHARE}",
    ),
    "docstrings": Entry("docstrings x words of numpy, scipy and scikit-learn"),
}
_POISSON = {"pois1": (1000, 0.9), "pois2": (3000, 0.1), "pois3": (9000, 0.01)}


def load(name: str) -> Counts:
    """Load one of the data sets of `CATALOGUE` from files, or generate it.

    Parameters
    ----------
    name : {"kos", "nips", "mitf", "wt", "pois1", "pois2", "pois3", "docstrings"}
        ``"kos"`` and ``"nips"`` are documents by words, ``"mitf"`` is pixels by faces and
        ``"wt"`` pixels by video frames.

    Returns
    -------
    scipy.sparse.csr_array or numpy.ndarray
        Counts (int32), or uint8 for the grey values of images and for the dense ``"pois1"``.
        No row or column is left out.

    Raises
    ------
    ValueError
        If there is no data set of this name, or a file is damaged.
    FileNotFoundError
        If a file is missing; the message says where its owner offers the data.

    Notes
    -----
    The first four data sets are read from the folder that the environment variable
    ``SIPOWER_DATA`` names. It contains the owners' files: ``docword.kos.txt`` and
    ``docword.nips.txt`` (or .gz) and, in any folder below, the training faces ``face00001.pgm`` …
    and the frames ``b00000.bmp`` …. Prepared arrays may replace them: ``kos.npz`` and ``nips.npz``,
    written by `scipy.sparse.save_npz`, and ``mitf.npz`` and ``wt.npz``, written by
    `numpy.savez_compressed` with the one array ``V``.

    Examples
    --------
    >>> from sipower.datasets import load
    >>> load("pois1").shape
    (1000, 1000)
    """
    if name not in CATALOGUE:
        raise ValueError(f"unknown data set {name!r}: choose one of {', '.join(CATALOGUE)}")
    if name == "docstrings":
        return docstrings().counts
    if name in _POISSON:
        n, share = _POISSON[name]
        V = poisson(n, n, share, seed=1)
        return V.toarray().astype(np.uint8) if name == "pois1" else V
    return _from_folder(name)


def is_present(name: str) -> bool:
    """Return whether the files of a data set exist; true for data sets without files.

    Examples
    --------
    >>> from sipower.datasets import is_present
    >>> is_present("pois1")  # it is generated
    True
    """
    return not CATALOGUE[name].files or bool(_find_files(name))


def vocabulary(name: str) -> tuple[str, ...]:
    r"""Return the words of the columns of ``"kos"``, ``"nips"`` or ``"docstrings"``.

    Line n of ``vocab.kos.txt`` or ``vocab.nips.txt``, in the folder that ``SIPOWER_DATA`` names, is
    the word of column n - 1.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> from unittest import mock
    >>> from sipower.datasets import vocabulary
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "vocab.kos.txt").write_text("poll\nsenate\n")
    ...     with mock.patch.dict(os.environ, SIPOWER_DATA=folder):
    ...         vocabulary("kos")
    ('poll', 'senate')
    """
    if name == "docstrings":
        return docstrings().words
    if name not in ("kos", "nips"):
        raise ValueError(f"{name!r} has no words: choose kos, nips or docstrings")
    file = Path(os.environ.get(FOLDER, ""), f"vocab.{name}.txt")
    if not os.environ.get(FOLDER) or not file.is_file():
        raise _missing(name)
    try:
        return tuple(file.read_text(encoding="utf-8").split())
    except UnicodeDecodeError as problem:
        raise ValueError(f"{file} is not UTF-8 text: {problem}.") from None


def without_rare(V: Any, min_sum: float = 20) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
    """Remove rows and columns until all sums of rows and columns are at least `min_sum`.

    Returns
    -------
    V, rows, columns
        The remaining matrix, and the positions of its rows and columns in the original V.

    Examples
    --------
    >>> import numpy as np
    >>> from sipower.datasets import without_rare
    >>> V, rows, columns = without_rare(np.array([[30, 0, 25], [1, 2, 3], [0, 19, 40]]))
    >>> V.tolist(), rows.tolist(), columns.tolist()
    ([[30, 25], [0, 40]], [0, 2], [0, 2])
    """
    rows, columns = (np.arange(size) for size in V.shape)
    while True:
        frequent_rows = np.asarray(V.sum(axis=1)).ravel() >= min_sum
        rows, V = rows[frequent_rows], V[frequent_rows]
        frequent_columns = np.asarray(V.sum(axis=0)).ravel() >= min_sum
        columns, V = columns[frequent_columns], V[:, frequent_columns]
        if frequent_rows.all() and frequent_columns.all():
            return V, rows, columns


def _find_files(name: str) -> list[Path]:
    """Return the prepared file of a data set, or else the files of its owner, sorted by name."""
    folder, owners = os.environ.get(FOLDER), CATALOGUE[name].files
    for pattern in (f"{name}.npz", owners.removesuffix(".gz"), owners) if folder else ():
        files = [file for file in Path(folder or "").glob(pattern) if file.is_file()]
        if files:
            return sorted(files, key=lambda file: file.name)
    return []


def _from_folder(name: str) -> Counts:
    files = _find_files(name)
    if not files:
        raise _missing(name)
    if files[0].suffix == ".npz":
        return _load_prepared(name, files[0])
    V = read_docword(files[0]) if name in ("kos", "nips") else read_images(files)
    if V.shape != CATALOGUE[name].shape:
        raise ValueError(
            f"{files[0].parent} holds a matrix of {V.shape[0]} x {V.shape[1]}, expected {name} of "
            f"{CATALOGUE[name].shape}: keep only the files of this data set in the folder."
        )
    return V


def _load_prepared(name: str, file: Path) -> Counts:
    try:
        if name in ("kos", "nips"):
            counts: Any = read(file).counts
        else:
            counts = OpenCounts(Dense(file, read_archive(file, ("V",))["V"])).read(file).counts
    except (OSError, KeyError, DamagedError) as problem:
        reason = f"no array {problem}" if isinstance(problem, KeyError) else shorten(problem)
        raise ValueError(f"{file} is not in the format that `load` expects: {reason}.") from None
    if counts.dtype.kind not in "iu":
        raise ValueError(f"{file} holds values of type {counts.dtype}, expected counts.")
    return counts  # type: ignore[no-any-return]


def _missing(name: str) -> FileNotFoundError:
    entry, folder = CATALOGUE[name], os.environ.get(FOLDER)
    place = f"the folder {folder}" if folder else "a folder"
    return FileNotFoundError(
        f"{name} is missing: get {entry.files.removeprefix('**/')} from its owner ({entry.owner}) "
        f"or prepare {name}.npz, and put it into {place} that the environment variable {FOLDER} "
        "names"
    )
