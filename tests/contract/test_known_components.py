# SPDX-License-Identifier: BSD-3-Clause
"""Known components and entries that stay zero."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from contract.observed_data import (
    ALL_WEIGHTS,
    EVERYTHING,
    FEATURE_WEIGHT,
    MASK,
    OFFSETS,
    START,
    W0,
    V,
    divergence,
    from_start,
)
from sipower import KLNMF
from sipower.nmf import CCD, MU, SCD, Factorization, Factors, Newton
from sipower.nmf.rule import HalfStep
from sipower.nmf.terms import ModelTerms

LAYOUTS = [np.asarray, sp.csr_array]
KNOWN = 3.7 * START["H"][:2]
ABLE = ["auto", "ccd", "scd", "newton", "mu", "rows"]
UNABLE = ["s-sci-pi", "sci-pi", "power-search", "vanilla", "pgd", "shared-newton"]
ZERO = np.random.default_rng(3).random((3, 40)) < 0.3
ZERO[:, ZERO.all(axis=0)] = False


def same_bits(model, known=KNOWN):
    dtype = model.components_.dtype
    return model.components_[: len(known)].tobytes() == known.astype(dtype).tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", ABLE)
def test_known_components_keep_every_bit(solver, dtype, layout):
    options = {"solver": solver, "dtype": dtype, "components_fixed": KNOWN, "init": "random"}
    plain = from_start(**options).fit(layout(V))
    assert same_bits(plain)
    assert plain.components_[2].any()
    model = from_start(**options)
    W = model.fit_transform(layout(V), **EVERYTHING)
    assert same_bits(model)
    Z = OFFSETS[:, None] * (W.astype(float) @ model.components_)
    rel = 1e-11 if dtype == np.float64 else 1e-6
    assert model.kl_divergence_ == pytest.approx(divergence(V, Z, ALL_WEIGHTS), rel=rel)


@pytest.mark.parametrize("solver", UNABLE)
def test_other_solvers_refuse_and_name_what_to_use(solver):
    for terms in ({"components_fixed": KNOWN}, {"components_zero": ZERO}):
        with pytest.raises(ValueError, match=r"fixed components.*: use solver='auto'"):
            KLNMF(3, solver=solver, **terms).fit(V)


@pytest.mark.parametrize("init", ["auto", "random", "nndsvd", "nndsvda", "custom", None])
def test_known_components_with_every_start(init):
    start = START if init == "custom" else {}
    model = from_start(init=init, components_fixed=KNOWN, components_zero=None).fit(V, **start)
    assert same_bits(model)
    assert model.kkt_residual_ < 1e-2


def test_known_components_with_several_starts():
    options = {"tol": 1e-4, "components_fixed": KNOWN, "init": "random", "max_iter": 500}
    best = from_start(n_init=3, **options).fit(V)
    assert same_bits(best)
    assert best.status_ == "converged"
    first = from_start(**options).fit(V)
    assert best.kl_divergence_ <= first.kl_divergence_ * (1 + 1e-3)


def test_all_components_known_means_transform():
    known = 2.5 * START["H"]
    model = KLNMF(3, random_state=0, components_fixed=known)
    W = model.fit_transform(V, mask=MASK)
    assert same_bits(model, known)
    assert model.status_ == "converged"
    assert W.tobytes() == model.transform(V, mask=MASK).tobytes()
    assert model.kl_divergence_ == pytest.approx(divergence(V, W @ known, MASK), rel=1e-12)


def test_the_certificate_holds_with_known_components():
    """Another 200 rounds gain less than the certified gap allows."""
    options = {"init": "random", "components_fixed": KNOWN, "components_zero": None}
    model = from_start(**options, tol=1e-5, max_iter=2000)
    W = model.fit_transform(V, feature_weight=FEATURE_WEIGHT)
    assert model.status_ == "converged"
    start = {"W": W, "H": model.components_, "feature_weight": FEATURE_WEIGHT}
    again = from_start(components_fixed=KNOWN, max_iter=200).fit(V, **start)
    total = (FEATURE_WEIGHT * V).sum()
    assert model.kl_divergence_ - again.kl_divergence_ <= 2e-5 * total
    assert again.kl_divergence_ <= model.kl_divergence_ * (1 + 1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rule", [CCD(), CCD(2, "active"), SCD(), Newton(), MU()])
def test_features_that_known_components_explain_stay_explained(rule, layout):
    """Their other entries are zero; they were once started again, which raised the objective."""
    W = W0.copy()
    H = START["H"].T.copy()
    H[10:20, 2] = 0  # what the first two components expect there is more than the data
    H[10:20, :2] = 2 * V[:, 10:20].sum(axis=0)[:, None] / W[:, :2].sum()
    fixed = np.tile([True, True, False], (40, 1))
    problem = Factorization(layout(V), 3, ModelTerms(fixed=fixed, values=H))
    before = problem.value(Factors(W, H))
    for step in range(3):
        block = problem.half(1, Factors(W, H))
        H = rule.update(block, H, HalfStep(1.0, 0, step, 1))
        value = problem.value(Factors(W, H))
        assert value <= before * (1 + 1e-12)
        before = value
    assert H[10:20, 2].max() < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_a_hidden_component_is_found_beside_four_known_ones(seed):
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(96, 0.3), 5)
    data = rng.poisson(rng.dirichlet(np.full(5, 0.5), 300) * 1000 @ H).astype(float)
    model = KLNMF(5, random_state=0, components_fixed=H[:4]).fit(data)
    found = model.components_[4]
    cosine = found @ H[4] / np.linalg.norm(found) / np.linalg.norm(H[4])
    assert cosine >= 0.98


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", ABLE)
def test_entries_that_must_be_zero_stay_zero(solver, layout):
    for init in ("random", "nndsvda", "custom"):
        model = from_start(solver=solver, init=init, components_zero=ZERO)
        W = model.fit_transform(layout(V), **(START if init == "custom" else {}), mask=MASK)
        assert not model.components_[ZERO].any()
        assert model.components_[~ZERO].any()
        D = divergence(V, W @ model.components_, MASK)
        assert model.kl_divergence_ == pytest.approx(D, rel=1e-11)


def test_zeros_and_known_components_together():
    known = np.where(ZERO[:1], 0.0, START["H"][:1])
    model = from_start(init="random", components_fixed=known, components_zero=ZERO).fit(V)
    assert same_bits(model, known)
    assert not model.components_[ZERO].any()


def test_a_feature_that_no_component_may_contain_is_refused():
    """Its divergence is infinite; the fit once reported a finite number."""
    zero, known = np.zeros((3, 40), bool), START["H"].copy()
    zero[:, 1], known[:, 1] = True, 0
    for terms in ({"components_zero": zero}, {"components_fixed": known}):
        model = from_start(init="random", **terms)
        with pytest.raises(ValueError, match=r"No component may contain feature 1 \(counted"):
            model.fit(V)
        without = np.arange(40) != 1
        assert np.isfinite(model.fit(V, mask=without).kl_divergence_)


BAD_FIXED = [
    (np.ones((2, 39)), "must have one column for each of the 40 features"),
    (np.ones(40), "must have one column for each of the 40 features"),
    (-np.ones((2, 40)), "must be finite and non-negative"),
    (np.full((2, 40), np.nan), "must be finite and non-negative"),
    (np.vstack([np.ones(40), np.zeros(40)]), "must not contain zero rows, got row 1"),
    (np.ones((4, 40)), "must have at most n_components = 3 rows, got 4"),
    ("a", "must be a dense array of numbers"),
    ([[1], [1, 2]], "must be a dense array of numbers"),
    (sp.csr_array(np.ones((2, 40))), "must be a dense array of numbers"),
]
BAD_ZERO = [
    (np.ones((3, 39), bool), r"must be boolean with shape \(3, 40\)"),
    (np.zeros((3, 40)), r"must be boolean with shape \(3, 40\)"),
    ([[True], [True, False]], "must be a boolean array"),
    (np.ones((3, 40), bool), "`components_zero` must be False where `components_fixed`"),
]


@pytest.mark.parametrize(("known", "sentence"), BAD_FIXED)
def test_bad_known_components_get_one_sentence(known, sentence):
    with pytest.raises(ValueError, match=sentence):
        KLNMF(3, components_fixed=known).fit(V)


@pytest.mark.parametrize(("zero", "sentence"), BAD_ZERO)
def test_bad_patterns_of_zeros_get_one_sentence(zero, sentence):
    with pytest.raises(ValueError, match=sentence):
        KLNMF(3, components_fixed=KNOWN, components_zero=zero).fit(V)


def test_partial_fit_refuses_known_components():
    with pytest.raises(ValueError, match="`partial_fit` takes neither known components"):
        KLNMF(3, components_fixed=KNOWN).partial_fit(V)


@pytest.mark.parametrize("terms", [{"components_fixed": KNOWN}, {"components_zero": ZERO}, {}])
def test_a_resumed_fit_gives_the_same_bits_and_other_terms_are_refused(terms, tmp_path):
    options = {"init": "random", **terms, "max_iter": 9}
    whole = from_start(**options).fit(V, **EVERYTHING)
    options["checkpoint"] = tmp_path / "state"
    from_start(**{**options, "max_iter": 4}).fit(V, **EVERYTHING)
    resumed = from_start(**options).fit(V, **EVERYTHING)
    assert resumed.n_iter_ == 9
    assert resumed.components_.tobytes() == whole.components_.tobytes()
    for name, values in EVERYTHING.items():
        other = values.copy()
        other[0] = ~other[0] if name == "mask" else 2 * other[0]
        with pytest.raises(ValueError, match="is a checkpoint of another"):
            from_start(**options).fit(V, **{**EVERYTHING, name: other})
    options.update(components_fixed=2 * KNOWN, components_zero=None)
    with pytest.raises(ValueError, match="is a checkpoint of another"):
        from_start(**options).fit(V, **EVERYTHING)


def test_pickle_clone_parameters_and_repr():
    model = from_start(init="random", components_fixed=KNOWN, missing="nan").fit(V)
    again = pickle.loads(pickle.dumps(model))
    assert again.transform(V).tobytes() == model.transform(V).tobytes()
    copy = clone(model)
    assert copy.get_params()["components_fixed"].tobytes() == KNOWN.tobytes()
    assert not hasattr(copy, "components_")
    assert copy.fit(V).components_.tobytes() == model.components_.tobytes()
    assert "components_fixed=array" in repr(model)
    assert "missing='nan'" in repr(model)


def test_known_components_are_matched_by_the_names_of_their_features():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(8).poisson(3.0, (20, 4)), columns=list("abcd"))
    known = pd.DataFrame([[1.0, 2, 3, 4]], ["growth"], list("abcd"))
    expected = KLNMF(2, components_fixed=known.to_numpy(), random_state=0).fit(X)
    turned = KLNMF(2, components_fixed=known[list("cabd")], random_state=0).fit(X)
    np.testing.assert_array_equal(turned.components_, expected.components_)
    assert turned.verification_ == expected.verification_
    with pytest.raises(ValueError, match="`components_fixed` lacks the feature 'd' of the data"):
        KLNMF(2, components_fixed=known[list("abc")]).fit(X)
    with pytest.raises(ValueError, match="`components_fixed` has names of features, but the data"):
        KLNMF(2, components_fixed=known).fit(X.to_numpy())
