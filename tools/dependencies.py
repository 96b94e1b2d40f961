# SPDX-License-Identifier: BSD-3-Clause
"""Run the quick tests with the oldest libraries that pyproject.toml allows, and with the newest.

    python tools/dependencies.py                 # both: `make dependencies`
    python tools/dependencies.py oldest -x       # one; what follows goes to pytest

Each has an environment of its own in build/dependencies, into which a wheel is built with the
oldest or newest tools too. What the tests themselves need is as `make test` has it. The newest have
the Python that NEWEST_PYTHON names, if it does.
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
    """A command in the root of the repository; what it says goes to the terminal."""
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def installed(name: str) -> Path:
    """The Python of an environment that has sipower and all its extras."""
    here = FOLDER / name
    python, pins, tools = here / "bin" / "python", here / "libraries.txt", here / "tools.txt"
    run(*UV, "venv", "--quiet", "--clear", "--python", PYTHONS[name], here)
    asked = ["--extra", "all", "--resolution", RESOLUTIONS[name], "--python", python]
    run(*UV, "pip", "compile", "--quiet", "pyproject.toml", *asked, "--output-file", pins)
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    oldest = [line.replace(">=", "==") for line in requires] if name == "oldest" else []
    tools.write_text("\n".join(oldest))
    install = [*UV, "pip", "install", "--quiet", "--python", python]
    run(*install, "--requirements", pins, "--group", "test")
    apart = ["--config-setting", f"build-dir={here / 'objects'}"]
    run(*install, "--no-deps", "--reinstall", "--build-constraints", tools, *apart, ".")
    run(python, "--version")
    print(f"---- {name} ----\n{pins.read_text()}", flush=True)
    return python


def passes(name: str, arguments: list[str]) -> bool:
    """Whether the quick tests pass there."""
    python = installed(name)
    tests = [python, "-m", "pytest", "-n", "2", "-m", "not slow and not stress", *arguments]
    if name == "oldest":  # old libraries use what newer ones that they use have deprecated
        tests += ["-W", "default::DeprecationWarning"]
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> None:
    """Both, or the one that is asked for."""
    names, arguments = list(RESOLUTIONS), sys.argv[1:]
    if arguments and arguments[0] in RESOLUTIONS:
        names, arguments = arguments[:1], arguments[1:]
    passed = {name: passes(name, arguments) for name in names}
    for name, good in passed.items():
        print(f"{name}: {'passed' if good else 'FAILED'}")
    sys.exit(not all(passed.values()))


if __name__ == "__main__":
    main()
