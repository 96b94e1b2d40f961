# SPDX-License-Identifier: BSD-3-Clause
"""Fail the n-th allocation of a task, for n = 1, 2, ... until none fails: a script to run alone.

The allocator of failing_allocator.cpp must be preloaded. Whatever fails must do so by a MemoryError
or a sentence about memory, leave data, older results and folders as they were, and leak nothing.
Prints how often the task failed and the kinds of errors.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.io import mmwrite

from sipower import KLNMF, _kernels
from sipower.io import convert
from sipower.report import write_report
from sipower.results import Run, load_run, save_run

PYDATAMEM_SETHANDLER = 304  # place in the table of NumPy's C functions
DENSE = np.random.default_rng(0).poisson(1.0, (40, 24)).astype(float)
MASK = np.random.default_rng(1).random(DENSE.shape) < 0.9
MODELS = {
    "dense": (DENSE, {}, {}),
    "sparse": (sp.csr_array(DENSE), {}, {}),
    "general": (sp.csr_array(DENSE), {"prior_W": 0.1}, {"mask": MASK}),
}
FITTED: dict[str, Any] = {}  # the attributes of a fitted model for each layout, and factors
library = ctypes.CDLL(os.environ["LD_PRELOAD"])


def watch_kernels() -> None:
    """Tell the allocator where the code of the kernels is."""
    name = str(Path(_kernels.__file__).resolve())
    lines = [line.split() for line in Path("/proc/self/maps").read_text("utf-8").splitlines()]
    bounds = [int(b, 16) for line in lines if line[-1] == name for b in line[0].split("-")]
    library.set_kernel_code(ctypes.c_void_p(min(bounds)), ctypes.c_void_p(max(bounds)))


def watch_arrays() -> None:
    """Have NumPy allocate the data of arrays with the allocator, in this thread."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(np._core._multiarray_umath._ARRAY_API, None)
    function = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[PYDATAMEM_SETHANDLER]
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    handler = ctypes.addressof(ctypes.c_char.in_dll(library, "numpy_handler"))
    capsule = make(handler, b"mem_handler", None)
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(function)(capsule)
    assert np._core.multiarray.get_handler_name(np.ones(1)) == "failing"


# ---- tasks: each may write into the folder, and returns the bits of its result -------------------


def fit(folder: Path, layout: str, jobs: int) -> bytes:
    V, parameters, observed = MODELS[layout]
    model = KLNMF(3, random_state=0, max_iter=4, tol=0, n_jobs=jobs, **parameters)
    try:
        W = model.fit_transform(V, **observed)
    except BaseException:
        assert "components_" not in vars(model)
        raise
    return W.tobytes() + model.components_.tobytes()


def transform(folder: Path, layout: str, jobs: int) -> bytes:
    V, parameters, observed = MODELS[layout]
    model = KLNMF(3, random_state=0, n_jobs=jobs, **parameters)
    model.__dict__ |= FITTED[layout]
    return model.transform(V, **observed).tobytes()


def conversion(folder: Path, layout: str, jobs: int) -> bytes:
    convert(folder / "counts.mtx", folder / "counts.sipower", force=True)
    return digest(folder / "counts.sipower")


def run_folder(folder: Path, layout: str, jobs: int) -> bytes:
    run = Run(FITTED["W"], FITTED["H"])
    save_run(run, folder / "run")
    read = load_run(folder / "run")
    return read.W.tobytes() + read.H.tobytes()


def report(folder: Path, layout: str, jobs: int) -> bytes:
    write_report((FITTED["W"], FITTED["H"]), folder / "report.html", V=MODELS[layout][0])
    return (folder / "report.html").read_bytes()


TASKS: dict[str, Callable[[Path, str, int], bytes]] = {
    task.__name__: task for task in (fit, transform, conversion, run_folder, report)
}


def digest(folder: Path) -> bytes:
    """Return a hash of the names and contents of all files of a folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    parts = [part for f in files for part in (str(f.relative_to(folder)).encode(), f.read_bytes())]
    return hashlib.sha256(b"\0".join(parts)).digest()


def input_digest() -> bytes:
    """Return a hash of all arrays that tasks are given."""
    arrays = [DENSE, MASK, FITTED["W"], FITTED["H"]]
    for V, _, _ in MODELS.values():
        arrays += [V.data, V.indices, V.indptr] if sp.issparse(V) else [V]
    return hashlib.sha256(b"".join(bytes(memoryview(a).cast("B")) for a in arrays)).digest()


def fit_models() -> None:
    """Fit the models that the other tasks use."""
    for layout, (V, parameters, observed) in MODELS.items():
        model = KLNMF(3, random_state=0, max_iter=4, tol=0, n_jobs=1, **parameters)
        FITTED["W"], FITTED[layout] = model.fit_transform(V, **observed), vars(model)
        FITTED["H"] = model.components_


def places(step: float) -> Iterator[int]:
    """Yield 1, 2, 3, ..., each at least `step` times the one before."""
    n = 1
    while True:
        yield n
        n = max(n + 1, int(n * step))


def attempt(task: Callable[[], bytes], n: int, source: str) -> tuple[bytes | None, str]:
    """Run a task whose n-th allocation fails: its result, or the kind of the error."""
    library.fail_allocation(ctypes.c_long(n), source == "kernels", source == "arrays")
    try:
        return task(), ""
    except MemoryError:
        return None, "MemoryError"
    except ValueError as problem:
        if "memory" not in str(problem) or "\n" in str(problem):
            raise
        return None, type(problem).__name__
    finally:
        library.stop_failing()


def run_until_nothing_fails(
    task: Callable[[], bytes], folder: Path, source: str, step: float
) -> tuple[int, Counter[str]]:
    """Return the number of allocations of a task, and how often it failed in each way."""
    task()  # writes the older results, and fills the caches of the libraries
    expected, files, data = task(), digest(folder), input_digest()
    errors: Counter[str] = Counter()
    gc.collect()
    live = library.allocations_live()
    for n in places(step):
        result, error = attempt(task, n, source)
        failed = library.allocations_failed()
        gc.collect()
        place = f"allocation {n} of {source}, {error or 'without an error'}"
        assert input_digest() == data, f"{place}: the data changed"
        assert digest(folder) == files, f"{place}: the files changed"
        assert library.allocations_live() == live, f"{place}: memory is lost"
        # A library may do without the memory; then the result is that with it.
        assert error or result == expected, f"{place}: another result"
        if not failed:
            return n - 1, errors
        errors[error or "no error"] += 1
    raise AssertionError


def main(name: str, source: str, layout: str, jobs: int, step: float) -> None:
    """Fail the allocations of one task, and print what happened."""
    watch_kernels()
    watch_arrays()
    fit_models()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        mmwrite(folder / "counts.mtx", sp.coo_array(DENSE.astype(int)))
        total, errors = run_until_nothing_fails(
            lambda: TASKS[name](folder, layout, jobs), folder, source, step
        )
    sys.stdout.write(json.dumps({"allocations": total, **errors}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
