# SPDX-License-Identifier: BSD-3-Clause
"""Fit with a little more memory each time, until it is enough: a script for a process of its own.

Memory is short from the start on, then after the first round. It prints the functions in which the
memory was used up, for both. Every fit that fails must do so by a
MemoryError that leaves data, model and process as they were; anything else ends the process with an
error.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sipower import KLNMF, kernels

MORE, LESS = 1 << 18, 1 << 22


def memory_used() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages[0]) * resource.getpagesize()


def digest(V: np.ndarray | sp.csr_array) -> str:
    parts = (V,) if isinstance(V, np.ndarray) else (V.data, V.indices, V.indptr)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def attempt(model: KLNMF, V: np.ndarray | sp.csr_array, extra: int, since: int) -> list[str] | None:
    """Fit within the memory in use after a round and a little more: where it failed, or None."""

    def limit(after: int) -> None:
        if after == since:
            ctypes.CDLL(None).malloc_trim(0)  # what is free goes back to the system
            resource.setrlimit(resource.RLIMIT_AS, (memory_used() + extra, resource.RLIM_INFINITY))

    gc.collect()
    model.set_params(on_round=lambda record: limit(record.round))
    limit(0)
    try:
        model.fit(V)
    except MemoryError as problem:
        return [frame.name for frame in traceback.extract_tb(problem.__traceback__)]
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return None


def main(solver: str, layout: str, jobs: int) -> None:
    rng = np.random.default_rng(0)
    V = rng.poisson(1.0, (1200, 400)).astype(float)
    V = sp.csr_array(V) if layout == "sparse" else V
    small = rng.poisson(1.0, (60, 40))
    settings = {"solver": solver, "random_state": 0, "max_iter": 3, "tol": 0, "n_jobs": jobs}
    reference = KLNMF(3, **settings).fit(small)
    # NumPy raises for want of the 64 kB in which it casts without holding the lock of the
    # interpreter, and that ends the process: here it casts in less, which the heap has.
    np.setbufsize(512)
    # NumPy's BLAS takes its memory in the first large product, and ends the process without it.
    assert (np.ones((50, 50)) @ np.ones((50, 50)) == 50).all()
    # A thread that lacks the memory to start may end the process too: CPython cannot go on.
    kernels.run_blocks(2 * jobs, lambda block: time.sleep(0.01), jobs)
    before = digest(V)
    expected = KLNMF(40, **settings).fit(V)
    places: list[set[str]] = []
    for since in range(2):
        # Less than is in use, too: what a round gives back may be all that the next one needs.
        model, extra = KLNMF(40, **settings), -since * LESS
        places.append(set())
        while (place := attempt(model, V, extra, since)) is not None:
            places[since].update(place)
            extra += MORE
            assert digest(V) == before
            assert "components_" not in vars(model)
            again = KLNMF(3, **settings).fit(small)
            assert again.components_.tobytes() == reference.components_.tobytes()
        assert model.components_.tobytes() == expected.components_.tobytes()
    sys.stdout.write(json.dumps([sorted(names) for names in places]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that rounds were used up
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
