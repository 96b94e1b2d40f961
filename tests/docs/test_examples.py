# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the gallery runs, and what it finds is true."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST_LINES = 80
Found = dict[str, Any]


def topics(found: Found) -> None:
    V, W, H = found["corpus"].counts, found["W"], found["H"]
    # At the best W of a row, W H has the sum of the row.
    np.testing.assert_allclose(W @ H.sum(axis=1), V.sum(axis=1), rtol=1e-4)
    words = np.array(found["corpus"].words)
    tops = [set(words[np.argsort(-h)[:15]]) for h in H]
    for together in ({"sparse", "matrix"}, {"distribution", "random"}, {"array", "dtype"}):
        assert any(together <= top for top in tops), together


def digits(found: Found) -> None:
    W, H, V = found["W"], found["H"], found["V"]
    assert found["model"].kkt_residual_ <= 1e-3
    np.testing.assert_allclose(W @ H.sum(axis=1), V.sum(axis=1), rtol=1e-6)
    # Parts are local: half of the ink of each lies on at most a quarter of the pixels.
    shares = -np.sort(-H / H.sum(axis=1, keepdims=True))
    assert (shares[:, :16].sum(axis=1) > 0.5).all()


def spectrogram(found: Found) -> None:
    peaks = found["fourier"].f[found["H"].argmax(axis=1)]
    pitches = [pitch for pitch, _ in found["NOTES"].values()]
    np.testing.assert_allclose(peaks, pitches, atol=found["fourier"].delta_f)
    np.testing.assert_allclose(found["parts"].sum(axis=0), found["sound"], atol=1e-6)
    assert found["loss"].min() > 10  # decibels


def signatures(found: Found) -> None:
    assert found["cosine"].min() > 0.95
    total = found["V"].sum(axis=1)
    np.testing.assert_allclose(found["burden"].sum(axis=1), total, rtol=1e-6)


def choosing_rank(found: Found) -> None:
    assert found["selection"].best == 6
    assert found["again"].stability.mean() > 0.9


def single_cell(found: Found) -> None:
    assert found["cosine"].min() > 0.95
    assert np.corrcoef(found["activity"], found["share"])[0, 1] > 0.95


CHECKS: dict[str, Callable[[Found], None]] = {
    f"plot_{check.__name__}": check
    for check in (topics, digits, spectrogram, signatures, choosing_rank, single_cell)
}


@pytest.mark.filterwarnings("ignore:.*Agg is non-interactive:UserWarning")
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda file: file.stem)
def test_example(file: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    if "anndata" in file.read_text():
        pytest.importorskip("anndata")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - optional

    try:
        found = runpy.run_path(str(file))
        assert plt.get_fignums(), "an example ends in a picture"
        CHECKS[file.stem](found)
    finally:
        plt.close("all")


def test_examples_are_short_and_all_are_checked() -> None:
    files = sorted(EXAMPLES.glob("plot_*.py"))
    assert {file.stem for file in files} == set(CHECKS)
    for file in files:
        assert len(file.read_text().splitlines()) < MOST_LINES, file.name
