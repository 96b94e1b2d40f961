# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of sipower and of peers on PyPI, each as a run that yields its factors round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import MiniBatchNMF, non_negative_factorization
from threadpoolctl import threadpool_limits

from sipower import as_matrix
from sipower.nmf import CCD, Auto, Extrapolated, Factorization, make_solver

Factors = tuple[np.ndarray, np.ndarray]  # (n, K), (m, K)
Run = Iterator[tuple[float, Factors]]  # seconds so far, factors


def sipower_run(solver: Any, V: Any, start: Factors, threads: int, seed: int) -> Run:
    problem = Factorization(as_matrix(V, dtype=np.float32, n_jobs=threads), start[0].shape[1])
    before = time.perf_counter()
    state = solver.init(problem, start, seed)  # may look at D: on the clock
    seconds = time.perf_counter() - before
    while True:
        before = time.perf_counter()
        state = solver.advance(problem, state)
        seconds += time.perf_counter() - before
        yield seconds, (state.W, state.H)


def scikit_learn_mu(V: Any, start: Factors, threads: int, seed: int) -> Run:
    W, H = start[0].astype(np.float32), np.ascontiguousarray(start[1].T, np.float32)
    V, seconds = V.astype(np.float32), 0.0
    how = {"init": "custom", "solver": "mu", "beta_loss": "kullback-leibler", "tol": 0}
    while True:
        with threadpool_limits(threads):
            before = time.perf_counter()
            W, H, _ = non_negative_factorization(V, W, H, n_components=len(H), max_iter=8, **how)
            seconds += time.perf_counter() - before
        yield seconds, (W, H.T)


def scikit_learn_minibatch(V: Any, start: Factors, threads: int, seed: int) -> Run:
    model = MiniBatchNMF(
        start[0].shape[1], beta_loss="kullback-leibler", random_state=seed, batch_size=512
    )
    V, seconds = V.astype(np.float32), 0.0
    while True:
        with threadpool_limits(threads):
            before = time.perf_counter()
            for at in range(0, V.shape[0], 512):
                model.partial_fit(V[at : at + 512])
            W = model.transform(V)
            seconds += time.perf_counter() - before
        yield seconds, (W, model.components_.T)


def torchnmf_mu(V: Any, start: Factors, threads: int, seed: int) -> Run:
    import torch  # noqa: PLC0415 - optional
    from torchnmf.nmf import NMF  # noqa: PLC0415

    torch.set_num_threads(threads)
    dense = torch.tensor(np.asarray(V.toarray() if sp.issparse(V) else V, np.float32))
    W, H = (torch.tensor(np.asarray(f, np.float32)) for f in start)
    model, seconds = NMF(W=H, H=W), 0.0  # torchnmf has V ≈ H Wᵀ
    while True:
        before = time.perf_counter()
        model.fit(dense, beta=1, tol=0, max_iter=10)
        seconds += time.perf_counter() - before
        yield seconds, (model.H.detach().numpy(), model.W.detach().numpy())


def ours(solver: Any) -> Callable[..., Run]:
    return lambda *args: sipower_run(solver, *args)


CONTESTANTS: dict[str, Callable[..., Run]] = {
    "auto": ours(Auto()),
    "ccd+extrapolation": ours(Extrapolated(CCD())),
    "s-sci-pi": ours(make_solver("s-sci-pi")),
    "sci-pi": ours(make_solver("sci-pi")),
    "mu": ours(make_solver("mu")),
    "scikit-learn MU": scikit_learn_mu,
    "scikit-learn MiniBatchNMF": scikit_learn_minibatch,
    "torchnmf": torchnmf_mu,
}


def available(wanted: list[str] | None) -> dict[str, Callable[..., Run]]:
    found = {n: run for n, run in CONTESTANTS.items() if not wanted or n in wanted}
    if "torchnmf" not in found:
        return found
    try:
        version("torchnmf")
    except PackageNotFoundError:
        print("torchnmf is not installed (pip install torchnmf torch): left out")
        del found["torchnmf"]
    return found
