# SPDX-License-Identifier: BSD-3-Clause
"""`sipower convert`: convert a file of any size to a store that can be fitted from disk."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sipower import io
from sipower.cli import options
from sipower.cli.application import command
from sipower.cli.console import Console, name_options
from sipower.cli.progress import ConversionProgress
from sipower.store import read_layout

_OUT = "Folder to create, such as x.sipower."
_ROWS = "Leave out the transpose: half the disk space, for rules that need only sums."


@command("nothing is saved")
def convert(
    data: options.InputOptions,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="STORE", help=_OUT)],
    rows_only: Annotated[bool, typer.Option("--rows-only", help=_ROWS)] = False,
    memory_limit: Annotated[str, typer.Option(help="Memory to use, such as 512MB.")] = "512MB",
    force: Annotated[bool, typer.Option("--force", help="Replace an older store.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a file of counts as a store on disk, which may be larger than memory."""
    console, started = Console(as_json), time.monotonic()
    settings: dict[str, Any] = data.settings() | {"rows_only": rows_only, "force": force}
    source = data.source
    with ConversionProgress(console, source) as progress:
        remarks = io.convert(source, out, memory_limit=memory_limit, on_block=progress, **settings)
    remarks = tuple(map(name_options, remarks))
    for remark in remarks:
        console.say(remark)
    store, seconds = read_layout(out), time.monotonic() - started
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    console.event(
        "done", store=str(out), shape=list(store.shape), nonzeros=store.nonzeros,
        total=store.total, sha256=store.sha256, orientations=list(store.orientations),
        bytes=size, seconds=round(seconds, 3), remarks=list(remarks),
    )  # fmt: skip
    rows, columns = store.shape
    console.say(
        f"wrote {out}/: {rows:,} samples x {columns:,} features, {store.nonzeros:,} nonzeros, "
        f"{size / 1e6:,.1f} MB, {seconds:.1f} s"
    )
