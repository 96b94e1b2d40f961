# SPDX-License-Identifier: BSD-3-Clause
"""Export of factors and rank selections as tables, images and AnnData files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import atomic_write
from sipower.data.formats import REFIT, WEIGHTS
from sipower.inference import Refit
from sipower.io import Table
from sipower.kernels import Array
from sipower.results import plot
from sipower.results.annotations import AnnDataFile, write_anndata
from sipower.results.normalisation import to_shares
from sipower.results.run import Run
from sipower.results.topic_tables import topic_frames
from sipower.selection import GroupConsensus, RankSelection, save_outcome

TABLE_ENDINGS = (".npz", ".csv", ".tsv", ".parquet")


def export(
    run: Run,
    folder: Path,
    ending: str,
    *,
    normalise: bool = True,
    origin: AnnDataFile | Table | None = None,
) -> list[Path]:
    """Write W, H and shares as .csv or .parquet tables, or the run as one .h5ad file.

    Batch effects and spectra, if the run has them, are written as well. For "topics", write
    doc_topic.csv with a line for each sample and topic_word.csv with a line for each component
    instead; the lines sum to 1.

    Parameters
    ----------
    run
        The run.
    folder
        Folder to write to.
    ending
        "csv", "parquet", "h5ad" or "topics".
    normalise
        Write W in counts, so that a row sums to the total of the sample, and H as profiles that sum
        to 1. False writes the factors of the model.
    origin
        The data of the run, which an .h5ad file then has as well; see `write_anndata`.
    """
    files = export_paths(run, folder, ending)
    if ending == "h5ad":
        write_anndata(run, files[0], origin, normalise=normalise)
        return files
    if ending == "topics":
        _write_tables(files, topic_frames(run))
        return files
    scaled = run.normalised() if normalise else run
    labels = run.component_labels()
    frames = [
        _frame(scaled.W, run.samples, labels),
        _frame(scaled.H.T, run.features, labels),  # transposed: one line per feature
        _frame(to_shares(run.W, run.H), run.samples, labels),
    ]
    if run.batch_effects is not None:
        frames.append(_frame(run.batch_effects.T, run.features, run.batches or ()))
    if run.spectra is not None:
        arrays = run.spectra.z_scores, run.spectra.median_units
        frames += [_frame(array.T, run.features, labels) for array in arrays]
    _write_tables(files, frames)
    return files


def export_paths(run: Run, folder: Path, ending: str) -> list[Path]:
    """Return the files that `export` writes."""
    if ending == "topics":
        return [folder / f"{name}.csv" for name in ("doc_topic", "topic_word")]
    names = ["run"] if ending == "h5ad" else ["W", "H", "shares"]
    if ending != "h5ad":
        names += [] if run.batch_effects is None else ["batch_effects"]
        names += [] if run.spectra is None else ["z_scores", "median_units"]
    return [folder / f"{name}.{ending}" for name in names]


def write_weights(
    file: Path,
    W: Array,
    shares: Array,
    names: Sequence[str] | None,
    components: Sequence[str] | None = None,
) -> list[Path]:
    """Write weights and shares to a .npz file, or to two .csv, .tsv or .parquet files.

    The name of the second file ends in ``_shares`` before the suffix. `names` are those of the
    samples; `components` head the columns of tables, by default numbers.
    """
    ending = file.suffix.lower()
    check_table_name(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    if ending == ".npz":
        with atomic_write(file) as to:
            arrays = {"W": W, "shares": shares, **_name_arrays(file, names), **WEIGHTS.stamp()}
            np.savez(to, allow_pickle=False, **arrays)
        return [file]
    files = [file, file.with_stem(f"{file.stem}_shares")]
    _write_tables(files, [_frame(array, names, components) for array in (W, shares)])
    return files


def write_refit(file: Path, result: Refit) -> list[Path]:
    """Write a refit to a .npz file, or to several .csv, .tsv or .parquet files.

    `file` has the exposures; the names of the others end in ``_shares``, ``_lower``, ``_upper`` and
    ``_samples`` before the suffix.
    """
    check_table_name(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix.lower() == ".npz":
        names = ("exposures", "support", "shares", "lower", "upper", "log_likelihood", "deviance",
                 "p_value", "left_out")  # fmt: skip
        arrays = {name: getattr(result, name) for name in names}
        arrays["components"] = np.array(result.components, np.str_)
        arrays |= _name_arrays(file, result.samples) | REFIT.stamp()
        with atomic_write(file) as to:
            present = {name: array for name, array in arrays.items() if array is not None}
            np.savez(to, allow_pickle=False, **present)
        return [file]
    frames = result.to_frames()
    files = [
        file if name == "exposures" else file.with_stem(f"{file.stem}_{name}") for name in frames
    ]
    _write_tables(files, list(frames.values()))
    return files


def write_table(file: Path, frame: Any) -> None:
    """Write a data frame to a .csv, .tsv or .parquet file."""
    check_table_name(file, (".csv", ".tsv", ".parquet"))
    file.parent.mkdir(parents=True, exist_ok=True)
    _write_tables([file], [frame])


def check_table_name(file: Path, endings: Sequence[str] = TABLE_ENDINGS) -> None:
    """Raise an error if a file has another ending."""
    if file.suffix.lower() not in endings:
        raise ValueError(f"{file} must end in {', '.join(endings[:-1])} or {endings[-1]}.")


def _write_tables(files: Sequence[Path], frames: Sequence[Any]) -> None:
    """Write .csv, .tsv or .parquet files, one line per item; replace all files or none."""
    with ExitStack() as replacements:
        for file, frame in zip(files, frames, strict=True):
            to, ending = replacements.enter_context(atomic_write(file)), file.suffix.lower()
            if ending == ".parquet":
                frame.to_parquet(to)
            else:
                separator = "\t" if ending == ".tsv" else ","
                # Quote all strings: by default pandas does not quote a carriage return, which also
                # ends a line.
                options = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
                label = frame.index.name or "name"
                frame.to_csv(to, sep=separator, index_label=label, **options)
            to.flush()


def export_selection(selection: RankSelection, folder: Path) -> None:
    """Write rank.csv, rank.png and rank.json for a rank selection; replace all files or none."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=(7, 4), layout="constrained")
    plot.rank_selection(selection, figure.add_subplot())
    with atomic_write(folder / "rank.csv") as lines_out, atomic_write(folder / "rank.png") as image:
        lines_out.write(_as_csv(selection.table()))
        lines_out.flush()
        figure.savefig(image, dpi=120)
        image.flush()
        save_outcome(selection, folder / "rank.json")


def export_programs(programs: GroupConsensus, folder: Path) -> None:
    """Write programs.csv and programs.json for a consensus over groups."""
    with atomic_write(folder / "programs.csv") as lines_out:
        lines_out.write(_as_csv(programs.table()))
    save_outcome(programs, folder / "programs.json")


def _as_csv(table: dict[str, list[Any]]) -> bytes:
    """Return the columns of a table as a CSV file."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(table)
    lines.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode()


def _name_arrays(file: Path, names: Sequence[str] | None) -> dict[str, Array]:
    """Return names as NumPy arrays of fixed-width strings."""
    if names is None:
        return {}
    unstorable = next((name for name in names if name.endswith("\0")), None)
    if unstorable is not None:
        raise ValueError(
            f"{file} cannot hold the name {unstorable!r}, which ends in NUL: use .csv."
        )
    return {"samples": np.array(names, np.str_)}


def _frame(W: Array, names: Sequence[str] | None, columns: Sequence[str] | None) -> Any:
    import pandas as pd  # noqa: PLC0415 - optional

    index = range(1, len(W) + 1) if names is None else list(names)
    numbered = [f"component {k + 1}" for k in range(W.shape[1])]
    return pd.DataFrame(W, index=index, columns=numbered if columns is None else list(columns))
