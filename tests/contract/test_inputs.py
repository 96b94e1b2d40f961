# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of data that users have gives the bits of its array, or a sentence on what to do."""

import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from scipy import sparse

from contract.input_kinds import (
    DAYS,
    DENSE,
    FRAME,
    LENGTHS,
    NAMED,
    NAMES,
    NO_NUMBERS,
    REFUSED,
    SPARSE,
    SPARSE_NAMED,
    STAMPS,
    ZERO_FILLED,
    V,
)
from sipower import KLNMF, as_matrix, non_negative_factorization

ACCEPTED = DENSE | NAMED | SPARSE | SPARSE_NAMED
OPTIONS = {"random_state": 0, "max_iter": 5, "tol": 0.0}


def fit(data):
    """Return what a fit and new samples give, as bytes, and the model."""
    model = KLNMF(2, **OPTIONS)
    W = model.fit_transform(data)
    other, H, n_iter = non_negative_factorization(data, n_components=2, init="auto", **OPTIONS)
    arrays = (W, model.components_, model.transform(data), other, H)
    assert n_iter == model.n_iter_
    return [np.asarray(array).tobytes() for array in arrays], model


@pytest.fixture(scope="module")
def expected():
    dense, sparse_data = fit(V)[0], fit(sparse.csr_array(V))[0]
    return {False: dense, True: sparse_data}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("kind", ACCEPTED)
def test_accepted_kinds_give_the_bits_of_the_array(kind, expected, tmp_path):
    data = ACCEPTED[kind](tmp_path)
    bits, model = fit(data)
    assert bits == expected[kind in SPARSE or kind in SPARSE_NAMED]
    is_named = kind in NAMED or kind in SPARSE_NAMED
    assert list(getattr(model, "feature_names_in_", [])) == (NAMES if is_named else [])
    names = as_matrix(data).column_names
    assert (None if names is None else list(names)) == (NAMES if is_named else None)


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_kinds_get_a_sentence_on_what_to_do(kind, tmp_path):
    make, sentence = REFUSED[kind]
    model = KLNMF(2, **OPTIONS).fit(V)
    for number, use in enumerate((
        KLNMF(2, **OPTIONS).fit, KLNMF(2, **OPTIONS).fit_transform, model.transform,
        lambda X: non_negative_factorization(X, n_components=2, init="random"),
    )):  # fmt: skip
        folder = tmp_path / str(number)
        folder.mkdir()
        data = make(folder)
        with pytest.raises((TypeError, ValueError), match=sentence) as refusal:
            use(data)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_column_of_no_numbers_is_refused_by_its_name(kind):
    data, word = NO_NUMBERS[kind]
    model = KLNMF(2, **OPTIONS).fit(V)
    sentence = f"have a column 'when' of {word}, expected numbers: drop it"
    for use in (KLNMF(2, **OPTIONS).fit, KLNMF(2, missing="nan").fit, model.transform):
        with pytest.raises(ValueError, match=sentence):
            use(data)
    masked = np.ones((30, data.shape[1]), bool)
    with pytest.raises(ValueError, match=sentence):
        KLNMF(2, **OPTIONS).fit(data, mask=masked)


@pytest.mark.parametrize(
    "values",
    [
        STAMPS,
        pd.Series(STAMPS.tz_localize("UTC")),
        STAMPS.to_numpy(),
        np.array(DAYS, object),
        DAYS,
        polars.Series(DAYS),
        pa.array(STAMPS),
    ],
)
@pytest.mark.parametrize("argument", ["offsets", "sample_weight"])
def test_dates_beside_the_data_are_refused(argument, values):
    sentence = rf"`{argument}` must be (numbers, got dates|an array of numbers, got dates such as)"
    with pytest.raises(ValueError, match=sentence):
        KLNMF(2, **OPTIONS).fit(V, **{argument: values})


def test_dates_as_weights_of_entries_and_as_factors_are_refused():
    frame = pd.DataFrame({f"g{j}": LENGTHS for j in range(8)})
    with pytest.raises(ValueError, match="`weights` has a column 'g0' of durations"):
        KLNMF(2, **OPTIONS).fit(V, weights=frame)
    dates = np.full((2, 8), "2024-01-01", "M8[D]")
    with pytest.raises(ValueError, match="`H` must be numbers, got dates"):
        non_negative_factorization(V, H=dates, update_H=False, n_components=2)
    labels = KLNMF(2, **OPTIONS).fit(V, batch=np.array(DAYS, object)[np.arange(30) // 15])
    assert list(labels.batches_) == ["2024-01-01"]  # labels may be dates


def test_numbers_of_other_types_keep_their_values():
    whole = np.arange(1, 13).reshape(4, 3)
    for kind in (Decimal, Fraction, np.int8, float):
        objects = np.array([[kind(int(value)) for value in row] for row in whole], object)
        for data in (objects, pd.DataFrame(objects), objects.tolist()):
            np.testing.assert_array_equal(as_matrix(data).array, whole)
    booleans = pd.DataFrame(whole > 6)
    assert as_matrix(booleans).total == 6
    assert as_matrix(booleans.astype("boolean")).total == 6
    coded = pa.table({"a": pa.array([3, 1, 3]).dictionary_encode(), "b": [1, 2, 3]})
    assert as_matrix(coded).column_mass.tolist() == [7, 6]


@pytest.mark.parametrize("kind", [*NAMED, *SPARSE_NAMED])
def test_other_names_than_those_of_the_fit_are_refused(kind, tmp_path):
    model = KLNMF(2, **OPTIONS).fit(FRAME.rename(columns={"g0": "other"}))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(NAMED.get(kind, SPARSE_NAMED.get(kind))(tmp_path))


HOLES = np.where(np.arange(240).reshape(30, 8) % 7 == 3, np.nan, V)
WITH_HOLES = {
    "pandas Int64": pd.DataFrame(HOLES, columns=NAMES).astype("Int64"),
    "pandas sparse": pd.DataFrame(HOLES, columns=NAMES).astype(ZERO_FILLED),
    "polars": polars.from_pandas(pd.DataFrame(HOLES, columns=NAMES).astype("Int64")),
    "polars NaN": polars.DataFrame(HOLES, schema=NAMES),
    "Arrow": pa.Table.from_pandas(pd.DataFrame(HOLES, columns=NAMES).astype("Int64")),
}


@pytest.mark.parametrize("kind", WITH_HOLES)
def test_missing_values_of_every_kind_are_left_out(kind):
    model = KLNMF(2, missing="nan", **OPTIONS)
    data = sparse.csr_array(HOLES) if kind == "pandas sparse" else HOLES
    expected = KLNMF(2, missing="nan", **OPTIONS).fit(data).components_
    assert model.fit(WITH_HOLES[kind]).components_.tobytes() == expected.tobytes()
    masked = KLNMF(2, **OPTIONS).fit(WITH_HOLES[kind], mask=~np.isnan(HOLES))
    assert masked.components_.tobytes() == expected.tobytes()
    for each in (model, masked):
        assert list(each.feature_names_in_) == NAMES


def test_float32_stays_float32():
    single = V.astype(np.float32)
    kinds = {
        "ndarray": single,
        "pandas Float32": pd.DataFrame(single).astype("Float32"),
        "polars": polars.DataFrame(single),
        "Arrow": pa.table(dict(zip(NAMES, single.T, strict=True))),
    }
    bits = {kind: KLNMF(2, **OPTIONS).fit(data).components_ for kind, data in kinds.items()}
    for components in bits.values():
        assert components.dtype == np.float32
        assert components.tobytes() == bits["ndarray"].tobytes()


@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "uint16"])
def test_memory_maps_are_read_where_they_are(dtype, tmp_path):
    """The transpose, which fits of the columns read, is a copy, as the documentation says."""
    np.save(tmp_path / "v.npy", V.astype(dtype))
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    matrix = as_matrix(mapped, dtype=None if dtype[0] == "f" else "float64")
    assert np.shares_memory(matrix.array, mapped)
    assert not np.shares_memory(matrix.T.array, mapped)
    np.testing.assert_array_equal(matrix.array, V)
    np.testing.assert_array_equal(mapped, V)


def test_sparse_frames_are_never_dense():
    n, m = 3000, 400  # dense: 9.6 MB
    wide = sparse.random_array((n, m), density=0.002, rng=0, format="csc")
    frame = pd.DataFrame.sparse.from_spmatrix(wide)
    for missing in (None, "nan"):
        model = KLNMF(2, missing=missing, random_state=0, max_iter=2, tol=0)
        tracemalloc.start()
        model.fit(frame)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < n * m * 8 / 2


def test_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="torch is too large for the test dependencies")
    tensor = torch.tensor(V)
    assert fit(tensor)[0] == fit(V)[0]
    advice = r"a tensor that NumPy cannot read: pass V\.detach\(\)\.cpu\(\)\.to_dense\(\)\.double"
    others = (tensor.clone().requires_grad_(), tensor.to_sparse(), tensor.bfloat16())
    for data in others:
        with pytest.raises(TypeError, match=advice):
            KLNMF(2, **OPTIONS).fit(data)
        converted = data.detach().cpu().to_dense().double().numpy()
        assert fit(converted)[0] == fit(V)[0]
