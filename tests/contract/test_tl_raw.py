# SPDX-License-Identifier: BSD-3-Clause
"""`sipower.tl.nmf` on raw counts with repeated names, and arguments that nothing reads."""

import numpy as np
import pytest

from contract.test_tl import adata
from sipower import describe, tl


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_raw_with_repeated_names_of_other_genes_is_read():
    whole = adata()
    whole.var_names = [*map(str, range(48)), "twice", "twice"]
    cells = whole[:, :40].copy()
    cells.raw = whole
    raw = tl.nmf(cells, 2, use_raw=True, copy=True)
    expected = tl.nmf(cells, 2, layer="counts", copy=True)
    np.testing.assert_array_equal(raw.obsm["X_nmf"], expected.obsm["X_nmf"])
    cells = whole[:, 30:].copy()
    cells.raw = whole
    with pytest.raises(ValueError, match=r"`use_raw` needs unique names.*'twice' more than once"):
        tl.nmf(cells, 2, use_raw=True)


def test_plots_refuse_arguments_that_nobody_reads():
    cells = adata()
    tl.nmf(cells, 2)
    with pytest.raises(TypeError, match="`exclude` is not an argument here"):
        describe(cells, exclude="^g")
