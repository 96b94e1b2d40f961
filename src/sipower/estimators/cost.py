# SPDX-License-Identifier: BSD-3-Clause
"""`estimate`: the memory and time that a fit will probably take, from a few measured rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sipower.data.row_blocks import RowBlocks
from sipower.data.validate import as_matrix
from sipower.estimators.klnmf import KLNMF
from sipower.estimators.memory import fit_bytes, free_memory
from sipower.estimators.parameters import as_seed, check_supported, fit_rank
from sipower.loop.forecast import format_duration
from sipower.loop.solve import Stop, hide_inner_results, solve
from sipower.nmf import Factorization, Factors, make_solver
from sipower.nmf.auto import RACE_PASSES
from sipower.nmf.init import initial_factors
from sipower.nmf.row_sample import START_PASSES, is_tall
from sipower.nmf.sampled_items import can_sample_items

__all__ = ["Estimate", "estimate"]

TRIAL_ROUNDS = 3
NOISE = 1.4  # factor by which measured times vary
# Passes from the first start of "auto" to a gap of 1e-3, and of any other solver from its start, on
# most sets of benchmarks/zoo. A gap of 1e-2 takes about a third of them.
AUTO_PASSES, OTHER_PASSES, TYPICAL_TOL = (45.0, 800.0), (300.0, 4000.0), 1e-3
SAMPLE_PASSES = 14.0  # cost of a start from a sample of the items
OVERHEAD = 1.15  # time of the evaluations and of the exact W at the end
CSR_PARTS = ("data", "indices", "indptr")
LONG = 60.0  # seconds from which advice is given


@dataclass(frozen=True)
class Estimate:
    """The memory and time that a fit will probably take.

    Attributes
    ----------
    memory
        Bytes that the fit adds to the process at most: V, the data in both orientations, the
        factors and what solvers, kernels and the C library hold besides.
    seconds_per_round
        Measured seconds of a late round.
    seconds
        Range of the total time. Most fits end within it; none is bounded by it.
    threads
        Number of threads.
    advice
        Sentences that say what to use instead if the fit is long or does not fit into memory.
    """

    memory: int
    seconds_per_round: float
    seconds: tuple[float, float]
    threads: int
    advice: tuple[str, ...] = ()

    @property
    def expected_seconds(self) -> float:
        """The geometric mean of the range."""
        return math.sqrt(self.seconds[0] * self.seconds[1])

    def __str__(self) -> str:
        low, high = (format_duration(seconds) for seconds in self.seconds)
        times = f"{low} to {high} in all, {format_duration(self.seconds_per_round)} per round"
        text = f"{self.memory / 1e6:,.0f} MB for data and factors; {times}, {self.threads} threads"
        return " ".join((f"{text}.", *self.advice))


class _Speed(NamedTuple):
    """Measured seconds per pass of an early and of a late round, and passes of a late round."""

    early: float
    late: float
    passes_per_round: float


def estimate(V: Any, model: KLNMF | int) -> Estimate:
    """Estimate the memory and time of a fit, from a few rounds that are run and discarded.

    The time per pass is measured; the number of passes is what most data need, so the range is
    wide. While a fit runs, `on_round` and the command show the trend of the gap, which says more.

    Parameters
    ----------
    V
        Data (samples, features): anything `KLNMF` accepts.
    model
        The model that would be fitted, or its number of components.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from sipower import KLNMF, estimate
    >>> from sipower.datasets import poisson_topics
    >>> V = poisson_topics(200, 150, 4, length=200, seed=0)
    >>> cost = estimate(V, KLNMF(4, n_jobs=1))
    >>> cost.threads, 0 < cost.seconds[0] < cost.seconds[1]
    (1, True)
    """
    model = clone(model) if isinstance(model, KLNMF) else KLNMF(model)
    check_supported(model)
    data = as_matrix(V, dtype=model.dtype, n_jobs=model.n_jobs)
    rank = fit_rank(model, data, None)
    speed = _measure(model, data, rank)
    seconds = _total_seconds(model, data, rank, speed)
    memory = fit_bytes(data, rank, model.solver) + _unshared_bytes(V, data)
    return Estimate(
        memory,
        speed.late * speed.passes_per_round,
        seconds,
        data.threads,
        tuple(_advice(model, data, memory, seconds[1])),
    )


def _measure(model: KLNMF, V: RowBlocks, rank: int) -> _Speed:
    problem, stop = Factorization(V, rank), Stop(tol=0, rounds=TRIAL_ROUNDS)
    start = Factors(*initial_factors(V, rank, as_seed(model.random_state), "random"))
    problem.residual(start)  # the first use of the data makes their transpose
    with hide_inner_results():
        early = solve(problem, make_solver(model.solver), start, stop=stop)
        late = solve(problem, make_solver(model.solver, near=True), early.x, stop=stop)
    first, second = (run.seconds / max(run.passes, 1.0) for run in (early, late))
    return _Speed(first, second, late.passes / TRIAL_ROUNDS)


def _total_seconds(model: KLNMF, V: RowBlocks, rank: int, speed: _Speed) -> tuple[float, float]:
    start, typical = _start_passes(model, V, rank), OTHER_PASSES
    if model.solver == "auto":
        typical = AUTO_PASSES
    limit = model.max_iter * speed.passes_per_round
    scale = math.sqrt(TYPICAL_TOL / model.tol) if model.tol > 0 else math.inf
    low, high = (min(passes * scale, limit) for passes in typical)
    low, high = (OVERHEAD * (start * speed.early + passes * speed.late) for passes in (low, high))
    most = math.inf if model.max_time is None else model.max_time
    return min(low / NOISE, most), min(high * NOISE, most)


def _start_passes(model: KLNMF, V: RowBlocks, rank: int) -> float:
    """Return the passes that the start costs before the rounds that `typical` counts."""
    races = 2 * RACE_PASSES * model.n_init * max(math.log2(model.n_init), 0.0)
    if model.solver != "auto":
        return races
    if model.init in ("auto", "random") and is_tall(V) and V.has_columns:
        return races + START_PASSES
    if can_sample_items(V, rank):
        return races + SAMPLE_PASSES
    return races + (2 * RACE_PASSES if model.init == "auto" else 0.0)


def _unshared_bytes(V: Any, data: RowBlocks) -> int:
    """Return the bytes of the arrays of V, as the caller holds them, that `data` does not share."""
    if isinstance(V, RowBlocks) or not data.is_in_memory:
        return 0
    pairs = [(V, data.array)]
    if sp.issparse(V) and getattr(V, "format") in ("csr", "csc", "bsr"):  # noqa: B009 - untyped
        pairs = [(getattr(V, name), getattr(data.array, name)) for name in CSR_PARTS]
    arrays = [(own, other) for own, other in pairs if isinstance(own, np.ndarray)]
    return sum(own.nbytes for own, other in arrays if not np.may_share_memory(own, other))


def _advice(model: KLNMF, V: RowBlocks, memory: int, seconds: float) -> list[str]:
    advice = []
    free = free_memory()
    if memory > free:
        advice.append(
            f"Only {free / 1e6:,.0f} MB are free: write the data to a store with sipower convert, "
            "and fit it with a memory limit."
        )
    if seconds > LONG and model.solver != "auto":
        advice.append("solver='auto' needs fewer passes on most data.")
    if seconds > LONG and V.dtype.itemsize == 8:
        advice.append("dtype='float32' takes about half of the memory and 0.6 of the time.")
    if seconds > 10 * LONG and model.max_time is None:
        advice.append("tol=1e-2 takes about a third of the rounds, and max_time bounds the time.")
    return advice
