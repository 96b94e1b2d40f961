# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the gallery runs and gives the right result."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_LINES = 80
Namespace = dict[str, Any]


def check_topics(namespace: Namespace) -> None:
    V, W, H = namespace["corpus"].counts, namespace["W"], namespace["H"]
    # At the best W of a row, W H has the sum of the row.
    np.testing.assert_allclose(W @ H.sum(axis=1), V.sum(axis=1), rtol=1e-4)
    words = np.array(namespace["corpus"].words)
    tops = [set(words[np.argsort(-h)[:15]]) for h in H]
    for pair in ({"sparse", "matrix"}, {"distribution", "random"}, {"array", "dtype"}):
        assert any(pair <= top for top in tops), pair


def check_digits(namespace: Namespace) -> None:
    W, H, V = namespace["W"], namespace["H"], namespace["V"]
    assert namespace["model"].kkt_residual_ <= 1e-3
    np.testing.assert_allclose(W @ H.sum(axis=1), V.sum(axis=1), rtol=1e-6)
    # Parts are local: half of the ink of each lies on at most a quarter of the pixels.
    shares = -np.sort(-H / H.sum(axis=1, keepdims=True))
    assert (shares[:, :16].sum(axis=1) > 0.5).all()


def check_spectrogram(namespace: Namespace) -> None:
    peaks = namespace["fourier"].f[namespace["H"].argmax(axis=1)]
    pitches = [pitch for pitch, _ in namespace["NOTES"].values()]
    np.testing.assert_allclose(peaks, pitches, atol=namespace["fourier"].delta_f)
    np.testing.assert_allclose(namespace["parts"].sum(axis=0), namespace["sound"], atol=1e-6)
    assert namespace["ratio"].min() > 10  # decibels


def check_signatures(namespace: Namespace) -> None:
    assert namespace["cosine"].min() > 0.95
    total = namespace["V"].sum(axis=1)
    np.testing.assert_allclose(namespace["burden"].sum(axis=1), total, rtol=1e-6)


def check_choosing_rank(namespace: Namespace) -> None:
    assert namespace["selection"].best == 6
    assert namespace["result"].stability.mean() > 0.9


def check_single_cell(namespace: Namespace) -> None:
    assert namespace["cosine"].min() > 0.95
    assert np.corrcoef(namespace["activity"], namespace["share"])[0, 1] > 0.95


def check_differential(namespace: Namespace) -> None:
    found, wrong, inside = (namespace[name] for name in ("found", "wrong", "inside"))
    assert namespace["differences"].replication.is_supported
    assert found.sum() > 100
    assert wrong.sum() <= 0.05 * found.sum()
    assert inside[found].mean() > 0.9


def check_hidden_signature(namespace: Namespace) -> None:
    catalogue, fits = namespace["catalogue"], namespace["fits"]
    assert namespace["V"].shape[1] == catalogue.shape[1] == 96
    error = {label: np.abs(fit[2] - namespace["burden"]).mean() for label, fit in fits.items()}
    assert fits["with the catalogue"][1] > 0.98
    assert error["with the catalogue"] < 0.6 * error["without"]
    # The deviance from the catalogue alone shows which tumours have something else.
    deviance, exposed = namespace["deviance"], namespace["EXPOSED"]
    assert deviance[:exposed].min() > deviance[exposed:].max()


def check_missing_values(namespace: Namespace) -> None:
    left_out, zeros, means = namespace["errors"].T
    assert (left_out < 0.2 * zeros).all()
    assert (left_out < 0.2 * means).all()


def check_batches(namespace: Namespace) -> None:
    plain, *_ = namespace["results"]["without batch_key"]
    cosine, first, second = namespace["results"]["with batch_key"]
    assert cosine.min() > 0.99
    assert plain.mean() < 0.9
    assert 0.5 * np.abs(first - second).sum(axis=1).mean() < 0.1
    assert np.corrcoef(namespace["effect"], namespace["estimate"])[0, 1] > 0.98


def check_gene_panel(namespace: Namespace) -> None:
    truth = namespace["all_genes"]
    error = np.abs(namespace["on_panel"] - truth).mean()
    assert error < 0.02
    assert np.abs(namespace["with_zeros"] - truth).mean() > 4 * error
    distinctive, random = namespace["errors"].values()
    assert (np.array(distinctive) < random).all()


def check_guided_topics(namespace: Namespace) -> None:
    subjects, words = namespace["SUBJECTS"], namespace["words"]
    for guide in namespace["guided"].guides_:
        profile = namespace["guided"].components_[guide.component]
        assert guide.is_supported
        assert set(words[np.argsort(-profile)[:10]]) == set(subjects[guide.name].split())
    assert namespace["free_shares"][:, 7:].max() < 0.6  # the free fit mixes the two subjects
    assert sum(namespace["found"]) > 7  # of ten corpora, with 200 prior counts
    assert not namespace["report"].is_supported


CHECKS: dict[str, Callable[[Namespace], None]] = {
    "plot_topics": check_topics,
    "plot_digits": check_digits,
    "plot_spectrogram": check_spectrogram,
    "plot_signatures": check_signatures,
    "plot_choosing_rank": check_choosing_rank,
    "plot_differential": check_differential,
    "plot_single_cell": check_single_cell,
    "plot_hidden_signature": check_hidden_signature,
    "plot_missing_values": check_missing_values,
    "plot_batches": check_batches,
    "plot_gene_panel": check_gene_panel,
    "plot_guided_topics": check_guided_topics,
}


@pytest.mark.filterwarnings("ignore:.*Agg is non-interactive:UserWarning")
@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda file: file.stem)
def test_example(file: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    for package in ("anndata", "pandas"):
        if package in file.read_text(encoding="utf-8"):
            pytest.importorskip(package)
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - optional

    try:
        namespace = runpy.run_path(str(file))
        assert plt.get_fignums(), "an example ends in a picture"
        CHECKS[file.stem](namespace)
    finally:
        plt.close("all")


def test_examples_are_short_and_all_are_checked() -> None:
    files = sorted(EXAMPLES.glob("plot_*.py"))
    assert {file.stem for file in files} == set(CHECKS)
    for file in files:
        assert len(file.read_text().splitlines()) < MAX_LINES, file.name
