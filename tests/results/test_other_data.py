# SPDX-License-Identifier: BSD-3-Clause
"""Models of other libraries, and data or weights that are not those of the fit, are said."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import NMF, PCA, LatentDirichletAllocation

from sipower import KLNMF, describe, differential, pl, spectra, tl, topic_quality, verify
from sipower.datasets import poisson_topics
from sipower.results import Run
from sipower.results.as_run import as_run

LENGTHS = np.where(np.arange(200) < 100, 20, 1)
V = poisson_topics(200, 60, 3, length=100, seed=0).toarray() * LENGTHS[:, None].astype(float)
V = V[:, V.sum(axis=0) > 0]
FRAME = pd.DataFrame(V).add_prefix("w")


@pytest.fixture(scope="module")
def fitted():
    model = KLNMF(3, random_state=0)
    return model, model.fit_transform(V)


@pytest.fixture(scope="module")
def topics():
    model = LatentDirichletAllocation(3, random_state=0, max_iter=5).fit(FRAME)
    return model, model.transform(FRAME)


def quietly(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call(*arguments, **options)


# ---- models of scikit-learn ----------------------------------------------------------------------


def test_a_topic_model_is_described_by_its_counts(topics):
    model, shares = topics
    about = quietly(describe, model, W=shares, V=FRAME)
    turned = quietly(describe, model, W=shares, V=FRAME.iloc[:, ::-1])
    np.testing.assert_array_equal(turned.profiles, about.profiles)
    totals = V.sum(axis=1)
    sizes = shares.T @ totals / totals.sum()
    np.testing.assert_allclose(about.sizes, sizes[about.order], rtol=1e-12)
    profiles = model.components_ / model.components_.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(about.profiles, profiles[about.order], rtol=1e-12)
    np.testing.assert_allclose(about.memberships, shares[:, about.order], rtol=1e-12)
    assert about.features[0] == "w0"
    assert about.quality is not None
    usages = spectra(FRAME, model, W=shares).usages
    np.testing.assert_allclose(usages, shares, rtol=1e-12)


def test_a_topic_model_without_counts_is_refused(topics):
    model, shares = topics
    for use in (describe, pl.structure, as_run):
        with pytest.raises(ValueError, match=r"whose weights are shares of topics: give `W`.* `V`"):
            use(model, W=shares)
    with pytest.raises(TypeError, match=r"components are pseudo-counts .* use sipower\.describe"):
        Run.from_model(model, shares)
    with pytest.raises(ValueError, match="`W` must have a row for each of the 200 samples"):
        describe(model, W=shares[:5], V=FRAME)


@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
def test_nmf_of_scikit_learn_is_judged_by_the_totals():
    options = {"init": "nndsvda", "max_iter": 1000, "tol": 1e-8}
    poisson = NMF(3, beta_loss="kullback-leibler", solver="mu", **options)
    W = poisson.fit_transform(V)
    quietly(describe, poisson, W=W, V=V)
    squares = NMF(1, init="nndsvda")
    W = squares.fit_transform(V)
    quietly(describe, squares, W=W)
    with pytest.warns(UserWarning, match=r"W H does not have the totals of `V`.* another loss"):
        describe(squares, W=W, V=V)


def test_negative_components_are_refused():
    model = PCA(3).fit(V)
    with pytest.raises(TypeError, match="got a PCA whose components have negative entries"):
        describe(model, W=np.abs(model.transform(V)))


# ---- other data ----------------------------------------------------------------------------------


def test_weights_of_other_data_are_said_and_take_no_measures(fitted):
    model, W = fitted
    assert quietly(Run.from_model, model, W).facts["divergence"] == model.kl_divergence_
    quietly(describe, model, W=model.transform(V))
    for other in (model.transform(V[:90]), model.transform(V + 1.0), 2 * W):
        with pytest.warns(
            UserWarning, match="`W` is not that of the fit: sizes and shares"
        ) as seen:
            describe(model, W=other)
        assert [each.filename for each in seen] == [__file__]
    with pytest.warns(UserWarning, match="`W` is not that of the fit"):
        run = Run.from_model(model, W[:90])
    assert {"divergence", "certified_gap", "status"}.isdisjoint(run.facts)
    assert len(run.trace) == 0
    weighted = KLNMF(3, random_state=0)
    W = weighted.fit_transform(V, sample_weight=LENGTHS)
    quietly(describe, weighted, W=W)
    interrupted = weighted.partial_fit(V)
    quietly(describe, interrupted, W=W[::2])


ONE_FIT = r"`V`, W and H are not those of one fit: D\(V ‖ W H\) is"


@pytest.mark.parametrize("change", [
    lambda V: V[:, ::-1], lambda V: V[::-1], np.log1p, lambda V: V + (V > 5),
])  # fmt: skip
def test_data_of_another_fit_are_noticed_by_the_divergence(fitted, change):
    model, W = fitted
    other = np.ascontiguousarray(change(V))
    doors = {
        "describe": lambda V: describe(model, W=W, V=V),
        "a run": lambda V: describe(Run.from_model(model, W), V=V),
        "float32": lambda V: describe(Run.from_model(model, W), V=sparse.csr_array(V, dtype="f4")),
        "topic_quality": lambda V: topic_quality(V, model, W, held_out=False),
        "differential": lambda V: differential(V, model, check=False),
        "verify": lambda V: verify(V, W, model=model),
    }
    for name, use in doors.items():
        quietly(use, V)
        if name == "differential" and other.sum() == V.sum() and (other[:, 0] == V[::-1, 0]).all():
            continue  # of other rows, the weights are computed anew
        sentence = "are not those of the fit of `model`" if name == "verify" else ONE_FIT
        with pytest.warns(UserWarning, match=sentence) as seen:
            use(other)
        assert {each.filename for each in seen} == {__file__}


def test_names_are_matched_before_data_are_compared():
    rows = FRAME.rename(index="cell {}".format)
    model = KLNMF(3, random_state=0).set_output(transform="pandas")
    W = model.fit_transform(rows)
    turned = rows.iloc[::-1, ::-1]
    expected = quietly(describe, model, W=W, V=rows)
    about = quietly(describe, model, W=W, V=turned)
    np.testing.assert_array_equal(about.coherence.npmi, expected.coherence.npmi)
    with pytest.warns(UserWarning, match=ONE_FIT):
        describe(model, W=W, V=turned + 1.0)


def test_weights_that_do_not_belong_to_the_data_are_said(fitted):
    model, W = fitted
    totals = "W H does not have the totals of `V`: it sums to"
    with pytest.warns(UserWarning, match=totals):
        describe(W, model.components_, V=V[::-1])
    with pytest.warns(UserWarning, match=totals):
        topic_quality(V, model, model.transform(V[:100]).repeat(2, axis=0), held_out=False)
    quietly(describe, W, model.components_, V=V)
    new = V[:100]
    quietly(topic_quality, new, model, model.transform(new), held_out=False)
    penalised = KLNMF(3, random_state=0, alpha_W=0.01)
    quietly(describe, penalised, W=penalised.fit_transform(V), V=V)
    offsets = KLNMF(3, random_state=0)
    quietly(describe, offsets, W=offsets.fit_transform(V, offsets=LENGTHS), V=V)


def test_counts_that_changed_after_the_fit_are_noticed_in_anndata():
    ad = pytest.importorskip("anndata", reason="optional")
    cells = ad.AnnData(sparse.csr_matrix(V.astype("f4")))
    cells.var_names, cells.obs_names = FRAME.columns, [f"cell {i}" for i in range(len(V))]
    tl.nmf(cells, 3)
    quietly(tl.spectra, cells)
    quietly(tl.differential, cells, check=False)
    cells.X = cells.X[:, ::-1]
    for use in (tl.spectra, lambda cells: tl.differential(cells, check=False)):
        with pytest.warns(UserWarning, match=ONE_FIT):
            use(cells)
