# SPDX-License-Identifier: BSD-3-Clause
"""Names meet names: no public function matches samples or features by position in silence.

`ROWS` lists every public function that takes data beside something that can have names, with a call
for each such argument. `test_every_public_function_has_a_row` finds the functions by introspection.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose

from public_callables import public_callables
from sipower import (
    KLNMF,
    as_matrix,
    bootstrap,
    compare,
    consensus,
    describe,
    differential,
    non_negative_factorization,
    pl,
    rank_selection,
    refit,
    spectra,
    standard_errors,
    tl,
    topic_quality,
    verify,
)
from sipower.data.names import Items, match_names  # what all doors use
from sipower.io import Table, read_components
from sipower.problems import MixtureProportions, mixture_proportions
from sipower.results import Run
from sipower.results.topic_tables import to_pyldavis
from sipower.selection import component_flows, cosines, edit_components, match

pd = pytest.importorskip("pandas")
mpl.use("Agg")

N, M, K = 14, 9, 2
RNG = np.random.default_rng(0)
SAMPLES = [f"sample {i}" for i in RNG.permutation(N)]
FEATURES = [f"feature {j}" for j in RNG.permutation(M)]
PROFILES = RNG.dirichlet(np.full(M, 0.3), K)
V = RNG.poisson(60 * RNG.gamma(0.5, size=(N, K)) @ PROFILES) + RNG.poisson(0.3, (N, M))
X = pd.DataFrame(V, SAMPLES, FEATURES)
QUICK = {"random_state": 0, "max_iter": 3, "tol": 0.0, "n_jobs": 1}
MODEL = KLNMF(K, **QUICK)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    FITTED = KLNMF(K, random_state=0, n_jobs=1).fit(X)
    W = pd.DataFrame(FITTED.transform(X), SAMPLES)
H = pd.DataFrame(FITTED.components_, columns=FEATURES)
BATCHED = KLNMF(K, **QUICK)


def series(values: Any) -> Any:
    return pd.Series(values, SAMPLES if len(values) == N else FEATURES)


OBSERVED = {
    "sample_weight": series(RNG.integers(1, 5, N).astype(float)),
    "feature_weight": series(RNG.integers(1, 5, M).astype(float)),
    "weights": pd.DataFrame(RNG.uniform(0.5, 2, (N, M)), SAMPLES, FEATURES),
    "mask": pd.DataFrame(RNG.random((N, M)) > 0.1, SAMPLES, FEATURES),
    "mask of features": series(np.arange(M) != 2),
    "offsets": series(RNG.uniform(0.5, 2, N)),
    "batch": series(np.array(["a", "b"])[RNG.permutation(np.arange(N) % 2)]),
}


SLOW = ("bootstrap", "consensus", "rank_selection", "selection.edit_components", "tl.nmf")


class Row(NamedTuple):
    """A call with data and a named value, which returns numbers."""

    function: str
    argument: str
    call: Callable[[Any, Any], Any]
    value: Any
    leaves_out: bool = False  # whether items that one side lacks are left out, with a warning


def fit(X: Any, model: KLNMF | None = None, **arguments: Any) -> Any:
    model = KLNMF(K, **QUICK) if model is None else model
    return model.fit_transform(X, **arguments), model.components_


def batched() -> KLNMF:
    return KLNMF(K, **QUICK).fit(X, batch=OBSERVED["batch"].to_numpy())


def model_for(name: str, **parameters: Any) -> Any:
    """Return a model that was fitted with batches, if the argument is the batch."""
    return batched() if name == "batch" else FITTED


def start(axis: str) -> dict[str, Any]:
    return {"W": W.to_numpy() + 0.1, "H": H.to_numpy() + 0.1}


def observed_rows() -> list[Row]:
    """Return the rows of the functions that take the arguments of `KLNMF.fit`."""
    calls: dict[str, Callable[..., Any]] = {
        "KLNMF.fit": lambda X, n, **o: KLNMF(K, **QUICK).fit(X, **o).components_,
        "KLNMF.fit_transform": lambda X, n, **o: fit(X, **o),
        "KLNMF.transform": lambda X, n, **o: model_for(n).transform(X, **o),
        "KLNMF.score": lambda X, n, **o: model_for(n).score(X, **o),
        "non_negative_factorization": lambda X, n, **o: non_negative_factorization(
            X, n_components=K, random_state=0, max_iter=3, tol=0, **o
        )[:2],
        "verify": lambda X, n, **o: (
            verify(
                X, W.to_numpy(), H.to_numpy(), model=model_for(n) if n == "batch" else None, **o
            ).gap
        ),
        "bootstrap": lambda X, n, **o: bootstrap(X, model_for(n), 2, **o).W.lower,
        "standard_errors": lambda X, n, **o: standard_errors(X, model_for(n), **o),
        "differential": lambda X, n, **o: (
            differential(X, model_for(n), check=False, **o).log2_fold_change
        ),
        "rank_selection": lambda X, n, **o: (
            rank_selection(X, [1, 2], KLNMF(**QUICK), replicates=2, **o).deviance
        ),
        "consensus": lambda X, n, **o: consensus(X, MODEL, replicates=2, **o).H,
        "selection.edit_components": lambda X, n, **o: (
            edit_components(X, model_for(n), merge=[(0, 1)], **o).W
        ),
    }
    rows = []
    for function, call in calls.items():
        for name, value in OBSERVED.items():
            argument = name.split()[0]
            if function == "non_negative_factorization" and argument == "batch":
                continue  # it has none

            def one(X: Any, value: Any, call: Any = call, argument: str = argument) -> Any:
                return call(X, argument, **{argument: value})

            rows.append(Row(function, argument, one, value))
    return rows


def nnf(X: Any, **arguments: Any) -> Any:
    return non_negative_factorization(X, n_components=K, random_state=0, max_iter=3, **arguments)


def custom(X: Any, name: str, value: Any) -> Any:
    return fit(X, KLNMF(K, init="custom", **QUICK), **{**start(name), name: value})


def parameter(name: str) -> Callable[[Any, Any], Any]:
    return lambda X, value: fit(X, KLNMF(K, **QUICK, **{name: value}))


FIXED = pd.DataFrame(PROFILES[:1], ["known"], FEATURES)
ZERO = pd.DataFrame(np.zeros((K, M), bool), columns=FEATURES)
ZERO.iloc[1, 3] = True
PRIOR = pd.DataFrame(RNG.uniform(0.1, 2, (K, M)), columns=FEATURES)
GROUPS = series(np.array(["x", "y"])[np.arange(N) * 2 // N])
MORE = W + 0.1, H + 0.1


def adata(frame: Any) -> Any:
    anndata = pytest.importorskip("anndata")
    frame = pd.DataFrame(frame)
    cells = anndata.AnnData(frame.to_numpy(float))
    cells.obs_names, cells.var_names = frame.index.astype(str), frame.columns.astype(str)
    return cells


def fixed_programs(X: Any, fixed: Any) -> Any:
    cells = adata(X)
    tl.nmf(cells, K, fixed=fixed.T, max_iter=3)
    return np.asarray(cells.obsm["X_nmf"]), np.asarray(cells.varm["nmf"])


def coherence(X: Any, run: Any) -> Any:
    return describe(run, V=X).coherence.npmi


def heights(ax: Any) -> Any:
    return [bar.get_data().values for bar in ax.patches]


ROWS = [
    *observed_rows(),
    Row("KLNMF.fit", "W", lambda X, v: custom(X, "W", v), MORE[0]),
    Row("KLNMF.fit", "H", lambda X, v: custom(X, "H", v), MORE[1]),
    Row("KLNMF.fit_transform", "W", lambda X, v: custom(X, "W", v), MORE[0]),
    Row("KLNMF.fit_transform", "H", lambda X, v: custom(X, "H", v), MORE[1]),
    Row(
        "KLNMF.partial_fit",
        "H",
        lambda X, v: (
            KLNMF(K, init="custom", random_state=0).partial_fit(X, W=MORE[0].to_numpy(), H=v)
        ).components_,
        MORE[1],
    ),
    Row(
        "KLNMF.partial_fit",
        "W",
        lambda X, v: (
            KLNMF(K, init="custom", random_state=0).partial_fit(X, W=v, H=MORE[1].to_numpy())
        ).components_,
        MORE[0],
    ),
    Row("KLNMF", "components_fixed", parameter("components_fixed"), FIXED),
    Row("KLNMF", "components_zero", parameter("components_zero"), ZERO),
    Row("KLNMF", "prior_H", parameter("prior_H"), PRIOR),
    Row("KLNMF", "prior_H", parameter("prior_H"), PRIOR.iloc[0]),
    Row("non_negative_factorization", "H", lambda X, v: nnf(X, H=v, update_H=False)[:2], H),
    Row(
        "non_negative_factorization", "W",
        lambda X, v: nnf(X, W=v, H=MORE[1].to_numpy(), init="custom")[:2], MORE[0],
    ),
    Row("non_negative_factorization", "components_fixed",
        lambda X, v: nnf(X, components_fixed=v)[:2], FIXED),
    Row("non_negative_factorization", "components_zero",
        lambda X, v: nnf(X, components_zero=v)[:2], ZERO),
    Row("non_negative_factorization", "prior_H", lambda X, v: nnf(X, prior_H=v)[:2], PRIOR),
    Row("verify", "W", lambda X, v: verify(X, v, H.to_numpy()).gap, W),
    Row("verify", "H", lambda X, v: verify(X, W.to_numpy(), v).gap, H),
    Row("standard_errors", "W", lambda X, v: standard_errors(X, FITTED, v), W),
    Row("differential", "model",
        lambda X, v: differential(X, v, check=False).log2_fold_change, W),
    Row("topic_quality", "model", lambda X, v: topic_quality(X, v).npmi, H),
    Row("topic_quality", "W", lambda X, v: topic_quality(X, FITTED, v).effective, W),
    Row("spectra", "model", lambda X, v: spectra(X, v).z_scores, W),
    Row("spectra", "W", lambda X, v: spectra(X, FITTED, W=v).z_scores, W),
    Row("spectra", "totals",
        lambda X, v: spectra(X, W.to_numpy(), totals=v).z_scores, series(V.sum(1) + 5.0)),
    Row("spectra", "sample_weight",
        lambda X, v: spectra(X, W.to_numpy(), sample_weight=v).z_scores,
        OBSERVED["sample_weight"]),
    Row("refit", "H", lambda X, v: refit(X, v, intervals=False).exposures,
        pd.DataFrame(PROFILES + 0.01, ["a", "b"], FEATURES), leaves_out=True),
    Row("consensus", "groups",
        lambda X, v: consensus(X, MODEL, groups=v, replicates=2).H, GROUPS),
    Row("selection.component_flows", "fits",
        lambda X, v: component_flows(X, [(W.to_numpy(), v)] * 2).flows[0], H),
    Row("selection.component_flows", "fits",
        lambda X, v: component_flows(X, [(v, H.to_numpy())] * 2).flows[0], W),
    Row("selection.cosines", "B", cosines, H),
    Row("selection.match", "B", lambda X, v: match(X, v)[1], H),
    Row("problems.mixture_proportions", "weights",
        lambda X, v: mixture_proportions(X, v).proportions, OBSERVED["sample_weight"]),
    Row("problems.MixtureProportions", "weights",
        lambda X, v: MixtureProportions(X, v).weights, OBSERVED["sample_weight"]),
    Row("tl.nmf", "fixed", fixed_programs, FIXED),
    Row("pl.structure", "groups",
        lambda X, v: heights(pl.structure(_run(X), groups=v)), GROUPS),
]  # fmt: skip


def _run(X: Any) -> Any:
    """Return the run of a fit to X, with the names of its samples."""
    return (W if isinstance(X, pd.DataFrame) else W.to_numpy(), H.to_numpy())


def identity(row: Row) -> str:
    shape = "x".join(map(str, row.value.shape))
    return f"{row.function}-{row.argument}-{shape}"


rows = pytest.mark.parametrize("row", ROWS, ids=[f"{i}-{identity(r)}" for i, r in enumerate(ROWS)])


def quiet(call: Callable[[], Any]) -> Any:
    """Call a function without its warnings, as those of fits that stop early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def flat(result: Any) -> list[Any]:
    """Return the arrays of a result."""
    parts = result if isinstance(result, tuple | list) else [result]
    return [np.asarray(part, float) for part in parts]


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def turned(value: Any) -> Any:
    """Return a value with its items in another order, along every axis with names."""
    if isinstance(value, pd.Series):
        return value.sample(frac=1, random_state=1)
    rows = value.index[::-1] if set(value.index) == set(SAMPLES) else value.index
    columns = value.columns[::-1] if set(value.columns) == set(FEATURES) else value.columns
    return value.loc[rows, columns]


def without_last(value: Any) -> Any:
    """Return a value without one of the samples or the features."""
    if isinstance(value, pd.Series):
        return value.iloc[:-1]
    has_features = not isinstance(value.columns, pd.RangeIndex)
    return value.iloc[:, :-1] if has_features else value.iloc[:-1]


def plain_data(row: Row) -> Any:
    """Return the data of a row; those of functions of components are components."""
    return H if row.function in ("selection.cosines", "selection.match") else X


@rows
def test_a_value_with_names_in_another_order_is_matched(row: Row) -> None:
    data = plain_data(row)
    value = row.value.to_numpy()
    if row.function in ("refit", "selection.cosines", "selection.match"):  # both sides or none
        data = data.to_numpy()
    expected = quiet(lambda: row.call(data, value))
    assert_same(quiet(lambda: row.call(plain_data(row), turned(row.value))), expected)
    if row.function not in SLOW:
        assert_same(quiet(lambda: row.call(plain_data(row), row.value)), expected)


@rows
def test_a_value_without_some_item_of_the_data_is_refused(row: Row) -> None:
    less = without_last(row.value)
    if row.leaves_out:
        with pytest.warns(UserWarning, match=f"`{row.argument}` lacks"):
            row.call(plain_data(row), less)
        return
    with pytest.raises(ValueError, match=f"`{row.argument}` lacks the (sample|feature|gene) '"):
        quiet(lambda: row.call(plain_data(row), less))


@rows
@pytest.mark.parametrize("order", ["same", "other"])
def test_a_value_with_names_is_refused_for_data_without(row: Row, order: str) -> None:
    value = row.value if order == "same" else turned(row.value)
    if row.function == "tl.nmf":
        pytest.skip("the genes of AnnData have names")
    with pytest.raises(ValueError, match=f"`{row.argument}` has names of (sample|feature)s, but "):
        quiet(lambda: row.call(plain_data(row).to_numpy(), value))


# ---- something fitted, and other data ------------------------------------------------------------

RUN = Run.from_model(FITTED, W, samples=SAMPLES)
REFUSED = "feature names should match"


class Fitted(NamedTuple):
    """A call with data and something that was fitted to named data."""

    function: str
    argument: str
    call: Callable[[Any], Any]
    other: str  # "same" numbers, or the message for features in another order
    plain: str  # the message or warning for data without names
    samples: bool = False  # whether the result has one row for each sample


def projected(X: Any) -> Any:
    reference, new = adata(X0), adata(X)
    tl.nmf(reference, K, max_iter=3)
    tl.project(new, reference)
    return new.obsm["X_nmf"]


X0 = X
CATALOGUE = pd.DataFrame(PROFILES, ["a", "b"], FEATURES)
BARE = "has names of features, but"
VALID = "does not have valid feature names"
FITTED_ROWS = [
    Fitted("KLNMF.transform", "model", FITTED.transform, REFUSED, VALID),
    Fitted("KLNMF.score", "model", FITTED.score, REFUSED, VALID),
    Fitted("bootstrap", "model", lambda X: bootstrap(X, FITTED, 2).H.value, REFUSED, VALID),
    Fitted("standard_errors", "model", lambda X: standard_errors(X, FITTED), REFUSED, VALID),
    Fitted("verify", "model", lambda X: verify(X, W.to_numpy(), model=FITTED).gap, REFUSED, VALID),
    Fitted("differential", "model",
           lambda X: differential(X, FITTED, check=False).log2_fold_change, REFUSED, VALID),
    Fitted("topic_quality", "model", lambda X: topic_quality(X, FITTED).npmi, REFUSED, VALID),
    Fitted("topic_quality", "model",
           lambda X: topic_quality(X, FITTED, W.to_numpy()).npmi, REFUSED, VALID),
    Fitted("topic_quality", "held_out",
           lambda X: topic_quality(X0, FITTED, held_out=X).perplexity, REFUSED, VALID),
    Fitted("spectra", "model", lambda X: spectra(X, FITTED).usages, REFUSED, VALID),
    Fitted("spectra", "model", lambda X: spectra(X, RUN).usages, "same", "has names of samples"),
    Fitted("selection.component_flows", "fits",
           lambda X: component_flows(X, [FITTED, FITTED]).flows[0], REFUSED, VALID),
    Fitted("selection.edit_components", "model",
           lambda X: edit_components(X, FITTED, merge=[(0, 1)]).divergence, REFUSED, VALID),
    Fitted("refit", "H", lambda X: refit(X, FITTED, intervals=False).exposures, "same", BARE),
    Fitted("refit", "H", lambda X: refit(X, RUN, intervals=False).exposures, "same", BARE),
    Fitted("describe", "V", lambda X: describe(RUN, V=X).coherence.npmi, "same", BARE),
    Fitted("describe", "V", lambda X: describe(FITTED, W=W, V=X).coherence.npmi, "same", BARE),
    Fitted("results.to_pyldavis", "run",
           lambda X: to_pyldavis(RUN, X)["term_frequency"], "same", "has names of"),
    Fitted("tl.project", "programs", projected, "same", ""),
]  # fmt: skip


fitted_rows = pytest.mark.parametrize(
    "row", FITTED_ROWS, ids=[f"{i}-{r.function}-{r.argument}" for i, r in enumerate(FITTED_ROWS)]
)


@fitted_rows
@pytest.mark.parametrize("form", ["frame", "row blocks", "table"])
def test_data_with_features_in_another_order(row: Fitted, form: str) -> None:
    other = X.iloc[:, ::-1]
    data: Any = {
        "frame": other,
        "row blocks": as_matrix(other),
        "table": Table(other.to_numpy(), tuple(SAMPLES), tuple(other.columns)),
    }[form]
    if row.function == "tl.project":
        data = other
    if row.other == "same":
        assert_same(quiet(lambda: row.call(data)), quiet(lambda: row.call(X)))
        return
    with pytest.raises(ValueError, match=row.other):
        quiet(lambda: row.call(data))


@fitted_rows
def test_data_without_names_are_refused_or_reported(row: Fitted) -> None:
    if row.function == "tl.project":
        pytest.skip("the genes of AnnData have names")
    if row.plain != VALID:
        with pytest.raises(ValueError, match=row.plain):
            quiet(lambda: row.call(V))
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row.call(V)
    assert any(VALID in str(warning.message) for warning in caught)


@pytest.mark.parametrize("side", ["H", "catalogue"])
def test_compare_needs_names_on_both_sides_or_on_none(side: str) -> None:
    own = pd.DataFrame(PROFILES[::-1], columns=FEATURES)
    expected = ("b", "a")
    for other in (CATALOGUE, CATALOGUE.iloc[:, ::-1]):
        assert compare(own, other).names == expected
    with pytest.warns(UserWarning, match="`H` has 1 features"):
        compare(own, CATALOGUE.iloc[:, 1:])
    pair = (own.to_numpy(), CATALOGUE) if side == "catalogue" else (own, CATALOGUE.to_numpy())
    with pytest.raises(ValueError, match=f"`{side}` has names of features, but") as caught:
        compare(*pair)
    assert f"{side}.to_numpy() if both have the same order" in str(caught.value)
    found = quiet(lambda: consensus(X, MODEL, replicates=2))
    assert found.features == tuple(FEATURES)
    turned_catalogue = CATALOGUE.iloc[:, ::-1]
    assert_same(compare(found, turned_catalogue).cosines, cosines(found.H, PROFILES))
    bare = quiet(lambda: consensus(V, MODEL, replicates=2))
    with pytest.raises(ValueError, match="`catalogue` has names of features, but `H` has none"):
        compare(bare, CATALOGUE)


# ---- rules ---------------------------------------------------------------------------------------


def test_a_table_that_was_read_keeps_its_names():
    table = Table(V, tuple(SAMPLES), tuple(FEATURES))
    turned_catalogue = CATALOGUE.iloc[:, ::-1]
    found = refit(table, turned_catalogue, intervals=False)
    assert_same(found.exposures, refit(V, PROFILES, intervals=False).exposures)
    assert found.samples == tuple(SAMPLES)
    model = KLNMF(K, **QUICK)
    quiet(lambda: model.fit(table))
    assert model.feature_names_in_.tolist() == FEATURES


def test_numbers_that_only_count_are_no_names():
    weight = OBSERVED["sample_weight"].to_numpy()
    expected = quiet(lambda: fit(V, sample_weight=weight))
    for index in (None, list(map(str, range(N)))):  # that of pandas, and that of AnnData
        named = pd.Series(weight, index)
        assert_same(quiet(lambda named=named: fit(V, sample_weight=named)), expected)
        assert_same(quiet(lambda named=named: fit(X, sample_weight=named)), expected)
    order = np.random.default_rng(1).permutation(N)
    shuffled = pd.DataFrame(V[order], order, FEATURES)
    assert_same(
        quiet(lambda: fit(shuffled, sample_weight=pd.Series(weight)[order])),
        quiet(lambda: fit(V[order], sample_weight=weight[order])),
    )
    with pytest.raises(ValueError, match="`sample_weight` numbers its samples 0, 1, 2"):
        fit(shuffled, sample_weight=pd.Series(weight))
    with pytest.raises(ValueError, match="`sample_weight` has names of samples, but the data"):
        fit(V, sample_weight=pd.Series(weight)[order])


def test_names_that_the_data_lack_are_counted_and_the_warning_is_at_the_callers_line():
    more = pd.concat([OBSERVED["offsets"], pd.Series([1.0, 2.0], ["y", "z"])])
    model = KLNMF(K, random_state=0, tol=1e-2)
    with pytest.warns(UserWarning, match="`offsets`: 2 names are not among the samples") as caught:
        model.fit(X, offsets=more)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(ValueError, match="`offsets` has the sample 'sample"):
        model.fit(X, offsets=pd.concat([OBSERVED["offsets"], OBSERVED["offsets"][:1]]))


def test_ids_and_names_of_two_sides():
    own = Items("feature", 3, ("a", "b", "c"), ("1", "2", "3"), "the file")
    by_id = match_names(own, Items("feature", 3, ("c", "x", "y"), ("3", "1", "2"), "the run"))
    assert (by_id.kind, by_id.second.tolist()) == ("id", [1, 2, 0])
    by_name = match_names(own, Items("feature", 2, ("c", "a"), title="the run"))
    assert (by_name.kind, by_name.first.tolist(), by_name.second.tolist()) == (
        "name",
        [0, 2],
        [1, 0],
    )
    across = match_names(own, Items("feature", 2, ("3", "2"), title="the run"))
    assert (across.kind, across.first.tolist(), across.second.tolist()) == ("id", [1, 2], [1, 0])
    with pytest.raises(ValueError, match="No feature of the file is in the run"):
        match_names(own, Items("feature", 1, ("z",), title="the run"))
    with pytest.raises(ValueError, match="`H` must have the 3 features of `V`, got 2"):
        match_names(Items("feature", 3, title="`V`"), Items("feature", 2, title="`H`"))


def test_read_components_finds_the_features_by_name(tmp_path):
    CATALOGUE.T.to_csv(tmp_path / "known.csv")
    found = read_components(tmp_path / "known.csv", features=FEATURES[::-1])
    assert_same(found[FEATURES].to_numpy(), PROFILES)


# ---- the walk ------------------------------------------------------------------------------------

DATA = {"V", "X", "adata", "A", "L"}
NAMED = {
    *(name.split()[0] for name in OBSERVED),
    "W", "H", "B", "model", "run", "fits", "catalogue", "programs", "groups", "totals", "held_out",
    "fixed", "components_fixed", "components_zero", "prior_H", "features", "samples",
    "differences", "consensus",
}  # fmt: skip
# Arguments that are not matched, and why.
OTHERS = {
    ("KLNMF", "prior_W"): "belongs to components",
    ("LpPCA", "*"): "takes arrays, and scikit-learn's check of feature names",
    ("estimate", "model"): "its parameters alone are used",
    ("rank_selection", "model"): "is not fitted",
    ("selection.estimated_seconds", "model"): "is not fitted",
    ("consensus", "model"): "is not fitted",
    ("selection.merge", "H"): "shares nothing but components with W",
    ("selection.merge_tree", "H"): "shares nothing but components with W",
    ("topic_quality", "features"): "labels",
    ("pl.signatures", "features"): "labels",
    ("pl.intervals", "features"): "chooses features by name",
    ("pl.volcano", "features"): "chooses features by name",
    ("results.to_pyldavis", "features"): "labels",
    ("results.to_pyldavis", "W"): "becomes the run",
    ("results.Run", "*"): "puts factors and labels together",
    ("results.Run.from_model", "*"): "puts factors and labels together",
    ("results.Run.from_anndata", "W"): "is of other cells",
    ("report.write_report", "*"): "shows results that are complete in themselves",
    ("io.write_store", "features"): "labels",
    ("tl.spectra", "*"): "reads one AnnData object",
    ("nmf.Factorization", "*"): "arrays of the solvers",
    ("problems.KLBlock", "*"): "arrays of the solvers",
    ("describe", "H"): "shares nothing but components with W",
}


def named_arguments(function: Any) -> set[str]:
    """Return the arguments that can have names beside the data; none if there is a single one."""
    parameters = inspect.signature(function).parameters
    names = {name for name in parameters if name in NAMED or name in DATA}
    if "observed" in parameters:
        names |= {name.split()[0] for name in OBSERVED}
    beside = names - DATA
    if names & DATA:
        return beside
    return beside - {next(iter(n for n in parameters if n in NAMED), None)}


def test_every_public_function_has_a_row() -> None:
    known = {(row.function, row.argument) for row in (*ROWS, *FITTED_ROWS)}
    known |= {("compare", "catalogue"), ("io.read_components", "features")}
    missing = {
        (name, argument)
        for name, function in public_callables().items()
        for argument in named_arguments(function)
        if (name, "*") not in OTHERS
    }
    assert sorted(missing - known - set(OTHERS)) == []
    assert sorted(set(OTHERS) & known) == []
