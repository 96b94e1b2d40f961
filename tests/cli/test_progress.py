# SPDX-License-Identifier: BSD-3-Clause
"""Progress on a real terminal."""

import json
import math
import os
import re
import select
import subprocess
from types import SimpleNamespace

import pytest

from cli.calls import command
from sipower import KLNMF, Record
from sipower.cli.console import Console
from sipower.cli.progress import FitCounter, FitProgress
from sipower.loop.forecast import format_duration


def test_times_are_told_in_words():
    texts = [format_duration(seconds) for seconds in (0.31, 40, 720, 12600)]
    assert texts == ["0.3 s", "40 s", "12 min", "3.5 h"]


def test_a_terminal_shows_live_progress(large):
    pty = pytest.importorskip("pty", reason="needs a terminal of Unix")
    main, worker = pty.openpty()
    words = ("fit", "large.mtx", "-k", 10, "--tol", 1e-9, "--max-time", 3, "--no-report")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command(*words), cwd=large, stdout=worker, stderr=worker,
                               stdin=worker, env=environment)  # fmt: skip
    os.close(worker)
    output = b""
    while select.select([main], [], [], 60)[0]:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
    os.close(main)
    assert process.wait(60) == 0, output
    assert len(set(re.findall(rb"round (\d+)", output))) > 2  # the line is drawn again and again
    assert b"gap" in output
    assert b"left" in output


def trend(passes, gap):
    """A round whose pass takes 0.1 s."""
    return Record(int(passes), passes, passes / 10, 1.0, gap, 1.0)


def test_the_time_left_follows_the_gap_unless_a_limit_comes_first():
    """A gap of 1/passes reaches 1e-2 at 100 passes by either extrapolation's order of size."""
    progress = FitProgress(Console(), KLNMF(2, tol=1e-2, max_time=1000.0, max_iter=500))
    for passes in (10.0, 20.0, 30.0):
        progress(trend(passes, 1 / passes))
    left, words = progress.time_left(progress.records[-1], spent=3.0)
    assert words == "about {} left"
    assert 0.5 < left / ((100 - 30) * 0.1) < 2
    progress.max_time = 4.0
    assert progress.time_left(progress.records[-1], 3.0) == (
        1.0,
        "about {} left until --max-time",
    )
    progress.max_time, progress.max_iter = None, 40
    left, words = progress.time_left(progress.records[-1], 3.0)
    assert words == "about {} left until --max-iter"
    assert left == pytest.approx(1.1)


def test_without_a_trend_the_limit_is_the_most_it_can_take():
    progress = FitProgress(Console(), KLNMF(2, tol=1e-2, max_time=60.0))
    progress(trend(10.0, 0.1))
    most = 57.0, "at most {} left, the limit of --max-time"
    assert progress.time_left(progress.records[-1], 3.0) == most


def test_an_infinite_gap_is_null_in_json_and_no_trend(capsys):
    """A start from a sample may lack a feature, whose counts then have an infinite divergence."""
    progress = FitProgress(Console(as_json=True), KLNMF(2, tol=1e-2))
    for passes, gap in ((10.0, math.inf), (20.0, 0.1), (30.0, 0.01)):
        progress(trend(passes, gap))
    found = [json.loads(line)["gap"] for line in capsys.readouterr().out.splitlines()]
    assert found == [None, 0.1, 0.01]
    assert progress.time_left(progress.records[-1], 3.0)[0] == 0


def test_a_gap_that_is_met_leaves_no_time():
    progress = FitProgress(Console(), KLNMF(2, tol=1e-2, max_time=1000.0))
    for passes in (10.0, 20.0, 120.0):
        progress(trend(passes, 1 / passes))
    assert progress.time_left(progress.records[-1], 12.0) == (0.0, "about {} left")


def test_the_time_of_many_fits_weighs_their_costs(capsys, monkeypatch):
    """The first of two replicates' fits costs ten times the second."""
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr("sipower.cli.progress.time", clock)
    counter = FitCounter(Console(), 1, [100.0, 10.0, 100.0, 10.0])
    clock.monotonic = lambda: 100.0
    counter(1, 4)
    assert capsys.readouterr().out == "1 of 4 fits, about 2 min left\n"
    clock.monotonic = lambda: 110.0
    counter(2, 4)
    assert capsys.readouterr().out == "2 of 4 fits, about 2 min left\n"
