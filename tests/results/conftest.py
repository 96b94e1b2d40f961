# SPDX-License-Identifier: BSD-3-Clause
"""A small run with the names that an attacker, or a careless file, would give."""

from typing import Any

import numpy as np
import pytest

from sipower import differential
from sipower.loop.solve import Record
from sipower.results import Run
from sipower.selection import Consensus, RankSelection

HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><img src=x onerror=window.pwned=1>",
    "<!--<script>",
    "\"quoted\" & 'single' &amp; &lt;",
    "NUL \x00 bell \x07 escape \x1b line \n return \r",
    "right to left \u202e gnp.exe",
    "lone surrogate \ud800, separator \u2028",
    '"><img src=x onerror=window.pwned=1>' * 3 + "long" * 1000,
    '<a href="https://example.org/">link</a>',
    "$title ${body} %{x} {{y}}",
    "<b>bold</b>",
    "שלום 👍",
)


@pytest.fixture(scope="session")
def hostile_run() -> Run:
    rng = np.random.default_rng(1)
    trace = [Record(i, 3.0 * i, 0.1 * i, 50 + 2.0**-i, 3.0**-i, 1.0) for i in range(6)]
    facts = {
        "parameters": {"n_components": 3, "tol": 1e-3, "random_state": 0, "dtype": "float32"},
        "input": {"file": "a<b>\"&'.mtx", "sha256": "0" * 64, "shape": [20, 12], "total": 1234.0},
        "status": "converged",
        "certified_gap": 2.5e-3,
        "remark": HOSTILE[1],
    }
    samples = tuple(f"{HOSTILE[i % 12]} {i}" for i in range(20))
    W, H = rng.gamma(0.5, size=(20, 3)), rng.gamma(0.5, size=(3, 12))
    W[7] = 0  # a sample without counts
    return Run(W, H, trace, facts, samples, HOSTILE)


@pytest.fixture(scope="session")
def everything(hostile_run: Run) -> dict[str, Any]:
    """What may be drawn besides the run."""
    rng = np.random.default_rng(2)
    deviance, stability = rng.uniform(1, 2, (3, 4)), np.array([0.9, 0.8, np.nan])
    return {
        "selection": RankSelection((2, 3, 5), deviance, stability, 3, HOSTILE[0], "thinning"),
        "consensus": Consensus(
            hostile_run.W, hostile_run.H, 1, np.array([0.5, 0.7, 0.9]), np.eye(4),
            np.array([5.0, 6, 7, 8]), np.full(4, 1e-4), (HOSTILE[0],) * 4,
        ),
        "differences": differential(
            rng.poisson(20 * hostile_run.W @ hostile_run.H), hostile_run.W, check=False,
            component_names=[HOSTILE[0], "two", "three"],
        ),
        "image_shape": (3, 4),
    }  # fmt: skip
