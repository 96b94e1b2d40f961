# SPDX-License-Identifier: BSD-3-Clause
"""Compare `sipower fit FILE.h5ad --memory-limit ...` with `sipower convert` and a fit of the store.

    python benchmarks/large_file.py FOLDER

The file holds 40 million counts of cells with about 2,000 genes each. The first fit of a file
converts it into the cache, which is cleared before; the second one finds it there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import anndata
import scipy.sparse as sp
from out_of_core import draw_blocks

LIMIT, REPEATS = "100MB", 2
OPTIONS = ["-k", "15", "--tol", "1e-2", "--memory-limit", LIMIT, "--no-report", "--force"]


def run(cache: Path, *arguments: object) -> float:
    """Return the seconds of a command of sipower."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "sipower", *map(str, arguments)]
    environment = os.environ | {"SIPOWER_CACHE": str(cache)}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    folder = Path(sys.argv[1])
    file, cache = folder / "cells.h5ad", folder / "cache"
    if not file.exists():
        counts = sp.csr_matrix(sp.vstack(list(draw_blocks(40e6)), format="csr"))
        anndata.AnnData(counts.astype("float32")).write_h5ad(file)
    for _ in range(REPEATS):
        shutil.rmtree(cache, ignore_errors=True)
        first = run(cache, "fit", file, *OPTIONS, "-o", folder / "first")
        again = run(cache, "fit", file, *OPTIONS, "-o", folder / "again")
        convert = run(cache, "convert", file, "-o", folder / "cells.sipower", "--force")
        store = run(cache, "fit", folder / "cells.sipower", *OPTIONS, "-o", folder / "store")
        print(
            f"first fit {first:.1f} s, again {again:.1f} s; convert {convert:.1f} s and fit "
            f"{store:.1f} s: {first / (convert + store):.2f} and {again / (convert + store):.2f} "
            "times as long",
            flush=True,
        )


if __name__ == "__main__":
    main()
