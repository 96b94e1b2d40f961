# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of file that the library reads: a valid file of each, and the check of its content."""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import anndata
import numpy as np
from read_checks import (
    CHECKPOINT,
    STATE,
    read_backed,
    read_cache,
    read_checkpoint,
    read_consensus,
    read_converted,
    read_counts,
    read_image,
    read_images,
    read_long,
    read_prepared,
    read_results,
    read_run,
    read_saved_fit,
    read_selection,
    read_store,
    read_zarr,
)
from scipy.sparse import coo_array, csr_array, save_npz

from cached_files import zarr_format
from good_files import CELLS, GENES, WRITERS, V
from sipower.io.cache import CacheEntry
from sipower.loop.solve import Record
from sipower.results import Run, save_run
from sipower.selection import Consensus, RankSelection
from sipower.selection.outcome import save_outcome
from sipower.selection.saved_fits import SavedFits
from sipower.store import write_store

__all__ = ["NAMES", "Kind", "kinds"]


Write = Callable[[Path], object]
Read = Callable[[Path], None]


class Kind(NamedTuple):
    """The files of one kind by their names in a folder, and the path that a reader gets.

    `read` reads the path and asserts that the content is valid; `has_counts` is true for the
    readers of `sipower.io`, whose only error is `ReadError`.
    """

    files: dict[str, bytes]
    path: str
    read: Read
    has_counts: bool


# ---- valid files ---------------------------------------------------------------------------------


def _write_tenx(folder: Path) -> None:
    WRITERS["mtx_gz"](folder).rename(folder / "matrix.mtx.gz")
    (folder / "v.mtx").unlink()
    genes = "".join(f"ENSG{i}\t{gene}\tGene Expression\n" for i, gene in enumerate(GENES))
    (folder / "barcodes.tsv").write_text("".join(f"{cell}\n" for cell in CELLS))
    (folder / "features.tsv.gz").write_bytes(gzip.compress(genes.encode()))


def _write_run(folder: Path) -> None:
    facts = {"status": "converged", "input": {"sha256": "0"}, "parameters": {"solver": "mu"}}
    trace = [Record(0, 0.0, 0.0, 3.5, 0.5, 1.0), Record(1, 2.0, 0.1, 2.5, 0.25, 1.0)]
    save_run(Run(np.ones((3, 2)), np.ones((2, 4)), trace, facts, ("a", "b", "c")), folder)


def _write_selection(folder: Path) -> None:
    selection = RankSelection(
        (2, 3), np.ones((2, 4)), np.array([1.0, np.nan]), 2, "Why.", "thinning"
    )
    save_outcome(selection, folder / "rank.json")


def _write_consensus(folder: Path) -> None:
    fits = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]), ("converged",) * 3
    consensus = Consensus(np.ones((3, 2)), np.ones((2, 4)), 1, np.ones(2), np.ones((3, 3)), *fits)
    save_outcome(consensus, folder / "consensus.json")


def _write_saved_fit(folder: Path) -> None:
    SavedFits(folder, {"model": {"random_state": 0}}).save("fit-0", {"W": np.ones((3, 2))})


def _write_results(folder: Path) -> None:
    row = {"problem": "e", "dataset": "d", "method": "m", "params": {"k": 2}, "seed": 0}
    lines = [json.dumps(row | {"seed": s, "max_passes": 1.0, "max_seconds": 1.0}) for s in range(3)]
    (folder / "v.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def _write_bmp(folder: Path) -> None:
    head = struct.pack(
        "<2sIHHIIiiHHIIiiII", b"BM", 90, 0, 0, 54, 40, 3, 3, 1, 24, 0, 36, 0, 0, 0, 0
    )
    (folder / "v.bmp").write_bytes(head + bytes(range(36)))


def _zarr_writer(version: int) -> Write:
    def write(folder: Path) -> None:
        with zarr_format(version), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # both formats, and names of types, may change
            anndata.read_h5ad(WRITERS["h5ad"](folder)).write_zarr(folder / "v.zarr")
        (folder / "v.h5ad").unlink()

    return write


def _write_cache(folder: Path) -> None:
    """Convert a file as `sipower fit` does; the folder of the entry depends on its path."""
    entry = CacheEntry(folder / "v.mtx-0123456789abcdef")
    write_store(csr_array(V), entry.store)
    entry.write_label({"file": "/nowhere/v.mtx", "size": 1, "layer": None}, ("A remark.",))


def _writer(name: str, content: bytes) -> Write:
    return lambda folder: (folder / name).write_bytes(content)


_SYMMETRIC = b"%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n3 3 2\n2 1\n3 3\n"
_BAG = b"3\n4\n3\n1 2 5\n2 1 7\n3 4 1\n"
_LONG = b"sample,feature,count\ns1,a,1\ns1,b,2\ns2,a,3\n"
_KINDS: dict[str, tuple[Write, str, Read]] = {
    **{name: (write, "", read_counts) for name, write in WRITERS.items()},
    **{f"{name} by convert": (WRITERS[name], "", read_converted) for name in ("mtx", "npz", "csv")},
    "h5ad backed": (WRITERS["h5ad"], "", read_backed),
    "h5 backed": (WRITERS["h5"], "", read_backed),
    "symmetric mtx": (_writer("v.mtx", _SYMMETRIC), "v.mtx", read_counts),
    "bag by content": (_writer("v.txt", _BAG), "v.txt", read_counts),
    "tsv": (_writer("v.tsv", _LONG.replace(b",", b"\t")), "v.tsv", read_counts),
    "long by option": (_writer("v.csv", _LONG), "v.csv", read_long),
    "bare csv": (_writer("v.csv", b"1,2,3\n4,5,6\n7,0,9\n"), "v.csv", read_counts),
    "coo npz": (lambda folder: save_npz(folder / "v.npz", coo_array(V)), "v.npz", read_counts),
    "folder of 10x": (_write_tenx, "", read_counts),
    "zarr 2": (_zarr_writer(2), "v.zarr", read_zarr),
    "zarr 3": (_zarr_writer(3), "v.zarr", read_zarr),
    "cache": (_write_cache, ".", read_cache),
    "store": (lambda folder: write_store(csr_array(V), folder / "s"), "s", read_store),
    "prepared": (WRITERS["npz"], "", read_prepared),
    "images": (lambda folder: np.savez(folder / "v.npz", V=V), "v.npz", read_images),
    "pgm": (_writer("v.pgm", b"P5 # made\n3 2 255\n" + bytes(range(6))), "v.pgm", read_image),
    "bmp": (_write_bmp, "v.bmp", read_image),
    "checkpoint": (
        lambda folder: CHECKPOINT(folder / "c.npz").save(STATE),
        "c.npz",
        read_checkpoint,
    ),
    "run": (_write_run, ".", read_run),
    "selection": (_write_selection, "rank.json", read_selection),
    "consensus": (_write_consensus, "consensus.json", read_consensus),
    "piece": (_write_saved_fit, "", read_saved_fit),
    "results": (_write_results, "v.jsonl.gz", read_results),
}

NAMES = tuple(_KINDS)
_READERS_OF_COUNTS = (read_counts, read_zarr, read_long, read_converted, read_backed)


@cache
def kinds() -> dict[str, Kind]:
    """Return a valid example of every kind."""
    examples = {}
    for name, (write, path, read) in _KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            written = write(Path(folder))
            files = [file for file in Path(folder).rglob("*") if file.is_file()]
            content = {str(file.relative_to(folder)): file.read_bytes() for file in files}
            entry = written.name if isinstance(written, Path) else path
            examples[name] = Kind(content, entry, read, read in _READERS_OF_COUNTS)
    return examples
