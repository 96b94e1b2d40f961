# SPDX-License-Identifier: BSD-3-Clause
"""Every code block of README and docs runs, or is marked as one that is only shown."""

from __future__ import annotations
import __future__

import ast
import importlib
import re
import shlex
from gzip import compress
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

from doc_blocks import PAGES, ROOT, Block, code_blocks, page_id

# Python runs, the lines of a shell are checked, JSON and text are output; a directive of MyST in
# braces is markup, and {code-block} python is code that is shown only.
RUN = {"python"}
NOT_RUN = {"sh", "json", "text"}
ANNOTATIONS = __future__.annotations.compiler_flag  # names of types in recipes need not exist
NEEDS = {"anndata": "anndata", "sipower.io": "pandas", "write_report": "plotly",
         "distributed": "distributed", "sipower.pl": "matplotlib"}  # fmt: skip


def skip_without_libraries(text: str) -> None:
    for use, package in NEEDS.items():
        if use in text:
            pytest.importorskip(package)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in code_blocks(page):
        is_known_kind = block.kind in RUN | NOT_RUN or re.match(r"\{[\w-]+\}", block.kind)
        assert is_known_kind, f"{page.name}: a block of kind {block.kind!r}: {block.code[:60]}"


@pytest.mark.filterwarnings("ignore:.*Agg is non-interactive:UserWarning")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if code_blocks(page, "python")], ids=page_id
)
def test_python_runs_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = code_blocks(page, "python")
    skip_without_libraries("".join(block.code for block in blocks))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block.code, page.name, "exec", ANNOTATIONS, dont_inherit=True), names)
    output = capsys.readouterr().out
    if page.name in ("README.md", "own_problem.md"):
        assert "converged" in output
        assert "FAILED" not in output
    if page.name == "theory.md":
        assert "The theorem holds (L-branch)" in output


def test_your_own_problem_takes_at_most_forty_lines() -> None:
    (block,) = code_blocks(ROOT / "docs" / "own_problem.md", "python")
    assert len(block.code.splitlines()) <= 40


def test_the_readme_shows_python_anndata_and_solve() -> None:
    first, second, third = code_blocks(ROOT / "README.md", "python")
    assert len(first.code.splitlines()) <= 10
    assert "tl.nmf" in second.code
    assert "solve(" in third.code


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_that_is_only_shown_imports_what_exists(page: Path) -> None:
    for block in code_blocks(page, "{code-block} python"):
        for node in ast.walk(ast.parse(block.code)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("sipower"):
                skip_without_libraries("distributed" if "dask" in str(node.module) else "")
                for alias in node.names:
                    assert hasattr(importlib.import_module(str(node.module)), alias.name)


def shell_lines(blocks: list[Block]) -> list[list[str]]:
    lines = [line.partition(" || ")[0] for block in blocks for line in block.code.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", [page for page in PAGES if code_blocks(page, "sh")], ids=page_id)
def test_commands_have_the_options_that_are_shown(page: Path) -> None:
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.main import get_command  # noqa: PLC0415 - optional

    from sipower.cli import app  # noqa: PLC0415 - optional

    commands = get_command(app).commands
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for program, *words in shell_lines(code_blocks(page, "sh")):
        if program == "make":
            assert set(words) <= targets, words
        elif program == "python":
            assert (ROOT / words[0]).is_file(), words
        elif program == "sipower":
            options = {name for p in commands[words[0]].params for name in p.opts}
            named = {
                word for word in words if (word[0] == "-" and word[1:2].isalpha()) or "--" in word
            }
            assert named <= options, (words, named - options)
        else:
            assert (program, words[0]) == ("pip", "install"), program


@pytest.mark.slow
def test_the_shell_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("typer", "rich", "plotly", "jinja2", "matplotlib"):
        pytest.importorskip(package)
    from typer.testing import CliRunner  # noqa: PLC0415 - optional

    from sipower.cli import app  # noqa: PLC0415 - optional

    monkeypatch.chdir(tmp_path)
    counts = np.random.default_rng(0).poisson(2.0, (60, 40))
    mmwrite("counts.mtx", coo_array(counts))
    Path("counts.mtx.gz").write_bytes(compress(Path("counts.mtx").read_bytes()))
    calls = [words for words in shell_lines(code_blocks(ROOT / "README.md", "sh"))
             if words[0] == "sipower" and words[1] != "reproduce"]  # fmt: skip
    assert [words[1] for words in calls] == ["rank", "fit", "transform", "differential"]
    for words in calls:
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, result.output
    assert Path("run/report.html").is_file()
    assert Path("W.csv").is_file()
    assert Path("run/differential.csv").is_file()
