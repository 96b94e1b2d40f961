# SPDX-License-Identifier: BSD-3-Clause
"""tools/net.py names what differs between two versions, and public names that have no case."""

import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).parents[1] / "tools"
W = np.random.default_rng(0).random((4, 3))


@pytest.fixture
def net(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    before = set(sys.modules)
    import net  # noqa: PLC0415 - a script

    yield net
    for name in {"net", "net_parts", "net_library", "describe"} - before:
        sys.modules.pop(name, None)


def digest(net, value, *files):
    from net_parts import Flattener  # noqa: PLC0415

    flat = Flattener({})
    flat.add("", value)
    for file in files:
        flat.add_file(file, file.name)
    return net.Digest({"case": flat.parts})


def test_a_changed_last_bit_of_a_factor_is_named(net):
    changed = W.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 1)
    versions = [digest(net, {"W": factor, "H": W}) for factor in (W, changed)]
    assert net.compare(versions[0], versions[0]) == []
    name, line = net.compare(*versions)
    assert name == "case"
    assert "W: 1 of 12 numbers differ, relatively by at most 1." in line
    assert "e-16" in line


def test_a_changed_column_of_a_table_is_named(net, tmp_path):
    versions = []
    for header, last in (("name,a,b", 2.5), ("name,a,c", 2.5), ("name,a,b", 2.75)):
        (tmp_path / "table.csv").write_text(f"{header}\nx,1,2\ny,1,{last}\n")
        versions.append(digest(net, {}, tmp_path / "table.csv"))
    renamed = "\n".join(net.compare(versions[0], versions[1]))
    assert "table.csv, column b: gone" in renamed
    assert "table.csv, column c: new" in renamed
    assert net.compare(versions[0], versions[2])[1:] == [
        "    table.csv, column b: 1 of 2 numbers differ, relatively by at most 9.1e-02"
    ]


def test_a_changed_line_of_a_help_page_is_named(net):
    pages = [
        {"page": f"Usage: fit\n\n--tol   {text}\n--seed  Seed.\n"} for text in ("Stop.", "End.")
    ]
    lines = net.compare(*(digest(net, page) for page in pages))
    assert lines == [
        "case",
        "    page: 1 line changed\n        - --tol   Stop.\n        + --tol   End.",
    ]


def test_clock_times_are_no_difference(net, tmp_path):
    versions = []
    for seconds, text in ((1.5, "0.3 s"), (2.5, "12 min")):
        (tmp_path / "run.json").write_text(f'{{"seconds": {seconds}, "rounds": 3}}')
        (tmp_path / "trace.csv").write_text(f"round,seconds\n1,{seconds}\n")
        value = {"text": f"converged after 3 rounds, {text}", "seconds": seconds}
        versions.append(digest(net, value, tmp_path / "run.json", tmp_path / "trace.csv"))
    assert net.compare(*versions) == []


def test_shapes_types_and_failures_are_named(net):
    before, after = (
        digest(net, {"a": W, "b": W, "c": W}),
        digest(net, {"a": W[:2], "b": W.astype("f4")}),
    )
    text = "\n".join(net.compare(before, after))
    assert "a: shape (4, 3), now (2, 3)" in text
    assert "b: type float64, now float32; 12 of 12 numbers differ" in text
    assert "c: gone" in text
    before.failed["case"] = "AttributeError: sipower has no public name 'new'"
    assert net.compare(before, after) == [
        "case", "    fails in the other version: AttributeError: sipower has no public name 'new'"
    ]  # fmt: skip


def test_public_names_and_options_without_a_case_are_named(net, capsys):
    for package in ("typer", "pandas", "matplotlib", "distributed"):
        pytest.importorskip(package)
    from net_library import Library  # noqa: PLC0415

    library = Library()
    assert callable(library.refit)
    library.call("fit --help")
    names = library.list_uncovered({library.Stop})
    assert {"sipower.refit", "sipower.Stop", "sipower fit"}.isdisjoint(names)
    assert {"sipower.compare", "sipower.tl.nmf", "sipower fit, options 'Model'"} <= set(names)
    assert net.print_problems(net.Digest(uncovered=["sipower.compare"])) == 1
    assert "sipower.compare has no case" in capsys.readouterr().out
