# SPDX-License-Identifier: BSD-3-Clause
"""api.txt and the help pages are those of the code; python tools/describe.py writes them again."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def load_tool():
    spec = importlib.util.spec_from_file_location("describe", ROOT / "tools" / "describe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tool():
    for package in ("typer", "rich", "pandas", "matplotlib", "distributed"):
        pytest.importorskip(package)
    return load_tool()


def assert_equal(now, file, tool):
    then = file.read_text("utf-8") if file.exists() else ""
    lines, before = now.splitlines(), then.splitlines()
    changed = [f"+ {line}" for line in lines if line not in before]
    changed += [f"- {line}" for line in before if line not in lines]
    assert now == then, "\n".join([f"{file.name}: {tool.WRITE_AGAIN}", *changed[:20]])


def test_every_public_name_has_the_signature_in_api_txt(tool):
    assert_equal(tool.describe_api(), tool.API, tool)


def test_every_command_has_its_help_page(tool):
    pages = {tool.help_file(words): words for words in tool.list_commands()}
    assert set(tool.HELP.glob("*.txt")) == {*pages, tool.DRAWN_WITH}, tool.WRITE_AGAIN
    if tool.DRAWN_WITH.read_text("utf-8") != tool.describe_libraries():
        pytest.skip(f"{tool.DRAWN_WITH.name} has other versions, which draw other pages")
    for file, words in pages.items():
        assert_equal(tool.render_help(words), file, tool)


def test_a_changed_signature_is_named(tool, tmp_path):
    text = tool.describe_api()
    (tmp_path / "api.txt").write_text(text.replace("verify(V: Any, W", "verify(V: Any, Z"))
    with pytest.raises(AssertionError, match=r"(?s)describe\.py.*\+ verify\(V: Any, W.*- .*Z"):
        assert_equal(text, tmp_path / "api.txt", tool)
