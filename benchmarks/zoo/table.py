# SPDX-License-Identifier: BSD-3-Clause
"""The table of a race: times of `auto`, speed relative to MU and ratio to our best other solver.

A time is that to a level of (D − limit)/(D0 − limit), the median over the seeds, in u. The limit is
the lowest D that anybody reached from the same start, for the last level that of the run itself. A
run that never reached a level counts with the cost of the whole run: a ratio is then marked with <
or >. A solver that ends far above the others is soon near its own limit, so the levels at which the
runs ended are printed as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from common import Curve, time_to
from zoo.solvers import FAST_TOPICS, RIVALS, SCIKIT_LEARN

LEVELS = (("1e-1", 1e-1, False), ("3e-2", 3e-2, False), ("own 1e-2", 1e-2, True))


@dataclass(frozen=True)
class Time:
    """A median time to a level.

    Parameters
    ----------
    cost
        Time in u, or the cost of the whole run if the level was never reached.
    reached
        Whether at least half of the seeds reached the level.
    """

    cost: float
    reached: bool


@dataclass(frozen=True, eq=False)
class Case:
    """`auto` on one problem to one level.

    Parameters
    ----------
    dense
        Whether the data are dense.
    auto, rival, best
        Time of `auto`, that of our fastest other solver and its name; None if nobody else ran.
    peers
        Times of the peers by name.
    """

    problem: str
    level: str
    dense: bool
    auto: Time
    rival: Time | None
    best: str
    peers: dict[str, Time]

    @property
    def ratio(self) -> float:
        """The time of `auto` over that of our fastest other solver."""
        return self.auto.cost / self.rival.cost if self.rival else math.nan

    def mark(self) -> str:
        """Return "<" or ">" if the ratio is only a bound."""
        if self.rival is None or self.auto.reached == self.rival.reached:
            return ""
        return "<" if self.auto.reached else ">"


def median_time(runs: list[tuple[Curve, float]], level: float, own: bool) -> Time:
    """Return the median time over (curve, lowest D from the same start) of several seeds."""
    times = median(time_to(curve, level, None if own else lowest) for curve, lowest in runs)
    if math.isfinite(times):
        return Time(times, True)
    return Time(median(curve[-1][0] for curve, _ in runs), False)


def group_runs(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[tuple[Curve, float]]]]:
    """Return (curve, lowest D from the same start) of every seed by problem and solver."""
    lowest: dict[tuple[str, int], float] = {}
    for row in rows:
        key, value = (row["problem"], row["seed"]), min(D for _, D in row["curve"])
        lowest[key] = min(value, lowest.get(key, math.inf))
    runs: dict[str, dict[str, list[tuple[Curve, float]]]] = {}
    for row in rows:
        pair = row["curve"], lowest[row["problem"], row["seed"]]
        runs.setdefault(row["problem"], {}).setdefault(row["solver"], []).append(pair)
    return runs


def format_ends(solvers: dict[str, list[tuple[Curve, float]]]) -> str:
    """Return the median level at which the runs of every solver ended."""
    ends = {
        name: median((curve[-1][1] - low) / (curve[0][1] - low) for curve, low in runs)
        for name, runs in solvers.items()
    }
    return ", ".join(f"{name} {level:.1e}" for name, level in ends.items())


def make_cases(rows: list[dict[str, Any]]) -> list[Case]:
    """Return the cases of all problems that `auto` ran on."""
    runs = group_runs(rows)
    dense = {row["problem"]: row["dense"] for row in rows}
    cases = []
    for problem, solvers in runs.items():
        for label, level, own in LEVELS if "auto" in solvers else ():
            times = {s: median_time(pairs, level, own) for s, pairs in solvers.items()}
            rivals = {s: times[s] for s in RIVALS if s in times}
            best = min(rivals, key=lambda s: (not rivals[s].reached, rivals[s].cost), default="")
            peers = {s: times[s] for s in (SCIKIT_LEARN, FAST_TOPICS) if s in times}
            if SCIKIT_LEARN not in peers and "mu" in times:
                peers["mu"] = times["mu"]
            rival = rivals.get(best)
            cases.append(Case(problem, label, dense[problem], times["auto"], rival, best, peers))
    return cases


def format_speed(auto: Time, peer: Time) -> str:
    """Return how many times faster than a peer `auto` is, or that the peer never got there."""
    if not peer.reached:
        return "never reached"
    return f"{'' if auto.reached else '<'}{peer.cost / auto.cost:.1f}x"


def format_case(case: Case) -> str:
    """Return a line of the table."""
    auto = f"{case.auto.cost:.2f} u" if case.auto.reached else f">{case.auto.cost:.0f} u"
    speeds = "".join(f"{format_speed(case.auto, peer):>16}" for peer in case.peers.values())
    ratio = f"{case.mark()}{case.ratio:.2f}" if case.rival else "-"
    return f"{case.level:>10}{auto:>12}{speeds}{ratio:>10}  {case.best}"


def format_summary(cases: list[Case], label: str) -> list[str]:
    """Return geometric mean and maximum of the ratios, by level and over all levels."""
    lines = []
    for level in (*(name for name, _, _ in LEVELS), None):
        part = [c for c in cases if c.rival and level in (None, c.level)]
        if not part:
            continue
        worst = max(part, key=lambda c: c.ratio)
        below = sum(c.ratio <= 1 for c in part)
        lines.append(
            f"{label:7}{level or 'all levels':>10}: ratio to the best of ours: geometric mean "
            f"{geometric_mean(c.ratio for c in part):.3f}, largest {worst.mark()}"
            f"{worst.ratio:.2f} ({worst.problem}), at most 1 in {below} of {len(part)}"
        )
    return lines


def format_peer(cases: list[Case], label: str, peer: str) -> list[str]:
    """Return geometric mean and minimum of the speed relative to a peer, where it got there."""
    part = [c for c in cases if peer in c.peers]
    speeds = {c: c.peers[peer].cost / c.auto.cost for c in part if c.peers[peer].reached}
    never = f"{peer} never reached {len(part) - len(speeds)} of {len(part)} levels"
    if not speeds:
        return [f"{label:7}{never}"] if part else []
    slowest, mean = min(speeds, key=lambda c: speeds[c]), geometric_mean(speeds.values())
    return [
        f"{label:7}speed relative to {peer}: geometric mean {mean:.1f}x, "
        f"smallest {speeds[slowest]:.1f}x ({slowest.problem}, {slowest.level}); {never}"
    ]


def format_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the latest rows of a race."""
    cases, runs, lines = make_cases(rows), group_runs(rows), []
    peers = list(dict.fromkeys(peer for case in cases for peer in case.peers))
    for name in dict.fromkeys(case.problem for case in cases):
        part = [r for r in rows if r["problem"] == name]
        seeds, first = len({r["seed"] for r in part}), part[0]
        u = median(r["u"] for r in part)
        unit = f"{1e3 * u:.3g} ms" if first["clock"] == "seconds" else f"{u:g} passes"
        kind = "dense" if first["dense"] else "sparse"
        lines.append(f"{name}: {kind}, K = {first['rank']}, u = {unit}, {seeds} seeds")
        heads = "".join(f"{'vs. ' + peer.replace('scikit-learn', 'sklearn'):>16}" for peer in peers)
        lines.append(f"{'level':>10}{'auto':>12}{heads}{'ratio':>10}  to the best of ours")
        lines += [format_case(case) for case in cases if case.problem == name]
        lines.append(f"{'ends at':>10}  {format_ends(runs[name])}")
    for label, dense in (("dense", True), ("sparse", False)):
        part = [case for case in cases if case.dense == dense]
        lines += format_summary(part, label)
        for peer in peers:
            lines += format_peer(part, label, peer)
    return "\n".join(lines)
