# SPDX-License-Identifier: BSD-3-Clause
"""The interactive figures of the experiments in a real Chromium."""

from itertools import chain, pairwise

import pytest

from chromium import needs_browser, open_browser, wait
from result_rows import BUDGET, finish
from sipower.experiments import Curves
from sipower.experiments.draw import draw_html
from sipower.experiments.figures import figures, label_heights

pytest.importorskip("selenium", reason="selenium is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")
pytestmark = needs_browser


@pytest.fixture(scope="module")
def all_figures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sipower.experiments.protocol.is_present", lambda name: True)
        rows = finish(BUDGET, "robustness", lambda run: 1.0 + 0.1 * len(run.method) + run.seed / 9)
        rows = finish(BUDGET, "synthetic", lambda run: 1.0 + 0.1 * len(run.method), rows)
        return figures(Curves(rows, BUDGET))


def test_every_figure_is_drawn_with_its_labels_and_no_message(all_figures, tmp_path):
    assert {figure.name for figure in all_figures} >= {"synthetic", "robustness"}
    with open_browser(tmp_path / "profile") as browser:
        for figure in all_figures:
            file = tmp_path / f"{figure.name}.html"
            draw_html(figure, file)
            browser.get(file.as_uri())
            wait(browser, lambda: browser.find_elements("css selector", ".main-svg .trace"))
            text = browser.execute_script("return document.body.textContent")
            labels = {curve.label for panel in chain(*figure.rows) for curve in panel.curves}
            assert all(label in text for label in labels)
            assert figure.title in text
            severe = [m for m in browser.get_log("browser") if m["level"] == "SEVERE"]
            assert severe == []


def test_labels_stand_apart_and_near_the_ends_of_their_curves(all_figures):
    for panel in chain.from_iterable(chain(*figure.rows) for figure in all_figures):
        heights = sorted(label_heights(panel))
        assert all(b - a > 0.05 for a, b in pairwise(heights))
        assert all(0 <= height <= 1.001 for height in heights)
