# SPDX-License-Identifier: BSD-3-Clause
"""The report in a real Chromium: everything is drawn, and the controls do what they say."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chromium import needs_browser, open_browser, wait
from sipower.report import write_report
from sipower.results import Run
from sipower.results.describe import describe, largest, readable

pytest.importorskip("selenium", reason="selenium is not installed")
pytest.importorskip("plotly", reason="plotly is not installed")
pytestmark = needs_browser

PLOTS = {"convergence", "size", "feature", "sample", "correlation", "rank", "stability",
         "similarity", "difference"}  # fmt: skip


@pytest.fixture(scope="module")
def report(
    hostile_run: Run, everything: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return write_report(hostile_run, tmp_path_factory.mktemp("report") / "a.html", **everything)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module", params=[(1280, "light"), (390, "dark")], ids=["desktop", "phone"])
def page(request: pytest.FixtureRequest, driver: Any, report: Path) -> Any:
    width, scheme = request.param
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    resize(driver, width)
    driver.get(report.as_uri())
    wait(driver, lambda: driver.execute_script("return document.readyState === 'complete'"))
    return driver


def resize(driver: Any, width: int) -> None:
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def by_id(driver: Any, key: str) -> Any:
    return driver.find_element("id", key)


def choose(driver: Any, key: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select  # noqa: PLC0415 - optional

    Select(by_id(driver, key)).select_by_value(value)


def test_every_plot_is_drawn(page: Any) -> None:
    counts = page.execute_script(
        "return [...document.querySelectorAll('.plot')].filter((p) => p.querySelector('.main-svg'))"
        ".map((p) => [p.id, p.data.length, p.querySelectorAll('.trace, .hm').length,"
        " p.getBoundingClientRect().height])"
    )
    assert {key.removesuffix("-plot") for key, *_ in counts} == PLOTS
    assert all(traces >= 1 and shapes >= 1 and height > 150 for _, traces, shapes, height in counts)


def fits(driver: Any, width: int) -> Any:
    """Whether neither the page nor a plot in it is wider than a window of this width."""
    return driver.execute_script(
        "const ends = [...document.querySelectorAll('section, .main-svg')]"
        ".map((part) => part.getBoundingClientRect().right);"
        "const page = document.documentElement;"
        "return innerWidth === arguments[0]"
        " && Math.max(page.scrollWidth, ...ends) <= page.clientWidth",
        width,
    )


def test_the_page_never_scrolls_sideways(page: Any) -> None:
    own = page.execute_script("return innerWidth")
    assert fits(page, own)
    for width in (390, 1280, own):  # the window changes, or the phone is turned
        resize(page, width)
        wait(page, lambda width=width: fits(page, width))


def test_hover_names_the_sample_and_its_components(page: Any) -> None:
    from selenium.webdriver import ActionChains  # noqa: PLC0415 - optional

    plot = by_id(page, "sample-plot")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    steps = cycle((0, 3))

    def hovered() -> Any:
        # On a busy machine a single move may come before the plot listens.
        ActionChains(page).move_to_element_with_offset(plot, next(steps), 0).perform()
        return plot.find_elements("css selector", ".hoverlayer .hovertext")

    label = wait(page, hovered)
    assert len(label) == 1
    assert "component" in label[0].get_attribute("textContent")


def ticks(driver: Any, key: str, axis: str) -> list[str]:
    """Labels along an axis, as they are drawn."""
    sizes = driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]} .${arguments[1]}tick text`)]"
        ".map((label) => label.textContent)",
        key,
        axis,
    )
    return [str(label) for label in sizes]


def shorten_label(name: str, max_length: int) -> str:
    """What the page shows of a name."""
    name = readable(name, 60)
    return name if len(name) <= max_length else name[: max_length - 1] + "…"


def test_labels_show_names_letter_by_letter(page: Any, hostile_run: Run) -> None:
    """Plotly takes markup in labels: a name in bold, or without its tags, is another name."""
    choose(page, "sample-order", "file")
    samples = [shorten_label(name, 16) for name in hostile_run.sample_names()]
    assert ticks(page, "sample-plot", "x") == samples
    narrow = page.execute_script("return innerWidth") < 600
    features = {shorten_label(name, 16 if narrow else 40) for name in hostile_run.feature_names()}
    assert set(ticks(page, "feature-plot", "y")) == features


@pytest.mark.parametrize("key", ["sample-plot", "feature-plot"])
def test_hover_shows_names_letter_by_letter(page: Any, hostile_run: Run, key: str) -> None:
    choose(page, "sample-order", "file")
    names, trace = list(hostile_run.sample_names()), -1
    if key == "feature-plot":
        profile = describe(hostile_run.W, hostile_run.H).profiles[0]
        names, trace = [hostile_run.feature_names()[i] for i in largest(profile, 12)], 0
    for point, name in enumerate(names):

        def is_named(point: int = point, name: str = name) -> bool:
            label = page.execute_script(
                "const [key, trace, pointNumber] = arguments, plot = document.getElementById(key);"
                "const curveNumber = (trace + plot.data.length) % plot.data.length;"
                "Plotly.Fx.hover(plot, [{ curveNumber, pointNumber }]);"
                "return plot.querySelector('.hoverlayer').textContent",
                key, trace, point,
            )  # fmt: skip
            return str(label).startswith(readable(name, 60))

        wait(page, is_named)


def test_no_name_is_run(page: Any) -> None:
    assert page.execute_script("return window.pwned === undefined")
    assert not page.find_elements("css selector", "[onerror], [src='x']")


def test_sort_control_reorders_the_bars(page: Any, hostile_run: Run) -> None:
    memberships = describe(hostile_run.W, hostile_run.H).memberships.round(4)
    orders = {"file": np.arange(20), "1": np.argsort(-memberships[:, 1], kind="stable")}
    outlines = set()
    for value, order in orders.items():
        choose(page, "sample-order", value)
        heights = page.execute_script(
            "return document.getElementById('sample-plot').data.slice(0, -1)"
            ".map((trace) => trace.y.slice(1, -1))"
        )
        np.testing.assert_allclose(np.array(heights).T, memberships[order], atol=1e-4)
        outlines.add(
            page.execute_script(
                "return document.querySelector('#sample-plot .js-fill').getAttribute('d')"
            )
        )
    assert len(outlines) == 2


def test_other_controls_redraw(page: Any) -> None:
    read = {
        "convergence-against": "document.getElementById('convergence-plot').data[0].x",
        "feature-rank": "document.getElementById('feature-plot').data[0].x",
        "feature-component": "document.getElementById('feature-plot').data[0].x",
        "correlation-over": "document.getElementById('correlation-plot').data[0].z",
        "difference-contrast": "[...document.querySelectorAll('#difference-table tr')]"
        ".map((row) => row.hidden)",
    }
    values = ("passes", "frex", "2", "features", "1")
    for (control, place), value in zip(read.items(), values, strict=True):
        before = page.execute_script(f"return {place}")
        choose(page, control, value)
        assert page.execute_script(f"return {place}") != before


def test_table_is_searched_and_sorted(page: Any, hostile_run: Run) -> None:
    box, table = by_id(page, "component-search"), by_id(page, "component-table")

    def visible_rows() -> list[str]:
        rows = table.find_elements("css selector", "tbody tr")
        return [r.find_element("tag name", "td").text.strip() for r in rows if r.is_displayed()]

    assert visible_rows() == ["1", "2", "3"]
    assert by_id(page, "component-count").text == "3 of 3 components"
    for query, matches in (("no such feature", []), ("4%", []), ("3", ["3"])):
        box.clear()
        box.send_keys(query)
        assert visible_rows() == matches
    box.clear()
    box.send_keys("<SCRIPT>window")
    about = describe(hostile_run.W, hostile_run.H)
    tables = (about.profiles, about.frex())
    listed = [any(0 in largest(values[k], 10) for values in tables) for k in range(3)]
    assert visible_rows() == [str(k + 1) for k in range(3) if listed[k]]
    page.execute_script("arguments[0].value = ''", box)
    box.send_keys(" ")
    size = table.find_elements("css selector", "th button")[1]
    for expected, state in ((["1", "2", "3"], "descending"), (["3", "2", "1"], "ascending")):
        page.execute_script("arguments[0].click()", size)
        assert visible_rows() == expected
        head = size.find_element("xpath", "..")
        assert head.get_attribute("aria-sort") == state


def test_no_row_and_no_column_of_the_components_is_hidden(page: Any) -> None:
    hidden = page.execute_script(
        "const box = document.getElementById('component-table').parentElement;"
        "return [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]"
    )
    assert max(hidden) <= 1
    last = page.find_element("css selector", "#component-table tbody tr:last-child td:last-child")
    assert "bits" in last.text
    title = page.execute_script("return getComputedStyle(arguments[0], '::before').content", last)
    assert (title == '"information"') == (page.execute_script("return innerWidth") < 600)


def test_focus_is_visible(page: Any) -> None:
    by_id(page, "component-search").send_keys("\t")
    style = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert style != "none"


def test_text_stands_out_in_both_schemes(page: Any) -> None:
    ink, paper = page.execute_script(
        "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]"
    )
    assert _contrast(ink, paper) >= 7


def _contrast(one: str, other: str) -> float:
    """Of two colours such as "rgb(1, 2, 3)", by the Web Content Accessibility Guidelines."""
    lights = []
    for colour in (one, other):
        parts = np.array([int(part) for part in colour[4:-1].split(",")]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ (0.2126, 0.7152, 0.0722)))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_no_error_and_no_request(page: Any) -> None:
    requests = page.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [name for name in requests if not name.startswith("data:")] == []
    assert page.get_log("browser") == []
