# SPDX-License-Identifier: BSD-3-Clause
"""The workflows run what the project promises; `zizmor` in `make lint` checks their safety."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github" / "workflows"
PINNED = re.compile(r"uses: (\S+)@([0-9a-f]{40}) # (v[\d.]+)\n")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the workflows are not in the wheel")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TEXTS = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.yml"))}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}


def commands(workflow):
    """Yield the commands of all steps, for every target of the matrix."""
    for job in workflow["jobs"].values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        for step in job["steps"]:
            for target in targets:
                yield step.get("run", "").replace('"$TARGET"', target)


def test_every_action_is_pinned_by_one_commit_with_its_version():
    pins = {}
    for text in TEXTS.values():
        found = PINNED.findall(text)
        assert len(found) == text.count("uses:")
        for action, commit, version in found:
            pins.setdefault(action, set()).add((commit, version))
    assert all(len(versions) == 1 for versions in pins.values()), pins


def test_jobs_may_read_the_code_and_only_the_publisher_may_publish():
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {}
        for job_name, job in workflow["jobs"].items():
            is_publisher = (name, job_name) == ("wheels", "publish")
            expected = {"id-token": "write"} if is_publisher else {"contents": "read"}
            assert job["permissions"] == expected
            assert job["timeout-minutes"] <= 120


def test_a_release_is_published_from_its_environment_after_all_builds():
    jobs = WORKFLOWS["wheels"]["jobs"]
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert jobs["publish"]["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"


def test_the_tests_run_on_the_versions_of_the_classifiers():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    jobs = WORKFLOWS["tests"]["jobs"]
    assert jobs["quick"]["strategy"]["matrix"]["python"] == named
    assert f">={named[0]}" == PROJECT["project"]["requires-python"]
    built = [f"cp{version.replace('.', '')}-*" for version in named]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == built
    versions = {row["versions"]: row["python"] for row in matrix_rows(jobs["dependencies"])}
    assert versions == {"oldest": named[0], "newest": named[-1]}


def matrix_rows(job):
    return job["strategy"]["matrix"]["include"]


def test_every_system_that_gets_a_wheel_is_tested():
    tested = set(WORKFLOWS["tests"]["jobs"]["quick"]["strategy"]["matrix"]["os"])
    built = set(WORKFLOWS["wheels"]["jobs"]["wheels"]["strategy"]["matrix"]["os"])
    assert built - tested == {"macos-15-intel"}  # its tests run on the wheels


def test_tests_lint_and_docs_run_on_pushes_and_pull_requests():
    for name in ("tests", "lint", "docs"):
        assert set(WORKFLOWS[name][True]) == {"push", "pull_request"}  # YAML reads `on` as true


def test_targets_tools_and_groups_that_workflows_call_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    called = [run for workflow in WORKFLOWS.values() for run in commands(workflow)]
    called += yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))["build"]["jobs"][
        "install"
    ]
    made = {word for run in called if run.startswith("make") for word in run.split()[1:]}
    assert {"test", "lint", "types", "docs", "stress", "audit"} <= made <= set(targets)
    text = "\n".join(called)
    tools = re.findall(r"(tools/\w+\.\w+)", text)
    assert tools
    assert all((ROOT / tool).is_file() for tool in tools)
    assert set(re.findall(r"--group (\w+)", text)) <= set(PROJECT["dependency-groups"])
