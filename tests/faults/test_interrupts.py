# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C at any moment: the last completed round is kept, and the process is as good as before."""

import json
import threading

import numpy as np
import pytest

from faults.children import run_code, run_script
from sipower import KLNMF, Interrupted, LpPCA, kernels, solve
from sipower.estimators import fit as fit_module
from sipower.nmf import Factorization

V = np.random.default_rng(0).poisson(1.0, (60, 40))


def assert_survived(count, seed):
    outcomes = json.loads(run_script("interrupted.py", count, seed))
    assert sum(outcomes.values()) == count
    assert outcomes["in a round"] > count / 2
    # Between the end of the last round and the model lie microseconds that nothing can guard.
    assert outcomes.get("too late", 0) <= 1 + count // 50


def test_fits_interrupted_at_20_random_moments_keep_their_rounds_and_can_be_repeated():
    assert_survived(20, 1)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(2, 6))
def test_fits_interrupted_at_200_random_moments_keep_their_rounds_and_can_be_repeated(seed):
    assert_survived(50, seed)


# ---- moments that are too short to be met by chance --------------------------------------------


@pytest.mark.parametrize("moment", ["value", "residual"])
def test_an_interruption_while_the_result_is_certified_keeps_the_rounds(monkeypatch, moment):
    """After the loop, where the numbers of the exact factors are computed."""
    model = KLNMF(3, solver="mu", random_state=0, max_iter=5, tol=0)
    expected = model.fit(V).components_.tobytes()
    whole = getattr(Factorization, moment)
    calls = 0

    def counted(self, x):
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return whole(self, x)

    monkeypatch.setattr(Factorization, moment, counted)
    last = 0
    model.fit(V)
    last, calls = calls, 0
    model = KLNMF(3, solver="mu", random_state=0, max_iter=5, tol=0)
    with pytest.raises(Interrupted):
        model.fit(V)
    assert (model.status_, model.n_iter_) == ("interrupted", 5)
    assert model.components_.tobytes() == expected


def test_an_interruption_between_two_loops_keeps_the_first(monkeypatch):
    """Where the exact rows open the gap again, a second loop begins."""
    loops = []

    def second_is_interrupted(*args, **kwargs):
        loops.append(args)
        if len(loops) == 2:
            raise KeyboardInterrupt
        return solve(*args, **kwargs)

    monkeypatch.setattr(fit_module, "solve", second_is_interrupted)
    exact_rows = fit_module.exact_rows
    monkeypatch.setattr(fit_module, "exact_rows", lambda *args: 2 * exact_rows(*args))
    model = KLNMF(3, solver="ccd", random_state=0, tol=1e-2)
    with pytest.raises(Interrupted):
        model.fit(V)
    assert len(loops) == 2
    assert model.status_ == "interrupted"
    assert model.n_iter_ > 0


def test_an_interrupted_model_of_lp_pca_is_as_it_was(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 5))
    model = LpPCA(2, random_state=0).fit(X)
    before = model.transform(X).tobytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("sipower.estimators.lp_pca.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3])
    assert model.transform(X).tobytes() == before


# ---- threads -----------------------------------------------------------------------------------


def test_an_interruption_while_helpers_are_called_leaves_none_at_work(monkeypatch):
    submit, finished = kernels.threads._workers.submit, []

    def interrupted(task):
        submit(task)
        raise KeyboardInterrupt

    def task(block):
        threading.Event().wait(0.01)
        finished.append(block)

    monkeypatch.setattr(kernels.threads._workers, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernels.run_blocks(50, task, 2)
    n_before = len(finished)
    threading.Event().wait(0.2)
    assert len(finished) == n_before < 50


def test_an_interruption_while_a_thread_starts_does_not_keep_the_process_from_ending():
    """The pool does not know of such a thread, which would wait for work for ever."""
    printed = run_code("""
        import threading
        from sipower import kernels

        start = threading.Thread.start

        def interrupted(self):
            threading.Thread.start = start
            start(self)
            raise KeyboardInterrupt

        threading.Thread.start = interrupted
        try:
            kernels.run_blocks(8, lambda block: None, 2)
        except KeyboardInterrupt:
            print("interrupted")
        seen = []
        kernels.run_blocks(8, seen.append, 2)
        print(sorted(seen))
    """)
    assert printed.splitlines() == ["interrupted", "[0, 1, 2, 3, 4, 5, 6, 7]"]


def test_without_another_thread_the_caller_works_alone(monkeypatch):
    busy, free = threading.Event(), threading.Event()
    kernels.threads._workers.reset()
    kernels.threads._workers.submit(lambda: (busy.set(), free.wait(60)))  # the only thread there is
    busy.wait(60)

    def no_thread(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    blocks = []
    kernels.run_blocks(20, lambda block: blocks.append((block, threading.get_ident())), 3)
    assert blocks == [(block, threading.get_ident()) for block in range(20)]
    free.set()
