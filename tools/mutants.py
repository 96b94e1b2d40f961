# SPDX-License-Identifier: BSD-3-Clause
"""Mutation testing: mutmut changes the code in every small way, and a quick test must notice.

What is changed and which tests run is said in pyproject.toml under [tool.mutmut]. The run takes
place on a copy in build/mutants, where `mutmut show NAME` and `mutmut browse` work afterwards;
survivors.txt there holds the change of every mutant that no test noticed.

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
WORKPLACE = ROOT / "build" / "mutants"
ENOUGH = 0.85  # of all mutants, the share that the tests must notice
NOTICED = ("killed", "timeout", "segfault")


def copy_sources() -> None:
    """A fresh copy: what happens to the originals meanwhile does not matter."""
    shutil.rmtree(WORKPLACE, ignore_errors=True)
    for folder in ("src", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / folder, WORKPLACE / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", WORKPLACE)
    where = "from sipower import _kernels; print(_kernels.__file__)"
    kernels = subprocess.check_output([sys.executable, "-c", where], text=True).strip()
    shutil.copy(kernels, WORKPLACE / "src" / "sipower")


def prepare() -> None:
    """Let pytest meet the mutants, not the installed package."""
    os.chdir(WORKPLACE)
    os.environ["OMP_NUM_THREADS"] = "1"  # a forked process has no threads of its parent
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # a mutant takes half a second, not one
    sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in repr(finder)]
    from _pytest.nodes import Node  # noqa: PLC0415 - after the environment is set

    if not hasattr(Node, "_nodeid"):  # mutmut 3.8 reads it, pytest 9.2 has it no more
        Node._nodeid = property(lambda self: self.nodeid)


def report() -> float:
    """Write and print what became of the mutants; return the share that was noticed."""
    from mutmut.mutation.data import SourceFileMutationData  # noqa: PLC0415 - reads its folder
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # noqa: PLC0415
    from mutmut.stats import status_by_exit_code  # noqa: PLC0415
    from mutmut.utils.file_utils import walk_mutatable_files  # noqa: PLC0415

    every: Counter[str] = Counter()
    with open("survivors.txt", "w", encoding="utf-8") as survivors:
        for path in sorted(walk_mutatable_files()):
            data = SourceFileMutationData(path=path)
            data.load()
            found = {
                name: status_by_exit_code[code] for name, code in data.exit_code_by_key.items()
            }
            for name, status in found.items():
                if status not in (*NOTICED, "not checked"):
                    diff = get_diff_for_mutant(name, path=path)
                    survivors.write(f"# {name}: {status}\n{diff}\n")
            if found:
                print(path, dict(Counter(found.values())))
            every.update(found.values())
    noticed = sum(every[status] for status in NOTICED)
    checked = every.total() - every["not checked"]
    print(f"{noticed} of {checked} mutants noticed; the others: {WORKPLACE / 'survivors.txt'}")
    return noticed / max(checked, 1)


def main() -> None:
    """Copy, run, report; fail if too few mutants were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--children", type=int, default=os.cpu_count())
    options = parser.parse_args()
    copy_sources()
    prepare()
    from mutmut.__main__ import cli  # noqa: PLC0415 - reads its configuration where it is

    cli(["run", "--max-children", str(options.children), *options.names], standalone_mode=False)
    if report() < ENOUGH:
        raise SystemExit(f"Fewer than {ENOUGH:.0%} of the mutants were noticed.")


if __name__ == "__main__":
    main()
