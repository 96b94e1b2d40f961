# SPDX-License-Identifier: BSD-3-Clause
"""The scripts of docs/howto/r.md run, and R sees the numbers that Python has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import mmread

from sipower import KLNMF
from sipower.datasets import poisson_topics

SCRIPTS = Path(__file__).parents[2] / "examples" / "r"
pytestmark = pytest.mark.skipif(
    shutil.which("Rscript") is None, reason="R is not installed: apt-get install r-base-core"
)


def run_r(*words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable}
    return subprocess.run(
        ["Rscript", "--vanilla", *map(str, words)],
        capture_output=True, text=True, check=False, cwd=folder, env=environment,
    )  # fmt: skip


@cache
def has_package(name: str) -> bool:
    """Whether R has a package."""
    return (
        run_r("-e", f"quit(status = !requireNamespace('{name}'))", folder=SCRIPTS).returncode == 0
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Write a run folder with tables, and names that are hard to read."""
    pytest.importorskip("typer")
    from cli.calls import call  # noqa: PLC0415 - needs typer

    names = ["NA", "012", 'a "b"', "c,d", "é # 1", *(f"cell {i}" for i in range(35))]
    features = [f"gene-{j}" for j in range(30)]
    counts = pd.DataFrame(poisson_topics(40, 30, 3, seed=0).toarray(), names, features)
    counts.to_csv(tmp_path / "counts.csv")
    call("fit", tmp_path / "counts.csv", "-k", 3, "-o", tmp_path / "run", "--also", "csv")
    return tmp_path / "run"


def test_r_reads_the_numbers_and_names_of_a_run(run: Path) -> None:
    code = f"""
    source("{SCRIPTS / "read_run.R"}")
    run <- read_run("{run}")
    options(digits = 17)
    write.csv(run$W, "W_again.csv")
    write.csv(run$H, "H_again.csv")
    stopifnot(all.equal(unname(rowSums(run$shares)), rep(1, nrow(run$shares))))
    stopifnot(all.equal(unname(colSums(run$H)), rep(1, ncol(run$H))))
    stopifnot(identical(top_features(run$H, 1)[[1]], rownames(run$H)[which.max(run$H[, 1])]))
    """
    result = run_r("-e", code, folder=run.parent)
    assert result.returncode == 0, result.stderr
    for name in ("W", "H"):
        ours, theirs = (
            pd.read_csv(path, index_col=0, keep_default_na=False, dtype={0: str})
            for path in (run / f"{name}.csv", run.parent / f"{name}_again.csv")
        )
        assert list(ours.index) == list(theirs.index)
        assert list(ours.columns) == list(theirs.columns)
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


def test_the_script_summarises_a_run_and_draws_it(run: Path) -> None:
    result = run_r(SCRIPTS / "read_run.R", run, "picture.png", folder=run.parent)
    assert result.returncode == 0, result.stderr
    assert "40 samples, 30 features, 3 components" in result.stdout
    assert (run.parent / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_tables_gets_one_sentence(tmp_path: Path) -> None:
    result = run_r(SCRIPTS / "read_run.R", tmp_path, folder=tmp_path)
    assert result.returncode == 1
    assert "does not exist: write it with `sipower fit ... --also csv`" in result.stderr


def test_reticulate_fits_the_matrix_of_r(tmp_path: Path) -> None:
    if not (has_package("reticulate") and has_package("Matrix")):
        pytest.skip("reticulate or Matrix is not installed: apt-get install r-cran-reticulate")
    code = f"""
    source("{SCRIPTS / "reticulate.R"}")
    both <- main()
    writeMM(both$counts, "counts.mtx")
    options(digits = 17)
    write.csv(both$fit$W, "W.csv")
    write.csv(both$fit$H, "H.csv")
    turned <- klnmf(t(both$counts), 3, samples_are_columns = FALSE)
    stopifnot(identical(turned, both$fit))
    """
    result = run_r("-e", code, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "converged" in result.stdout
    cells = mmread(tmp_path / "counts.mtx").T.tocsr()  # R has genes x cells
    model = KLNMF(3, random_state=0)
    W = model.fit_transform(cells)
    for name, array in (("W", W), ("H", model.components_)):
        table = pd.read_csv(tmp_path / f"{name}.csv", index_col=0)
        np.testing.assert_allclose(table, array, rtol=1e-12)
    assert table.columns[0].startswith("gene")
    assert table.index[0] == "component 1"
