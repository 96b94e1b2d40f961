# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from sipower.io import FORMATS
from sipower.nmf import SOLVERS
from sipower.nmf.init import INITS

__all__ = [
    "Also",
    "CheckpointEvery",
    "CheckpointFile",
    "Dtype",
    "Init",
    "Input",
    "Json",
    "Layer",
    "Layout",
    "MaxIter",
    "MaxTime",
    "MemoryLimit",
    "Resume",
    "Seed",
    "Solver",
    "Threads",
    "Tol",
    "Transpose",
]

_endings = ", ".join(FORMATS)
_LIMITS, _DATA = "Solver and limits", "How the file is read"

if TYPE_CHECKING:
    SolverName: TypeAlias = str
    InitName: TypeAlias = str
else:  # the choices follow from the registries
    SolverName, InitName = Literal[tuple(SOLVERS)], Literal[tuple(INITS)]

Input = Annotated[
    Path, typer.Argument(help=f"Counts, samples x features: {_endings}, or a folder of 10x.")
]
Transpose = Annotated[
    bool,
    typer.Option("--transpose", help="Exchange samples and features.", rich_help_panel=_DATA),
]
Layout = Annotated[
    Literal["wide", "long"] | None,
    typer.Option(help="Of a table; guessed if not given.", rich_help_panel=_DATA),
]
Layer = Annotated[
    str | None, typer.Option(help="Layer of an .h5ad file instead of X.", rich_help_panel=_DATA)
]
Solver = Annotated[SolverName, typer.Option(rich_help_panel=_LIMITS, help="Update rule.")]
Init = Annotated[InitName, typer.Option(rich_help_panel=_LIMITS, help="Start.")]
Tol = Annotated[
    float,
    typer.Option(
        min=0,
        help="Stop when the certified gap, relative to all counts, is at most this.",
        rich_help_panel=_LIMITS,
    ),
]
MaxTime = Annotated[
    float | None, typer.Option(min=0, help="Most seconds of a fit.", rich_help_panel=_LIMITS)
]
MaxIter = Annotated[
    int | None,
    typer.Option(min=1, help="Most rounds of a fit; 500 if not given.", rich_help_panel=_LIMITS),
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same bits.", rich_help_panel=_LIMITS)]
Threads = Annotated[
    int | None, typer.Option(min=1, help="All cores if not given.", rich_help_panel=_LIMITS)
]
Dtype = Annotated[
    Literal["float32", "float64"] | None,
    typer.Option(help="float32 takes less memory and time.", rich_help_panel=_LIMITS),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Leave a store or an .h5ad file on disk and take so much memory for it: 512MB.",
        rich_help_panel=_DATA,
    ),
]
_KEPT = "Long runs"
CheckpointFile = Annotated[
    Path | None, typer.Option("--checkpoint", help="Keep the state here.", rich_help_panel=_KEPT)
]
CheckpointEvery = Annotated[
    float,
    typer.Option(min=0, help="Seconds that may be lost.", rich_help_panel=_KEPT),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on from the checkpoint if there is one, by default OUT/checkpoint.npz.",
        rich_help_panel=_KEPT,
    ),
]
Also = Annotated[
    str | None,
    typer.Option(help="More formats of the factors, with commas between: csv, parquet, h5ad."),
]
Json = Annotated[bool, typer.Option("--json", help="Speak JSON, one event a line.")]
