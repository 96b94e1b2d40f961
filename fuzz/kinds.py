# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of file that the library reads: a good one of each, and what must hold of what is read."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import struct
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import anndata.io  # noqa: F401 - by the reader, here once for all children
import numpy as np
from scipy.sparse import coo_array, csr_array, save_npz
from sklearn.exceptions import ConvergenceWarning

from damage import assert_counts, assert_valid
from good_files import CELLS, GENES, WRITERS, V
from sipower import KLNMF, as_matrix
from sipower.data.on_disk import open_store
from sipower.datasets import catalogue, originals
from sipower.experiments import table as experiments
from sipower.io import ReadError, convert, hdf5, open_h5ad, read, texts
from sipower.loop.checkpoint import Checkpoint
from sipower.loop.solve import Record
from sipower.nmf.alternating import NMFState
from sipower.results import Run, load_run, save_run
from sipower.selection import Consensus, RankSelection, load_outcome
from sipower.selection.outcome import save_outcome
from sipower.selection.saved_fits import SavedFits
from sipower.store import write_store

__all__ = ["NAMES", "Kind", "kinds"]


Make = Callable[[Path], object]
Read = Callable[[Path], None]


class Kind(NamedTuple):
    """Files of one kind by their names in a folder, of which `given` is what a reader is given.

    `read` reads it and asserts that the content is valid; `counts` says that it belongs to
    `sipower.io`, whose only error is `ReadError`.
    """

    files: dict[str, bytes]
    given: str
    read: Read
    counts: bool


# ---- counts --------------------------------------------------------------------------------------


def _unlimited(name: str, _: str) -> Any:
    return import_module(name)


def texts_in_this_process(path: Path, matrix: str, *places: str) -> dict[str, Any]:
    """Stand in for `texts_of`, whose process costs more than all else: the files are sound HDF5."""
    said = io.StringIO()
    try:
        with redirect_stdout(said), patch.object(texts, "_library", _unlimited):
            texts._main(str(path), matrix, *places)
    except MemoryError:
        raise ValueError("its texts, MemoryError") from None
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


@patch.object(hdf5, "texts_of", texts_in_this_process)
def read_counts(path: Path) -> None:
    """Read a file, or a folder of 10x."""
    table = read(path)
    if path.is_dir():
        assert_counts(table)
    else:
        assert_valid(path, table)


def read_long(path: Path) -> None:
    """Read a table whose layout the user tells."""
    assert_counts(read(path, layout="long"))


def read_converted(path: Path) -> None:
    """Convert a file: the store holds what `read` reads, unless `as_matrix` would refuse it."""
    target = path.with_name("store")
    try:
        convert(path, target, transpose=True, force=True, memory_limit="1MB")
    except ReadError:
        raise
    except ValueError as problem:
        assert str(problem) == _complaint(read(path, transpose=True).counts)  # noqa: PT017
        return
    stored = open_store(target, n_jobs=1)
    found = stored.rows(0, stored.shape[0])
    whole = csr_array(read(path, transpose=True).counts).astype(stored.dtype)
    assert (found != whole).nnz == 0


def _complaint(counts: Any) -> str:
    try:
        as_matrix(csr_array(counts))
    except ValueError as problem:
        return str(problem)
    return ""


@patch.object(hdf5, "texts_of", texts_in_this_process)
def read_backed(path: Path) -> None:
    """Open an HDF5 file and read its rows."""
    _assert_stored(open_h5ad(path, n_jobs=1))


def read_store(path: Path) -> None:
    """Open a store, read its rows and columns and fit it."""
    stored = open_store(path, n_jobs=1)
    _assert_stored(stored)
    if stored.transposable:
        _assert_stored(stored.T)
    model = KLNMF(2, solver="mu", max_iter=1, tol=0, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        _assert_factors(model.fit_transform(stored), model.components_)


def _assert_stored(stored: Any) -> None:
    for window in stored.windows():
        assert window.blocks
    found = stored.rows(0, stored.shape[0])
    found.check_format(full_check=True)
    assert found.shape == stored.shape
    assert np.isfinite(found.data).all()
    assert (found.data > 0).all()
    assert found.has_canonical_format
    np.testing.assert_allclose(found.astype(np.float64).sum(axis=1), stored.mass, rtol=1e-6)


def read_prepared(path: Path) -> None:
    """Read a prepared sparse data set."""
    counts: Any = catalogue._prepared("kos", path)
    counts.check_format(full_check=True)
    assert counts.dtype.kind in "iu"
    assert counts.nnz == 0 or counts.data.min() >= 0


def read_images(path: Path) -> None:
    """Read prepared images."""
    counts = catalogue._prepared("mitf", path)
    assert counts.ndim == 2
    assert counts.dtype.kind in "iu"


def read_pgm(path: Path) -> None:
    """Read a PGM image."""
    assert originals.read_images([path], originals.read_pgm).dtype == np.uint8


def read_bmp(path: Path) -> None:
    """Read a BMP image."""
    assert originals.read_images([path], originals.read_bmp).dtype == np.uint8


# ---- what the library writes for itself ----------------------------------------------------------

_STATE = NMFState(np.ones((3, 2)), np.ones((4, 2)), step=1.0, seed=7)
_CHECKPOINT = partial(Checkpoint, run={"solver": "mu"})


def read_checkpoint(path: Path) -> None:
    """Read a state and what the loop has noted."""
    found = _CHECKPOINT(path).load(_STATE)
    assert found is not None
    state, _ = found
    for field in dataclasses.fields(state):
        wanted, there = getattr(_STATE, field.name), getattr(state, field.name)
        if isinstance(wanted, np.ndarray):
            assert (there.shape, there.dtype) == (wanted.shape, wanted.dtype)
            assert np.isfinite(there).all()
            assert (there >= 0).all()
        else:
            assert type(there) is type(wanted) or (type(wanted), type(there)) == (float, int)


def read_run(path: Path) -> None:
    """Read a run folder."""
    run = load_run(path)
    _assert_factors(run.W, run.H)
    assert (len(run.sample_names()), len(run.feature_names())) == (len(run.W), run.H.shape[1])
    assert all(isinstance(record, Record) for record in run.trace)
    assert isinstance(run.facts, dict)


def _assert_factors(W: Any, H: Any) -> None:
    assert W.ndim == H.ndim == 2
    assert W.shape[1] == H.shape[0]
    for factor in (W, H):
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()


def read_selection(path: Path) -> None:
    """Read a rank that was chosen."""
    found = load_outcome(RankSelection, path)
    assert found.deviance.ndim == 2
    assert len(found.ranks) == len(found.deviance) == len(found.stability)
    assert found.best in found.ranks


def read_consensus(path: Path) -> None:
    """Read a consensus of replicates."""
    found = load_outcome(Consensus, path, W=np.ones((3, 2)), H=np.ones((2, 4)))
    assert found.stability.shape == (2,)
    assert found.similarity.shape == (len(found.statuses),) * 2
    assert len(found.divergences) == len(found.gaps) == len(found.statuses)
    assert 0 <= found.medoid < len(found.statuses)


def read_piece(path: Path) -> None:
    """Read a finished piece of a task; a damaged one is not there."""
    store = SavedFits(path, {"model": {"random_state": 0}})
    piece = store.load("fit-0", W=(-1, -1))
    assert piece is None or isinstance(piece["W"], np.ndarray)


def read_results(path: Path) -> None:
    """Read a table of results; torn lines are passed over."""
    assert all(experiments.key_of(row) for row in experiments.read(path))


# ---- good ones -----------------------------------------------------------------------------------


def _tenx(folder: Path) -> None:
    WRITERS["mtx_gz"](folder).rename(folder / "matrix.mtx.gz")
    (folder / "v.mtx").unlink()
    genes = "".join(f"ENSG{i}\t{gene}\tGene Expression\n" for i, gene in enumerate(GENES))
    (folder / "barcodes.tsv").write_text("".join(f"{cell}\n" for cell in CELLS))
    (folder / "features.tsv.gz").write_bytes(gzip.compress(genes.encode()))


def _run(folder: Path) -> None:
    facts = {"status": "converged", "input": {"sha256": "0"}, "parameters": {"solver": "mu"}}
    trace = [Record(0, 0.0, 0.0, 3.5, 0.5, 1.0), Record(1, 2.0, 0.1, 2.5, 0.25, 1.0)]
    save_run(Run(np.ones((3, 2)), np.ones((2, 4)), trace, facts, ("a", "b", "c")), folder)


def _selection(folder: Path) -> None:
    found = RankSelection((2, 3), np.ones((2, 4)), np.array([1.0, np.nan]), 2, "Why.", "thinning")
    save_outcome(found, folder / "rank.json")


def _consensus(folder: Path) -> None:
    fits = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]), ("converged",) * 3
    found = Consensus(np.ones((3, 2)), np.ones((2, 4)), 1, np.ones(2), np.ones((3, 3)), *fits)
    save_outcome(found, folder / "consensus.json")


def _piece(folder: Path) -> None:
    SavedFits(folder, {"model": {"random_state": 0}}).save("fit-0", {"W": np.ones((3, 2))})


def _results(folder: Path) -> None:
    row = {"problem": "e", "dataset": "d", "method": "m", "params": {"k": 2}, "seed": 0}
    lines = [json.dumps(row | {"seed": s, "max_passes": 1.0, "max_seconds": 1.0}) for s in range(3)]
    (folder / "v.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def _bmp(folder: Path) -> None:
    head = struct.pack(
        "<2sIHHIIiiHHIIiiII", b"BM", 90, 0, 0, 54, 40, 3, 3, 1, 24, 0, 36, 0, 0, 0, 0
    )
    (folder / "v.bmp").write_bytes(head + bytes(range(36)))


def _write(name: str, content: bytes) -> Make:
    return lambda folder: (folder / name).write_bytes(content)


_SYMMETRIC = b"%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n3 3 2\n2 1\n3 3\n"
_BAG = b"3\n4\n3\n1 2 5\n2 1 7\n3 4 1\n"
_LONG = b"sample,feature,count\ns1,a,1\ns1,b,2\ns2,a,3\n"
_MADE: dict[str, tuple[Make, str, Read]] = {
    **{name: (write, "", read_counts) for name, write in WRITERS.items()},
    **{f"{name} by convert": (WRITERS[name], "", read_converted) for name in ("mtx", "npz", "csv")},
    "h5ad backed": (WRITERS["h5ad"], "", read_backed),
    "h5 backed": (WRITERS["h5"], "", read_backed),
    "symmetric mtx": (_write("v.mtx", _SYMMETRIC), "v.mtx", read_counts),
    "bag by content": (_write("v.txt", _BAG), "v.txt", read_counts),
    "tsv": (_write("v.tsv", _LONG.replace(b",", b"\t")), "v.tsv", read_counts),
    "long by option": (_write("v.csv", _LONG), "v.csv", read_long),
    "bare csv": (_write("v.csv", b"1,2,3\n4,5,6\n7,0,9\n"), "v.csv", read_counts),
    "coo npz": (lambda folder: save_npz(folder / "v.npz", coo_array(V)), "v.npz", read_counts),
    "folder of 10x": (_tenx, "", read_counts),
    "store": (lambda folder: write_store(csr_array(V), folder / "s"), "s", read_store),
    "prepared": (WRITERS["npz"], "", read_prepared),
    "images": (lambda folder: np.savez(folder / "v.npz", V=V), "v.npz", read_images),
    "pgm": (_write("v.pgm", b"P5 # made\n3 2 255\n" + bytes(range(6))), "v.pgm", read_pgm),
    "bmp": (_bmp, "v.bmp", read_bmp),
    "checkpoint": (
        lambda folder: _CHECKPOINT(folder / "c.npz").save(_STATE),
        "c.npz",
        read_checkpoint,
    ),
    "run": (_run, ".", read_run),
    "selection": (_selection, "rank.json", read_selection),
    "consensus": (_consensus, "consensus.json", read_consensus),
    "piece": (_piece, "", read_piece),
    "results": (_results, "v.jsonl.gz", read_results),
}

NAMES = tuple(_MADE)
_OF_COUNTS = (read_counts, read_long, read_converted, read_backed)


@cache
def kinds() -> dict[str, Kind]:
    """Make a good one of every kind."""
    found = {}
    for name, (make, given, read_it) in _MADE.items():
        with tempfile.TemporaryDirectory() as folder:
            made = make(Path(folder))
            files = [file for file in Path(folder).rglob("*") if file.is_file()]
            content = {str(file.relative_to(folder)): file.read_bytes() for file in files}
            entry = made.name if isinstance(made, Path) else given
            found[name] = Kind(content, entry, read_it, read_it in _OF_COUNTS)
    return found
