# SPDX-License-Identifier: BSD-3-Clause
"""Try a target with many inputs, in child processes, and say which inputs broke it.

A target is a function of one argument, a `random.Random` out of which it makes its input. It
returns a word for the table of outcomes ("valid", "refused") and raises where a promise is broken:

    def target(source: random.Random) -> str: ...

    if __name__ == "__main__":
        driver.main(target)

    python fuzz/bindings.py --inputs 100000 --seed 0    # two children at a time
    python fuzz/bindings.py --seed 0 --only 4711        # one input, in this process
    python fuzz/readers.py --inputs 100000 --guided     # one process, steered by coverage (atheris)

Input number i of a seed is the same whatever was tried before it. A child that dies (signal,
exception, sanitizer, an input that takes longer than `--seconds`) costs that input alone: what it
said is shown, and another child goes on behind it. `prepare` runs once in every child, to limit
its memory for example.
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

CHUNK = 2000  # inputs of one child: a fork costs nothing beside them
MOST_FAILURES = 20  # nobody reads more


class Failure(NamedTuple):
    """Input that broke a promise, how the child ended and what it said."""

    number: int
    ended: str
    said: str


class Outcome(NamedTuple):
    """What came of all inputs: how often each word was returned, and the failures."""

    words: Counter[str]
    failures: list[Failure]


class FromBytes(random.Random):
    """A source that spends given bytes, then zeros: what atheris changes, the input follows."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._left = io.BytesIO(data)

    def getrandbits(self, k: int, /) -> int:
        """Return the next k bits."""
        size = (k + 7) // 8
        return int.from_bytes(self._left.read(size).ljust(size, b"\0"), "little") >> (8 * size - k)

    def random(self) -> float:
        """Return a number of [0, 1)."""
        return self.getrandbits(53) * 2.0**-53


def source_of(seed: int, number: int) -> random.Random:
    """Return the source of one input."""
    return random.Random(seed << 64 | number)


def nothing() -> None:
    """Prepare nothing."""


def run(
    target: Target,
    inputs: int,
    seed: int = 0,
    jobs: int = 2,
    seconds: float = 60,
    prepare: Callable[[], None] = nothing,
) -> Outcome:
    """Try the inputs 0, ..., inputs - 1 of a seed, `jobs` children at a time."""
    outcome = Outcome(Counter(), [])
    waiting = [range(at, min(at + CHUNK, inputs)) for at in range(0, inputs, CHUNK)][::-1]
    running: dict[int, tuple[range, Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        while running or waiting:
            while waiting and len(running) < jobs:
                numbers = waiting.pop()
                log = Path(folder, str(numbers.start))
                running[_start(target, seed, numbers, log, seconds, prepare)] = numbers, log
            child, status = os.wait()
            if child not in running:  # somebody else's, in the process of a test
                continue
            numbers, log = running.pop(child)
            left = _judge(numbers, log, os.waitstatus_to_exitcode(status), outcome)
            if left and len(outcome.failures) < MOST_FAILURES:
                waiting.append(left)
    return outcome


def _start(
    target: Target,
    seed: int,
    numbers: range,
    log: Path,
    seconds: float,
    prepare: Callable[[], None],
) -> int:
    """Fork a child that tries the numbers and notes each, then its word, in the log."""
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
        with log.open("wb", buffering=0) as notes:
            for number in numbers:
                notes.write(b"%d" % number)
                faulthandler.dump_traceback_later(seconds, exit=True)
                notes.write(b" %s\n" % target(source_of(seed, number)).encode())
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)  # nothing of the parent's may run a second time in the child


def _judge(numbers: range, log: Path, code: int, outcome: Outcome) -> range:
    """Count what a child that ended has noted; return the numbers it left."""
    tried = log.read_text().split("\n")[:-1] if log.exists() else []
    outcome.words.update(line.split(" ", 1)[1] for line in tried)
    if code == 0:
        return range(0)
    number = numbers.start + len(tried)
    said = log.with_suffix(".errors").read_text(errors="replace").strip()
    ended = f"ended by signal {-code}" if code < 0 else f"ended with status {code}"
    outcome.failures.append(Failure(number, ended, said))
    return range(number + 1, numbers.stop)


def guide(target: Target, inputs: int, seed: int) -> None:
    """Let atheris choose the bytes, by what they reach in the library's own Python code."""
    import atheris  # noqa: PLC0415 - only a fuzzing environment has it

    def one(data: bytes) -> None:
        target(FromBytes(data))

    for found in gc.get_objects():
        if isinstance(found, FunctionType) and str(found.__module__).startswith("sipower"):
            atheris.instrument_func(found)
    artifacts = f"-artifact_prefix={tempfile.gettempdir()}/"
    atheris.Setup([sys.argv[0], f"-runs={inputs}", f"-seed={seed + 1}", artifacts], one)
    atheris.Fuzz()


def main(target: Target, prepare: Callable[[], None] = nothing) -> None:
    """Do what the command line says; the exit status is 1 if an input broke a promise."""
    script = Path(sys.argv[0])
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="children at a time")
    parser.add_argument("--seconds", type=float, default=60, help="longest time of an input")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one input, in this process")
    parser.add_argument("--guided", action="store_true", help="atheris chooses the inputs")
    wanted = parser.parse_args()
    if wanted.only is not None:
        prepare()
        sys.stdout.write(target(source_of(wanted.seed, wanted.only)) + "\n")
        return
    if wanted.guided:
        prepare()
        guide(target, wanted.inputs, wanted.seed)
        return
    started = time.monotonic()
    outcome = run(target, wanted.inputs, wanted.seed, wanted.jobs, wanted.seconds, prepare)
    for word, count in sorted(outcome.words.items()):
        sys.stdout.write(f"{count:9,}  {word}\n")
    for failure in outcome.failures:
        sys.stdout.write(
            f"\nInput {failure.number}: {failure.ended}. Repeat it with\n"
            f"    python {script} --seed {wanted.seed} --only {failure.number}\n{failure.said}\n"
        )
    sys.stdout.write(
        f"{outcome.words.total():,} inputs kept their promise, {len(outcome.failures)} did not, "
        f"in {time.monotonic() - started:.0f} s.\n"
    )
    sys.exit(1 if outcome.failures else 0)
