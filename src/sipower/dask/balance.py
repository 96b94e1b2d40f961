# SPDX-License-Identifier: BSD-3-Clause
"""`spread`: which worker should hold which chunk, so that all of them have as much to do."""

from __future__ import annotations

import math

__all__ = ["spread"]


def spread(work: list[int], places: list[str], threads: dict[str, int]) -> list[str]:
    """Return the workers of chunks with the work spread evenly over threads; few chunks move.

    A chunk moves to the worker with least to do as long as that makes the longest round shorter by
    a tenth.

    Parameters
    ----------
    work
        What each chunk costs.
    places
        The worker that holds each chunk.
    threads
        Threads of each worker.
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
