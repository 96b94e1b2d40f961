# SPDX-License-Identifier: BSD-3-Clause
"""`sipower convert`: a file of any size becomes a store that is fitted from disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from sipower import io
from sipower.cli import options
from sipower.cli.common import Speaker, app, reported
from sipower.cli.progress import LINE_EVERY
from sipower.store import read_layout

__all__ = ["convert"]


@app.command()
def convert(
    source: options.Input,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="STORE", help="Folder to make, x.sipower.")
    ],
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Half of the disk, for rules that need sums alone.")
    ] = False,
    memory_limit: Annotated[str, typer.Option(help="Memory to use: 512MB, 2GiB.")] = "512MB",
    force: Annotated[bool, typer.Option("--force", help="Replace an older store.")] = False,
    transpose: options.Transpose = False,
    layout: options.Layout = None,
    layer: options.Layer = None,
    as_json: options.Json = False,
) -> None:
    """Write counts, however many, as a store on disk that need not fit into memory."""
    speaker, started = Speaker(as_json), time.monotonic()
    with reported("nothing is saved"):
        remarks = io.convert(
            source,
            out,
            transpose=transpose,
            layout=layout,
            layer=layer,
            rows_only=rows_only,
            memory_limit=memory_limit,
            force=force,
            on_block=_Told(speaker),
        )
        for remark in remarks:
            speaker.say(remark)
        store, seconds = read_layout(out), time.monotonic() - started
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
        speaker.event(
            "done", store=str(out), shape=list(store.shape), nonzeros=store.nonzeros,
            total=store.total, sha256=store.sha256, orientations=list(store.orientations),
            bytes=size, seconds=round(seconds, 3), remarks=list(remarks),
        )  # fmt: skip
        rows, columns = store.shape
        speaker.say(
            f"wrote {out}/: {rows:,} samples x {columns:,} features, {store.nonzeros:,} nonzeros, "
            f"{size / 1e6:,.1f} MB, {seconds:.1f} s"
        )


class _Told:
    """Says from time to time how far a conversion has come."""

    def __init__(self, speaker: Speaker) -> None:
        self.speaker, self.spoken = speaker, time.monotonic()

    def __call__(self, what: str, items: int, nonzeros: int) -> None:
        """After a block."""
        self.speaker.event("block", of=what, items=items, nonzeros=nonzeros)
        now = time.monotonic()
        if now - self.spoken >= LINE_EVERY:
            self.spoken = now
            told = f"{items:,} {what}"
            self.speaker.say(told if what == "entries" else f"{told}, {nonzeros:,} nonzeros")
