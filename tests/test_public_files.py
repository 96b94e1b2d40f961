# SPDX-License-Identifier: BSD-3-Clause
"""Files that say the same thing in several places agree: metadata, recipe, paper, policies."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import sipower

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "recipe" / "recipe.yaml"
pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="the recipe is not in the wheel")

TOML = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = TOML["project"]
SECTIONS = [
    "Summary",
    "Statement of need",
    "State of the field",
    "Software design",
    "Limits",
    "Research impact statement",  # JOSS asks for all but "Limits"
    "AI usage disclosure",
    "Acknowledgements",
]


def render_recipe():
    rattler_build = pytest.importorskip("rattler_build", reason="a tool of `make lint` alone")
    variants = {"python": ["3.12.*"], "cxx_compiler": ["gxx"], "c_stdlib": ["sysroot"]}
    recipe = rattler_build.Stage0Recipe.from_file(str(RECIPE))
    (variant,) = recipe.render(rattler_build.VariantConfig(variants))
    return variant.recipe.to_dict()


def requirements(lines):
    """Return bounds by name, in one spelling for pip and conda."""
    return dict(re.fullmatch(r"([\w-]+) *(\S*)", line).groups() for line in lines)


def test_the_recipe_has_the_requirements_and_the_metadata_of_the_project():
    recipe = render_recipe()
    assert recipe["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    run = requirements(recipe["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == requirements(PROJECT["dependencies"])
    host = requirements(recipe["requirements"]["host"])
    assert host == requirements(TOML["build-system"]["requires"]) | {"python": "", "pip": ""}
    cmake = requirements(recipe["requirements"]["build"])["cmake"]
    assert cmake == TOML["tool"]["scikit-build"]["cmake"]["version"]
    about, urls = recipe["about"], PROJECT["urls"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert about["repository"].rstrip("/") == urls["Repository"]
    assert about["documentation"].rstrip("/") == urls["Documentation"]


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    recipe = yaml.safe_load(RECIPE.read_text("utf-8"))
    assert {
        PROJECT["version"],
        sipower.__version__,
        citation["version"],
        recipe["context"]["version"],
    } == {sipower.__version__}
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


def test_the_policies_name_the_oldest_versions():
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")
    oldest = requirements(PROJECT["dependencies"])
    stated = dict(re.findall(r"^\| (NumPy|SciPy|scikit-learn) \| (\S+) and newer", page, re.M))
    assert {name.lower(): f">={version}" for name, version in stated.items()} == {
        name: oldest[name] for name in ("numpy", "scipy", "scikit-learn")
    }
    python = re.search(r"^\| Python \| (\S+) and newer", page, re.M)[1]
    assert f">={python}" == PROJECT["requires-python"]


def test_every_reference_of_the_paper_exists_and_is_cited():
    paper, text = (ROOT / "paper.md").read_text("utf-8"), (ROOT / "paper.bib").read_text("utf-8")
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", paper, re.DOTALL).groups()
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} == set(
        yaml.safe_load(head)
    )
    assert re.findall(r"^# (.+)$", body, re.M) == SECTIONS
    entries = dict(re.findall(r"@\w+\{(\w+),(.*?)\n\}", text, re.DOTALL))
    assert set(re.findall(r"@(\w+)", body)) == set(entries)
    assert all(re.search(r"\b(doi|url) = \{\S+\}", entry) for entry in entries.values())


def test_numbers_of_the_paper_are_those_of_the_pages():
    paper = (ROOT / "paper.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for number in ("746,316", "47 of 88", "37 of 76", "0.65, 0.58 and 0.25"):
        assert number in paper
        assert number in readme
    assert re.search(r"^\| sipower \| 1\.0, 2\.0, 4\.1 \|", readme, re.M)
    assert re.search(r"^\| fastTopics \(R\) \| 10, 26, 40 \|", readme, re.M)
    means = re.search(r"geometric mean \| ([\d.]+);.*? \| ([\d.]+);", benchmarks)
    assert f"was {means[1]} times" in paper
    assert f"{means[2]} times (10 dense" in paper


def test_contributors_find_conduct_support_and_governance():
    for name in ("CODE_OF_CONDUCT.md", "GOVERNANCE.md", "CONTRIBUTING.md"):
        assert (ROOT / name).is_file()
        assert name in (ROOT / "docs" / "checklists.md").read_text("utf-8") + (
            ROOT / "CONTRIBUTING.md"
        ).read_text("utf-8")
