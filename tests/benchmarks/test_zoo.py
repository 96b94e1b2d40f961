# SPDX-License-Identifier: BSD-3-Clause
"""The zoo of benchmark problems: two fair halves, sound data, and the quality of fits."""

from __future__ import annotations

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
from zoo import quality  # noqa: E402
from zoo.problems import ZOO, ZooProblem, problems  # noqa: E402

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


def test_quality_answers_three_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quality.main(["--only", "tiny", "--seeds", "3", "--file", str(tmp_path / "quality.jsonl")])
    assert "of 1 problems: (a)" in capsys.readouterr().out
    fit = {"value": 10.0, "seconds": 1.0, "gap": 0.0}
    summary = quality.summarize({"default": [fit], "random": [fit | {"value": 9.0}]})
    assert (summary["a"], summary["b"], summary["c"]) == (False, True, False)
