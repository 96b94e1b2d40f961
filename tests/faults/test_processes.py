# SPDX-License-Identifier: BSD-3-Clause
"""Many threads, many fits at once, and forks of processes that have threads: the same bits."""

import textwrap
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from faults.children import run_code
from sipower import KLNMF, nmf

DENSE = np.random.default_rng(0).poisson(1.0, (600, 300))
LAYOUTS = {"dense": DENSE, "sparse": sp.csr_array(DENSE)}


def fit_model(solver="auto", layout="sparse", jobs=2):
    with warnings.catch_warnings():  # that rounds were used up, as in a process of its own
        warnings.simplefilter("ignore")
        model = KLNMF(8, solver=solver, random_state=0, tol=0, max_iter=3, n_jobs=jobs)
        W = model.fit_transform(LAYOUTS[layout])
    return W.tobytes() + model.components_.tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_64_threads_on_fewer_cores_give_the_bits_of_one(solver, layout):
    assert fit_model(solver, layout, 64) == fit_model(solver, layout, 1)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_fits_in_python_threads_at_once_give_the_bits_of_one_after_another(solver, count):
    layouts = ["dense", "sparse"] * (count // 2)
    results, ready = {}, threading.Barrier(count)

    def work(number):
        ready.wait(60)
        model = KLNMF(8, solver=solver, random_state=0, tol=0, max_iter=3, n_jobs=2)
        W = model.fit_transform(LAYOUTS[layouts[number]])
        results[number] = W.tobytes() + model.components_.tobytes()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: fit_model(solver, layouts[number]) for number in range(count)}


VARIANTS = {
    "os.fork": """
        import os

        def in_child():
            reading, writing = os.pipe()
            if os.fork() == 0:
                os.write(writing, fit_model().encode())
                os._exit(0)
            os.wait()
            return os.read(reading, 100).decode()
    """,
    "Process": """
        import multiprocessing

        def in_child():
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            child = context.Process(target=lambda: queue.put(fit_model()))
            child.start()
            found = queue.get(timeout=300)
            child.join()
            return found
    """,
    "Pool": """
        import multiprocessing

        def in_child():
            with multiprocessing.get_context("fork").Pool(2) as pool:
                (found,) = set(pool.starmap(fit_model, [()] * 4))
            return found
    """,
    **{
        f"{backend} of joblib": f"""
        import joblib

        def in_child():
            tasks = [joblib.delayed(fit_model)() for _ in range(4)]
            (found,) = set(joblib.Parallel(2, backend="{backend}")(tasks))
            return found
    """
        for backend in ("multiprocessing", "loky")
    },
}
FIT_SCRIPT = """
import hashlib, warnings
import numpy as np
from sipower import KLNMF, kernels

warnings.simplefilter("ignore")
V = np.random.default_rng(0).poisson(1.0, (600, 300))

def fit_model():
    model = KLNMF(8, random_state=0, tol=0, max_iter=3, n_jobs=3)
    W = model.fit_transform(V)
    return hashlib.sha256(W.tobytes() + model.components_.tobytes()).hexdigest()
"""


@pytest.mark.parametrize("way", VARIANTS)
def test_children_made_after_threads_were_used_fit_to_the_same_bits(way):
    end = (
        "expected = fit_model()\n"
        "assert 'sipower' in [thread.name for thread in threading.enumerate()]\n"
        "print(in_child() == expected)"
    )
    printed = run_code(f"import threading\n{FIT_SCRIPT}\n{textwrap.dedent(VARIANTS[way])}\n{end}")
    assert printed.split() == ["True"]


def test_a_process_whose_daemon_threads_hold_data_ends_in_silence():
    assert (
        run_code(f"""{FIT_SCRIPT}
import threading
data = kernels.Dense(V.astype(float))
threading.Thread(target=lambda _: threading.Event().wait(), args=[data], daemon=True).start()
fit_model()
""")
        == ""
    )
