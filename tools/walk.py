# SPDX-License-Identifier: BSD-3-Clause
"""List the files and functions that five journeys execute, and the calls from the core up.

`python tools/walk.py` writes tools/walks.txt again. Every journey runs in a process of its own, in
which all modules are imported before the functions are recorded: what runs at import is not
counted. A nested function is its own, but lambdas and comprehensions belong to their function.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
OUT = ROOT / "tools" / "walks.txt"
# What a fit consists of: files and folders of src/sipower. Everything else is the shell.
CORE = (
    "_files.py", "base/", "data/formats.py", "statement.py", "kernels/", "store/", "data/", "loop/",
    "solvers/", "problems/", "theory/", "nmf/", "verification/",
)  # fmt: skip
HEADER = """\
The files of src/sipower and their functions that five journeys execute, and the calls from the core
(base, statement, kernels, store, data, loop, solvers, problems, theory, nmf, verification) up into
the shell, the rest. What runs at import is not counted. Written by: python tools/walk.py
"""
Call = tuple[str, str]  # file and function


# ---- the journeys ----------------------------------------------------------------------------


def prepare_fit() -> Callable[[], Any]:
    """Return a fit of a sparse array in memory."""
    from sipower import KLNMF  # noqa: PLC0415

    V = make_counts()
    return lambda: KLNMF(5, random_state=0, n_jobs=1).fit_transform(V)


def prepare_differential() -> Callable[[], Any]:
    """Return the differences of a model that is fitted already."""
    from sipower import KLNMF, differential  # noqa: PLC0415

    V = make_counts()
    model = KLNMF(5, random_state=0, n_jobs=1).fit(V)
    return lambda: differential(V, model)


def prepare_solve() -> Callable[[], Any]:
    """Return Algorithm 1 on PCA."""
    from sipower import SSciPi, Stop, solve  # noqa: PLC0415
    from sipower.problems import PCA  # noqa: PLC0415

    A = make_counts().toarray()
    return lambda: solve(PCA(A), SSciPi(), stop=Stop(1e-6), seed=0)


def prepare_command(*options: str) -> Callable[[], Any]:
    """Return `sipower fit` of a file, in this process."""
    import scipy.io  # noqa: PLC0415
    from typer.testing import CliRunner  # noqa: PLC0415

    from sipower.cli import app  # noqa: PLC0415

    scipy.io.mmwrite("counts.mtx", make_counts())

    def run() -> None:
        words = ["fit", "counts.mtx", "-k", "5", "--threads", "1", "--out", "run", *options]
        result = CliRunner().invoke(app, words)
        if result.exit_code != 0:
            raise RuntimeError(f"sipower fit exits with {result.exit_code}: {result.output}")

    return run


def make_counts() -> Any:
    """Return sparse counts of five topics."""
    from sipower.datasets import poisson_topics  # noqa: PLC0415

    return poisson_topics(400, 300, 5, seed=0)


JOURNEYS: dict[str, Callable[[], Callable[[], Any]]] = {
    "fit_transform": prepare_fit,
    "differential": prepare_differential,
    "solve(PCA, SSciPi)": prepare_solve,
    "sipower fit": prepare_command,
    "sipower fit --memory-limit": lambda: prepare_command("--memory-limit", "200MB"),
}


# ---- recording -------------------------------------------------------------------------------


class Walk:
    """The functions of the package that were called, and by which function of the package."""

    def __init__(self, source: Path) -> None:
        self.prefix = f"{source}{os.sep}"
        self.places: dict[CodeType, Call | None] = {}
        self.calls: set[tuple[Call | None, Call]] = set()

    def place(self, code: CodeType) -> Call | None:
        """Return the file and function of a code object, None for one of another package."""
        if code not in self.places:
            self.places[code] = self._place(code)
        return self.places[code]

    def _place(self, code: CodeType) -> Call | None:
        if not code.co_filename.startswith(self.prefix):
            return None
        name = code.co_qualname
        while name.endswith(">") and ".<locals>." in name:  # lambdas and comprehensions
            name = name.rpartition(".<locals>.")[0]
        if name.endswith(">"):  # a module, or a lambda in one
            return None
        return code.co_filename[len(self.prefix) :].replace(os.sep, "/"), name

    def record(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call; its caller is the nearest function of the package below it."""
        if event != "call":
            return
        callee = self.place(frame.f_code)
        if callee is None:
            return
        below = frame.f_back
        while below is not None and self.place(below.f_code) is None:
            below = below.f_back
        self.calls.add((None if below is None else self.place(below.f_code), callee))

    def __enter__(self) -> Walk:
        threading.setprofile(self.record)
        sys.setprofile(self.record)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


def is_core(file: str) -> bool:
    """Return whether a file of src/sipower belongs to the core."""
    return file.startswith(CORE)


def import_everything() -> Path:
    """Import every module of the package, so that none is imported later; return its folder."""
    package = import_module("sipower")
    for module in pkgutil.walk_packages(package.__path__, "sipower."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    return Path(str(package.__file__)).parent


def record_journey(name: str) -> str:
    """Run a journey in an empty folder, and return its section of the file."""
    source = import_everything()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SIPOWER_CACHE"] = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            journey = JOURNEYS[name]()
            with Walk(source) as walk:
                journey()
        os.chdir(ROOT)
    return describe_walk(name, walk.calls)


def describe_walk(name: str, calls: set[tuple[Call | None, Call]]) -> str:
    """Return counts, files with their functions, and calls from the core up into the shell."""
    executed: dict[str, set[str]] = {}
    for _, (file, function) in calls:
        executed.setdefault(file, set()).add(function)
    lines = [f"== {name}"]
    for title, wanted in (("core", True), ("shell", False)):
        files = sorted(file for file in executed if is_core(file) == wanted)
        count = sum(len(executed[file]) for file in files)
        lines.append(f"{title}: {len(files)} files, {count} functions")
        lines += [f"    {file}: {', '.join(sorted(executed[file]))}" for file in files]
    up = sorted(
        f"    {caller[0]}:{caller[1]} -> {callee[0]}:{callee[1]}"
        for caller, callee in calls
        if caller is not None and is_core(caller[0]) and not is_core(callee[0])
    )
    return "\n".join([*lines, f"calls from the core up into the shell: {len(up)}", *up]) + "\n"


def main() -> None:
    """Run every journey in a process of its own, and write the file."""
    if len(sys.argv) > 1:
        print(record_journey(sys.argv[1]), end="")
        return
    sections = []
    for name in JOURNEYS:
        command = [sys.executable, __file__, name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        sections.append(done.stdout)
    OUT.write_text("\n".join([HEADER, *sections]), encoding="utf-8")
    print("".join(f"{line}\n" for text in sections for line in text.splitlines()
                  if line.startswith(("==", "core", "shell", "calls"))), end="")  # fmt: skip


if __name__ == "__main__":
    main()
