# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests of the kernels against builds with sanitizers.

    python tools/sanitize.py                            # what `make sanitize` does
    python tools/sanitize.py address --inputs 20000     # one build, its bindings fuzzed longer

`address` detects undefined behaviour as well, `thread` detects races, and `bounds` detects indices
so far outside of an array that they reach valid memory again. Each is built into
build/sanitize/NAME, a separate environment that uses the libraries of the running one. First,
deliberate faults must be reported; then, tests and fuzzed bindings must run without a report.
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
TESTS += [
    "io/test_entry_lines.py",
    "store/test_stored.py",
    "fuzz/test_bindings.py",
    "fuzz/test_shapes.py",
]
TESTS += ["identities/test_algorithm_1.py", "identities/test_algorithm_1_on_kl.py"]
TESTS += ["identities/test_sampled_solutions.py"]
LEFT_OUT = [
    # These limit their address space, of which a sanitizer needs 16 terabytes.
    "store/test_stored.py::test_data_larger_than_the_memory_of_the_process_are_fitted",
    "store/test_stored.py::test_rows_alone_serve_the_rules_that_need_sums",
    "store/test_stored.py::test_what_a_store_tells_is_what_memory_tells",
    "store/test_stored.py::test_files_travel_to_other_processes",
    "store/test_stored.py::test_an_h5ad_file_that_is_not_canonical_is_sent_to_convert",
    # This script runs it with more inputs.
    "fuzz/test_bindings.py::test_fuzzed_calls_are_refused_or_answered",
]


class Build(NamedTuple):
    """A build: its libraries and options, and the faults that it must report, with their words."""

    libraries: tuple[str, ...]
    options: str
    faults: dict[str, str]
    levels: tuple[str, ...] = ("x86-64-v3",)
    fuzzed: bool = True


BUILDS = {
    "address": Build(
        (
            "libasan.so",
            "libstdc++.so",
        ),  # the second, so that the first can intercept its exceptions
        "detect_leaks=0",  # the interpreter does not free all memory at its end
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
        # Python and its libraries are not instrumented: only the kernels are judged.
        "ignore_noninstrumented_modules=1:die_after_fork=0",
        {"race": "data race"},
        fuzzed=False,  # calls from one thread cannot race
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


class Environment:
    """The environment of a build, and the reports in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder, self.build = name, folder, BUILDS[name]
        where = {"base": str(folder), "platbase": str(folder)}
        self.site = Path(sysconfig.get_path("platlib", "venv", where))
        self.faults = self.site / "sipower" / "libfaults.so"

    def build_package(self) -> None:
        """Build the package with these kernels, and delete old reports."""
        for report in self.folder.glob("report.*"):
            report.unlink()
        venv.create(self.folder, symlinks=True)
        (self.site / "libraries.pth").write_text(sysconfig.get_path("platlib") + "\n")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        command += ["--target", str(self.site), "-C", f"build-dir={self.folder / 'build'}"]
        command += ["-C", "install.strip=false"]  # reports then name functions
        command += ["-C", f"cmake.define.SIPOWER_SANITIZE={self.name}", str(ROOT)]
        subprocess.run(command, check=True)

    def command(self, *words: str) -> list[str]:
        """Return a command for the Python of this environment."""
        return [str(self.folder / "bin" / "python"), *words]

    def variables(self, level: str, options: str) -> dict[str, str]:
        """Return the environment variables of a run with this build."""
        sanitizers = dict.fromkeys(("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"), options)
        preload = " ".join(library_path(name) for name in self.build.libraries)
        more = {"LD_PRELOAD": preload, "PYTHONMALLOC": "malloc", "SIPOWER_ISA": level}
        return os.environ | sanitizers | more

    def check_faults(self) -> None:
        """Fail unless every deliberate fault is reported with its words."""
        variables = self.variables(self.build.levels[0], self.build.options)
        for fault, words in self.build.faults.items():
            code = f"import ctypes; ctypes.CDLL({str(self.faults)!r}).{fault}()"
            command = self.command("-c", code)
            process = subprocess.run(command, env=variables, check=False, capture_output=True)
            output = process.stderr.decode(errors="replace")
            if process.returncode == 0 or words not in output:
                sys.exit(f"{self.name}: the deliberate fault {fault} is not reported.\n{output}")

    def check_tests(self, inputs: int) -> None:
        """Fail if a test fails or anything is reported."""
        tests = ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
        tests += [f"tests/{test}" for test in TESTS]
        tests += [f"--deselect=tests/{test}" for test in LEFT_OUT]
        runs = [tests, ["fuzz/bindings.py", f"--inputs={inputs}"]][: 2 if self.build.fuzzed else 1]
        for level in self.build.levels:
            # Reports go to files, because pytest captures the output of a test.
            options = f"{self.build.options}:log_path={self.folder / 'report'}"
            for run in runs:
                command, variables = self.command(*run), self.variables(level, options)
                status = subprocess.run(command, env=variables, cwd=ROOT, check=False).returncode
                reports = [
                    file.read_text(errors="replace") for file in self.folder.glob("report.*")
                ]
                if status or reports:
                    sys.exit(
                        "\n".join(
                            [*reports, f"{self.name}, {level}: {run} ended with status {status}."]
                        )
                    )


def library_path(name: str) -> str:
    """Return the path of a library of the compiler."""
    process = subprocess.run(
        ["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    return process.stdout.strip()


def main() -> None:
    """Build and check what the command line names, or everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs="*", help=f"some of {', '.join(BUILDS)}; all by default")
    parser.add_argument("--inputs", type=int, default=5000, help="fuzzed calls of each build")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "sanitize")
    options = parser.parse_args()
    for name in options.builds or BUILDS:
        environment = Environment(name, options.folder.absolute() / name)
        environment.build_package()
        environment.check_faults()
        environment.check_tests(options.inputs)
        sys.stdout.write(
            f"{name}: {len(BUILDS[name].faults)} deliberate faults reported, no others.\n"
        )


if __name__ == "__main__":
    main()
