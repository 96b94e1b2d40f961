# SPDX-License-Identifier: BSD-3-Clause
"""Fits killed in a process of their own end with the same bits."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

CODE = textwrap.dedent("""
    import sys
    import numpy as np
    from sipower import KLNMF
    rng = np.random.default_rng(0)
    V = rng.poisson(rng.gamma(0.3, 1, (500, 6)) @ rng.gamma(0.3, 1, (6, 200)))
    print("ready", flush=True)
    model = KLNMF(6, random_state=0, tol=1e-9, max_iter=3000, n_jobs=1,
                  checkpoint=sys.argv[1], checkpoint_every=float(sys.argv[3]))
    W = model.fit_transform(V)
    np.savez(sys.argv[2], W=W, H=model.components_, rounds=model.n_iter_)
""")


def run(folder, name, every, seconds=None):
    """A fit in a process of its own, killed so many seconds after it has begun."""
    files = [str(folder / f"{name}{part}.npz") for part in ("", "-factors")]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, *files, str(every)], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        return process.wait()
    finally:
        process.stdout.close()


def factors(folder, name):
    with np.load(folder / f"{name}-factors.npz") as arrays:
        return {key: arrays[key].tobytes() for key in ("W", "H", "rounds")}


def kill_and_resume(folder, name, every, rng):
    """Kill a fit at random moments and resume it until it ends; return how often it was killed."""
    kills = 0
    while (code := run(folder, name, every, float(rng.uniform(0.0, 0.8)))) != 0:
        assert code == -signal.SIGKILL
        kills += 1
        assert kills < 60
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []
    return kills


def test_killed_at_random_moments_the_fit_ends_with_the_same_bits(tmp_path):
    assert run(tmp_path, "whole", 0.02) == 0
    assert kill_and_resume(tmp_path, "killed", 0.02, np.random.default_rng(1)) >= 1
    assert factors(tmp_path, "whole") == factors(tmp_path, "killed")


@pytest.mark.stress
def test_killed_and_resumed_two_hundred_times_no_fit_loses_a_bit(tmp_path):
    assert run(tmp_path, "whole", 0.02) == 0
    kills, rng = 0, np.random.default_rng(3)
    for number in range(200):
        kills += kill_and_resume(tmp_path, f"killed{number}", 0.02, rng)
        assert factors(tmp_path, "whole") == factors(tmp_path, f"killed{number}")
        if kills >= 200:
            return
    raise AssertionError(f"the fits end too soon: they were killed {kills} times")


@pytest.mark.stress
def test_twenty_runs_killed_once_lose_no_more_than_they_may(tmp_path):
    every, rng = 0.3, np.random.default_rng(2)
    started = time.monotonic()
    assert run(tmp_path, "whole", every) == 0
    length = time.monotonic() - started
    for number in range(20):
        name = f"killed{number}"
        run(tmp_path, name, every, float(rng.uniform(every, max(length / 2, 2 * every))))
        if (tmp_path / f"{name}.npz").exists() and not (tmp_path / f"{name}-factors.npz").exists():
            lost = time.time() - (tmp_path / f"{name}.npz").stat().st_mtime
            assert lost <= every + 0.2  # 0.2 s are allowed for the system to end the process
        assert run(tmp_path, name, every) == 0
        assert factors(tmp_path, "whole") == factors(tmp_path, name)
