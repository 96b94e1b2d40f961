# SPDX-License-Identifier: BSD-3-Clause
"""Fail if a source file has more than 800 lines, and name it."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "cpp", "tests", "fuzz", "tools", "benchmarks", "examples")
ENDINGS = {".py", ".hpp", ".cpp"}
MAX_LINES = 800


def main() -> None:
    """Print the files that are too long; exit with 1 if there are any."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.*"))]
    lengths = {
        path: len(path.read_bytes().splitlines()) for path in paths if path.suffix in ENDINGS
    }
    too_long = {path: lines for path, lines in lengths.items() if lines > MAX_LINES}
    for path, lines in too_long.items():
        print(f"{path.relative_to(ROOT)}: {lines} lines, at most {MAX_LINES} are allowed.")
    sys.exit(bool(too_long))


if __name__ == "__main__":
    main()
