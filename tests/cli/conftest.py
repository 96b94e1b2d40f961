# SPDX-License-Identifier: BSD-3-Clause
"""Folders to work in, with counts in them."""

import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.io import mmwrite

from cli.calls import SPARSE_V, V
from sipower.datasets import poisson


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A folder to work in, with counts.csv in it."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(V, index=[f"document {i}" for i in range(60)],
                         columns=[f"word{j}" for j in range(40)])  # fmt: skip
    frame.to_csv("counts.csv")
    return tmp_path


@pytest.fixture
def sparse_counts(tmp_path, monkeypatch):
    """A folder to work in, with counts.npz in it."""
    monkeypatch.chdir(tmp_path)
    sp.save_npz("counts.npz", sp.csr_matrix(SPARSE_V))
    return tmp_path


@pytest.fixture
def large(tmp_path):
    """A folder with large.mtx in it, whose fit takes seconds."""
    mmwrite(tmp_path / "large.mtx", sp.coo_array(poisson(1500, 1200, 0.2, seed=1)))
    return tmp_path
