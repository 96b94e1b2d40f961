# SPDX-License-Identifier: BSD-3-Clause
"""The option --spectra of several commands: spectra of a run, computed from its data."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sipower.cli.console import Console
from sipower.cli.options import OutputOptions
from sipower.cli.run_folder import say_warnings
from sipower.data.validate import as_matrix
from sipower.inference import spectra
from sipower.io import Table
from sipower.results import Run
from sipower.results.folder import save_spectra


def check_spectra(output: OutputOptions, observed: Mapping[str, Any]) -> None:
    """Raise an error before the fit if single entries have weights or are missing."""
    for name in ("weights", "mask"):
        if output.spectra and np.ndim(observed.get(name, ())) > 1:
            raise ValueError(f"--spectra and --{name} of single entries exclude each other.")


def add_spectra(
    run: Run,
    table: Table,
    output: OutputOptions,
    folder: Path,
    console: Console,
    observed: Mapping[str, Any],
) -> Run:
    """Return the run with its spectra, if they are wanted; compute and save them if it has none.

    Files that were written without them are removed.
    """
    if not output.spectra or run.spectra is not None:
        return run
    with say_warnings(console):
        weight = observed.get("sample_weight")
        result = spectra(as_matrix(table), run, sample_weight=weight)
    for name in ("report.html", "run.h5ad"):
        (folder / name).unlink(missing_ok=True)
    console.say(f"wrote {save_spectra(result, folder)}")
    return replace(run, spectra=result)
