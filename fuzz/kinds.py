# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of file that the library reads: a good one of each, and the check of what is read."""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from read_checks import (
    CHECKPOINT,
    STATE,
    read_backed,
    read_checkpoint,
    read_consensus,
    read_converted,
    read_counts,
    read_image,
    read_images,
    read_long,
    read_piece,
    read_prepared,
    read_results,
    read_run,
    read_selection,
    read_store,
)
from scipy.sparse import coo_array, csr_array, save_npz

from good_files import CELLS, GENES, WRITERS, V
from sipower.loop.solve import Record
from sipower.results import Run, save_run
from sipower.selection import Consensus, RankSelection
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
    "pgm": (_write("v.pgm", b"P5 # made\n3 2 255\n" + bytes(range(6))), "v.pgm", read_image),
    "bmp": (_bmp, "v.bmp", read_image),
    "checkpoint": (
        lambda folder: CHECKPOINT(folder / "c.npz").save(STATE),
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
