# SPDX-License-Identifier: BSD-3-Clause
"""Interrupt fits at random moments, as many as asked: a script for a process of its own.

It prints how many fits were interrupted in their rounds, before them, after them, and not at all.
Every fit must leave what the library promises; anything else ends the process with an error.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from functools import cache

import numpy as np
import scipy.sparse as sp

from sipower import KLNMF, Interrupted, nmf

ROUNDS, MOST_JOBS = 8, 4
DENSE = np.random.default_rng(0).poisson(1.0, (600, 300))
LAYOUTS = {"dense": DENSE, "sparse": sp.csr_array(DENSE)}
SETTINGS = [(s, layout, jobs) for s in nmf.SOLVERS for layout in LAYOUTS for jobs in (1, 2, 4)]
Setting = tuple[str, str, int]


def model(setting: Setting, rounds: int = ROUNDS) -> KLNMF:
    return KLNMF(6, solver=setting[0], random_state=0, tol=0, max_iter=rounds, n_jobs=setting[2])


def fit(setting: Setting, rounds: int = ROUNDS) -> bytes:
    return model(setting, rounds).fit(LAYOUTS[setting[1]]).components_.tobytes()


@cache
def fit_undisturbed(solver: str, layout: str, rounds: int) -> bytes:
    return fit((solver, layout, 1), rounds)


@cache
def seconds(setting: Setting) -> float:
    fit(setting)
    started = time.monotonic()
    fit(setting)
    return time.monotonic() - started


def interrupt(setting: Setting, share: float) -> str:
    """Fit, and interrupt after a share of the seconds that a fit takes."""
    disturbed, records = model(setting), []
    disturbed.set_params(on_round=lambda record: records.append(record.round))
    after = share * seconds(setting)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        disturbed.fit(LAYOUTS[setting[1]])
        signal.setitimer(signal.ITIMER_REAL, 0)
        outcome = "in time"
    except Interrupted:
        outcome = "in a round"
        assert disturbed.status_ == "interrupted"
        assert disturbed.n_iter_ >= len(records)
        if disturbed.n_iter_ > 0:  # what it has is what a fit of so many rounds has
            expected = fit_undisturbed(*setting[:2], disturbed.n_iter_)
            assert disturbed.components_.tobytes() == expected
    except KeyboardInterrupt:
        outcome = "before the rounds"
        if records:
            outcome = "too late"
            assert len(records) == ROUNDS, f"{len(records)} rounds are lost"
        if hasattr(disturbed, "status_"):  # it was sooner than the interruption
            assert disturbed.components_.tobytes() == fit_undisturbed(*setting[:2], ROUNDS)
        else:
            assert not hasattr(disturbed, "n_features_in_")
    signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome


def main(count: int, seed: int) -> None:
    rng, outcomes = np.random.default_rng(seed), Counter[str]()
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # Ctrl-C by the clock
    for number in range(count):
        setting = SETTINGS[int(rng.integers(len(SETTINGS)))]
        try:
            outcomes[interrupt(setting, float(rng.uniform(0, 1.1)))] += 1
            assert fit(setting) == fit_undisturbed(*setting[:2], ROUNDS)
        except BaseException:
            sys.stderr.write(f"interruption {number} of seed {seed}: {setting}\n")
            raise
    helpers = [t for t in threading.enumerate() if t is not threading.main_thread()]
    # A helper that is not quite free has another one started in its place, but not without end.
    assert len(helpers) < 2 * MOST_JOBS, helpers
    sys.stdout.write(json.dumps(outcomes))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that rounds were used up
    main(int(sys.argv[1]), int(sys.argv[2]))
