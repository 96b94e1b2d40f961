# SPDX-License-Identifier: BSD-3-Clause
"""Read small files that promise or unpack to enormous ones: a script for a process of its own.

It prints what is said of each.
"""

import gzip
import io
import json
import resource
import sys
import zipfile
from pathlib import Path

import numpy as np

from sipower.io import ReadError, read
from sipower.results import Run, load_run, save_run

MEMORY = 3 << 24  # memory of the process apart from its libraries, in bytes


def head(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def zip_content(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def lying(members: dict[str, bytes], name: str, size: int) -> bytes:
    """An archive whose directory claims so many bytes for a member, as the member's head may."""
    archive = bytearray(zip_content(members))
    entry = archive.rindex(name.encode()) - 46  # the fixed part of an entry is before its name
    assert archive[entry : entry + 4] == b"PK\x01\x02"
    archive[entry + 24 : entry + 28] = size.to_bytes(4, "little")
    return bytes(archive)


def endless(start: bytes, unit: bytes, megabytes: int = 24) -> bytes:
    """Gzip of more than memory holds: the same member again and again, as the format allows."""
    unit = gzip.compress(unit * (2**20 // len(unit)), 9)
    return gzip.compress(start) + unit * megabytes


def bombs() -> dict[str, bytes]:
    market = b"%%MatrixMarket matrix coordinate integer general\n"
    square = {name: head("(536870912,)") for name in ("data.npy", "indices.npy", "indptr.npy")}
    good, shape = io.BytesIO(), io.BytesIO()
    np.save(good, np.array("csr"))
    np.save(shape, np.array([2, 2]))
    # Nothing contradicts this head but how little is stored.
    start = head("(500000000,)")
    whole = {"format.npy": good.getvalue(), "shape.npy": shape.getvalue()}
    whole |= dict.fromkeys(square, start + bytes(100))
    return {
        "claims.npy": head("(1000000, 1000000)"),
        "claims.npz": zip_content(
            {"format.npy": good.getvalue(), "shape.npy": head("(2,)"), **square}
        ),
        "directory.npz": lying(whole, "data.npy", len(start) + 4 * 10**9),
        "claims.mtx": market + b"2147483646 2147483646 9000000000000000\n1 1 1\n",
        "claims.txt": b"2000000000\n2000000000\n9000000000000000\n1 1 1\n",
        "line.csv.gz": endless(b"a,b\n", b"1"),
        "comments.mtx.gz": endless(market, b"%" * 99 + b"\n"),
        "rows.csv.gz": endless(b"a,b\n", b"1,1\n", 4),
        "entries.mtx.gz": endless(market + b"2 2 4000000000\n", b"1 1 1\n"),
    }


def main(folder: Path) -> None:
    files = bombs()
    read(small(folder))  # imports the libraries, whose memory does not count
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    used = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    messages = {}
    for name, content in files.items():
        (folder / name).write_bytes(content)
        try:
            read(folder / name)
            messages[name] = "was read"
        except ReadError as problem:
            messages[name] = str(problem)
    run = save_run(Run(np.ones((2, 2)), np.ones((2, 2))), folder / "run")
    (run / "factors.npz").write_bytes(zip_content({"W.npy": head("(2000000000, 4)"), "H.npy": b""}))
    try:
        load_run(run)
    except ValueError as problem:
        messages["factors.npz"] = str(problem)
    sys.stdout.write(json.dumps(messages))


def small(folder: Path) -> Path:
    (folder / "small.csv").write_text("a,b\n1,2\n")
    return folder / "small.csv"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
