# SPDX-License-Identifier: BSD-3-Clause
"""Compare the memory that fits add to their process with `sipower.estimate`; time the import.

    python benchmarks/footprint.py [--only NAME]      # Linux

Each fit runs in a process of its own. Measured is the largest resident size during the fit, V
included, less that after the imports (VmHWM in /proc/self/status).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sipower import KLNMF, estimate
from sipower.io import open_store, write_store


class Case(NamedTuple):
    """A fit: its data, number of components and solver."""

    rows: int
    columns: int
    nonzeros: int  # in each row; 0: dense data
    rank: int
    values: str = "float64"
    dtype: str | None = None  # the working type
    indptr: str = "int32"
    limit: str | None = None  # memory limit of data on disk
    solver: str = "auto"


CASES = {
    "like KOS": Case(3_430, 6_906, 103, 20),
    "sparse": Case(100_000, 5_000, 50, 20),
    "int64 indptr": Case(100_000, 5_000, 50, 20, indptr="int64"),
    "sparse integers": Case(100_000, 5_000, 50, 20, "int64"),
    "sparse float32": Case(100_000, 5_000, 50, 20, "float32"),
    "many rows": Case(400_000, 2_000, 10, 50),
    "many rows float32": Case(400_000, 2_000, 10, 50, "float32"),
    "mu": Case(400_000, 2_000, 10, 50, solver="mu"),
    "square": Case(60_000, 20_000, 200, 20),
    "dense": Case(6_000, 4_000, 0, 20),
    "dense float32": Case(12_000, 4_000, 0, 20, "float32"),
    "dense uint8": Case(12_000, 8_000, 0, 20, "uint8"),
    "store 20MB": Case(100_000, 5_000, 50, 20, limit="20MB"),
    "store 200MB": Case(100_000, 5_000, 50, 20, limit="200MB"),
    "store of long rows": Case(70_000, 10_000, 200, 10, limit="50MB"),
    "store of many rows": Case(400_000, 2_000, 10, 50, limit="50MB"),
    "store float32": Case(400_000, 2_000, 10, 50, dtype="float32", limit="50MB"),
}


def status(key: str) -> int:
    """Return a size in bytes that the system states of this process."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def write_data(case: Case, folder: Path) -> None:
    """Write the arrays of random counts, or a store of them."""
    rng = np.random.default_rng(0)
    if case.nonzeros == 0:
        counts = rng.poisson(2.0, (case.rows, case.columns)).astype(case.values)
        np.save(folder / "dense.npy", counts)
        return
    step = case.columns // case.nonzeros  # one entry in each of equal ranges of columns
    shape = case.rows, case.nonzeros
    indices = step * np.arange(case.nonzeros, dtype=np.int32) + rng.integers(0, step, shape)
    data = rng.integers(1, 6, case.rows * case.nonzeros).astype(case.values)
    parts = {"data": data, "indices": indices.astype(np.int32).ravel()}
    parts["indptr"] = case.nonzeros * np.arange(case.rows + 1, dtype=case.indptr)
    if case.limit is not None:
        counts = sp.csr_array(tuple(parts.values()), shape=(case.rows, case.columns))
        write_store(counts, folder / "store")
        return
    for name, array in parts.items():
        np.save(folder / f"{name}.npy", array)


def read_data(case: Case, folder: Path) -> Any:
    """Return the data, with arrays of the types that the case names."""
    if case.limit is not None:
        return open_store(folder / "store", memory_limit=case.limit)
    if case.nonzeros == 0:
        return np.load(folder / "dense.npy")
    V = sp.csr_array((case.rows, case.columns))
    for name in ("data", "indices", "indptr"):  # the constructor would give both indices one type
        setattr(V, name, np.load(folder / f"{name}.npy"))
    return V


def measure(case: Case, folder: Path) -> None:
    """Print the bytes that a fit adds to this process, and their estimate."""
    warnings.simplefilter("ignore")
    before = status("VmRSS")
    V = read_data(case, folder)
    dtype = None if case.dtype is None else np.dtype(case.dtype)
    model = KLNMF(case.rank, solver=case.solver, tol=0.02, max_iter=8, random_state=0, n_jobs=1,
                  dtype=dtype)  # fmt: skip
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # VmHWM begins anew
    model.fit_transform(V)
    used = status("VmHWM") - before
    print(json.dumps({"used": used, "estimate": estimate(V, model).memory}))


def run(name: str) -> dict[str, int]:
    """Return what `measure` prints in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write_data(CASES[name], Path(folder))
        command = [sys.executable, __file__, "--child", name, folder]
        process = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(process.stdout)


def import_seconds(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=CASES, help="measure one case, and no import")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        measure(CASES[options.child[0]], Path(options.child[1]))
        return
    for name in CASES if options.only is None else [options.only]:
        used, expected = run(name).values()
        print(f"{name:20} {used / 1e6:7.0f} MB, estimated {expected / 1e6:7.0f} MB "
              f"({expected / used:.2f})", flush=True)  # fmt: skip
    if options.only is not None:
        return
    best = {"sklearn": 9.9, "sipower": 9.9}
    for _ in range(7):
        for module, seconds in best.items():
            best[module] = min(seconds, import_seconds(module))
    extra = best["sipower"] - best["sklearn"]
    print(f"import: sklearn {best['sklearn']:.2f} s, sipower {extra:+.2f} s")


if __name__ == "__main__":
    main()
