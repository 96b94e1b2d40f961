# SPDX-License-Identifier: BSD-3-Clause
"""The coherence of a run is recorded, described and reported, and checked when it is read."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sipower import KLNMF, describe, topic_quality
from sipower.datasets import poisson_topics
from sipower.report import write_report
from sipower.results import Run, load_run, save_run
from sipower.results.report import page
from sipower.results.run_coherence import recorded_coherence, with_coherence


@pytest.fixture(scope="module")
def fit():
    V = poisson_topics(90, 40, 3, length=60, seed=0)
    model = KLNMF(3, random_state=0)
    return V, model, model.fit_transform(V)


def test_description_has_the_quality_of_its_components(fit):
    V, model, W = fit
    about = describe(model, W=W, V=V)
    expected = topic_quality(V, model, W, held_out=False)
    for name in ("npmi", "umass", "exclusivity", "frex", "pairs"):
        assert_allclose(getattr(about.quality, name), getattr(expected, name)[about.order])
    assert_allclose(about.quality.effective, expected.effective)
    assert about.quality.diversity == expected.diversity
    assert "NPMI" in repr(about)
    assert "exclusivity" in repr(about)


def test_description_without_counts_has_none(fit):
    _, model, W = fit
    about = describe(model, W=W)
    assert about.quality is None
    assert "NPMI" not in repr(about)
    assert "of the counts" in repr(about)
    with pytest.raises(ValueError, match=r"`V` must have the shape \(90, 40\) of the run"):
        describe(model, W=W, V=np.ones((90, 3)))


def test_run_folder_keeps_the_coherence(fit, tmp_path):
    V, model, W = fit
    run = with_coherence(Run.from_model(model, W), V)
    loaded = load_run(save_run(run, tmp_path))
    before, after = recorded_coherence(run), recorded_coherence(loaded)
    assert_array_equal(after.npmi, before.npmi)
    assert_array_equal(after.pairs, before.pairs)
    assert_array_equal(describe(loaded).quality.frex, describe(run).quality.frex)


@pytest.mark.parametrize(
    "change",
    [{"npmi": [1, 2]}, {"npmi": None}, {"umass": ["a"] * 3}, {"n_top": -1}, {"n_top": "x"},
     {"pairs": [1, 2, float("inf")]}],
)  # fmt: skip
def test_damaged_coherence_is_refused(fit, tmp_path, change):
    V, model, W = fit
    folder = save_run(with_coherence(Run.from_model(model, W), V), tmp_path)
    facts = json.loads((folder / "run.json").read_text())
    facts["coherence"] |= change
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match="is damaged"):
        load_run(folder)


def test_report_has_the_section_only_with_counts(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_plotly", lambda: "/* plotly */")
    V, model, W = fit
    without = write_report(model, tmp_path / "a.html", W=W).read_text("utf-8")
    assert "Quality of topics" not in without
    text = write_report(model, tmp_path / "b.html", W=W, V=V).read_text("utf-8")
    quality = describe(model, W=W, V=V).quality
    assert "Quality of topics" in text
    assert 'id="quality-plot"' in text
    for value in quality.npmi:
        assert f">{value:.3f}</td>" in text
    assert "coherence: npmi" not in text  # not a fact of the provenance table


def test_report_shows_coherence_of_ranks(hostile_run, everything, tmp_path, monkeypatch):
    """The ranks of an older version have dashes where nothing is known."""
    monkeypatch.setattr(page, "_plotly", lambda: "/* plotly */")
    text = write_report(hostile_run, tmp_path / "a.html", **everything).read_text("utf-8")
    assert "coherence (NPMI)" in text
    assert '<td class="number">–</td>' in text
