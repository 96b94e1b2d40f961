# SPDX-License-Identifier: BSD-3-Clause
"""`sipower datasets`: list the data sets and compare them with the paper's Table 1."""

from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.datasets import CATALOGUE, is_present


@command("nothing is saved")
def datasets() -> None:
    """List the data sets and compare them with the paper's Table 1."""
    console = Console()
    console.table(
        ("name", "here", "rows x columns", "nonzeros", "zeros", "the paper's Table 1"),
        (
            (name, "yes" if is_present(name) else f"no: {entry.owner}", *entry.facts())
            for name, entry in CATALOGUE.items()
        ),
    )
    for name, entry in CATALOGUE.items():
        if entry.remark:
            console.say(f"{name}: {entry.remark}.")
    console.say("Files are read from the folder $SIPOWER_DATA; see sipower.datasets.load.")
