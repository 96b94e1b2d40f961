# SPDX-License-Identifier: BSD-3-Clause
"""Digest what the library computes, prints and writes, and compare it with another commit.

    python tools/net.py                     run every case; fail if a public name has none
    python tools/net.py --compare COMMIT    run the cases of both versions here, name what differs
    python tools/net.py --only PATTERN      the cases whose name has the regular expression

The cases are those of tests/golden and of tools/net_cases.py: factors, traces, tables, run folders,
messages, help pages and signatures. Bits belong to a processor, a BLAS and versions of libraries:
nothing is stored, both versions run on this machine. The compared version runs the present cases,
but its own golden ones, which import inner modules; a case that fails there is named.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from net_parts import Flattener, Parts, compare_parts, digest_parts

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "net"
COMPILED = ("cpp", "CMakeLists.txt")  # what the compiled module is made of
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
# Removes what an editable installation has put before PYTHONPATH, in this process and its children.
SITE = """\
import sys
sys.meta_path[:] = [
    finder for finder in sys.meta_path
    if not type(finder).__module__.startswith(("_editable_", "__editable__"))
]
"""


@dataclass
class Digest:
    """What one version computes: the parts of every case, and which cases failed or are lacking."""

    parts: dict[str, Parts] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # case: first line of the error
    uncovered: list[str] = field(default_factory=list)  # public names without a case
    seconds: dict[str, float] = field(default_factory=dict)


# ---- running the cases of the imported version -----------------------------------------------


class Runner:
    """Runs cases, each in an empty folder, and collects their parts."""

    def __init__(self, folder: Path, only: str) -> None:
        self.folder, self.only, self.digest = folder, only, Digest()
        self.classes: set[type] = set()

    def run(self, name: str, work: Callable[[], Any]) -> None:
        """Run a case, and digest what it returns, warns of and writes."""
        if not re.search(self.only, name):
            return
        folder = self.folder / f"case{len(self.digest.seconds)}"
        folder.mkdir()
        os.chdir(folder)
        os.environ["SIPOWER_DATA"] = str(folder)  # data sets are absent everywhere
        os.environ["SIPOWER_CACHE"] = str(self.folder / f"cache-{folder.name}")
        flat, began = Flattener({str(folder): "HERE", str(self.folder): "FOLDER"}), time.monotonic()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                flat.add("", work())
                self._add_files(folder, flat)
            except Exception as error:
                text = next(iter(str(error).splitlines()), "")
                self.digest.failed[name] = f"{type(error).__name__}: {text}"
        self.digest.seconds[name] = time.monotonic() - began
        messages = {str(w.message) for w in caught if issubclass(w.category, UserWarning)}
        flat.add("warnings", sorted(messages))
        self.classes |= flat.classes
        self.digest.parts[name] = flat.parts
        os.chdir(self.folder)

    def _add_files(self, folder: Path, flat: Flattener) -> None:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not name.startswith("cache/") and path.suffix != ".lock":
                flat.add_file(path, name)


def digest_version(tree: Path, only: str) -> Digest:
    """Run all cases of the imported version; its golden cases are those of the folder `tree`."""
    import describe  # noqa: PLC0415 - they import the version
    import net_cases  # noqa: PLC0415
    from net_library import Library  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as name:
        runner = Runner(Path(name), only)
        net_cases.write_inputs(runner.folder / "inputs")
        library = Library()
        runner.run("signatures", describe.describe_api)
        for words in describe.list_commands():
            page = f"help of sipower {words}".rstrip()
            runner.run(page, lambda words=words: {"page": describe.render_help(words)})
        for title, case in net_cases.CASES.items():
            runner.run(title, lambda case=case: case(library))
        run_golden_cases(tree, library, runner)
        os.chdir(tree)
    if not only:
        runner.digest.uncovered = library.list_uncovered(runner.classes)
    return runner.digest


def run_golden_cases(tree: Path, library: Any, runner: Runner) -> None:
    """Run the golden cases with their curves, and the factors and traces behind these."""
    try:
        golden = load_module("golden_cases", tree / "tests" / "golden" / "cases.py")
    except Exception as error:
        runner.digest.failed["golden"] = f"{type(error).__name__}: {error}"
        return
    library.used |= {id(value) for value in vars(golden).values()}
    results: list[Any] = []

    def record(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **settings: Any) -> Any:
            results.append(make(*arguments, **settings))
            return results[-1]

        return call

    golden.solve, golden.KLNMF = record(golden.solve), record(golden.KLNMF)

    def run(case: Callable[[Any], Any], data: Any) -> dict[str, Any]:
        results.clear()
        curve = case(data)
        found = {str(place): getattr(result, "x", result) for place, result in enumerate(results)}
        traces = {f"{place}.trace": getattr(result, "trace", None)
                  for place, result in enumerate(results)}  # fmt: skip
        return {"curve": curve} | found | traces

    for data, make in golden.SETS.items():
        for name, case in golden.CASES.items():
            runner.run(f"golden {data}, {name}", lambda case=case, make=make: run(case, make()))


def load_module(name: str, path: Path) -> Any:
    """Import a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # for its data classes
    spec.loader.exec_module(module)
    return module


# ---- another version -------------------------------------------------------------------------


def git(*words: str, folder: Path = ROOT) -> str:
    """Return what a command of git prints."""
    done = subprocess.run(
        ["git", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


@contextmanager
def check_out(commit: str) -> Any:
    """Check a commit out in a folder of its own, with its compiled module."""
    sha = git("rev-parse", "--verify", f"{commit}^{{commit}}")
    folder = BUILD / sha[:12]
    remove_worktree(folder)
    git("worktree", "add", "--detach", "--quiet", str(folder), sha)
    try:
        library = find_compiled(folder)
        shutil.copy2(library, folder / "src" / "sipower" / library.name)
        yield folder
    finally:
        remove_worktree(folder)


def remove_worktree(folder: Path) -> None:
    """Remove the folder of a commit, also one that an ended process has left."""
    shutil.rmtree(folder, ignore_errors=True)
    git("worktree", "prune")


def find_compiled(tree: Path) -> Path:
    """Return the compiled module of a tree: this environment's, one built before, or a new one."""
    if hash_sources(tree) == hash_sources(ROOT):
        return Path(str(importlib.import_module("sipower._kernels").__file__))
    place = BUILD / f"kernels-{hash_sources(tree)}"
    if not place.is_dir():
        print("building the compiled module of the other version ...", flush=True)
        with tempfile.TemporaryDirectory() as name:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target",
                       name, str(tree)]  # fmt: skip
            if all(map(importlib.util.find_spec, ("scikit_build_core", "nanobind"))):
                command.append("--no-build-isolation")
            subprocess.run(command, check=True)
            (built,) = (Path(name) / "sipower").glob("_kernels.*.so")
            place.mkdir()
            shutil.copy2(built, place / built.name)
    (built,) = place.iterdir()
    return built


def hash_sources(tree: Path) -> str:
    """Return a hash of everything that the compiled module is made of."""
    digest = hashlib.sha256()
    for root in COMPILED:
        path = tree / root
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(f"{file.relative_to(tree)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def start(tree: Path, out: Path, only: str) -> subprocess.Popen[bytes]:
    """Start a process that digests the version in a folder; it writes the digest to a file."""
    environment = os.environ | ONE_THREAD
    if tree != ROOT:
        site = out.with_suffix(".site")
        site.mkdir()
        (site / "sitecustomize.py").write_text(SITE, encoding="utf-8")
        environment["PYTHONPATH"] = os.pathsep.join([str(site), str(tree / "src")])
    command = [sys.executable, __file__, "--digest", str(out), "--tree", str(tree), "--only", only]
    return subprocess.Popen(command, env=environment)


def write_digest(out: Path, tree: Path, only: str) -> None:
    """Digest the imported version, which must be that of the folder, and write the digest."""
    package = importlib.import_module("sipower")
    if tree != ROOT and not Path(str(package.__file__)).is_relative_to(tree):
        sys.exit(f"the library is imported from {package.__file__}, not from {tree}")
    out.write_bytes(pickle.dumps(digest_version(tree, only)))


def read_digest(process: subprocess.Popen[bytes], out: Path) -> Digest:
    """Wait for a process, and return what it has written."""
    if process.wait() != 0:
        sys.exit(f"the cases could not be run: the process ended with {process.returncode}")
    digest = pickle.loads(out.read_bytes())
    assert isinstance(digest, Digest)
    return digest


# ---- results ---------------------------------------------------------------------------------


def compare(before: Digest, after: Digest) -> list[str]:
    """Return the lines that name every difference between two versions, by case and part."""
    lines = []
    for name in [*after.parts, *(name for name in before.parts if name not in after.parts)]:
        if name in before.failed and name not in after.failed:
            differences = [f"fails in the other version: {before.failed[name]}"]
        elif name not in before.parts or name not in after.parts:
            differences = ["only in this version" if name in after.parts else "gone"]
        else:
            differences = compare_parts(before.parts[name], after.parts[name])
        if differences:
            lines += [name, *(f"    {difference}" for difference in differences)]
    return lines


def print_problems(digest: Digest) -> int:
    """Print the cases of this version that fail and the names that lack a case; return how many."""
    for name, error in digest.failed.items():
        print(f"{name} fails: {error}")
    for name in digest.uncovered:
        print(f"{name} has no case: add one to tools/net_cases.py.")
    return len(digest.failed) + len(digest.uncovered)


def print_summary(digest: Digest, began: float, *, slowest: int) -> None:
    """Print how much was digested, the hash of all of it, and the cases that took longest."""
    parts = sum(map(len, digest.parts.values()))
    everything = digest_parts({name: digest_parts(found) for name, found in digest.parts.items()})
    seconds = time.monotonic() - began
    print(f"{len(digest.parts)} cases, {parts} parts, {seconds:.0f} s; digest {everything}")
    for name in sorted(digest.seconds, key=digest.seconds.__getitem__)[::-1][:slowest]:
        print(f"    {digest.seconds[name]:6.1f} s  {name}")


def main() -> None:
    """Digest this version, and compare it with another one if asked to."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--compare", metavar="COMMIT", help="the version to compare with")
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="run the cases whose name has this pattern"
    )
    parser.add_argument("--slowest", type=int, default=0, help="print so many cases with times")
    parser.add_argument("--digest", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.digest is not None:
        write_digest(options.digest, options.tree, options.only)
        return
    began = time.monotonic()
    BUILD.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "this"
        process = start(ROOT, out, options.only)
        if options.compare is None:
            digest = read_digest(process, out)
        else:
            with check_out(options.compare) as tree:
                other = Path(name) / "other"
                before = read_digest(start(tree, other, options.only), other)
                digest = read_digest(process, out)
            lines = compare(before, digest)
    print_summary(digest, began, slowest=options.slowest)
    problems = print_problems(digest)
    if options.compare is not None:
        print("\n".join(lines) or f"nothing differs from {options.compare}")
    sys.exit(bool(problems or lines))


if __name__ == "__main__":
    main()
