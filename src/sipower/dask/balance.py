# SPDX-License-Identifier: BSD-3-Clause
"""`assign_workers`: balance the work of all chunks over the workers."""

from __future__ import annotations

import math

__all__ = ["assign_workers"]


def assign_workers(work: list[int], places: list[str], threads: dict[str, int]) -> list[str]:
    """Return a worker for each chunk, such that all threads have about the same work.

    One chunk after another moves to the worker with the least work, as long as that shortens the
    longest round by a tenth.

    Parameters
    ----------
    work
        Cost of each chunk.
    places
        The worker that holds each chunk.
    threads
        Number of threads of each worker.
    """
    places = list(places)
    load = dict.fromkeys(threads | dict.fromkeys(places, 1), 0.0)
    share = [[size / threads.get(place, 1) for place in load] for size in work]
    column = {place: at for at, place in enumerate(load)}
    for number, place in enumerate(places):
        load[place] += share[number][column[place]]
    while True:
        longest, idle = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        moves = [
            (max(load[longest] - share[n][column[longest]], load[idle] + share[n][column[idle]]), n)
            for n, place in enumerate(places) if place == longest and work[n]
        ]  # fmt: skip
        best, number = min(moves, default=(math.inf, -1))
        if not best < 0.9 * load[longest]:
            return places
        load[longest] -= share[number][column[longest]]
        load[idle] += share[number][column[idle]]
        places[number] = idle
