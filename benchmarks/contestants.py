# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of sipower and of its peers on PyPI, as generators that yield factors round by round."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import Clock, run_solver
from sklearn.decomposition import MiniBatchNMF, non_negative_factorization
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sipower import as_matrix
from sipower.nmf import CCD, Auto, Extrapolated, Factorization, make_solver

Factors = tuple[np.ndarray, np.ndarray]  # (n, K), (m, K)
Run = Iterator[tuple[float, Factors]]  # seconds so far, factors


def clock_for(threads: int) -> Clock:
    """Return the clock of a run: one thread is timed by its processor time, without other load."""
    return time.process_time if threads == 1 else time.perf_counter


def run_sipower(solver: Any, V: Any, start: Factors, threads: int, seed: int) -> Run:
    """Yield the seconds and the factors of a solver of sipower after every round."""
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=threads), start[0].shape[1])
    yield from islice(run_solver(problem, solver, start, seed, clock_for(threads)), 1, None)


def iterate_scikit_learn_mu(
    V: Any, W: np.ndarray, H: np.ndarray, iterations: int, clock: Clock = time.perf_counter
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the seconds and the factors, H as (K, m), of one call of scikit-learn's NMF."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        before = clock()
        W, H, _ = non_negative_factorization(
            V, W, H, n_components=len(H), init="custom", solver="mu",
            beta_loss="kullback-leibler", tol=0, max_iter=iterations,
        )  # fmt: skip
        return clock() - before, W, H


def run_scikit_learn_mu(V: Any, start: Factors, threads: int, seed: int) -> Run:
    """Yield the seconds and the factors of scikit-learn's NMF every 8 iterations."""
    W, H = start[0].astype(np.float32), np.ascontiguousarray(start[1].T, np.float32)
    V, total = V.astype(np.float32), 0.0
    while True:
        with threadpool_limits(threads):
            seconds, W, H = iterate_scikit_learn_mu(V, W, H, 8, clock_for(threads))
        total += seconds
        yield total, (W, H.T)


def run_scikit_learn_minibatch(V: Any, start: Factors, threads: int, seed: int) -> Run:
    """Yield the seconds and the factors of scikit-learn's MiniBatchNMF after every epoch."""
    model = MiniBatchNMF(
        start[0].shape[1], beta_loss="kullback-leibler", random_state=seed, batch_size=512
    )
    V, seconds, clock = V.astype(np.float32), 0.0, clock_for(threads)
    while True:
        with threadpool_limits(threads):
            before = clock()
            for at in range(0, V.shape[0], 512):
                model.partial_fit(V[at : at + 512])
            W = model.transform(V)
            seconds += clock() - before
        yield seconds, (W, model.components_.T)


def run_torchnmf(V: Any, start: Factors, threads: int, seed: int) -> Run:
    """Yield the seconds and the factors of torchnmf every 10 iterations."""
    import torch  # noqa: PLC0415 - optional
    from torchnmf.nmf import NMF  # noqa: PLC0415

    torch.set_num_threads(threads)
    dense = torch.tensor(np.asarray(V.toarray() if sp.issparse(V) else V, np.float32))
    W, H = (torch.tensor(np.asarray(f, np.float32)) for f in start)
    model, seconds, clock = NMF(W=H, H=W), 0.0, clock_for(threads)  # torchnmf has V ≈ H Wᵀ
    while True:
        before = clock()
        model.fit(dense, beta=1, tol=0, max_iter=10)
        seconds += clock() - before
        yield seconds, (model.H.detach().numpy(), model.W.detach().numpy())


CONTESTANTS: dict[str, Callable[..., Run]] = {
    "auto": partial(run_sipower, Auto()),
    "ccd+extrapolation": partial(run_sipower, Extrapolated(CCD())),
    "s-sci-pi": partial(run_sipower, make_solver("s-sci-pi")),
    "sci-pi": partial(run_sipower, make_solver("sci-pi")),
    "mu": partial(run_sipower, make_solver("mu")),
    "scikit-learn MU": run_scikit_learn_mu,
    "scikit-learn MiniBatchNMF": run_scikit_learn_minibatch,
    "torchnmf": run_torchnmf,
}


def available_contestants(names: list[str] | None) -> dict[str, Callable[..., Run]]:
    """Return the contestants of these names, or all of them, that are installed."""
    contestants = {name: CONTESTANTS[name] for name in CONTESTANTS if not names or name in names}
    if "torchnmf" not in contestants:
        return contestants
    try:
        version("torchnmf")
    except PackageNotFoundError:
        print("torchnmf is not installed (pip install torchnmf torch): left out")
        del contestants["torchnmf"]
    return contestants
