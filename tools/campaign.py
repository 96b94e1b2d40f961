# SPDX-License-Identifier: BSD-3-Clause
"""The campaign: generated fits and fuzzed inputs by the hundred thousand, which can be interrupted.

python tools/campaign.py                        # 100,000 fits and 1,000,000 inputs
python tools/campaign.py --seconds 600          # as many as ten minutes allow; the rest later
python tools/campaign.py --fits 5000 --inputs 0

Progress and failures are kept in a folder, build/campaign if no other is given:

==============  ================================================================================
progress.json   the seed and, for each target, how many inputs are done, how often each outcome
                occurred, and the seconds that they took
failures.jsonl  one failure a line: the command that repeats it, how it ended, and its output
==============  ================================================================================

Called again, the command continues where it stopped. Remove the folder to begin again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "fuzz"), str(ROOT / "tests")]

import bindings  # noqa: E402 - the line above makes these imports possible
import driver  # noqa: E402
import fits  # noqa: E402
import readers  # noqa: E402
from kinds import kinds  # noqa: E402

INPUTS_AT_ONCE = {"fits": 1000, "bindings": 20_000, "readers": 8000}
READ_SHARE = 0.25  # of the fuzzed inputs; the others are arguments of the bindings
SECONDS_PER_INPUT = 60.0  # an input that takes longer hangs
driver.MAX_FAILURES = sys.maxsize  # every input runs, whatever the others did


@dataclass
class Part:
    """The progress of one target."""

    done: int = 0
    failures: int = 0
    seconds: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict)


class Campaign:
    """The inputs of all targets, and how far they have come."""

    def __init__(self, folder: Path, seed: int, jobs: int) -> None:
        self.folder, self.seed, self.jobs = folder, seed, jobs
        self.parts = {name: Part() for name in INPUTS_AT_ONCE}
        folder.mkdir(parents=True, exist_ok=True)
        self._load()

    @property
    def _progress(self) -> Path:
        return self.folder / "progress.json"

    def _load(self) -> None:
        if not self._progress.exists():
            return
        state = json.loads(self._progress.read_text())
        if state["seed"] != self.seed:
            sys.exit(
                f"{self.folder} holds a campaign with the seed {state['seed']}, got {self.seed}: "
                "use that seed or another --folder."
            )
        self.parts |= {name: Part(**part) for name, part in state["parts"].items()}

    def _save(self) -> None:
        state = {"seed": self.seed, "parts": {n: vars(part) for n, part in self.parts.items()}}
        temporary = self._progress.with_suffix(".new")
        temporary.write_text(json.dumps(state, indent=1, sort_keys=True))
        temporary.replace(self._progress)

    def advance(self, name: str, target: driver.Target, prepare: Any, total: int) -> None:
        """Run the next inputs of a target, of which there are `total`."""
        part, started = self.parts[name], time.monotonic()
        count = min(INPUTS_AT_ONCE[name], total - part.done)
        outcome = driver.run(
            target, count, self.seed, self.jobs, SECONDS_PER_INPUT, prepare, first=part.done
        )
        with (self.folder / "failures.jsonl").open("a") as file:
            for failure in outcome.failures:
                repeat = f"python fuzz/{name}.py --seed {self.seed} --only {failure.number}"
                file.write(json.dumps({"repeat": repeat, **failure._asdict()}) + "\n")
        part.done += count
        part.failures += len(outcome.failures)
        part.seconds += time.monotonic() - started
        part.outcomes = dict(Counter(part.outcomes) + outcome.words)
        self._save()

    def describe(self, totals: dict[str, int]) -> str:
        """Return one line for each target."""
        return "".join(
            f"{name:9} {part.done:>9,} of {totals[name]:>9,}, {part.failures} failures, "
            f"{part.done / max(part.seconds, 1e-9):,.0f} per second\n"
            for name, part in self.parts.items()
        )


def run(campaign: Campaign, totals: dict[str, int], seconds: float) -> None:
    """Run all targets in turn until they are done or the time is over."""
    in_memory = Path("/dev/shm")
    kinds()  # once for all children
    ends = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir=in_memory if in_memory.is_dir() else None) as place:
        targets: dict[str, tuple[driver.Target, Callable[[], None]]] = {
            "fits": (fits.target, driver.do_nothing),
            "bindings": (bindings.target, bindings.prepare),
            "readers": (readers.ReaderTarget(Path(place)), readers.limit_memory),
        }
        while time.monotonic() < ends:
            left = {n: 1 - campaign.parts[n].done / total for n, total in totals.items() if total}
            name = max(left, key=lambda n: left[n], default="")
            if not name or left[name] <= 0:
                return
            campaign.advance(name, *targets[name], totals[name])
            sys.stdout.write(campaign.describe(totals) + "\n")
            sys.stdout.flush()


def main() -> None:
    """Run the command line; the exit status is 1 if an input broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=100_000)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="calls and files")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "campaign")
    options = parser.parse_args()
    files = round(options.inputs * READ_SHARE)
    totals = {"fits": options.fits, "bindings": options.inputs - files, "readers": files}
    campaign = Campaign(options.folder, options.seed, options.jobs)
    run(campaign, totals, options.seconds)
    failures = sum(part.failures for part in campaign.parts.values())
    if failures:
        sys.stdout.write(f"{failures} failures: see {options.folder / 'failures.jsonl'}.\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
