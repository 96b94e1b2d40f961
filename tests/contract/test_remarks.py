# SPDX-License-Identifier: BSD-3-Clause
"""What a fit says about its data, its number of components and its convergence."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from contract.small_fits import V, quick
from sipower import KLNMF, non_negative_factorization, tl


def test_a_large_vocabulary_needs_a_number_of_components():
    wide = sp.csr_array(np.ones((3, 65)))
    sentence = r"`n_components` must be a number .* got 'auto' and 65 features: .*rank_selection"
    for call in (KLNMF().fit, KLNMF().partial_fit):
        with pytest.raises(ValueError, match=sentence):
            call(wide)
    assert KLNMF(random_state=0).fit(wide[:, :64]).n_components_ == 64
    custom = KLNMF(init="custom").fit(wide, W=np.ones((3, 2)), H=np.ones((2, 65)))
    assert custom.n_components_ == 2


@pytest.mark.parametrize("rank", [9, np.int64(9)])
def test_more_components_than_a_dimension_draw_one_remark(rank):
    with pytest.warns(UserWarning, match="is 9, but 8 components reproduce 8 samples x 40") as seen:
        KLNMF(rank, random_state=0).fit(V[:8])
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KLNMF(8, random_state=0).fit(V[:8])
        KLNMF(random_state=0).fit(V[:8])  # the number of features was not chosen


def test_data_without_counts_draw_a_remark():
    with pytest.warns(UserWarning, match="The data are all zero: W and H are zero"):
        model = KLNMF(2).fit(np.zeros((4, 5)))
    assert not model.components_.any()


def test_a_w_that_is_not_used_is_said():
    H = quick().fit(V).components_
    exact, _, _ = non_negative_factorization(V, H=H, update_H=False)
    with pytest.warns(RuntimeWarning, match="`W` is not used with update_H=False"):
        W, _, _ = non_negative_factorization(V, W=np.ones((60, 3)), H=H, update_H=False)
    np.testing.assert_array_equal(W, exact)


def test_a_slow_rule_is_told_of_auto_and_what_it_takes():
    with pytest.warns(ConvergenceWarning) as seen:
        quick(solver="mu", max_iter=40, tol=1e-5).fit(V)
    message = str(seen[0].message)
    rounds = re.search(r"suggests about ([\d,]+) rounds", message)
    assert int(rounds[1].replace(",", "")) > 40
    assert re.search(
        r"solver='auto', which needs 200 to 800 passes .* here \S+ s to \S+ s", message
    )
    with pytest.warns(ConvergenceWarning) as seen:
        quick(max_iter=2, tol=1e-9).fit(V)
    assert "solver=" not in str(seen[0].message)


def test_a_column_may_have_the_name_of_an_attribute():
    frame = pd.DataFrame(V[:, :3], columns=["dtype", "columns", "sparse"])
    W = quick().fit_transform(frame)
    np.testing.assert_array_equal(W, quick().fit_transform(V[:, :3]))


def test_what_is_left_out_is_named():
    data = V[:4, :3].copy()
    data[:, 2] = [0, 1, 2, 0]
    H = np.array([[1.0, 1, 0], [0, 1, 0]])
    frame = pd.DataFrame(data, index=list("wxyz"), columns=["a", "b", "c"])
    sentence = "No component has feature 'c', but row 'x' has counts of it: 2 such entries are left"
    with pytest.warns(UserWarning, match=sentence):
        non_negative_factorization(frame, H=H, update_H=False)


def test_a_path_is_not_an_anndata_object():
    with pytest.raises(TypeError, match=r"the path 'cells.h5ad': read it first, with anndata.read"):
        tl.nmf("cells.h5ad", 4)
