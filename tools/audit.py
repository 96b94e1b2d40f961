# SPDX-License-Identifier: BSD-3-Clause
"""`make audit`: what sipower is built, run and tested with: pins, hashes, advisories and licences.

requirements/locked.txt names every version with the sha256 of its files. ``--lock`` writes it anew
with uv; ``--offline`` leaves out what needs a network. What could not be checked is said, and only
what was checked and is wrong makes the exit code 1.
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
FREE = re.compile(r"BSD|MIT|Apache|PSF|Python|ISC|HPND|MPL|Unlicense|Zlib|Boost|CC0", re.IGNORECASE)
STRICT = re.compile(r"\b(A?GPL|GNU)", re.IGNORECASE)


def run(*words: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a module of this Python."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def wanted() -> Iterator[Requirement]:
    """Everything that pyproject.toml asks for: to build, to run with every extra, to test."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"].values()
    extras = project["project"]["optional-dependencies"].values()
    lists = [project["build-system"]["requires"], project["project"]["dependencies"], *extras]
    for item in (item for part in (*lists, *groups) for item in part):
        if isinstance(item, str) and not item.startswith("sipower["):
            yield Requirement(item)


def locked() -> dict[str, list[tuple[str, int]]]:
    """Versions and numbers of hashes by name; platforms may have versions of their own."""
    found: dict[str, list[tuple[str, int]]] = {}
    for entry in re.split(r"\n(?=\S)", LOCK.read_text("utf-8").strip()):
        name, _, version = entry.partition(";")[0].partition(" ")[0].partition("==")
        found.setdefault(canonicalize_name(name), []).append(
            (version, len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", entry)))
        )
    return found


def check_pins() -> list[str]:
    """Every wish has a pinned version that grants it, and every pin a hash."""
    pins = locked()
    faults = [f"{name} has no hash" for name, pin in pins.items() if not all(n for _, n in pin)]
    for wish in wanted():
        versions = [version for version, _ in pins.get(canonicalize_name(wish.name), [])]
        if not any(wish.specifier.contains(version, prereleases=True) for version in versions):
            faults.append(f"{wish} is not granted by {versions or 'anything'}: run --lock")
    print(f"pins: {len(pins)} packages, {sum(n for p in pins.values() for _, n in p)} hashes")
    return faults


def check_hashes() -> list[str]:
    """The files that the index offers have these hashes."""
    done = run("pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet",
               "--require-hashes", "--disable-pip-version-check", "-r", LOCK)  # fmt: skip
    if done.returncode == 0:
        print("hashes: the files of the index are those of the lock")
        return []
    said = " ".join(x for x in done.stderr.splitlines() if not x.startswith("WARNING"))[:300]
    if "HASH" in said.upper():
        return [f"hashes: {said}"]
    print(f"hashes: not checked, pip says: {said}")
    return []


def check_advisories() -> list[str]:
    """No version has a published vulnerability."""
    words = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    done = run("pip_audit", "-r", LOCK, *words)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"advisories: not checked: {(done.stderr.splitlines() or ['no answer'])[-1]}")
        return []
    known = [one for one in found if "skip_reason" not in one]
    print(f"advisories: {len(known)} of {len(found)} packages checked, the service knows no others")
    return [
        f"{one['name']} {one['version']}: {hole['id']}, mended in {hole['fix_versions']}"
        for one in known
        for hole in one["vulns"]
    ]


def needed(wish: Requirement, seen: set[str]) -> set[str]:
    """Packages that one needs to run, itself included, as far as they are installed."""
    if str(wish) in seen:
        return set()
    seen.add(str(wish))
    try:
        lines = distribution(wish.name).requires or []
    except PackageNotFoundError:
        return set()
    found = {canonicalize_name(wish.name)}
    for further in map(Requirement, lines):
        marks = [{"extra": extra} for extra in wish.extras | {""}]
        if further.marker is None or any(further.marker.evaluate(mark) for mark in marks):
            found |= needed(further, seen)
    return found


def licence(name: str) -> str:
    """What a package says of its licence, in short."""
    about = metadata(name)
    kinds = [c.split(" :: ")[-1] for c in about.get_all("Classifier") or [] if "License ::" in c]
    said = about["License-Expression"] or "; ".join(kinds) or about["License"] or "unknown"
    return " ".join(said.split())[:60]


def check_licences() -> list[str]:
    """What sipower runs with may be passed on with it; its tools need only be free to use."""
    faults, running = [], needed(Requirement("sipower[all]"), set())
    for name in sorted(locked()):
        try:
            said = licence(name)
        except PackageNotFoundError:
            continue  # of another platform
        runs = name in running
        print(f"  {name:28} {'runs' if runs else 'tool':5} {said}")
        if runs and (STRICT.search(said) or not FREE.search(said)):
            faults.append(f"{name} runs with sipower under {said!r}: look at it")
    return faults


def write_lock() -> None:
    """Resolve everything anew, for every platform."""
    LOCK.parent.mkdir(exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    build, groups = project["build-system"]["requires"], project["dependency-groups"]
    done = run("uv", "pip", "compile", ROOT / "pyproject.toml", "-", "--all-extras",
               *(f"--group={ROOT}/pyproject.toml:{group}" for group in groups),
               "--universal", "--python-version", "3.11", "--generate-hashes", "--no-header",
               "--no-emit-index-url", "--no-annotate", "--quiet", "--output-file", LOCK,
               given="\n".join(build))  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)


def main() -> None:
    """Check everything that can be checked here."""
    if "--lock" in sys.argv:
        write_lock()
    checks = [check_pins, check_licences]
    if "--offline" not in sys.argv:
        checks += [check_hashes, check_advisories]
    faults = [fault for check in checks for fault in check()]
    print("\n".join(faults) or "nothing wrong was found")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
