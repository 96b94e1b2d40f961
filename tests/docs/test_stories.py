# SPDX-License-Identifier: BSD-3-Clause
"""The stories of new users, small: each ends in something to read, and it is right."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

STORIES = Path(__file__).parents[2] / "examples" / "stories"
MAX_LINES = 80


def tell(name: str, **sizes: int) -> tuple:
    """Run the main function of a story with the given sizes."""
    return runpy.run_path(str(STORIES / f"{name}.py"))["main"](**sizes)


def test_single_cell(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anndata")
    table = tell("single_cell", cells=200, genes=150)
    output = capsys.readouterr().out
    assert output.startswith("converged with a certified gap of")
    assert re.search(r"program 3: gene\d+, gene\d+", output)
    # Each type has a program of its own, and one program is in all types.
    own = table.to_numpy() > 0.5
    assert own.sum(axis=1).tolist() == [1, 1, 1]
    assert len(set(own.argmax(axis=1))) == 3
    assert (table.to_numpy()[:, ~own.any(axis=0)] > 0.1).all()


def test_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    search, accuracy = tell("pipeline", samples=200, features=60)
    assert search.best_params_ == {"klnmf__n_components": 6}
    assert accuracy > 0.85
    assert "klnmf0, klnmf1, klnmf2" in capsys.readouterr().out


def test_cnmf(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    selection, result, scores = tell("cnmf", cells=250, genes=150, replicates=5)
    assert selection.best == 5
    assert result.stability.min() > 0.9
    # The genes that are distinctive of a program have large scores in it.
    spectra = result.H / result.H.sum(axis=1, keepdims=True)
    distinct = spectra / spectra.sum(axis=0).clip(1e-300)
    assert min(np.corrcoef(d, s)[0, 1] for d, s in zip(distinct, scores, strict=True)) > 0.6
    output = capsys.readouterr().out
    assert "K = 5 predicts unseen counts" in output
    assert "5 replicates" in output


def test_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    V, burden, cosine = tell("signatures", tumours=40)
    assert sorted(burden.columns) == ["S1", "S2", "S3"]
    assert cosine.min() > 0.97
    np.testing.assert_allclose(burden.sum(axis=1), V.sum(axis=1), rtol=1e-4)  # in mutations
    assert "a component is S1 (cosine" in capsys.readouterr().out


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    topics, shares = tell("text", count=120)
    output = capsys.readouterr().out
    assert "120 texts, 30 words: converged" in output
    subjects = runpy.run_path(str(STORIES / "text.py"))["SUBJECTS"]
    subject = {
        name: next(k for k, top in enumerate(topics) if set(top.split(", ")) <= set(words.split()))
        for name, words in subjects.items()
    }
    assert shares[subject["sailing"]] > shares[subject["music"]] > 0.2
    assert shares[subject["cooking"]] < 0.1


def test_stories_are_short_and_all_are_told() -> None:
    files = sorted(STORIES.glob("*.py"))
    assert {f"test_{file.stem}" for file in files} <= set(globals())
    for file in files:
        assert len(file.read_text(encoding="utf-8").splitlines()) < MAX_LINES, file.name
