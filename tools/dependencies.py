# SPDX-License-Identifier: BSD-3-Clause
"""Run the quick tests with the oldest libraries that pyproject.toml allows, and with the newest.

    python tools/dependencies.py                 # both: `make dependencies`
    python tools/dependencies.py oldest -x       # one; further arguments go to pytest

Each has its own environment in build/dependencies, into which a wheel is built with the oldest or
newest build tools. The tools of the tests are those of `make test`. The environment variable
NEWEST_PYTHON may name the Python of the newest libraries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "dependencies"
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
PYTHONS = {
    "oldest": sys.executable,
    "newest": os.environ.get("NEWEST_PYTHON", sys.executable),
}
UV = [sys.executable, "-m", "uv"]


def run(*command: str | Path) -> None:
    """Run a command in the root of the repository, with its output on the terminal."""
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def install(name: str) -> Path:
    """Install sipower and all its extras into a new environment, and return its Python."""
    here = FOLDER / name
    python, pins, tools = here / "bin" / "python", here / "libraries.txt", here / "tools.txt"
    run(*UV, "venv", "--quiet", "--clear", "--python", PYTHONS[name], here)
    options = ["--extra", "all", "--resolution", RESOLUTIONS[name], "--python", python]
    run(*UV, "pip", "compile", "--quiet", "pyproject.toml", *options, "--output-file", pins)
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    oldest = [line.replace(">=", "==") for line in requires] if name == "oldest" else []
    tools.write_text("\n".join(oldest))
    command = [*UV, "pip", "install", "--quiet", "--python", python]
    run(*command, "--requirements", pins, "--group", "test")
    settings = ["--config-setting", f"build-dir={here / 'objects'}"]
    run(*command, "--no-deps", "--reinstall", "--build-constraints", tools, *settings, ".")
    run(python, "--version")
    print(f"---- {name} ----\n{pins.read_text()}", flush=True)
    return python


def tests_pass(name: str, arguments: list[str]) -> bool:
    """Return whether the quick tests pass with these libraries."""
    python = install(name)
    tests = [python, "-m", "pytest", "-n", "2", "-m", "not slow and not stress", *arguments]
    if name == "oldest":  # old libraries use deprecated functions of newer ones
        tests += ["-W", "default::DeprecationWarning"]
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    """Run the tests with both, or with the one that the command line names."""
    names, arguments = list(RESOLUTIONS), sys.argv[1:]
    if arguments and arguments[0] in RESOLUTIONS:
        names, arguments = arguments[:1], arguments[1:]
    passed = {name: tests_pass(name, arguments) for name in names}
    for name, good in passed.items():
        print(f"{name}: {'passed' if good else 'FAILED'}")
    sys.exit(not all(passed.values()))


if __name__ == "__main__":
    main()
