# SPDX-License-Identifier: BSD-3-Clause
"""Names from files are shown as text, by every command and in every format, whatever they hold."""

import csv
import io
import json
import os
import subprocess
import sys
import warnings
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from typer.testing import CliRunner

from security.hostile import NAMES, commands
from sipower import differential
from sipower.cli import app
from sipower.io import ReadError, read
from sipower.report import write_report
from sipower.results import Run, load_run, plot, plot_differences
from sipower.results.export import write_weights
from sipower.selection import RankSelection

# What a file system takes: neither a slash nor a NUL.
FILES = [name.replace("/", "|").replace("\0", "0") for name in NAMES]
COUNTS = np.arange(len(NAMES) ** 2).reshape(len(NAMES), -1) % 7 + 1


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")  # names are not wrapped
    return tmp_path


def table(file):
    """A file of hostile names, with hostile names in it."""
    names = [name.replace("\0", "0") for name in NAMES]  # which no table may hold
    frame = pd.DataFrame(COUNTS, index=names, columns=names)
    frame.to_csv(file, quoting=csv.QUOTE_NONNUMERIC)
    return file


def call(*words, code=None):
    """Run a command; whatever it says, the terminal is not commanded."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert commands(result.stdout + result.stderr) == []
    assert not set("\u2028\u202e\u2066") & set(result.stdout + result.stderr)
    assert not any(
        line.startswith("forged") for line in (result.stdout + result.stderr).splitlines()
    )
    assert code is None or result.exit_code == code, (
        result.output,
        result.stderr,
        result.exception,
    )
    return result


# ---- the terminal --------------------------------------------------------------------------------


def test_kinds_of_features_cannot_forge_lines(here):
    lines = [f"g{i}\tg{i}\t{kind}" for i, kind in enumerate((*map(repr, range(12)), "a\u2028b"))]
    (here / "features.tsv").write_text("\n".join(lines))
    (here / "barcodes.tsv").write_text("c\n")
    (here / "matrix.mtx").write_text(
        "%%MatrixMarket matrix coordinate integer general\n13 1 1\n1 1 5\n"
    )
    result = call("fit", "matrix.mtx", "-k", 1, "--no-report", code=0)
    assert (
        "several kinds, all of them kept: 0, 1, 10, 11, 2, 3, 4, 5, 6, 7 and 3 more.\n"
        in result.stdout
    )
    h5py = pytest.importorskip("h5py")
    with h5py.File("k.h5", "w") as file:
        group = file.create_group("matrix")
        parts = {"data": [1, 2], "indices": [0, 1], "indptr": [0, 2], "shape": [2, 1]}
        for name, numbers in parts.items():
            group[name] = np.array(numbers)
        group["barcodes"] = np.array([b"c"])
        for name, texts in {"id": [b"a", b"b"], "name": [b"a", b"b"]}.items():
            group[f"features/{name}"] = np.array(texts)
        group["features/feature_type"] = np.array([b"A\nforged line", b"Gene"])
    assert "kept: A forged line, Gene." in call("fit", "k.h5", "-k", 1, "--no-report").stdout


@pytest.mark.parametrize("name", [FILES[at] for at in (5, 8, 11, 12, 15)])
def test_file_names_cannot_command_the_terminal(here, name):
    file = table(f"{name}.csv")
    fit = call("fit", file, "-k", 1, "--max-iter", 2, "--no-report", "-o", name, code=0)
    if "[" in name and "\x1b" not in name:
        assert f"wrote {name}/" in fit.stdout  # what rich would take for markup is a name too
    call("transform", name, file, "-o", f"{name}.npz", code=0)
    call("verify", name, file)
    call("info", name, code=0)
    call("differential", name, file, code=2)  # one component has nothing to compare with
    assert f"{name}.npz" in os.listdir()
    call("fit", file, "-k", 1, "-o", name, code=2)
    for words in (("report", f"no{name}"), ("info", f"no{name}"), ("verify", f"no{name}", file),
                  ("verify", name, f"no{name}"), ("fit", f"no{name}", "-k", 2), (name,),
                  ("convert", f"no{name}", "-o", file), ("fit", file, "-k", name),
                  ("fit", file, "-k", 1, "--solver", name), ("fit", "-k", 1, "--layout", name),
                  ("fit", file, name, "-k", 1), ("fit", f"--{name}"), ("rank", file, "-k", name),
                  ("fit", file, "-k", 1, "--also", name), ("fit", file, "-k", 1, "--layer", name),
                  ("fit", file, "-k", 1, "--image-shape", name),
                  ("fit", file, "-k", 1, "--memory-limit", name)):  # fmt: skip
        assert call(*words, code=2).stderr


def test_every_command_speaks_to_machines_in_json(here):
    file = FILES[5]
    table(f"{file}.csv")
    for words in (("fit", f"{file}.csv", "-k", 2, "-o", file),
                  ("convert", f"{file}.csv", "-o", f"{file}.sipower"),
                  ("transform", file, f"{file}.csv", "-o", f"{file}.csv.npz"),
                  ("differential", file, f"{file}.csv"),
                  ("consensus", f"{file}.csv", "-k", 2, "--replicates", 2, "-o", f"{file}c"),
                  ("rank", f"{file}.csv", "-k", "1,2", "--replicates", 2, "-o", f"{file}r"),
                  ("verify", file, f"{file}.csv"), ("info",), ("info", file)):  # fmt: skip
        result = call(*words, "--json", code=0)
        assert [json.loads(line)["event"] for line in result.stdout.splitlines()]
    call("report", file, "--rank", f"{file}r", "-o", f"{file}.html", code=0)
    samples = load_run(file).samples
    assert [name for name in NAMES if name not in samples] == [NAMES[10]]


def test_what_is_wrong_with_a_hostile_file_is_said_in_plain_letters(here):
    for name in NAMES[5:10]:
        table("a.csv")
        with open("a.csv", "a", encoding="utf-8") as end:
            csv.writer(end).writerow([name] * (len(NAMES) + 1))
        call("fit", "a.csv", "-k", 1, code=2)
        with pytest.raises(ReadError):
            read("a.csv")
    table("a.csv")
    call("fit", "a.csv", "-k", 1, "-o", "run", "--no-report", code=0)
    pd.DataFrame({"\x1b[2J": [1, 2], "\x9b2J": [3, 4]}).to_csv("b.csv", index=False)
    assert r"\x1b[2J" in call("transform", "run", "b.csv", "-o", "W.csv", code=2).stderr


@pytest.mark.parametrize("name", NAMES[5:10])
def test_no_message_of_python_commands_the_terminal(here, name):
    """Names of columns, layers, arrays and files in errors and remarks: all are shown as text."""
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    name, messages, quoting = name.replace("/", "|"), [], csv.QUOTE_NONNUMERIC

    def refuse(file, **options):
        with pytest.raises(ReadError) as caught:
            read(file, **options)
        messages.append(str(caught.value))

    pd.DataFrame({f"{name} id": [1, 2], name: [3, 4]}).to_csv("a.csv", index=False, quoting=quoting)
    messages.extend(read("a.csv").remarks)
    pd.DataFrame({name: ["x", "y"], "b": [3, name]}).to_csv("b.csv", index=False, quoting=quoting)
    refuse("b.csv", layout="wide")
    refuse("b.csv", text_column="c")
    (here / f"{name}.csv").write_text("a,b\n1,2\n3\n")
    refuse(f"{name}.csv")
    (here / f"{name}.csv").write_text("1,2\n3,4\n")
    messages.extend(read(f"{name}.csv").remarks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = anndata.AnnData(COUNTS.astype(float), layers={name: COUNTS * 0.5})
        adata.write_h5ad("a.h5ad")
    refuse("a.h5ad", layer="x")
    with h5py.File("a.h5ad", "r+") as content:
        content[f"layers/{name}|2"] = h5py.ExternalLink(name, "/x")
    refuse("a.h5ad", layer=f"{name}|2")
    (here / "features.tsv").write_text(f"g\tg\t{name!a}\nh\th\t\x1b[31m\n")
    (here / "barcodes.tsv").write_text("c\n")
    (here / "matrix.mtx").write_text(
        "%%MatrixMarket matrix coordinate integer general\n2 1 1\n1 1 5\n"
    )
    messages.extend(read("matrix.mtx").remarks)
    np.savez("a.npz", **{name: COUNTS, "x": COUNTS})
    refuse("a.npz")
    assert len(messages) == 9
    assert not [text for text in messages if not text.isprintable()]
    assert sum(r"\x" in text or r"\r" in text for text in messages) >= 7


def test_a_name_is_not_cut_at_a_nul(here):
    """Where pandas would end it without a word."""
    texts = ",a\0,b\nx,1,2\n", ",a,b\nx\0y,1,2\n", ",a,b\nx,1,2\ny,\x003,4\n"
    for line, text in enumerate(texts, 1):
        (here / "a.csv").write_text(text)
        with pytest.raises(ReadError, match=f"line {line}, holds the character NUL"):
            read("a.csv")


def test_reproduce_and_settings_cannot_command_the_terminal(here, monkeypatch):
    out = "\x1b[31m[bold]x"
    assert r"\x1b[31m[bold]x" in call("reproduce", "table1", "--out", out, code=0).stdout
    monkeypatch.setenv("SIPOWER_DATA", NAMES[5])
    assert r"\x1b[31mred" in call("info", code=0).stdout
    call("datasets", code=0)


def test_a_real_terminal_sees_only_the_colours_of_the_command(here):
    """Through a pseudo-terminal, where rich draws: no name reaches it as it is."""
    file = table(f"{FILES[6]}{FILES[8]}.csv")
    pty = pytest.importorskip("pty", reason="needs a terminal of Unix")
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "sipower", "fit", file, "-k", "2", "-o", f"[red]{FILES[5]}"]
    process = subprocess.Popen(words, stdout=slave, stderr=slave, close_fds=True)
    os.close(slave)
    output = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the other end is closed
            break
        output += part
    assert process.wait(120) == 0
    assert rb"\x1b]8;;https:" in output
    assert rb"[red]\x1b[31mred" in output
    for command in (b"\x1b]8;", b"\x1b[31mred", b"\x08", b"\x07"):
        assert command not in output


# ---- files that are written ----------------------------------------------------------------------


def a_run(**more):
    rng = np.random.default_rng(0)
    size = len(NAMES)
    return Run(rng.random((size, 2)), rng.random((2, size)), (), {}, NAMES, NAMES, **more)


def differences():
    run = a_run()
    V = np.random.default_rng(0).poisson(50 * run.W @ run.H)
    return differential(pd.DataFrame(V, columns=NAMES), run.W, check=False)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_tables_hold_the_names_unchanged(tmp_path, ending):
    """Formulas too: data are not altered, and SECURITY.md says what that means for spreadsheets."""
    file = tmp_path / f"W.{ending}"
    write_weights(file, a_run().W, a_run().W, NAMES)
    text = io.StringIO(file.read_bytes().decode(), newline="")
    rows = list(csv.reader(text, delimiter="," if ending == "csv" else "\t"))
    assert tuple(row[0] for row in rows[1:]) == NAMES


@pytest.mark.parametrize("draw", ["structure", "top_features", "volcano", "intervals"])
def test_figures_hold_the_names_as_text(tmp_path, draw):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots(figsize=(30, 30))
    if draw == "structure":
        plot.structure(a_run(), ax, groups=NAMES)
    elif draw == "volcano":
        plot_differences.volcano(differences(), 0, ax, features=NAMES)
    elif draw == "intervals":
        plot_differences.intervals(differences(), NAMES, ax=ax)
    else:
        plot.top_features(a_run(), 1, ax, n=len(NAMES))
    file = tmp_path / "figure.svg"
    with pyplot.rc_context({"svg.fonttype": "none"}), pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # about letters that the font lacks
        figure.savefig(file)
    pyplot.close(figure)
    elements = list(ElementTree.parse(file).iter())
    tags = {element.tag.rpartition("}")[2] for element in elements}
    assert not tags & {"script", "image", "a", "foreignObject", "iframe"}
    assert not [key for e in elements for key in e.attrib if key.lower().startswith("on")]
    texts = [element.text for element in elements if element.text]
    name = "<script>window.pwned=1</script>"
    assert (name if draw != "volcano" else name[:23] + "…") in texts


def test_a_report_takes_no_markup_from_an_outcome(tmp_path):
    """`best` is a number; one that a file makes a text was put into the page as it was."""
    pytest.importorskip("plotly")
    selection = RankSelection((2,), np.ones((1, 1)), np.ones(1), NAMES[1], NAMES[0], NAMES[2])  # type: ignore[arg-type]
    before = markup(a_run(), tmp_path, selection=selection)
    assert "<img" not in before
    assert "&lt;img src=x onerror=window.pwned=1&gt;" in before


def markup(run, folder, **more):
    """The page of a run before its data and the library that draws them."""
    page = write_report(run, folder / "report.html", **more).read_text()
    return page.partition("<script>")[0]


def test_a_long_name_cannot_leave_its_title(tmp_path):
    pytest.importorskip("plotly")
    before = markup(a_run(), tmp_path)
    assert 'title="&#34;&gt;&lt;img src=x onerror=window.pwned=1&gt;&#34;&gt;' in before
    assert "<img" not in before


@pytest.mark.parametrize("name", [NAMES[at] for at in (0, 1, 2, 3, -1)])
@pytest.mark.parametrize(
    "facts",
    [
        lambda name: {"command": name},
        lambda name: {"parameters": {"n_components": 2, "solver": name}},
        lambda name: {"parameters": {"n_components": [name], name: name}},
        lambda name: {name: {name: [name, name]}, "status": name, "input": {"file": name}},
    ],
    ids=["command", "parameter", "parameters", "other facts"],
)
def test_a_report_takes_no_markup_from_the_facts_of_a_run(tmp_path, facts, name):
    """Whoever made the folder of a run has written them."""
    pytest.importorskip("plotly")
    run = Run(np.ones((3, 2)), np.ones((2, 4)), (), facts(name))
    before = markup(run, tmp_path)
    assert "<img" not in before
    assert name not in before  # as it is: each has a letter that means something to a browser
    assert "To repeat this run" in before or "parameters" not in run.facts
    assert str(escape(name[:30])) in before
