# SPDX-License-Identifier: BSD-3-Clause
"""`WorkerFactorization`: KL-NMF of rows on Dask workers, as a problem for `RowRounds`.

    D(V ‖ W Hᵀ) = Σ over chunks of D(V_b ‖ W_b Hᵀ)

V_b and W_b are the rows of V and W in chunk b. A round sends H to every group of chunks. The group
updates its rows of W, which stay on the worker, and returns the sums of `nmf.rows.FeatureSums`:
8 m K bytes, and 4 m K (K + 1) more with curvatures. Weights, missing values, size factors,
penalties and prior counts of rows are known to their workers only; the client has the terms of H.

W is a function of the chunk, H and the last W, so Dask recomputes the W of a lost worker from the
chain of its tasks, to the same bits. Every SNAPSHOT_ROUNDS rounds W is gathered and submitted again
as data of new tasks, which ends the chain; if W is larger than MAX_SNAPSHOT, its rows are solved
from the uniform point instead, which depends on H alone.
"""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from sipower.dask.collective import add_results, add_tuples
from sipower.dask.lazy_transform import stack_chunks
from sipower.dask.loaded_chunk import LoadedChunk
from sipower.dask.task_names import task_key
from sipower.dask.waiting import gather_results
from sipower.dask.worker_factor import RowTasks, WorkerFactor, prepare_chunks
from sipower.dask.worker_rows import WorkerRows
from sipower.estimators.prior import row_model
from sipower.kernels import Array
from sipower.nmf import Factors
from sipower.nmf.init import random_factor
from sipower.nmf.row_sums import RowSums
from sipower.nmf.rows import (
    FeatureSums,
    RowPoint,
    RowTask,
    RowUpdate,
    evaluate_rows,
    feature_gap,
    sum_rows,
    uniform_rows,
    update_rows,
)
from sipower.nmf.terms import PLAIN, ModelTerms
from sipower.problems.kl import KLBlock

SNAPSHOT_ROUNDS = 10  # a lost W is recomputed from at most this many rounds
MAX_SNAPSHOT = 10**9  # bytes of W and its extrapolation; the scheduler holds them too
SNAPSHOT_TOL = 1e-4  # certified gap of rows that are solved because W is larger than that


class WorkerFactorization:
    """The KL-NMF problem of rank K for rows on Dask workers.

    Parameters
    ----------
    V
        Data on workers, (n, m).
    rank
        Number of components K.
    terms
        What the model has besides V, W and H, of which only the terms of H are used.
    options
        Parameters of the terms of W, which the workers make from it (`row_model`); None: W has
        none.
    """

    maximise = False
    evaluation_passes = 3.0  # as in `Factorization`

    def __init__(
        self, V: WorkerRows, rank: int, terms: ModelTerms = PLAIN, options: Any = None
    ) -> None:
        self.V, self.rank, self.terms, self.options = V, rank, terms, options
        self.dtype, self.column_mass = V.dtype, V.column_mass
        self.tasks = RowTasks(V)
        self._point: tuple[Factors, RowPoint] | None = None  # the point that was evaluated last

    # ---- rounds ------------------------------------------------------------------------------

    def start(self, seed: int) -> Factors:
        """Draw a random H, with the fixed entries of the model; W is empty."""
        H = random_factor(self.V, self.rank, seed, side=1).astype(self.dtype)
        self.terms.insert_fixed(H)
        return Factors(np.zeros((0, self.rank), self.dtype), H)

    def place_rows(self, W: Any, H: Array) -> WorkerFactor:
        """Return W on the workers; None or no rows: the uniform point for H."""
        if isinstance(W, WorkerFactor):
            return W
        if W is not None and len(W):
            return self.tasks.place(W)
        pairs = self.tasks.submit("uniform", _uniform_group, self.tasks.shared(H))
        return WorkerFactor(self.tasks, pairs, 0, self.rank)

    def update_rows(self, W: Any, W_ahead: Any, H: Array, task: RowTask) -> RowUpdate:
        """Return the rows of W after one round for H, with the sums over them and the value."""
        last = self.place_rows(W, H), self.place_rows(W_ahead, H)
        if task.round and task.round % SNAPSHOT_ROUNDS == 0:
            if 2 * last[0].nbytes <= MAX_SNAPSHOT:
                last = self.tasks.restore(last[0].gather(), last[1].gather(), self.rank)
            else:
                uniform = self.place_rows(None, H)
                last = uniform, uniform
                task = task._replace(beta=0.0, scale=None, row_tol=SNAPSHOT_TOL)
        futures = self.tasks.submit("update", _update_group, *self._on_groups(last, H, task))
        W, W_ahead, sum_futures = self.tasks.split(futures, self.rank)
        sums, (value, passes) = self._add(sum_futures, H, curvatures=task.curvatures)
        value += self.terms.feature_penalty(H)
        return RowUpdate(W, W_ahead, sums, value, passes / max(self.V.nnz, 1))

    def sum_rows(self, x: Factors, *, curvatures: bool) -> tuple[FeatureSums, float]:
        """Return the sums over the rows at x, and their cost in passes."""
        arguments = self._on_groups((self.place_rows(*x),), x.H, curvatures)
        futures = self.tasks.submit("sums", _sum_group, *arguments)
        sums, (cost,) = self._add(futures, x.H, curvatures=curvatures)
        return sums, cost / max(self.V.nnz, 1)

    def solve_rows(self, x: Factors, tol: float) -> WorkerFactor:
        """Return the exact W for H on the workers, each row to the certified gap `tol`."""
        same = self.tasks.same
        H = self.tasks.shared(x.H)
        pairs = self.tasks.submit("solve", _solve_group, H, same(tol), same(self.options))
        return WorkerFactor(self.tasks, pairs, 0, self.rank)

    def _on_groups(self, factors: tuple[WorkerFactor, ...], H: Array, extra: Any) -> list[Any]:
        """Return the arguments of a task for every group: pairs and sides, H, extra, options."""
        same, arguments = self.tasks.same, []
        for factor in factors:
            arguments += [factor.pairs, same(factor.side)]
        return [*arguments, self.tasks.shared(H), same(extra), same(self.options)]

    def _gather(self, name: str, function: Any, arguments: list[Any]) -> list[Any]:
        futures = self.tasks.submit(name, function, *arguments)
        return gather_results(self.V.client, futures)

    def _add(
        self, futures: list[Any], H: Array, *, curvatures: bool = False
    ) -> tuple[FeatureSums, tuple[float, ...]]:
        """Add the sums that the tasks of all groups return, in their order."""
        m, K = H.shape
        nbytes = 8 * m * K * (1 + self.terms.has_own_d + curvatures * (K + 1) / 2)
        g, Q, d, weighted, *numbers = add_results(self.V.client, futures, nbytes)
        if self.terms.has_own_d:  # even if no entry of some chunk has a weight of its own
            d = np.array(np.broadcast_to(d, H.shape))
        sums = FeatureSums(np.asarray(g), np.asarray(Q), RowSums(np.asarray(d), weighted))
        return sums, tuple(float(number) for number in numbers)

    # ---- objective and certificate -------------------------------------------------------------

    def evaluate(self, x: Factors) -> RowPoint:
        """Return objective, sums and certificate of the rows at x."""
        if self._point is None or any(a is not b for a, b in zip(self._point[0], x, strict=True)):
            arguments = self._on_groups((self.place_rows(*x),), x.H, None)
            futures = self.tasks.submit("objective", _evaluate_group, *arguments)
            sums, numbers = self._add(futures, x.H)
            self._point = x, RowPoint(sums, *numbers).add_feature_penalty(self.terms, x.H)
        return self._point[1]

    def value(self, x: Factors) -> float:
        """Return D(V ‖ W Hᵀ) and all penalties, in float64."""
        return self.evaluate(x).value

    def residual(self, x: Factors) -> float:
        """Return the certified gap of both convex halves relative to ΣV; see `Factorization`."""
        rows = self.evaluate(x)
        gaps = rows.gap + feature_gap(x.H, rows.sums, self.column_mass, self.terms)
        return gaps / max(self.V.total, 1e-300)

    def without_penalties(self, value: float, x: Factors) -> float:
        """Return D, given the value with the penalties."""
        return value - self.evaluate(x).penalty if self.terms.has_penalty else value

    def weights(self, x: Factors) -> Array:
        """Return the column sums of W in the scale of the user, (K,)."""
        W = self.place_rows(*x)
        arguments = [W.pairs, self.tasks.same(W.side)]
        return np.asarray(sum(self._gather("weights", _weight_group, arguments)))

    def restored_rows(self, x: Factors, used: Array) -> list[Any]:
        """Return W in the scale of the user, where the rows are: a future for every group.

        Components that are not `used`, bool (K,), are set to zero.
        """
        W = self.place_rows(*x)
        same = self.tasks.same
        return self.tasks.submit("restored", _restore_group, W.pairs, same(W.side), same(used))

    def lazy_rows(self, x: Factors, used: Array) -> da.Array:
        """Return W as `restored_rows` does, as a lazy array with the row chunks of the data."""
        V, pick = self.V, delayed(_pick_chunk, pure=False)
        places = {
            chunk.key: (group, at)
            for group, chunks in zip(self.restored_rows(x, used), V.groups.values(), strict=True)
            for at, chunk in enumerate(chunks)
        }
        return stack_chunks(
            [
                pick(*places.get(chunk.key, (None, 0)), self.rank, V.dtype,
                     dask_key_name=task_key("pick-rows", i))
                for i, chunk in enumerate(V.futures)
            ],
            tuple(int(chunk.shape[0]) for chunk in V.chunks), self.rank, V.dtype,
        )  # fmt: skip

    def rounding(self, value: float) -> float:
        """Return the rounding error of D, 8 eps (ΣV + D), with eps of the working dtype."""
        return 8 * float(np.finfo(self.dtype).eps) * (self.V.total + abs(value))

    def is_finite(self, x: Factors) -> bool:
        """Return whether all entries of H are finite."""
        return bool(np.isfinite(x.H.sum(dtype=np.float64)))


# ---- on the workers --------------------------------------------------------------------------


def _terms(prepared: Any, options: Any, rank: int) -> ModelTerms:
    return PLAIN if options is None else row_model(options, prepared, rank)


def _uniform_group(H: Array, *chunks: LoadedChunk) -> Any:
    W = [uniform_rows(prepared.V, H) for prepared in prepare_chunks(chunks)]
    return W, W


def _update_group(
    pair: Any, side: int, pair_ahead: Any, side_ahead: int, H: Array, task: RowTask, options: Any,
    *chunks: LoadedChunk,
) -> Any:  # fmt: skip
    """Return the new W of the chunks of a group with its extrapolation, and the sums."""
    W, W_ahead, sums = [], [], []
    last = zip(pair[side], pair_ahead[side_ahead], strict=True)
    for prepared, rows in zip(prepare_chunks(chunks), last, strict=True):
        terms = _terms(prepared, options, H.shape[1])
        update = update_rows(prepared.V, _as_arrays(rows), H, task, terms)
        W.append(update.W)
        W_ahead.append(update.W_ahead)
        sums.append((*_flatten(update.sums), update.value, update.passes))
    return (W, W_ahead), add_tuples(sums)


def _sum_group(
    pair: Any, side: int, H: Array, curvatures: bool, options: Any, *chunks: LoadedChunk
) -> Any:
    parts = []
    for prepared, W in zip(prepare_chunks(chunks), _as_arrays(pair[side]), strict=True):
        terms = _terms(prepared, options, H.shape[1])
        sums, cost = sum_rows(prepared.V, Factors(W, H), terms, curvatures=curvatures)
        parts.append((*_flatten(sums), cost))
    return add_tuples(parts)


def _evaluate_group(
    pair: Any, side: int, H: Array, _: None, options: Any, *chunks: LoadedChunk
) -> Any:
    parts = []
    for prepared, W in zip(prepare_chunks(chunks), _as_arrays(pair[side]), strict=True):
        point = evaluate_rows(prepared.V, Factors(W, H), _terms(prepared, options, H.shape[1]))
        parts.append((*_flatten(point.sums), *point[1:]))
    return add_tuples(parts)


def _solve_group(H: Array, tol: float, options: Any, *chunks: LoadedChunk) -> Any:
    W = []
    for prepared in prepare_chunks(chunks):
        terms = _terms(prepared, options, H.shape[1]).row_terms(H)
        rows = KLBlock(prepared.V, H, terms=terms).solution(tol).h
        W.append(rows.astype(prepared.V.dtype))
    return W, W


def _weight_group(pair: Any, side: int, *chunks: LoadedChunk) -> Array:
    parts = zip(prepare_chunks(chunks), pair[side], strict=True)
    return np.asarray(sum(p.restore_rows(W).sum(axis=0, dtype=np.float64) for p, W in parts))


def _restore_group(pair: Any, side: int, used: Array, *chunks: LoadedChunk) -> list[Array]:
    parts = zip(prepare_chunks(chunks), pair[side], strict=True)
    return [p.restore_rows(W) * used for p, W in parts]


def _pick_chunk(group: list[Array] | None, at: int, rank: int, dtype: Any) -> Array:
    """Return the rows of one chunk of a group; None: the chunk has no rows and is in no group."""
    return np.zeros((0, rank), dtype) if group is None else group[at]


def _flatten(sums: FeatureSums) -> tuple[Any, ...]:
    return sums.g, sums.Q, *sums.rows


def _as_arrays(parts: Any) -> Any:
    """Return arrays in memory that the kernels can read: Dask may have moved them."""
    return tuple(np.require(part, None, ["C", "A"]) for part in parts)
