# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on data that are no counts or look transposed: which data get one, and what it says."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sipower import KLNMF, as_matrix, consensus, rank_selection
from sipower.data.plausibility import (
    ValueOrigin,
    anndata_origin,
    count_remark,
    measure_values,
    orientation_remark,
)
from sipower.io import open_store, write_store
from sipower.results import Run

V = np.random.default_rng(0).poisson(0.3, (30, 20)).astype(float)
COUNTS = sp.csr_array(V)
LOGARITHMS = sp.csr_array(np.log1p(1.3 * V))
TF_IDF = sp.csr_array(V / np.linalg.norm(V, axis=1, keepdims=True).clip(1) * 0.97)
ORIGIN = ValueOrigin("X", "file", ("a layer 'counts'", "layer='counts'"))
GENES = [f"ENSG{i:011}" for i in range(30)]


def silent(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(*data)


def test_values_are_measured_at_their_nonzeros():
    assert measure_values(V.astype(float)).share == 1
    assert measure_values(LOGARITHMS).share == 0
    mixed = measure_values(np.array([[0.0, 0.0, 1.0, 2.5]]))
    assert (mixed.share, mixed.largest) == (0.5, 2.5)
    assert str(measure_values(LOGARITHMS)).startswith("no whole numbers, largest ")
    assert (
        str(measure_values(sp.csr_array(V.astype(np.int32))))
        == f"whole numbers, largest {V.max():.4g}"
    )
    assert measure_values(np.zeros((2, 2))).look_like_counts
    assert not measure_values(np.array([["a", "b"]])).look_like_counts


def test_the_remark_names_the_counts_of_the_origin():
    largest = LOGARITHMS.max()
    assert count_remark(LOGARITHMS, ORIGIN) == (
        f"X holds no whole numbers (largest {largest:.3g}): KL-NMF models counts. "
        "The file has a layer 'counts': use layer='counts'."
    )
    assert count_remark(LOGARITHMS.toarray(), ORIGIN) == count_remark(LOGARITHMS, ORIGIN)
    assert count_remark(COUNTS, ORIGIN) is None
    assert "uns['log1p']" in count_remark(LOGARITHMS, ValueOrigin("X", is_log=True))


def test_a_layer_is_named_by_its_values_and_not_by_its_name():
    layers = {"counts": LOGARITHMS, "umi": COUNTS}
    origin = anndata_origin("object", None, layers, is_log=True)
    assert origin.counts == ("a layer 'umi'", "layer='umi'")
    origin = anndata_origin("object", "scaled", {"raw": COUNTS}, is_log=False)
    assert (origin.name, origin.counts) == (
        "The layer 'scaled'",
        ("counts in .raw", "use_raw=True"),
    )
    assert anndata_origin("file", None, {"raw": LOGARITHMS}, is_log=False).counts is None


def test_sparse_values_without_an_origin_get_advice_and_dense_ones_none():
    assert count_remark(TF_IDF).endswith("CountVectorizer instead of TfidfVectorizer.")
    assert count_remark(LOGARITHMS).endswith("instead of normalised or log-transformed values.")
    assert count_remark(LOGARITHMS.toarray()) is None
    assert count_remark(as_matrix(LOGARITHMS.toarray())) is None
    assert (
        count_remark(sp.csr_array(np.full((4, 4), 0.5))) is None
    )  # a spectrogram, but for its layout


def test_a_store_of_other_values_is_remarked(tmp_path):
    write_store(LOGARITHMS, tmp_path / "logs.sipower")
    write_store(COUNTS, tmp_path / "counts.sipower")
    assert "no whole numbers" in count_remark(open_store(tmp_path / "logs.sipower"))
    assert count_remark(open_store(tmp_path / "counts.sipower")) is None


def test_the_estimator_warns_once_about_tf_idf_and_its_run_says_so():
    model = KLNMF(2, random_state=0, tol=1e-1)
    with pytest.warns(UserWarning, match="CountVectorizer instead of TfidfVectorizer") as caught:
        W = model.fit_transform(TF_IDF)
    assert len(caught) == 1
    assert Run.from_model(model, W).facts["remarks"] == [str(caught[0].message)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(TF_IDF)


@pytest.mark.parametrize("data", [COUNTS, V.astype(float), LOGARITHMS.toarray(), as_matrix(TF_IDF)])
def test_the_estimator_is_silent_about_counts_dense_data_and_row_blocks(data):
    model = silent(KLNMF(2, random_state=0, tol=1e-1), data)
    assert "remarks" not in Run.from_model(model, np.ones((30, 2))).facts


def test_selection_warns_once_whatever_the_number_of_fits():
    model = KLNMF(2, random_state=0, tol=1e-1, init="random")
    for select in (lambda: rank_selection(TF_IDF, [1, 2], model, replicates=2),
                   lambda: consensus(TF_IDF, model, replicates=3)):  # fmt: skip
        with pytest.warns(UserWarning, match="KL-NMF models counts") as caught:
            select()
        assert len(caught) == 1


def test_names_tell_swapped_samples_and_features():
    assert orientation_remark(GENES, None) == (
        "The samples look like genes: if samples and features are swapped, use transpose=True.",
    )
    assert "barcodes" in orientation_remark(None, ["ACGTACGTAC-1"] * 3)[0]
    assert "genes" in orientation_remark(["Actb", "Gapdh", "B2m", "Xkr4"], None)[0]
    assert orientation_remark(["Actb", "cell 2", "cell 3"], GENES) == ()
    with pytest.warns(UserWarning, match="look like genes.*use `X.T`"):
        KLNMF(2, random_state=0, tol=1e-1).fit(pd.DataFrame(V, index=GENES))
    silent(KLNMF(2, random_state=0, tol=1e-1), pd.DataFrame(V.T, columns=GENES))
