# SPDX-License-Identifier: BSD-3-Clause
"""Hundreds of fits in one process, one after another and at once: nothing grows, no bit changes."""

import json
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from faults.children import run_code
from sipower import KLNMF, nmf

MANY_FITS = """
import ctypes, gc, json, sys, threading, warnings
import numpy as np
import scipy.sparse as sp
from sipower import KLNMF, nmf

warnings.simplefilter("ignore")
V = np.random.default_rng(0).poisson(1.0, (200, 60)).astype(float)
layouts = V, sp.csr_array(V)
mask = np.random.default_rng(1).random(V.shape) < 0.9

def fit_all(count):
    for number in range(count):
        solver = ("auto", *nmf.SOLVERS)[number % (len(nmf.SOLVERS) + 1)]
        observed = {"mask": mask} if number % 4 == 0 and solver == "auto" else {}
        model = KLNMF(4, solver=solver, random_state=0, max_iter=3, tol=0, n_jobs=2)
        model.fit(layouts[number % 2], **observed)

def measure():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    resident = int(open("/proc/self/statm").read().split()[1]) * 4096
    return [resident, len(threading.enumerate())]

fit_all(39)  # three of each solver and layout: caches, and the pool of threads
before = measure()
fit_all(int(sys.argv[1]))
print(json.dumps([before, measure()]))
"""
MAX_GROWTH = 1 << 20  # bytes; V, which every fit copies, has a tenth of it


def check_growth(count):
    """Fit many times and check that neither memory nor threads have become more."""
    before, after = json.loads(run_code(MANY_FITS, count))
    assert after[0] - before[0] < MAX_GROWTH
    assert after[1] == before[1]


def test_fits_one_after_another_need_no_more_memory():
    check_growth(100)


@pytest.mark.stress
def test_five_hundred_fits_need_no_more_memory():
    check_growth(500)


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_24_fits_at_once_give_the_bits_of_one_after_another():
    V = np.random.default_rng(0).poisson(1.0, (600, 200))
    layouts, solvers = (V, sp.csr_array(V)), ("auto", *nmf.SOLVERS)
    ready = threading.Barrier(24)

    def fit(number):
        solver = solvers[number % len(solvers)]
        model = KLNMF(6, solver=solver, random_state=number, max_iter=4, tol=0, n_jobs=2)
        return model.fit_transform(layouts[number % 2]).tobytes() + model.components_.tobytes()

    results = {}

    def work(number):
        ready.wait(60)
        results[number] = fit(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: fit(number) for number in range(24)}
