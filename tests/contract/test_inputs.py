# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of data that users have gives the bits of its array, or a sentence on what to do."""

import tracemalloc

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from scipy import sparse

from contract.input_kinds import (
    DENSE,
    FRAME,
    NAMED,
    NAMES,
    REFUSED,
    SPARSE,
    SPARSE_NAMED,
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
