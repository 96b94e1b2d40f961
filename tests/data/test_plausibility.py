# SPDX-License-Identifier: BSD-3-Clause
"""Remarks on data that are no counts or look transposed: which data get one, and what it says."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sipower import (
    KLNMF,
    as_matrix,
    consensus,
    datasets,
    differential,
    non_negative_factorization,
    rank_selection,
    refit,
    spectra,
    standard_errors,
    topic_quality,
)
from sipower.data.plausibility import (
    ValueOrigin,
    anndata_origin,
    count_remark,
    data_remarks,
    measure_values,
    new_data_remarks,
    orientation_remark,
    total_remarks,
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
    assert "remarks" not in Run.from_model(model, model.transform(data)).facts


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


# ---- what the values were made of ----------------------------------------------------------------

RNG = np.random.default_rng(1)
CELLS = RNG.poisson(200 * RNG.gamma(0.3, 1, (200, 5)) @ RNG.dirichlet(np.full(60, 0.2), 5))
CELLS = CELLS[CELLS.sum(axis=1) > 0].astype(float)
SHARES = CELLS / CELLS.sum(axis=1, keepdims=True)
SCALED = "these look like counts divided by the size of their row"
OF_NORMALISED = "these look like logarithms of normalised counts"
KINDS = {
    "log1p of 10,000 counts per row": (np.log1p(1e4 * SHARES), OF_NORMALISED),
    "some features of it": (np.log1p(1e4 * SHARES)[:, :30], OF_NORMALISED),
    "float32": (np.log1p(1e4 * SHARES).astype(np.float32), OF_NORMALISED),
    "log2 of CPM": (np.log2(1 + 1e6 * SHARES), OF_NORMALISED),
    "log1p of counts": (np.log1p(CELLS), "these look like logarithms of counts"),
    "log10 of counts": (np.log10(1 + CELLS), "these look like logarithms of counts"),
    "CPM": (1e6 * SHARES, "every row sums to 1,000,000, as TPM and CPM do"),
    "some features of CPM": (1e6 * SHARES[:, :30], SCALED),
    "percentages": (100 * SHARES, "every row sums to 100, as percentages do"),
    "rounded percentages": (np.round(100 * SHARES, 1), "every row sums to 100, as percentages do"),
    "shares": (SHARES, "every row sums to 1, as shares do"),
    "equal totals": (250 * SHARES, "every row sums to 250"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_normalised_counts_and_logarithms_are_recognised_dense_and_sparse(kind, form):
    values, clause = KINDS[kind]
    with pytest.warns(UserWarning, match=f"KL-NMF models counts, and {clause}\\. Pass raw") as seen:
        KLNMF(2, random_state=0, tol=0.5).fit(form(values))
    assert len(seen) == 1


PIXELS = RNG.integers(1, 256, (200, 60)).astype(float)
CONTINUOUS = {
    "uniform": RNG.random((200, 60)),
    "a spectrogram": RNG.gamma(1, 1, (200, 60)),
    "heavy tails": RNG.lognormal(0, 2, (200, 60)),
    "a product": RNG.gamma(1, 1, (200, 4)) @ RNG.gamma(1, 1, (4, 60)),
    "pixels": PIXELS / 255,
    "pixels scaled by row": PIXELS / PIXELS.max(axis=1, keepdims=True),
    "ratings in halves": RNG.integers(1, 11, (200, 60)) / 2,
    "one decimal": np.round(RNG.gamma(1, 3, (200, 60)), 1),
    "few rows": RNG.random((6, 3)),
}


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_dense_data_draw_no_remark(kind):
    silent(KLNMF(2, random_state=0, tol=0.5), CONTINUOUS[kind])


def real_counts():
    """Yield the real sets that are here, and generated counts of every kind."""
    for name in filter(datasets.is_present, datasets.CATALOGUE):
        yield name, datasets.load(name)
    for seed in range(3):
        yield f"topics {seed}", datasets.poisson_topics(200, 150, 4, length=100, seed=seed)
    yield "cells", CELLS
    yield "binary", (CELLS > 0).astype(float)
    yield "two equal columns", CELLS[:, [0, 0]]
    yield "one column", CELLS[:, :1]
    yield "one row", CELLS[:1]
    yield "single counts", np.eye(9)
    yield "equal totals", RNG.multinomial(100, np.full(20, 0.05), 50)
    yield "rank one", np.outer(np.arange(1, 9), np.arange(1, 7)).astype(float)


def test_real_counts_draw_no_remark():
    for name, counts in real_counts():
        for form in (counts, as_matrix(counts)):
            assert data_remarks(form, (None, None), "X.T") == (), name


# ---- totals --------------------------------------------------------------------------------------

WITH_TOTALS = pd.DataFrame(CELLS).add_prefix("g").assign(total=CELLS.sum(axis=1))
FEATURE = "The feature 'total' is the sum of all other features in all samples: leave it out"
SAMPLE = "The sample 'all' is the sum of all other samples in all features: leave it out"


def test_a_total_column_and_a_total_row_are_named():
    fit = KLNMF(2, random_state=0, tol=0.5).fit
    with pytest.warns(UserWarning, match=FEATURE) as seen:
        fit(WITH_TOTALS)
    assert len(seen) == 1
    rows = pd.DataFrame(CELLS, [str(i) for i in range(len(CELLS))])
    with pytest.warns(UserWarning, match=SAMPLE):
        fit(pd.concat([rows, rows.sum().to_frame("all").T]))
    both = np.vstack([WITH_TOTALS, WITH_TOTALS.sum()])
    for form in (both, sp.csr_array(both), sp.csc_array(both), as_matrix(both)):
        last = f"The feature {CELLS.shape[1]} (counted from 0) is the sum"
        texts = total_remarks(form)
        assert [text[: len(last)] for text in texts[:1]] == [last]
        assert f"The sample {len(CELLS)} (counted from 0) is the sum" in texts[1]
    assert total_remarks(0.1 * both.astype(np.float32)) != ()
    both[0, -1] += 1  # not a sum any more
    assert [text[:10] for text in total_remarks(both)] == []


def test_a_store_with_a_total_is_remarked(tmp_path):
    write_store(sp.csr_array(WITH_TOTALS.to_numpy()), tmp_path / "totals.sipower")
    assert len(total_remarks(open_store(tmp_path / "totals.sipower"))) == 1


# ---- every door ----------------------------------------------------------------------------------

LOGS = np.log1p(1e4 * SHARES)
NEAR = KLNMF(2, random_state=0, tol=0.5)
H = np.array([SHARES[:100].mean(axis=0), SHARES[100:].mean(axis=0)]) + 1e-6
DOORS = {
    "fit": lambda X: KLNMF(2, random_state=0, tol=0.5).fit(X),
    "fit_transform": lambda X: KLNMF(2, random_state=0, tol=0.5).fit_transform(X),
    "partial_fit": lambda X: KLNMF(2, random_state=0, tol=0.5).partial_fit(X),
    "function": lambda X: non_negative_factorization(X, n_components=2, random_state=0, tol=0.5),
    "given H": lambda X: non_negative_factorization(X, H=H, update_H=False, n_components=2),
    "transform": lambda X: clone_of_counts().transform(X),
    "score": lambda X: clone_of_counts().score(X),
    "later partial_fit": lambda X: KLNMF(2, random_state=0).partial_fit(CELLS).partial_fit(X),
    "differential": lambda X: differential(X, clone_of_counts(), check=False),
    "differential of weights": lambda X: differential(X, SHARES[:, :2] + 1e-3, check=False),
    "standard_errors": lambda X: standard_errors(X, clone_of_counts()),
    "spectra": lambda X: spectra(X, clone_of_counts()),
    "topic_quality": lambda X: topic_quality(X, clone_of_counts(), held_out=False),
    "refit": lambda X: refit(X, H, intervals=False),
    "rank_selection": lambda X: rank_selection(X, [1, 2], NEAR, replicates=2),
    "consensus": lambda X: consensus(X, NEAR, replicates=2),
}


def clone_of_counts():
    return KLNMF(2, random_state=0, tol=0.5).fit(CELLS)


@pytest.mark.filterwarnings("ignore:.*fit noise")
@pytest.mark.parametrize("door", DOORS)
def test_every_door_says_it_once_and_points_at_the_line_of_the_user(door):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        DOORS[door](LOGS)
    said = [each for each in seen if "look like logarithms" in str(each.message)]
    assert len(said) == 1
    assert said[0].filename == __file__


def test_new_data_are_compared_with_those_of_the_fit():
    sentence = "KL-NMF models counts, as those of the fit were. Pass raw counts"
    with pytest.warns(UserWarning, match=sentence):
        clone_of_counts().transform(CONTINUOUS["uniform"])
    with pytest.warns(UserWarning, match="and these look like"):
        model = KLNMF(2, random_state=0, tol=0.5).fit(LOGS)
    continuous = KLNMF(2, random_state=0, tol=0.5).fit(CONTINUOUS["uniform"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(LOGS)  # the fit has said it
        model.score(sp.csr_array(LOGS))
        continuous.transform(CONTINUOUS["pixels"])
        clone_of_counts().transform(CELLS[:3])
        clone_of_counts().transform(0 * CELLS[:3])
        halves = KLNMF(2, random_state=0, tol=0.5).fit(CONTINUOUS["ratings in halves"])
        halves.transform(np.full((2, 60), 0.5))  # some of the fit were whole, too


def test_counts_for_a_model_of_logarithms_are_noticed():
    sentence = (
        f"The data hold whole numbers (largest {CELLS.max():.3g}), those of the fit did not: "
    )
    for values in (LOGS, SHARES, CONTINUOUS["uniform"]):
        model = KLNMF(2, random_state=0, tol=0.5).fit(values)
        for form in (CELLS, sp.csr_array(CELLS)):
            with pytest.warns(UserWarning, match=re.escape(sentence)) as seen:
                model.transform(form)
            assert len(seen) == 1
    with pytest.warns(UserWarning, match="whole numbers .* did not: pass values that were made in"):
        model.transform(CELLS.astype(int))
    assert new_data_remarks((), CELLS, 0.0) == (
        sentence + "pass values that were made in the same way.",
    )


ONE_HOT = np.eye(60)[:3]
FEW = RNG.multinomial(20, SHARES[0], 3)  # samples of 20 counts


@pytest.mark.parametrize("fitted", [None, 0.05, 0.5, 1.0])
def test_counts_are_not_remarked_unless_the_fit_had_hardly_any(fitted):
    assert count_remark(CELLS, fitted=fitted) is None


@pytest.mark.parametrize(
    "values",
    [
        ONE_HOT,
        0 * ONE_HOT,
        100 * ONE_HOT,
        5 * FEW,
        50_000 * FEW,
        2 * ONE_HOT + 1,
        LOGS,
        PIXELS / 255,
    ],
)
def test_values_that_are_whole_by_chance_draw_no_remark(values):
    assert count_remark(values, fitted=0.0) is None
    assert count_remark(sp.csr_array(values), fitted=0.0) is None
