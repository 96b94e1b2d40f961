# SPDX-License-Identifier: BSD-3-Clause
"""Progress on a real terminal."""

import os
import pty
import re
import select
import subprocess

from cli.calls import command
from sipower.cli.progress import duration


def test_times_are_told_in_words():
    assert [duration(s) for s in (40, 720, 12600)] == ["40 s", "12 min", "3.5 h"]


def test_a_terminal_shows_live_progress(large):
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
