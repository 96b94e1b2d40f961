# SPDX-License-Identifier: BSD-3-Clause
"""Every path, name, command and link in README, CONTRIBUTING and the other pages exists."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from doc_blocks import FENCE, PAGES, ROOT, page_id, quoted_code

SOURCES = ROOT / "src" / "sipower"
TOP_PAGES = [path for path in PAGES if path.parent == ROOT and path.name != "CHANGELOG.md"]
CODE = {".py", ".pyi", ".hpp", ".cpp"}
PAPER = ROOT / "docs" / "paper_to_code.md"
SPEAKING_OF_CODE = [*TOP_PAGES, PAPER, ROOT / "docs" / "decisions.md"]
# Names of other projects, files that runs write, and code to be written by the reader.
FOREIGN = {"CountVectorizer", "GridSearchCV", "KeyboardInterrupt", "MemoryError", "NMF", "PATH",
           "Pipeline", "mmread", "std"}  # fmt: skip
FILES_OF_RUNS = {"rank.json", "consensus.json", "report.html", "src/sipower/nmf/my_rule.py",
                 "build/demo/report.html", "build/docs/index.html"}  # fmt: skip


def exists(path: str) -> bool:
    """Whether a path is one of the repository or of the package."""
    return any((folder / path).exists() for folder in (ROOT, SOURCES))


@pytest.mark.parametrize("page", SPEAKING_OF_CODE, ids=page_id)
def test_paths_exist(page: Path) -> None:
    named = [
        code for code in quoted_code(page) if re.fullmatch(r"[\w.-]+(/[\w.-]*)+|\w+\.\w+", code)
    ]
    paths = [
        code for code in named if "/" in code or code.endswith((".py", ".md", ".txt", ".toml"))
    ]
    for path in set(paths) - FILES_OF_RUNS:
        assert exists(path), f"{page.name} names {path}"


def find_links(page: Path) -> list[str]:
    """Return the targets of the links of a page, without what follows #."""
    return re.findall(r"\]\(([^)#\s]+)[^)]*\)", FENCE.sub("", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for link in find_links(page):
        _, is_own, path = link.partition("github.com/sipower/sipower/")
        kind, _, rest = path.partition("/main/")
        if is_own and kind in ("blob", "tree", "raw"):
            assert (ROOT / rest).is_dir() if kind == "tree" else (ROOT / rest).is_file(), link
        if page in TOP_PAGES:  # links of the others may lead to generated pages; Sphinx checks them
            assert "://" in link or (page.parent / link).exists(), link


def test_the_readme_has_no_relative_link() -> None:
    """It is the description on PyPI, too, which knows no files of the repository."""
    assert [link for link in find_links(ROOT / "README.md") if "://" not in link] == []


@cache
def code() -> str:
    """Return all source code of the project."""
    paths = [path for folder in ("src", "cpp", "tests") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text(encoding="utf-8") for path in sorted(paths) if path.suffix in CODE]
    return "\n".join(texts)


@cache
def make_targets() -> frozenset[str]:
    """Return the commands of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))


def is_defined(name: str) -> bool:
    """Whether a function, class, parameter, variable or option such as "auto" has this name."""
    patterns = (rf"\b(def|class|struct|void) {name}\b", rf"\b{name}\b *[:=]", f'"{name}"',
                rf"^(\w+, )*{name}(, \w+)* = ")  # fmt: skip
    return any(re.search(pattern, code(), re.MULTILINE) for pattern in patterns)


@pytest.mark.parametrize("page", SPEAKING_OF_CODE, ids=page_id)
def test_identifiers_are_defined(page: Path) -> None:
    """A quoted word is a name: `solve`, `kernels.Stream`, `scale_to_mass(h)`, `REGISTRY`."""
    for quoted in quoted_code(page):
        word = re.fullmatch(r"@?(?:[a-z_]+\.)*([A-Za-z_]\w+)(?:\([\w, \"]*\))?(?: -> \w+)?", quoted)
        if word and word[1] not in FOREIGN | make_targets() and not exists(quoted):
            assert is_defined(word[1]) or quoted in FILES_OF_RUNS, f"{page.name} names {quoted}"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_public_names_can_be_imported(page: Path) -> None:
    """`sipower.io.read` and the like, in every page."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    pytest.importorskip("distributed")
    pytest.importorskip("pandas")
    for quoted in quoted_code(page):
        name = re.match(r"(sipower(?:\.[A-Za-z_]\w*)+)(?:\(.*\))?$", quoted)
        if name and not name[1].endswith(".npz"):
            thing = importlib.import_module("sipower")
            for part in name[1].split(".")[1:]:
                if not hasattr(thing, part):
                    importlib.import_module(f"{thing.__name__}.{part}")
                thing = getattr(thing, part)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_exist(page: Path) -> None:
    for quoted in quoted_code(page):
        if quoted.startswith("make "):
            assert quoted.removeprefix("make ") in make_targets(), f"{page.name} names {quoted}"


def test_the_readme_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_the_tour_leads_to_the_landmarks() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tour = text[text.index("## How data flow") : text.index("## Glossary")]
    assert len(re.findall(r"^\d+\. ", tour, re.MULTILINE)) == 10
    for landmark, path, name in (
        ("Lemma 9", "problems/kl.py", "to_sphere"),
        ("the certificate", "problems/kl.py", "gaps"),
        ("a round on a cluster", "dask/factorization.py", "class "),
        ("reads .h5ad files", "io/hdf5.py", "def "),
        ("exit codes", "cli/exit_codes.py", "NOT_CONVERGED"),
    ):
        assert landmark in tour
        assert path in tour
        assert name in (SOURCES / path).read_text(encoding="utf-8")


def test_layers_of_contributing_are_those_of_import_linter() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = " ".join(re.search(r"to the left: `([^`]*)`", text)[1].split()).split(" → ")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract, _ = project["tool"]["importlinter"]["contracts"]  # the other is of the verifier
    first = [re.match(r"sipower\.(\w+)", layer)[1] for layer in reversed(contract["layers"])]
    order = list(dict.fromkeys(name for name in reversed(first)))[::-1]  # where a layer ends
    assert [name for name in order if name in named] == named


def test_paths_of_pyproject_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    for path in project["pytest_add_cli_args_test_selection"]:
        assert (ROOT / path.partition("::")[0]).exists(), path
    for pattern in project["only_mutate"]:
        assert list(ROOT.glob(pattern)), pattern
