# SPDX-License-Identifier: BSD-3-Clause
"""A file to open from disk, and a folder for its store."""

import numpy as np
import pytest
import scipy.sparse as sp

from cached_files import V, write_anndata


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cells.h5ad"
    write_anndata(path, sp.csr_matrix(V.astype(np.float32)))
    return path


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"
