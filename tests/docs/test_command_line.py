# SPDX-License-Identifier: BSD-3-Clause
"""The commands that docs/guide/command_line.md shows for the options of the model run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from doc_blocks import ROOT, code_blocks

PAGE = ROOT / "docs" / "guide" / "command_line.md"


def test_the_options_of_the_model_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("typer", "rich", "pandas", "plotly", "jinja2"):
        pytest.importorskip(package)
    from typer.testing import CliRunner  # noqa: PLC0415 - optional

    from sipower.cli import app  # noqa: PLC0415 - optional

    monkeypatch.chdir(tmp_path)
    (files,) = code_blocks(PAGE, "python")
    exec(compile(files.code, PAGE.name, "exec"), {})
    (shown,) = (block for block in code_blocks(PAGE, "sh") if "--guides" in block.code)
    lines = [shlex.split(line) for line in shown.code.splitlines()]
    assert len(lines) == 7
    for _, command, *words in lines:
        quick = ["--no-report"] if command == "fit" else []
        result = CliRunner().invoke(app, [command, *words, *quick])
        assert result.exit_code == 0, (words, result.output, result.stderr)
