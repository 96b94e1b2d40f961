# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests of the kernels against builds of them that watch themselves.

    python tools/sanitize.py                            # what `make sanitize` does
    python tools/sanitize.py address --inputs 20000     # one build, its bindings fuzzed longer

`address` sees undefined behaviour as well, `thread` sees races, `bounds` an index that leaves its
array so far behind that it meets valid memory again. Each is built into build/sanitize/NAME, an
environment of its own that borrows the libraries of the running one. Faults on purpose come first,
and must be reported; then tests and fuzzed bindings, of which nothing may be.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TESTS = ["kernels/test_doors.py", "kernels/test_threads.py", "kernels/test_random.py"]
TESTS += ["store/test_stored.py", "fuzz/test_bindings.py", "fuzz/test_shapes.py"]
TESTS += ["identities/test_algorithm_1.py", "identities/test_algorithm_1_on_kl.py"]
TESTS += ["identities/test_sampled_solutions.py"]
LEFT_OUT = [
    # They, or the process that reads names of HDF5, limit their address space, of which a sanitizer
    # needs 16 terabytes.
    "store/test_stored.py::test_data_larger_than_the_memory_of_the_process_are_fitted",
    "store/test_stored.py::test_rows_alone_serve_the_rules_that_need_sums",
    "store/test_stored.py::test_what_a_store_tells_is_what_memory_tells",
    "store/test_stored.py::test_files_travel_to_other_processes",
    "store/test_stored.py::test_an_h5ad_file_that_is_not_canonical_is_sent_to_convert",
    # That is done at greater length here.
    "fuzz/test_bindings.py::test_fuzzed_calls_are_refused_or_answered",
]


class Build(NamedTuple):
    """What a build needs to run, and the faults that it must report with which words."""

    libraries: tuple[str, ...]
    options: str
    faults: dict[str, str]
    levels: tuple[str, ...] = ("x86-64-v3",)
    fuzzed: bool = True


BUILDS = {
    "address": Build(
        ("libasan.so", "libstdc++.so"),  # the second so that the first finds its exceptions
        "detect_leaks=0",  # an interpreter that ends leaves much behind
        {
            "heap_overflow": "heap-buffer-overflow",
            "use_after_free": "heap-use-after-free",
            "stack_overflow": "index 4 out of bounds",
            "signed_overflow": "signed integer overflow",
            "shift_too_far": "shift exponent 40 is too large",
            "cast_of_nan": "nan is outside the range",
            "misaligned": "misaligned address",
        },
        levels=("baseline", "x86-64-v3"),
    ),
    "thread": Build(
        ("libtsan.so", "libstdc++.so"),
        # Python and its libraries were not compiled for it: only what the kernels do is judged.
        "ignore_noninstrumented_modules=1:die_after_fork=0",
        {"race": "data race"},
        fuzzed=False,  # calls of one thread cannot race
    ),
    "bounds": Build(
        (),
        "",
        {
            "beyond_a_buffer": "an index of 4 elements is 4",
            "beyond_a_vector": "out-of-bounds index 4",
            "beyond_the_columns": "an index of 7 elements is 7",
        },
    ),
}


class Place:
    """Environment of a build, and what has been reported in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.build = name, folder, BUILDS[name]
        where = {"base": str(folder), "platbase": str(folder)}
        self.site = Path(sysconfig.get_path("platlib", "venv", where))
        self.faults = self.site / "sipower" / "libfaults.so"

    def make(self) -> None:
        """Build the package with the kernels of this kind, and forget what was reported."""
        for report in self.folder.glob("report.*"):
            report.unlink()
        venv.create(self.folder, symlinks=True)
        (self.site / "libraries.pth").write_text(sysconfig.get_path("platlib") + "\n")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        command += ["--target", str(self.site), "-C", f"build-dir={self.folder / 'build'}"]
        command += ["-C", "install.strip=false"]  # reports name functions
        command += ["-C", f"cmake.define.SIPOWER_SANITIZE={self.name}", str(ROOT)]
        subprocess.run(command, check=True)

    def command(self, *words: str) -> list[str]:
        """Return the words behind the Python of this environment."""
        return [str(self.folder / "bin" / "python"), *words]

    def environment(self, level: str, options: str) -> dict[str, str]:
        """Return the variables under which the build watches."""
        watched = dict.fromkeys(("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"), options)
        preload = " ".join(library(name) for name in self.build.libraries)
        more = {"LD_PRELOAD": preload, "PYTHONMALLOC": "malloc", "SIPOWER_ISA": level}
        return os.environ | watched | more

    def check_faults(self) -> None:
        """Fail unless each fault on purpose is reported for what it is."""
        variables = self.environment(self.build.levels[0], self.build.options)
        for fault, words in self.build.faults.items():
            code = f"import ctypes; ctypes.CDLL({str(self.faults)!r}).{fault}()"
            command = self.command("-c", code)
            ended = subprocess.run(command, env=variables, check=False, capture_output=True)
            said = ended.stderr.decode(errors="replace")
            if ended.returncode == 0 or words not in said:
                sys.exit(f"{self.name}: the fault {fault} is not seen.\n{said}")

    def check(self, inputs: int) -> None:
        """Fail where a test does, or where anything is reported."""
        tests = ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
        tests += [f"tests/{test}" for test in TESTS]
        tests += [f"--deselect=tests/{test}" for test in LEFT_OUT]
        runs = [tests, ["fuzz/bindings.py", f"--inputs={inputs}"]][: 2 if self.build.fuzzed else 1]
        for level in self.build.levels:
            # In files, for pytest keeps what a test says to itself.
            options = f"{self.build.options}:log_path={self.folder / 'report'}"
            for run in runs:
                command, variables = self.command(*run), self.environment(level, options)
                status = subprocess.run(command, env=variables, cwd=ROOT, check=False).returncode
                reports = [
                    file.read_text(errors="replace") for file in self.folder.glob("report.*")
                ]
                if status or reports:
                    sys.exit("\n".join([*reports, f"{self.name}, {level}: {run} gave {status}."]))


def library(name: str) -> str:
    """Return the path of a library of the compiler."""
    found = subprocess.run(
        ["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def main() -> None:
    """Build, prove and check what the command line names, or everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="*", help=f"some of {', '.join(BUILDS)}; all without")
    parser.add_argument("--inputs", type=int, default=5000, help="fuzzed calls of each build")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "sanitize")
    wanted = parser.parse_args()
    for name in wanted.builds or BUILDS:
        place = Place(name, wanted.folder.absolute() / name)
        place.make()
        place.check_faults()
        place.check(wanted.inputs)
        sys.stdout.write(f"{name}: {len(BUILDS[name].faults)} faults on purpose seen, no other.\n")


if __name__ == "__main__":
    main()
