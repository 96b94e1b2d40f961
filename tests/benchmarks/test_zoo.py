# SPDX-License-Identifier: BSD-3-Clause
"""The zoo of benchmark problems: two fair halves, sound data, and a race that ends in a table."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from zoo import problems as zoo_problems  # noqa: E402
from zoo import quality, race, table  # noqa: E402
from zoo.problems import ZOO, ZooProblem, problems  # noqa: E402
from zoo.solvers import SCIKIT_LEARN, SOLVERS  # noqa: E402

BY_NAME = {problem.name: problem for problem in ZOO}
# The others take seconds to make, or are not on every machine.
GENERATED = [p for p in ZOO if p.kind not in ("paper", "docstrings", "large")]


def as_bytes(V: Any) -> bytes:
    if not sp.issparse(V):
        return V.tobytes()
    return V.data.tobytes() + V.indices.tobytes() + V.indptr.tobytes()


def test_halves_are_disjoint_balanced_and_large_enough() -> None:
    names = [problem.name for problem in problems()]
    assert len(names) == len(set(names)) >= 24
    assert len(problems("tuning")) == len(problems("test")) == len(names) / 2
    kinds = [Counter(p.kind for p in problems(half)) for half in zoo_problems.HALVES]
    assert set(kinds[0]) == set(kinds[1])


def test_ranks_cover_2_to_100() -> None:
    ranks = {problem.rank for problem in ZOO}
    assert min(ranks) == 2
    assert max(ranks) == 100


@pytest.mark.parametrize("problem", GENERATED, ids=lambda p: p.name)
def test_data_are_sound(problem: ZooProblem) -> None:
    V = problem.make()
    values = V.data if sp.issparse(V) else V
    assert values.min() >= 0
    assert np.isfinite(values).all()
    assert V.sum(axis=0).min() > 0
    assert V.sum(axis=1).min() > 0
    assert isinstance(V, np.ndarray) or V.format == "csr"


@pytest.mark.parametrize("name", ["text", "melody", "graph-mixed", "patches-flower"])
def test_data_are_deterministic(name: str) -> None:
    assert as_bytes(BY_NAME[name].make()) == as_bytes(BY_NAME[name].make())


def test_absent_sets_are_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SIPOWER_DATA", raising=False)
    assert [p.name for p in zoo_problems.select_problems(None, ["kos", "tiny"])] == ["tiny"]
    assert "kos is left out" in capsys.readouterr().out


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="no problem zebra"):
        zoo_problems.select_problems("tuning", ["zebra"])


def test_race_in_passes_is_deterministic() -> None:
    first, second = (race.race(BY_NAME["tiny"], 0, list(SOLVERS), "passes", 20) for _ in range(2))
    assert first == second
    assert {row["solver"] for row in first} == set(SOLVERS)
    assert all(row["curve"][0][1] > row["curve"][-1][1] for row in first)


def test_race_prints_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(race, "MIN_CAP_SECONDS", 0.02)
    file = tmp_path / "zoo.jsonl"
    race.main(
        ["--only", "tiny", "digits-low-sparse", "--seeds", "2", "--cap", "5", "--file", str(file)]
    )
    printed = capsys.readouterr().out
    for words in ("tiny: dense, K = 3", "digits-low-sparse: sparse", "own 1e-2", "geometric mean"):
        assert words in printed
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {SCIKIT_LEARN, "auto", "ccd+extrapolation"} <= {row["solver"] for row in rows}
    assert len(rows) == 2 * 2 * 7


def test_table_marks_what_was_never_reached() -> None:
    def row(solver: str, *curve: tuple[float, float]) -> dict[str, Any]:
        common = {"problem": "p", "seed": 0, "clock": "seconds", "u": 1.0, "dense": True, "rank": 2}
        return common | {"solver": solver, "curve": [(0.0, 100.0), *curve]}

    auto, mu = row("auto", (2.0, 9.0), (3.0, 0.0)), row("mu", (4.0, 9.0), (6.0, 5.0))
    cases = table.make_cases([auto, mu, row(SCIKIT_LEARN, (8.0, 50.0))])
    assert [case.ratio for case in cases] == [0.5, 0.5, 0.5]
    assert [case.mark() for case in cases] == ["", "<", ""]
    assert [case.peers[SCIKIT_LEARN].reached for case in cases] == [False, False, True]
    printed = table.format_table([auto, mu, row(SCIKIT_LEARN, (8.0, 50.0))])
    assert "never reached" in printed


def test_quality_answers_three_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quality.main(["--only", "tiny", "--seeds", "3", "--file", str(tmp_path / "quality.jsonl")])
    assert "of 1 problems: (a)" in capsys.readouterr().out
    fit = {"value": 10.0, "seconds": 1.0, "gap": 0.0}
    summary = quality.summarize({"default": [fit], "random": [fit | {"value": 9.0}]})
    assert (summary["a"], summary["b"], summary["c"]) == (False, True, False)
