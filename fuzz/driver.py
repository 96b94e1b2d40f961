# SPDX-License-Identifier: BSD-3-Clause
"""Run a target on many inputs in child processes, and report the inputs that make it fail.

A target is a function of one argument, a `random.Random` from which it draws its input. It returns
a word for the table of outcomes ("valid", "refused") and raises if a promise is broken:

    def target(source: random.Random) -> str: ...

    if __name__ == "__main__":
        driver.main(target)

    python fuzz/bindings.py --inputs 100000 --seed 0    # two children at a time
    python fuzz/bindings.py --seed 0 --only 4711        # one input, in this process
    python fuzz/readers.py --inputs 100000 --guided     # one process, guided by coverage (atheris)

Input number i of a seed does not depend on the inputs before it. If a child dies (signal,
exception, sanitizer, an input that takes longer than `--seconds`), its output is shown and another
child continues with the next input. `prepare` runs once in every child, for example to limit its
memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import io
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

Target = Callable[[random.Random], str]

INPUTS_PER_CHILD = 2000  # takes much longer than a fork
MAX_FAILURES = 20


class Failure(NamedTuple):
    """An input that broke a promise, how the child ended, and its output."""

    number: int
    ending: str
    output: str


class Outcome(NamedTuple):
    """The number of times that each word was returned, and the failures."""

    words: Counter[str]
    failures: list[Failure]


class BytesSource(random.Random):
    """A source that reads the bytes that atheris chooses, then zeros."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._stream = io.BytesIO(data)

    def getrandbits(self, k: int, /) -> int:
        """Return the next k bits."""
        size = (k + 7) // 8
        return int.from_bytes(self._stream.read(size).ljust(size, b"\0"), "little") >> (
            8 * size - k
        )

    def random(self) -> float:
        """Return a number from [0, 1)."""
        return self.getrandbits(53) * 2.0**-53


def make_source(seed: int, number: int) -> random.Random:
    """Return the source of random numbers of one input."""
    return random.Random(seed << 64 | number)


def do_nothing() -> None:
    """Do nothing, where no preparation is needed."""


def run(
    target: Target,
    inputs: int,
    seed: int = 0,
    jobs: int = 2,
    seconds: float = 60,
    prepare: Callable[[], None] = do_nothing,
    *,
    first: int = 0,
) -> Outcome:
    """Run the inputs first, ..., first + inputs - 1 of a seed in `jobs` parallel children."""
    outcome = Outcome(Counter(), [])
    end, size = first + inputs, max(min(INPUTS_PER_CHILD, -(-inputs // jobs)), 1)
    waiting = [range(at, min(at + size, end)) for at in range(first, end, size)][::-1]
    running: dict[int, tuple[range, Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        while running or waiting:
            while waiting and len(running) < jobs:
                numbers = waiting.pop()
                log = Path(folder, str(numbers.start))
                running[_start(target, seed, numbers, log, seconds, prepare)] = numbers, log
            child, status = os.wait()
            if child not in running:  # a child of the test that calls this
                continue
            numbers, log = running.pop(child)
            rest = _count_outcomes(numbers, log, os.waitstatus_to_exitcode(status), outcome)
            if rest and len(outcome.failures) < MAX_FAILURES:
                waiting.append(rest)
    return outcome


def _start(
    target: Target,
    seed: int,
    numbers: range,
    log: Path,
    seconds: float,
    prepare: Callable[[], None],
) -> int:
    """Fork a child that runs the inputs and logs the number and the word of each."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        errors = os.open(log.with_suffix(".errors"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        faulthandler.enable()
        prepare()
        with log.open("wb", buffering=0) as lines:
            for number in numbers:
                lines.write(b"%d" % number)
                faulthandler.dump_traceback_later(seconds, exit=True)
                lines.write(b" %s\n" % target(make_source(seed, number)).encode())
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)  # the child must not run the parent's exit handlers


def _count_outcomes(numbers: range, log: Path, code: int, outcome: Outcome) -> range:
    """Count the outcomes that a child has logged; return the inputs that are left."""
    finished = log.read_text(encoding="utf-8").split("\n")[:-1] if log.exists() else []
    outcome.words.update(line.split(" ", 1)[1] for line in finished)
    if code == 0:
        return range(0)
    number = numbers.start + len(finished)
    output = log.with_suffix(".errors").read_text(errors="replace").strip()
    ending = f"ended by signal {-code}" if code < 0 else f"ended with status {code}"
    outcome.failures.append(Failure(number, ending, output))
    return range(number + 1, numbers.stop)


def guide(target: Target, inputs: int, seed: int) -> None:
    """Let atheris choose inputs by their coverage of the Python code of sipower."""
    import atheris  # noqa: PLC0415 - only a fuzzing environment has it

    def run_input(data: bytes) -> None:
        target(BytesSource(data))

    for function in gc.get_objects():
        if isinstance(function, FunctionType) and str(function.__module__).startswith("sipower"):
            atheris.instrument_func(function)
    artifacts = f"-artifact_prefix={tempfile.gettempdir()}/"
    atheris.Setup([sys.argv[0], f"-runs={inputs}", f"-seed={seed + 1}", artifacts], run_input)
    atheris.Fuzz()


def main(target: Target, prepare: Callable[[], None] = do_nothing) -> None:
    """Run the command line; the exit status is 1 if an input broke a promise."""
    script = Path(sys.argv[0])
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="parallel children")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of an input")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input, in this process")
    parser.add_argument("--guided", action="store_true", help="atheris chooses the inputs")
    options = parser.parse_args()
    if options.only is not None:
        prepare()
        sys.stdout.write(target(make_source(options.seed, options.only)) + "\n")
        return
    if options.guided:
        prepare()
        guide(target, options.inputs, options.seed)
        return
    started = time.monotonic()
    outcome = run(target, options.inputs, options.seed, options.jobs, options.seconds, prepare)
    for word, count in sorted(outcome.words.items()):
        sys.stdout.write(f"{count:9,}  {word}\n")
    for failure in outcome.failures:
        sys.stdout.write(
            f"\nInput {failure.number}: {failure.ending}. Repeat it with\n"
            f"    python {script} --seed {options.seed} --only {failure.number}\n{failure.output}\n"
        )
    sys.stdout.write(
        f"{outcome.words.total():,} inputs kept their promise, {len(outcome.failures)} did not, "
        f"in {time.monotonic() - started:.0f} s.\n"
    )
    sys.exit(1 if outcome.failures else 0)
