# SPDX-License-Identifier: BSD-3-Clause
"""Fits of files through the cache, and the command that lists and clears it."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from cached_files import zarr_format
from cli.calls import SPARSE_V as V
from cli.calls import call, events
from sipower.io import open_on_disk
from sipower.io.cache import cache_entries
from sipower.results import load_run

anndata = pytest.importorskip("anndata")
pytestmark = pytest.mark.filterwarnings("ignore:.*[zZ]arr:UserWarning")
LIMIT = ("-k", 3, "--memory-limit", "1MB", "--no-report", "--force")
CELLS = ("fit", "cells.h5ad", *LIMIT)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIPOWER_CACHE", str(tmp_path / "cache"))


def write_cells(factor=1, **layers):
    counts = sp.csr_matrix(factor * V.astype(np.float32))
    obs = pd.DataFrame({"donor": ["a", "b"] * 150}, index=[f"cell {i}" for i in range(300)])
    adata = anndata.AnnData(counts, obs, layers=layers)
    adata.write_h5ad("cells.h5ad")
    return adata


def entry():
    (found,) = cache_entries(Path("cache"))
    return found


# ---- fits ----------------------------------------------------------------------------------------


def test_rows_of_an_h5ad_file_are_read_without_a_cache():
    write_cells()
    call(*CELLS, "-o", "run", "--dtype", "float64", "--no-cache")
    run = load_run("run")
    assert run.facts["status"] == "converged"
    assert run.samples[:2] == ("cell 0", "cell 1")
    assert not Path("cache").exists()


def test_a_file_is_converted_once_while_it_is_unchanged():
    write_cells()
    first = call(*CELLS, "-o", "first")
    assert f"converting cells.h5ad to a store in {Path('cache').absolute()}" in first.stdout
    whole = call("fit", "cells.h5ad", "-k", 3, "--no-report", "-o", "whole")
    assert "cache" not in whole.stdout
    assert load_run("first").W.tobytes() == load_run("whole").W.tobytes()
    assert load_run("first").facts["input"]["file"] == "cells.h5ad"
    again = call(*CELLS, "-o", "second")
    assert "the store of this unchanged file" in again.stdout
    assert load_run("first").H.tobytes() == load_run("second").H.tobytes()
    write_cells(factor=2)
    assert "converting cells.h5ad" in call(*CELLS, "-o", "third").stdout
    total = load_run("third").facts["input"]["total"]
    assert total == 2 * load_run("first").facts["input"]["total"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_zarr_file_is_fitted_as_the_h5ad_file_is(version):
    adata = write_cells()
    with zarr_format(version):
        adata.write_zarr("cells.zarr")
    call("fit", "cells.zarr", *LIMIT, "-o", "zarr", "--batch", "donor", "--also", "csv")
    call("fit", "cells.zarr", *LIMIT[:2], "--no-report", "-o", "read", "--batch", "donor")
    call("fit", "cells.h5ad", *LIMIT[:2], "--no-report", "-o", "h5ad", "--batch", "donor")
    expected = load_run("h5ad")
    for name in ("zarr", "read"):
        assert load_run(name).W.tobytes() == expected.W.tobytes()
        assert load_run(name).samples == expected.samples
    call("transform", "h5ad", "cells.zarr", "-o", "W.npz", "--batch", "donor")


def test_the_cache_of_a_command_is_that_of_python():
    write_cells()
    open_on_disk("cells.h5ad")
    assert "using" in call(*CELLS, "-o", "run").stdout
    assert "converting" in call(*CELLS, "-o", "run", "--cache", "own").stdout
    assert len(list(cache_entries(Path("own")))) == 1


def test_a_layer_has_a_store_of_its_own_and_a_transpose_has_not():
    write_cells(spliced=sp.csr_matrix(3 * V.astype(np.float32)))
    totals = []
    for words in ((), ("--layer", "spliced"), ("--transpose",)):
        call(*CELLS, "-o", "run", *words)
        totals.append(load_run("run").facts["input"]["total"])
        assert load_run("run").W.shape[0] == (200 if words == ("--transpose",) else 300)
    assert totals == [V.sum(), 3 * V.sum(), V.sum()]
    assert len(list(cache_entries(Path("cache")))) == 2
    call("fit", "cells.h5ad", "-k", 3, "--transpose", "--no-report", "-o", "whole")
    assert load_run("run").H.tobytes() == load_run("whole").H.tobytes()
    assert load_run("run").features == load_run("whole").features


def test_remarks_on_a_file_are_repeated():
    write_cells(factor=0.5, counts=sp.csr_matrix(V.astype(np.float32)))
    for _ in range(2):
        assert "use --layer counts" in call(*CELLS, "-o", "run").stdout


def test_a_dry_run_uses_the_cache():
    write_cells()
    shown = call(*CELLS, "-o", "run", "--dry-run", "--json").stdout
    assert '"reused": false' in shown
    assert not Path("run").exists()
    assert '"reused": true' in call(*CELLS, "-o", "run", "--dry-run", "--json").stdout


# ---- the command ---------------------------------------------------------------------------------


def test_the_cache_is_listed():
    assert "holds no stores" in call("cache").stdout
    write_cells(spliced=sp.csr_matrix(V.astype(np.float32)))
    for words in ((), ("--layer", "spliced")):
        call(*CELLS, "-o", "run", *words)
    shown = call("cache", "list").stdout
    assert f"{Path('cache').absolute()}: " in shown
    assert shown.count("current") == 2
    (event,) = events(call("cache", "--json"))
    assert event["event"] == "cache"
    assert [fact["layer"] for fact in event["entries"]] == [None, "spliced"]
    fact = event["entries"][0]
    assert fact["file"] == str(Path("cells.h5ad").absolute())
    assert fact["bytes"] > 10 * V.nnz
    assert fact["state"] == "current"
    assert fact["made"][:10] == fact["last_used"][:10]
    Path("cells.h5ad").unlink()
    assert call("cache").stdout.count("gone") == 2
    (next(cache_entries(Path("cache"))).folder / "source.json").write_text("{}")
    assert "unfinished" in call("cache").stdout


def test_the_cache_is_cleared_by_file():
    write_cells()
    call(*CELLS, "-o", "run")
    assert "has no store in the cache" in call("cache", "clear", "other.h5ad", code=2).stderr
    refused = call("cache", "clear", "cells.h5ad", code=2).stderr
    assert "needs --yes" in refused
    assert entry().status == "current"
    assert "removed 1 store," in call("cache", "clear", "cells.h5ad", "--yes").stdout
    assert list(cache_entries(Path("cache"))) == []
    assert Path("cells.h5ad").exists()
    call(*CELLS, "-o", "run")
    call("cache", "clear", entry().folder, "--yes")
    assert list(cache_entries(Path("cache"))) == []


def test_what_was_not_used_is_cleared():
    write_cells()
    call(*CELLS, "-o", "run")
    old = time.time() - 10 * 86400
    os.utime(entry().folder / "source.json", (old, old))
    for days, left in ((11, 1), (9, 0)):
        done = events(call("cache", "clear", "--unused-for", days, "--yes", "--json"))[-1]
        assert done["removed"] == 1 - left
        assert len(list(cache_entries(Path("cache")))) == left


def test_a_use_is_recorded():
    write_cells()
    call(*CELLS, "-o", "run")
    os.utime(entry().folder / "source.json", (0, 0))
    call(*CELLS, "-o", "run")
    assert time.time() - (entry().folder / "source.json").stat().st_mtime < 600


def test_clearing_all_leaves_other_files_alone():
    write_cells()
    call(*CELLS, "-o", "run")
    Path("cache/notes.txt").write_text("mine", encoding="utf-8")
    call("cache", "clear", "--all", "--yes")
    assert {path.name for path in Path("cache").iterdir()} == {"CACHEDIR.TAG", "notes.txt"}


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_terminal_is_asked(monkeypatch, answer):
    write_cells()
    call(*CELLS, "-o", "run")
    monkeypatch.setattr("typer.confirm", lambda text: "Remove 1 store," in text and answer == "y")
    monkeypatch.setattr("sipower.cli.cache.sys", FakeSystem)
    shown = call("cache", "clear", "--all").stdout
    assert ("removed nothing" in shown) == (answer == "n")
    assert len(list(cache_entries(Path("cache")))) == (answer == "n")


class FakeSystem:
    class stdin:  # noqa: N801
        @staticmethod
        def isatty():
            return True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("clear",), "needs PATH, --all or --unused-for DAYS"),
        (("clear", "--all", "--unused-for", 3), "needs PATH, --all or --unused-for DAYS"),
        (("list", "--all"), "are options of sipower cache clear"),
        (("empty",), "empty"),
    ],
)
def test_wrong_options_are_one_sentence(words, sentence):
    assert sentence in call("cache", *words, code=2).stderr
