# SPDX-License-Identifier: BSD-3-Clause
"""`assign_workers`: which worker holds which chunk, so that all have about the same work."""

from __future__ import annotations

import math

__all__ = ["assign_workers"]


def assign_workers(work: list[int], places: list[str], threads: dict[str, int]) -> list[str]:
    """Assign a worker to each chunk, so that all threads have about the same work.

    Chunks move one at a time from the worker with the most work per thread to the one with the
    least, as long as a move shortens the round by at least a tenth.

    Parameters
    ----------
    work
        Cost of each chunk.
    places
        Address of the worker that holds each chunk.
    threads
        Number of threads of each worker.
    """
    places = list(places)
    load = dict.fromkeys([*threads, *places], 0.0)

    def cost(chunk: int, place: str) -> float:
        return work[chunk] / threads.get(place, 1)

    for chunk, place in enumerate(places):
        load[place] += cost(chunk, place)
    while True:
        longest, idle = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        moves = [
            (max(load[longest] - cost(chunk, longest), load[idle] + cost(chunk, idle)), chunk)
            for chunk, place in enumerate(places)
            if place == longest and work[chunk]
        ]
        best, moved = min(moves, default=(math.inf, -1))
        if not best < 0.9 * load[longest]:
            return places
        load[longest] -= cost(moved, longest)
        load[idle] += cost(moved, idle)
        places[moved] = idle
