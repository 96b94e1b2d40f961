# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands share, with their help texts, as dataclasses for `command`."""

import re
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sipower.cli.application import require
from sipower.estimators import KLNMF
from sipower.io import FORMATS
from sipower.nmf import SOLVERS
from sipower.nmf.init import INITS
from sipower.results.describe import is_excluded

DEFAULT_MAX_ITER = 500
# Formats of the factors, and the libraries that write them.
OUTPUT_FORMATS = {
    "csv": ("pandas",), "parquet": ("pandas", "pyarrow"), "h5ad": ("anndata",),
    "topics": ("pandas",),
}  # fmt: skip


_limit = partial(typer.Option, rich_help_panel="Solver and limits")
_read = partial(typer.Option, rich_help_panel="How the file is read")
_long_run = partial(typer.Option, rich_help_panel="Long runs")
_dask = partial(typer.Option, rich_help_panel="Dask")
_RULE = _limit(help="Update rule.")
_START = _limit(help="Kind of start; auto if not given, on Dask sample.")
_INPUT = f"Counts, samples x features: {', '.join(FORMATS)}, a 10x folder, or a folder of texts."
_INPUTS = f"{_INPUT} Several files with the same features are fitted as one."
_LAYER = "Layer of an AnnData file instead of X; raw is .raw."
_TRANSPOSE = "Exchange samples and features."
_TEXT_COLUMN = "Column of a table that holds texts, whose words are counted."
_STOP_WORDS = "Leave out frequent English words of texts."
_MIN_DF = "Leave out words that occur in fewer texts than this."
_RANK = "Rank K; sipower rank recommends one."
_TOL = "Stop when the certified gap, relative to all counts, is at most this."
_MEMORY = "Leave the data on disk, and use this much memory for them, such as 512MB."
_CACHE = "Folder for converted files; by default $SIPOWER_CACHE, or see sipower cache."
_NO_CACHE = "With --memory-limit, read the rows of the file itself: no disk space, but slower."
_SCHEDULER = "Address of a Dask scheduler on whose workers to fit, such as tcp://host:8786."
_WORKERS = "Start this many worker processes of Dask here, and fit on them."
_DRY_RUN = "Estimate memory and time from a few rounds, and write no run."
_RESUME = "Continue from the checkpoint if it exists; by default OUT/checkpoint.npz."
_ALSO = "More formats for the factors, separated by commas: csv, parquet, h5ad, topics."
_OUT = "Run folder; by default named after the file."
_UNITS = "Write W in counts and H as profiles that sum to 1, or as the solver left them."
_SPECTRA = "Compute z-scores of the features, and spectra in counts of a median sample."
_EXCLUDE = "Regular expression of features to leave out of the report's lists, such as ^RP[LS]."
_PIXELS = "Height x width if the features are pixels, such as 19x19."

Rank = Annotated[int, typer.Option("-k", "--components", min=1, help=_RANK)]
Replicates = Annotated[int, typer.Option(min=1, help="Number of starts or splits.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]
RunFolder = Annotated[Path | None, typer.Option("-o", "--out", help=_OUT)]
ImageShape = Annotated[str | None, typer.Option(help=_PIXELS)]
Normalise = Annotated[bool, typer.Option(help=_UNITS)]
Exclude = Annotated[str | None, typer.Option(help=_EXCLUDE)]
Force = Annotated[bool, typer.Option("--force", help="Start again and replace an older run.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one event per line.")]
Tol = Annotated[float, _limit(help=_TOL, min=0)]
Seed = Annotated[int, _limit(help="Seed; the same seed gives the same bits.", min=0)]
Threads = Annotated[int | None, _limit(help="Number of threads; all cores if not given.", min=1)]
Float = Literal["float32", "float64"]
Dtype = Annotated[Float | None, _limit(help="float32 takes less memory and time.")]
TableLayout = Literal["wide", "long"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options for how a file of counts is read."""

    transpose: Annotated[bool | None, _read("--transpose/--no-transpose", help=_TRANSPOSE)] = None
    layout: Annotated[TableLayout | None, _read(help="Layout of a table; else guessed.")] = None
    layer: Annotated[str | None, _read(help=_LAYER)] = None
    text_column: Annotated[str | None, _read(help=_TEXT_COLUMN)] = None
    stop_words: Annotated[Literal["english"] | None, _read(help=_STOP_WORDS)] = None
    min_df: Annotated[int | None, _read(help=_MIN_DF, min=1)] = None

    def settings(self) -> dict[str, Any]:
        """Return the options of `sipower.io.read`."""
        given = {"stop_words": self.stop_words, "min_df": self.min_df}
        texts = {name: value for name, value in given.items() if value is not None}
        return {
            "transpose": bool(self.transpose), "layout": self.layout, "layer": self.layer,
            "text_column": self.text_column, "text_options": texts or None,
        }  # fmt: skip

    def recorded(self) -> dict[str, Any]:
        """Return what later commands read the data of the same run by, for `run.json`."""
        settings = self.settings()
        return {name: settings[name] for name in ("layer", "transpose") if settings[name]}


@dataclass(frozen=True, kw_only=True)
class InputOptions(ReadOptions):
    """The options for a file of counts and how it is read."""

    source: Annotated[Path, typer.Argument(help=_INPUT)]

    @property
    def sources(self) -> tuple[Path, ...]:
        """All files."""
        return (self.source,)


@dataclass(frozen=True, kw_only=True)
class InputFiles(InputOptions):
    """One or more files that are fitted as one, of which `source` is the first."""

    others: tuple[Path, ...] = ()

    @property
    def sources(self) -> tuple[Path, ...]:
        """All files."""
        return (self.source, *self.others)

    @property
    def name(self) -> str:
        """The files in a sentence."""
        return f"{self.source} and {len(self.others)} more" if self.others else str(self.source)

    def each(self) -> list[InputOptions]:
        """Return the options of every file."""
        shared = {f.name: getattr(self, f.name) for f in fields(ReadOptions)}
        return [InputOptions(source=source, **shared) for source in self.sources]


@dataclass(frozen=True, kw_only=True)
class FitInputOptions(ReadOptions):
    """The options for one or more files of counts and how they are read."""

    source: Annotated[list[Path], typer.Argument(help=_INPUTS)]

    def files(self) -> InputFiles:
        """Return the files with the options of reading them."""
        shared = {f.name: getattr(self, f.name) for f in fields(ReadOptions)}
        first, *others = self.source
        return InputFiles(source=first, others=tuple(others), **shared)


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """The options of the model, except its rank."""

    # The choices are read from the registry at run time.
    solver: Annotated[Literal[tuple(SOLVERS)], _RULE] = "auto"  # type: ignore[valid-type]
    tol: Tol = 1e-3
    max_time: Annotated[float | None, _limit(help="Maximum seconds per fit.", min=0)] = None
    max_iter: Annotated[int | None, _limit(help="Maximum rounds; 500 by default.", min=1)] = None
    seed: Seed = 0
    threads: Threads = None
    dtype: Dtype = None
    dry_run: Annotated[bool, _limit("--dry-run", help=_DRY_RUN)] = False
    scheduler: Annotated[str | None, _dask(help=_SCHEDULER)] = None
    workers: Annotated[int | None, _dask(help=_WORKERS, min=1)] = None

    @property
    def on_cluster(self) -> bool:
        """Whether to fit on Dask workers."""
        return self.scheduler is not None or self.workers is not None

    def model(self, **parameters: Any) -> KLNMF:
        """Return the model; `parameters` are further parameters of `KLNMF`."""
        return KLNMF(
            solver=self.solver, tol=self.tol, max_time=self.max_time, random_state=self.seed,
            max_iter=self.max_iter or DEFAULT_MAX_ITER, n_jobs=self.threads, dtype=self.dtype,
            **parameters,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RankSolverOptions(SolverOptions):
    """The `SolverOptions` with the defaults of `rank`, whose many fits need not be exact."""

    tol: Tol = 1e-2
    dtype: Dtype = "float32"


@dataclass(frozen=True, kw_only=True)
class FitSolverOptions(SolverOptions):
    """The `SolverOptions` with an option for the start of a single fit."""

    init: Annotated[Literal["auto", "sample", *INITS] | None, _START] = None  # type: ignore[valid-type]
    n_init: Annotated[int, _limit(help="Number of starts to compare.", min=1)] = 1
    verify: Annotated[bool, _limit(help="Verify a fit that seems to have converged.")] = True

    def start(self) -> str:
        """Return the kind of start: the one given, or the default here or on Dask."""
        return str(self.init or ("sample" if self.on_cluster else "auto"))


@dataclass(frozen=True, kw_only=True)
class LongRunOptions:
    """The options for checkpoints and for the memory limit of data on disk."""

    memory_limit: Annotated[str | None, _read(help=_MEMORY)] = None
    cache: Annotated[Path | None, _read(metavar="FOLDER", help=_CACHE)] = None
    no_cache: Annotated[bool, _read("--no-cache", help=_NO_CACHE)] = False
    checkpoint: Annotated[Path | None, _long_run(help="File to save the state to.")] = None
    checkpoint_every: Annotated[float, _long_run(help="Seconds between saves.", min=0)] = 60.0
    resume: Annotated[bool, _long_run("--resume", help=_RESUME)] = False

    def cache_choice(self) -> Path | Literal[False] | None:
        """Return the option `cache` of `sipower.io.open_on_disk`."""
        if self.no_cache and self.cache is not None:
            raise ValueError("--cache and --no-cache exclude each other: give one of them.")
        return False if self.no_cache else self.cache

    def checkpoint_path(self, folder: Path) -> Path | None:
        """Return the path of the checkpoint; an existing file requires --resume."""
        option = self.checkpoint
        if option is not None and not option.parent.is_dir():
            raise ValueError(f"--checkpoint {option}: the folder {option.parent} does not exist.")
        path = option or (folder / "checkpoint.npz" if self.resume else None)
        if path is not None and path.exists() and not self.resume:
            raise ValueError(f"{path} exists already: resume from it with --resume, or remove it.")
        return path


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The options for additional files in the run folder, and for messages."""

    also: Annotated[str | None, typer.Option(help=_ALSO)] = None
    normalise: Normalise = True
    spectra: Annotated[bool, typer.Option("--spectra", help=_SPECTRA)] = False
    exclude: Exclude = None
    force: Force = False
    as_json: Json = False

    def check(self) -> None:
        """Raise an error for wrong options before a long fit."""
        self.formats()
        is_excluded((), self.exclude)

    def formats(self) -> list[str]:
        """Return the formats of --also, after checking that their libraries are installed."""
        parts = [] if self.also is None else self.also.split(",")
        names = [part.strip().removeprefix(".") for part in parts]
        for name in names:
            if name not in OUTPUT_FORMATS:
                raise ValueError(f"--also {name}: choose from {', '.join(OUTPUT_FORMATS)}.")
        require(*{module for name in names for module in OUTPUT_FORMATS[name]})
        return names


@dataclass(frozen=True, kw_only=True)
class FitOutputOptions(OutputOptions):
    """The `OutputOptions` for a single fit."""

    image_shape: ImageShape = None
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True


def parse_image_shape(text: str | None, features: int) -> tuple[int, int] | None:
    """Return the height and width, whose product must be the number of features."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if match is None:
        raise ValueError(f"--image-shape {text}: expected height x width, such as 19x19.")
    height, width = int(match[1]), int(match[2])
    if height * width != features:
        raise ValueError(f"--image-shape {height}x{width} must have {features} pixels.")
    return height, width
