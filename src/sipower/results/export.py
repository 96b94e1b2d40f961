# SPDX-License-Identifier: BSD-3-Clause
"""Export of factors and rank selections as tables, images and AnnData files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sipower._files import atomic_write
from sipower.kernels import Array
from sipower.results import plot
from sipower.results.describe import describe
from sipower.results.run import Run
from sipower.selection import RankSelection, save_outcome


def export(run: Run, folder: Path, ending: str) -> list[Path]:
    """Write W and H as .csv or .parquet tables, or the run as one .h5ad file.

    Component k is the k-th largest, as in the report.
    """
    files, order = export_paths(folder, ending), describe(run.W, run.H).order
    run = replace(run, W=run.W[:, order], H=run.H[order])
    if ending == "h5ad":
        _write_anndata(run, files[0])
    else:
        write_rows(files[0], run.W, run.samples)
        write_rows(files[1], run.H.T, run.features)  # transposed: one line per feature
    return files


def export_paths(folder: Path, ending: str) -> list[Path]:
    """Return the files that `export` writes."""
    names = ("run",) if ending == "h5ad" else ("W", "H")
    return [folder / f"{name}.{ending}" for name in names]


def write_rows(file: Path, W: Array, names: Sequence[str] | None) -> None:
    """Write weights to a .npz, .csv, .tsv or .parquet file, one line per item."""
    ending = file.suffix.lower()
    if ending not in (".npz", ".csv", ".tsv", ".parquet"):
        raise ValueError(f"{file} must end in .npz, .csv, .tsv or .parquet.")
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as to:
        if ending == ".npz":
            np.savez(to, allow_pickle=False, W=W, **_name_arrays(file, names))
            return
        frame = _frame(W, names)
        if ending == ".parquet":
            frame.to_parquet(to)
        else:
            separator = "\t" if ending == ".tsv" else ","
            # Quote all strings: by default pandas does not quote a carriage return, which also ends
            # a line.
            options = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
            frame.to_csv(to, sep=separator, index_label="name", **options)


def export_selection(selection: RankSelection, folder: Path) -> None:
    """Write rank.csv, rank.png and rank.json for a rank selection; replace all files or none."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    table = selection.table()
    lines.writerow(table)
    lines.writerows(zip(*table.values(), strict=True))
    figure = Figure(figsize=(7, 4), layout="constrained")
    plot.rank_selection(selection, figure.add_subplot())
    with atomic_write(folder / "rank.csv") as lines_out, atomic_write(folder / "rank.png") as image:
        lines_out.write(text.getvalue().encode())
        lines_out.flush()
        figure.savefig(image, dpi=120)
        image.flush()
        save_outcome(selection, folder / "rank.json")


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


def _frame(W: Array, names: Sequence[str] | None) -> Any:
    import pandas as pd  # noqa: PLC0415 - optional

    index = range(1, len(W) + 1) if names is None else list(names)
    columns = [f"component {k + 1}" for k in range(W.shape[1])]
    return pd.DataFrame(W, index=index, columns=columns)


def _write_anndata(run: Run, file: Path) -> None:
    """Write the factors where scanpy expects them: obsm["X_nmf"], varm["nmf"], uns["nmf"]."""
    import anndata as ad  # noqa: PLC0415 - optional
    import h5py  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    adata = ad.AnnData(
        obs=pd.DataFrame(index=list(run.sample_names())),
        var=pd.DataFrame(index=list(run.feature_names())),
    )
    adata.obsm["X_nmf"], adata.varm["nmf"] = run.W, run.H.T
    facts = run.facts
    adata.uns["nmf"] = {
        key: facts[key]
        for key in ("divergence", "certified_gap", "status", "rounds")
        if key in facts
    }
    memory = io.BytesIO()  # because HDF5 can crash the process on a full disk
    with h5py.File(memory, "w") as content:
        ad.io.write_elem(content, "/", adata)
    with atomic_write(file) as to:
        to.write(memory.getbuffer())
