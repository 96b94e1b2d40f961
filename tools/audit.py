# SPDX-License-Identifier: BSD-3-Clause
"""Check the pins, hashes, advisories and licences of all dependencies (`make audit`).

requirements/locked.txt lists every version with the sha256 of its files. ``--lock`` writes it with
uv; ``--offline`` skips the checks that need a network. Checks that could not run are reported, but
only a failed check makes the exit code 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "locked.txt"
PERMISSIVE = re.compile(
    r"BSD|MIT|Apache|PSF|Python|ISC|HPND|MPL|Unlicense|Zlib|Boost|CC0", re.IGNORECASE
)
COPYLEFT = re.compile(r"\b(A?GPL|GNU)", re.IGNORECASE)


def run_module(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a module with the current Python."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def read_requirements() -> Iterator[Requirement]:
    """Yield all requirements of pyproject.toml: to build, to run with every extra, to test."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"].values()
    extras = project["project"]["optional-dependencies"].values()
    lists = [project["build-system"]["requires"], project["project"]["dependencies"], *extras]
    for item in (item for part in (*lists, *groups) for item in part):
        if isinstance(item, str) and not item.startswith("sipower["):
            yield Requirement(item)


def read_lock() -> dict[str, list[tuple[str, int]]]:
    """Return versions and numbers of hashes by name; platforms may have different versions."""
    pins: dict[str, list[tuple[str, int]]] = {}
    for entry in re.split(r"\n(?=\S)", LOCK.read_text("utf-8").strip()):
        name, _, version = entry.partition(";")[0].partition(" ")[0].partition("==")
        pins.setdefault(canonicalize_name(name), []).append(
            (version, len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)))
        )
    return pins


def check_pins() -> list[str]:
    """Check that every requirement has a matching pin, and every pin a hash."""
    pins = read_lock()
    faults = [f"{name} has no hash" for name, pin in pins.items() if not all(n for _, n in pin)]
    for requirement in read_requirements():
        versions = [version for version, _ in pins.get(canonicalize_name(requirement.name), [])]
        specifier = requirement.specifier
        if not any(specifier.contains(version, prereleases=True) for version in versions):
            faults.append(f"{requirement} has no matching pin ({versions}): run with --lock")
    print(f"pins: {len(pins)} packages, {sum(n for p in pins.values() for _, n in p)} hashes")
    return faults


def check_hashes() -> list[str]:
    """Check that the files of the index have the hashes of the lock."""
    words = ("--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--require-hashes")
    process = run_module("pip", "install", *words, "--disable-pip-version-check", "-r", LOCK)
    if process.returncode == 0:
        print("hashes: the files of the index match the lock")
        return []
    message = " ".join(x for x in process.stderr.splitlines() if not x.startswith("WARNING"))[:300]
    if "HASH" in message.upper():
        return [f"hashes: {message}"]
    print(f"hashes: not checked, pip says: {message}")
    return []


def check_advisories() -> list[str]:
    """Check that no version has a published vulnerability."""
    words = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    process = run_module("pip_audit", "-r", LOCK, *words)
    try:
        packages = json.loads(process.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"advisories: not checked: {(process.stderr.splitlines() or ['no answer'])[-1]}")
        return []
    checked = [package for package in packages if "skip_reason" not in package]
    print(f"advisories: {len(checked)} of {len(packages)} packages are known to the service")
    return [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {flaw['fix_versions']}"
        for package in checked
        for flaw in package["vulns"]
    ]


def runtime_packages(requirement: Requirement, visited: set[str]) -> set[str]:
    """Return the installed packages that a requirement needs to run, including itself."""
    if str(requirement) in visited:
        return set()
    visited.add(str(requirement))
    try:
        lines = distribution(requirement.name).requires or []
    except PackageNotFoundError:
        return set()
    packages = {canonicalize_name(requirement.name)}
    for dependency in map(Requirement, lines):
        marks = [{"extra": extra} for extra in requirement.extras | {""}]
        if dependency.marker is None or any(dependency.marker.evaluate(mark) for mark in marks):
            packages |= runtime_packages(dependency, visited)
    return packages


def licence(name: str) -> str:
    """Return the licence that a package declares, in at most 60 characters."""
    about = metadata(name)
    kinds = [c.split(" :: ")[-1] for c in about.get_all("Classifier") or [] if "License ::" in c]
    text = about["License-Expression"] or "; ".join(kinds) or about["License"] or "unknown"
    return " ".join(text.split())[:60]


def check_licences() -> list[str]:
    """Check that all runtime dependencies have a permissive licence; tools are only listed."""
    faults, running = [], runtime_packages(Requirement("sipower[all]"), set())
    for name in sorted(read_lock()):
        try:
            text = licence(name)
        except PackageNotFoundError:
            continue  # a package of another platform
        is_runtime = name in running
        print(f"  {name:28} {'runtime' if is_runtime else 'tool':8} {text}")
        if is_runtime and (COPYLEFT.search(text) or not PERMISSIVE.search(text)):
            faults.append(f"{name}, a runtime dependency, has the licence {text!r}: review it")
    return faults


def write_lock() -> None:
    """Resolve all requirements for every platform and write the lock."""
    LOCK.parent.mkdir(exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    build, groups = project["build-system"]["requires"], project["dependency-groups"]
    process = run_module("uv", "pip", "compile", ROOT / "pyproject.toml", "-", "--all-extras",
               *(f"--group={ROOT}/pyproject.toml:{group}" for group in groups),
               "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header",
               "--no-emit-index-url", "--no-annotate", "--quiet", "--output-file", LOCK,
               stdin="\n".join(build))  # fmt: skip
    if process.returncode:
        raise SystemExit(process.stderr)


def main() -> None:
    """Run all checks and exit with 1 if one fails."""
    if "--lock" in sys.argv:
        write_lock()
    checks = [check_pins, check_licences]
    if "--offline" not in sys.argv:
        checks += [check_hashes, check_advisories]
    faults = [fault for check in checks for fault in check()]
    print("\n".join(faults) or "no faults")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
