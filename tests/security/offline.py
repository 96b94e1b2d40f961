# SPDX-License-Identifier: BSD-3-Clause
"""Import, fit, read, write, report and run commands: a script for a process of its own.

It prints every attempt to reach a network that Python saw meanwhile, and first one of its own.
"""

import json
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WATCHED = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.")
SPARED = ("socket.__new__",)  # a socket that is not connected reaches nobody: asyncio makes pairs
attempts: list[str] = []


def watch(event: str, _: object) -> None:
    if event.startswith(WATCHED) and event not in SPARED:
        attempts.append(event)


def exit_code(app: Callable[[list[str]], object], words: list[str]) -> object:
    try:
        app(words)
    except SystemExit as done:
        return done.code or 0
    return 0


def main(folder: Path) -> None:
    import numpy as np  # noqa: PLC0415 - watched, as all that follows

    import sipower  # noqa: PLC0415
    from sipower import dask, datasets, experiments, io, pl, report, theory, tl  # noqa: F401, PLC0415
    from sipower.cli import app  # noqa: PLC0415

    V = np.random.default_rng(0).poisson(3.0, (12, 9))
    np.save(folder / "counts.npy", V)
    sipower.KLNMF(2, random_state=0).fit_transform(V)
    counts, run, ranks = (str(folder / name) for name in ("counts.npy", "run", "ranks"))
    for words in (
        ["info"], ["datasets"], ["fit", counts, "-k", "2", "-o", run, "--also", "csv"],
        ["convert", counts, "-o", str(folder / "counts.sipower")],
        ["transform", run, counts, "-o", str(folder / "weights.csv")],
        ["rank", counts, "-k", "1,2", "--replicates", "2", "-o", ranks],
        ["consensus", counts, "-k", "2", "--replicates", "2", "-o", str(folder / "consensus")],
        ["report", run, "--rank", ranks, "-o", str(folder / "again.html")],
        ["bench", counts, "-k", "2", "--max-time", "0.02"],
        ["demo", "-k", "2", "-o", str(folder / "demo")],
        ["reproduce", "table1", "--quick", "--jobs", "1", "--out", str(folder / "paper")],
    ):  # fmt: skip
        assert exit_code(app, words) == 0, words  # a command that failed has shown nothing
    for file_name in (
        "run/report.html",
        "again.html",
        "weights.csv",
        "consensus",
        "demo/report.html",
    ):
        assert (folder / file_name).exists(), file_name


if __name__ == "__main__":
    sys.addaudithook(watch)
    with suppress(OSError):  # the control: an attempt is seen
        socket.create_connection(("localhost", 9), timeout=1)
    control, attempts = attempts, []
    main(Path(sys.argv[1]))
    sys.stderr.write(json.dumps([control, attempts]))
