# SPDX-License-Identifier: BSD-3-Clause
"""`sipower info`: show the installed versions and the processor."""

import os

from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.options import Json
from sipower.datasets import CATALOGUE, is_present
from sipower.kernels import count_threads, instruction_set
from sipower.results.provenance import optional_packages, provenance


@command("nothing is saved")
def info(as_json: Json = False) -> None:
    """Show versions, processor, threads, optional packages and data sets for a bug report."""
    console, facts = Console(as_json), provenance()
    packages = optional_packages()
    threads, present = count_threads(None), [name for name in CATALOGUE if is_present(name)]
    console.event("info", **facts, packages=packages, threads=threads,
                  instruction_set=instruction_set(), datasets=present)  # fmt: skip
    console.say(f"sipower {facts['versions']['sipower']} ({facts['commit']})")
    console.say(f"processor: {facts['cpu']}; kernels for {instruction_set()}; {threads} threads")
    for name, version in (facts["versions"] | packages).items():
        if name != "sipower":
            console.say(f"  {name:14} {version or 'not installed'}")
    console.say(f"data sets: {', '.join(present)}")
    console.say(f"SIPOWER_DATA: {os.environ.get('SIPOWER_DATA', 'not set')}")
