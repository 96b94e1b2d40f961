# SPDX-License-Identifier: BSD-3-Clause
"""The report says what the run holds, shows every name as text and asks no server for anything."""

import base64
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from sipower import KLNMF
from sipower.inference import Replication
from sipower.results import Run
from sipower.results.describe import describe, readable
from sipower.results.report import page, write_report
from sipower.results.report.content import number, repeat_call

VOID = {"meta", "link", "img", "input", "br"}


class Reader(HTMLParser):
    """Every element with its attributes, every piece of text, and whether all ends match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open[-1:] == ["script"] else self.texts).append(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plotly's millions of letters out."""
    monkeypatch.setattr(page, "_plotly", lambda: "/* plotly */")


def write_and_parse(run: Run, folder: Path, **more: Any) -> str:
    return write_report(run, folder / "report.html", **more).read_text("utf-8")


@pytest.mark.usefixtures("light")
def test_hostile_names_are_text_and_nothing_else(
    hostile_run: Run, everything: dict[str, Any], tmp_path: Path
) -> None:
    html = write_and_parse(hostile_run, tmp_path, **everything)
    reader = Reader(html)
    assert not reader.open
    assert len(reader.scripts) == 3
    assert {tag for tag, _ in reader.elements}.isdisjoint({"a", "b", "iframe", "object"})
    assert all(not key.startswith("on") for _, attributes in reader.elements for key in attributes)
    assert all(letter == "\n" or letter.isprintable() for letter in html)
    text = "\n".join(reader.texts)
    for name in hostile_run.feature_names():
        assert readable(name, 64) in text
    assert readable(hostile_run.feature_names()[7], 500) in reader.attributes("title")
    assert "sipower report: a<b>\"&'.mtx" in text


@pytest.mark.usefixtures("light")
def test_nothing_is_loaded_from_anywhere(
    hostile_run: Run, everything: dict[str, Any], tmp_path: Path
) -> None:
    reader = Reader(write_and_parse(hostile_run, tmp_path, **everything))
    for kind in ("src", "href", "srcset", "action", "data", "poster"):
        assert all(address.startswith("data:") for address in reader.attributes(kind))
    policy = [attributes for tag, attributes in reader.elements if "http-equiv" in attributes]
    assert "default-src 'none'" in str(policy[0]["content"])
    assert "url(" not in (Path(page.__file__).parent / "page.css").read_text("utf-8")


def test_plotly_is_within_once_and_cannot_end_its_script(hostile_run: Run, tmp_path: Path) -> None:
    offline = pytest.importorskip("plotly.offline", reason="plotly is not installed")
    html, library = write_and_parse(hostile_run, tmp_path), offline.get_plotlyjs()
    assert html.count(library) == 1
    assert "</script" not in library.lower()


@pytest.mark.usefixtures("light")
def test_data_within_are_the_numbers_of_the_run(
    hostile_run: Run, everything: dict[str, Any], tmp_path: Path
) -> None:
    html = write_and_parse(hostile_run, tmp_path, **everything)
    data, about = json.loads(Reader(html).scripts[1]), describe(hostile_run.W, hostile_run.H)
    assert_allclose(data["sizes"], about.sizes, rtol=1e-3)
    shares = np.array(data["samples"]["shares"]).T / data["samples"]["whole"]
    assert_allclose(shares, about.memberships, atol=1e-4)
    assert sorted(data["samples"]["similar"]) == list(range(20))
    assert data["samples"]["names"] == [readable(name, 60) for name in hostile_run.sample_names()]
    top = data["features"][0]["probability"]
    assert_allclose(top["probability"], np.sort(about.profiles[0])[::-1], rtol=1e-3)
    assert_allclose(top["lift"], np.array(top["probability"]) / np.array(top["overall"]), rtol=2e-3)
    assert data["convergence"]["excess"][-1] is None
    assert data["rank"]["stability"] == [0.9, 0.8, None]
    assert_allclose(data["consensus"]["stability"], everything["consensus"].stability[about.order])


@pytest.mark.usefixtures("light")
def test_headings_are_in_order_and_controls_have_labels(
    hostile_run: Run, everything: dict[str, Any], tmp_path: Path
) -> None:
    reader = Reader(write_and_parse(hostile_run, tmp_path, **everything))
    levels = [int(tag[1]) for tag, _ in reader.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) == 1
    ids = reader.attributes("id")
    assert len(ids) == len(set(ids))
    assert all(attributes.get("alt") for tag, attributes in reader.elements if tag == "img")


@pytest.mark.usefixtures("light")
def test_images_are_the_profiles(hostile_run: Run, tmp_path: Path) -> None:
    reader = Reader(write_and_parse(hostile_run, tmp_path, image_shape=(3, 4)))
    profiles = describe(hostile_run.W, hostile_run.H).profiles
    sources = [str(attributes["src"]) for tag, attributes in reader.elements if tag == "img"]
    assert len(sources) == len(profiles)
    for source, profile in zip(sources, profiles, strict=True):
        pixels = np.array(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))))
        expected = np.rint(255 * profile / profile.max()).reshape(3, 4)
        assert_array_equal(pixels, expected)


@pytest.mark.usefixtures("light")
def test_the_certificate_is_in_plain_words(hostile_run: Run, tmp_path: Path) -> None:
    words = " ".join(Reader(write_and_parse(hostile_run, tmp_path)).texts)
    assert "by more than 3.085 (0.25% of the sum)" in words  # 0.0025 x 1234
    assert "does not certify that no other pair of factors is better" in words
    assert "drawn relative to this run's own" in words
    assert "Information says how much a component differs from" in words
    assert "KLNMF(n_components=3, random_state=0, dtype='float32')" in words


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(("samples", "components"), [(1, 1), (3, 2), (5, 1), (2, 100)])
def test_a_run_made_by_hand_has_a_report(samples: int, components: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    facts = {} if samples > 1 else {"input": None, "parameters": None, "divergence": None}
    run = Run(rng.random((samples, components)), rng.random((components, 4)), (), facts)
    reader = Reader(write_and_parse(run, tmp_path))
    words = " ".join(reader.texts)
    assert "nothing is certified" in words
    assert ("Nothing was recorded" in words) == (not facts)
    assert ("correlations" in reader.attributes("id")) == (components > 1)
    assert "convergence" not in reader.attributes("id")


@pytest.mark.usefixtures("light")
def test_many_samples_are_drawn_in_part_and_the_file_stays_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    W, H = rng.gamma(0.1, size=(3400, 20)), rng.gamma(0.1, size=(20, 6700))
    names = tuple(f"package.module.function_{i}" for i in range(3400))
    html = write_and_parse(Run(W, H, samples=names, features=names + names[:3300]), tmp_path)
    assert "2,000 of the 3,400 samples are drawn, evenly chosen" in html
    assert len(html.encode()) < 2_000_000


@pytest.mark.usefixtures("light")
def test_what_cannot_be_written_is_refused_in_a_sentence(hostile_run: Run, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"5 x 5 must have 12 pixels"):
        write_report(hostile_run, tmp_path / "report.html", image_shape=(5, 5))
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        write_report(hostile_run, tmp_path)
    assert not list(tmp_path.iterdir())
    assert write_report(hostile_run, tmp_path / "new" / "report.html").is_file()


@pytest.mark.usefixtures("light")
def test_differences_have_a_section_with_the_verdict(
    hostile_run: Run, everything: dict[str, Any], tmp_path: Path
) -> None:
    differences = everything["differences"]
    assert "differences" not in Reader(write_and_parse(hostile_run, tmp_path)).attributes("id")
    reader = Reader(write_and_parse(hostile_run, tmp_path, differences=differences))
    assert "Not checked on independent counts: by request." in " ".join(reader.texts)
    data = json.loads(reader.scripts[1])["differences"]["plots"]
    rows = [attributes for tag, attributes in reader.elements if "data-contrast" in attributes]
    for contrast, plot in enumerate(data):
        top = differences.top(contrast, 25)
        assert plot["names"] == [readable(hostile_run.feature_names()[j], 60) for j in top]
        assert_allclose(plot["mean"], differences.posterior_mean[contrast, top], atol=1e-4)
        assert_allclose(plot["lower"], differences.lower[contrast, top], atol=1e-4)
        listed = [row for row in rows if row["data-contrast"] == str(contrast)]
        assert len(listed) == min(len(top), 10)
    noise = replace(differences, replication=Replication(9, 0.5))
    words = " ".join(Reader(write_and_parse(hostile_run, tmp_path, differences=noise)).texts)
    assert "Not supported." in words
    assert "do not interpret the differences" in words
    excluded = list(hostile_run.feature_names())
    html = write_and_parse(hostile_run, tmp_path, differences=differences, exclude=excluded)
    assert not [a for _, a in Reader(html).elements if "data-contrast" in a]
    other = replace(differences, profiles=differences.profiles[::-1])
    with pytest.raises(ValueError, match="`differences` must have the components of the report"):
        write_report(hostile_run, tmp_path / "report.html", differences=other)
    other = replace(differences, profiles=differences.profiles[:, 1:])
    with pytest.raises(ValueError, match=r"of shape \(3, 12\), got \(3, 11\)"):
        write_report(hostile_run, tmp_path / "report.html", differences=other)


def test_the_call_to_repeat_a_run_is_valid() -> None:
    call = repeat_call({"n_components": 4, "dtype": "float32", "max_time": None, "elsewhere": 1})
    names: dict[str, Any] = {"V": np.random.default_rng(0).poisson(2.0, (9, 8))}
    exec(call, names)
    assert isinstance(names["model"], KLNMF)
    assert names["W"].shape == (9, 4)
    assert repeat_call({}) == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, "3"), (1234567, "1,234,567"), (1e6, "1,000,000"), (1234.5, "1,234"), (0.25, "0.25"),
        (2.5e-5, "2.50e-05"), (0.0, "0"), (float("nan"), "nan"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_reading(value: float, expected: str) -> None:
    assert number(value) == expected
