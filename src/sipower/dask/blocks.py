# SPDX-License-Identifier: BSD-3-Clause
"""Rows that workers hold, validated once, and tasks that go where they are.

Blocks are grouped by the worker that holds them when a fit begins. What is asked of all of them is
one task a group, whose small answer comes back in the order of the groups. A block that is lost
with its worker is made again from its part, and a task that was lost runs again elsewhere.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import delayed
from numpy.typing import DTypeLike, NDArray

from sipower.dask.block import Block, Facts, as_block, other_feature
from sipower.dask.parts import Part, parts_of
from sipower.dask.waiting import answers, wait_for
from sipower.data.fingerprint import fingerprint
from sipower.kernels import Array, count_threads

__all__ = ["Blocks", "spread"]


class Blocks:
    """The data of a fit on the workers of a client.

    Parameters
    ----------
    client
        Of `distributed`.
    X
        Whatever `parts_of` takes.
    dtype
        Working type; None: float64 if one part needs it.
    """

    def __init__(self, client: Any, X: Any, dtype: DTypeLike | None) -> None:
        self.client = client
        self.parts = parts_of(X)
        self.futures = self._made(dtype)
        facts = answers(client, client.map(_facts, self.futures, pure=False))
        self.parts = _located(self.parts, facts)
        self.feature_names = _check(self.parts, facts)
        self.shape: tuple[int, int] = sum(f.shape[0] for f in facts), facts[0].shape[1]
        self.nnz = sum(f.nnz for f in facts)
        self.total = float(sum(f.total for f in facts))
        self.dtype: np.dtype[Any] = np.result_type(*(f.dtype for f in facts if f.dtype))
        if not self.total <= float(np.finfo(self.dtype).max):
            raise ValueError(f"The sum of the data is too large for {self.dtype}: rescale them.")
        self._agree_on_type(facts)
        self.groups = self._grouped(facts)

    def _made(self, dtype: DTypeLike | None) -> list[Any]:
        make, run = delayed(as_block, pure=False), uuid.uuid4().hex
        tasks = [
            make(part.data, dtype, dask_key_name=f"sipower-block-{number}-{run}")
            for number, part in enumerate(self.parts)
        ]
        return list(self.client.compute(tasks))

    def _agree_on_type(self, facts: list[Facts]) -> None:
        """Float64 for all blocks if some need it."""
        for number, fact in enumerate(facts):
            if fact.dtype not in (None, self.dtype):
                block = self.futures[number]
                self.futures[number] = self.client.submit(_in_type, block, self.dtype, pure=False)

    def _grouped(self, facts: list[Facts]) -> dict[str, list[Any]]:
        """Blocks that have rows, by a worker that holds them, in the order of the blocks."""
        wait_for(self.client, self.futures)
        holders, threads = self.client.who_has(self.futures), self.client.nthreads()
        anyone = min(threads)  # for a block that was just lost
        places = [min(holders[future.key], default=anyone) for future in self.futures]
        work = [fact.nnz + fact.shape[0] for fact in facts]
        for number, place in enumerate(spread(work, places, threads)):
            if place != places[number]:
                self.futures[number] = self.client.submit(
                    _moved, self.futures[number], workers=[place], allow_other_workers=True,
                    pure=False,
                )  # fmt: skip
                places[number] = place
        groups: dict[str, list[Any]] = {}
        for future, fact, place in zip(self.futures, facts, places, strict=True):
            if fact.shape[0]:
                groups.setdefault(place, []).append(future)
        return groups

    def ask(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """function(*arguments, *blocks) of every group, computed where its blocks are.

        The arguments travel inside the tasks: nothing has to be broadcast, kept or released.
        """
        run = uuid.uuid4().hex
        # A large factor is no large graph, about which Dask would warn.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            futures = [
                self.client.submit(
                    function,
                    *arguments,
                    *blocks,
                    key=f"sipower-{name}-{number}-{run}",
                    workers=[holder],
                    allow_other_workers=True,
                    pure=False,
                )
                for number, (holder, blocks) in enumerate(self.groups.items())
            ]
        return answers(self.client, futures)

    def take(self, items: Array) -> Any:
        """Chosen rows, brought to the driver: an array, or CSR."""
        ends = np.cumsum([part.shape[0] for part in self.parts])
        held = np.searchsorted(ends, items, side="right")
        order = np.argsort(held, kind="stable")
        tasks = [
            self.client.submit(_taken, self.futures[block], mine - ends[block], pure=False)
            for block in np.unique(held)
            if len(mine := items[held == block])
        ]
        parts = answers(self.client, tasks)
        dense = all(isinstance(part, np.ndarray) for part in parts)
        joined: Any = np.vstack(parts) if dense else sp.csr_array(sp.vstack(parts, format="csr"))
        return joined[np.argsort(order)]

    layout = "blocks"

    @property
    def threads(self) -> int:
        """Threads of the driver."""
        return count_threads(None)

    @cached_property
    def column_mass(self) -> NDArray[np.float64]:
        """Sums of the columns."""
        return np.asarray(sum(self.ask("mass", _column_mass)))

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the blocks: the same rows in other chunks are other data."""
        digests = answers(self.client, self.client.map(_fingerprint, self.futures, pure=False))
        return hashlib.sha256("".join(digests).encode()).hexdigest()


def spread(work: list[int], places: list[str], threads: dict[str, int]) -> list[str]:
    """Places of blocks with work spread evenly over the threads; few blocks are moved.

    A block moves to the worker with least to do as long as that makes the longest round shorter by
    a tenth.
    """
    places = list(places)
    load = dict.fromkeys(threads | dict.fromkeys(places, 1), 0.0)
    share = [[size / threads.get(place, 1) for place in load] for size in work]
    of = {place: at for at, place in enumerate(load)}
    for number, place in enumerate(places):
        load[place] += share[number][of[place]]
    while True:
        longest, idle = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        moves = [
            (max(load[longest] - share[n][of[longest]], load[idle] + share[n][of[idle]]), n)
            for n, place in enumerate(places) if place == longest and work[n]
        ]  # fmt: skip
        best, number = min(moves, default=(math.inf, -1))
        if not best < 0.9 * load[longest]:
            return places
        load[longest] -= share[number][of[longest]]
        load[idle] += share[number][of[idle]]
        places[number] = idle


# ---- on the workers --------------------------------------------------------------------------


def _facts(block: Block) -> Facts:
    return block.facts


def _moved(block: Block) -> Block:
    return block


def _in_type(block: Block, dtype: Any) -> Block:
    facts = block.facts._replace(dtype=dtype)
    return (
        Block(facts) if block.matrix is None else Block.of(facts, block.matrix.working_in(dtype, 1))
    )


def _taken(block: Block, from_end: Array) -> Any:
    matrix: Any = block.matrix
    return matrix.take(from_end + matrix.shape[0])


def _column_mass(*blocks: Block) -> Array:
    return np.asarray(sum(block.matrix.column_mass for block in blocks if block.matrix))


def _fingerprint(block: Block) -> str:
    return "" if block.matrix is None else fingerprint(block.matrix)


# ---- on the driver ---------------------------------------------------------------------------


def _located(parts: list[Part], facts: list[Facts]) -> list[Part]:
    """The parts with their shapes and places, which may not have been known before."""
    found, before = [], 0
    for part, fact in zip(parts, facts, strict=True):
        first = before if math.isnan(part.place.first) else part.place.first
        found.append(part._replace(shape=fact.shape, place=part.place._replace(first=first)))
        before += fact.shape[0]
    return found


def _check(parts: list[Part], facts: list[Facts]) -> Array | None:
    """Refuse bad entries, and parts that do not fit together; the names of their features."""
    named = next((at for at, fact in enumerate(facts) if fact.column_names is not None), 0)
    for part, fact in zip(parts, facts, strict=True):
        if fact.problem is not None:
            raise ValueError(part.place.sentence(fact.problem))
        if fact.shape[1] != facts[0].shape[1]:
            raise ValueError(
                f"{part.place.name} has {fact.shape[1]} features, {parts[0].place.name} has "
                f"{facts[0].shape[1]}: all parts need the same ones."
            )
        if other := other_feature(fact.column_names, facts[named].column_names):
            raise ValueError(
                f"{part.place.name} has other features than {parts[named].place.name}: {other}."
            )
    if not any(fact.shape[0] for fact in facts):
        raise ValueError("X is empty: 0 sample(s) while a minimum of 1 is required.")
    return facts[named].feature_names
