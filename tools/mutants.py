# SPDX-License-Identifier: BSD-3-Clause
"""Run mutation tests: mutmut makes small changes to the code, and a quick test must detect them.

[tool.mutmut] in pyproject.toml says which files are changed and which tests run. The run uses a
copy in build/mutants, where `mutmut show NAME` and `mutmut browse` work afterwards; survivors.txt
there holds the change of every mutant that no test detected.

    python tools/mutants.py [--children 2] [NAME ...]    names or patterns such as "*cut_by_work*"
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutants"
MIN_SHARE = 0.85  # share of all mutants that the tests must detect
DETECTED = ("killed", "timeout", "segfault")


def copy_sources() -> None:
    """Copy the sources, so that they may change during the run."""
    shutil.rmtree(COPY, ignore_errors=True)
    for folder in ("src", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, COPY / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", COPY)
    code = "from sipower import _kernels; print(_kernels.__file__)"
    kernels = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    shutil.copy(kernels, COPY / "src" / "sipower")


def prepare() -> None:
    """Make pytest import the mutants, not the installed package."""
    os.chdir(COPY)
    os.environ["OMP_NUM_THREADS"] = "1"  # a forked process has no threads of its parent
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # halves the second that a mutant takes
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in repr(finder)]
    from _pytest.nodes import Node  # noqa: PLC0415 - after the environment is set

    if not hasattr(Node, "_nodeid"):  # mutmut 3.8 needs it, pytest 9.2 has removed it
        Node._nodeid = property(lambda self: self.nodeid)


def report() -> float:
    """Print counts of the mutants, write the survivors, and return the share of detected ones."""
    from mutmut.mutation.data import SourceFileMutationData  # noqa: PLC0415 - reads its folder
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # noqa: PLC0415
    from mutmut.stats import status_by_exit_code  # noqa: PLC0415
    from mutmut.utils.file_utils import walk_mutatable_files  # noqa: PLC0415

    every: Counter[str] = Counter()
    with open("survivors.txt", "w", encoding="utf-8") as survivors:
        for path in sorted(walk_mutatable_files()):
            data = SourceFileMutationData(path=path)
            data.load()
            statuses = {
                name: status_by_exit_code[code] for name, code in data.exit_code_by_key.items()
            }
            for name, status in statuses.items():
                if status not in (*DETECTED, "not checked"):
                    diff = get_diff_for_mutant(name, path=path)
                    survivors.write(f"# {name}: {status}\n{diff}\n")
            if statuses:
                print(path, dict(Counter(statuses.values())))
            every.update(statuses.values())
    detected = sum(every[status] for status in DETECTED)
    checked = every.total() - every["not checked"]
    print(f"{detected} of {checked} mutants detected; the others: {COPY / 'survivors.txt'}")
    return detected / max(checked, 1)


def main() -> None:
    """Copy the sources and run the mutants; fail if too few are detected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--children", type=int, default=os.cpu_count())
    options = parser.parse_args()
    copy_sources()
    prepare()
    from mutmut.__main__ import cli  # noqa: PLC0415 - reads its configuration where it is

    cli(["run", "--max-children", str(options.children), *options.names], standalone_mode=False)
    if report() < MIN_SHARE:
        raise SystemExit(f"Fewer than {MIN_SHARE:.0%} of the mutants were detected.")


if __name__ == "__main__":
    main()
