# SPDX-License-Identifier: BSD-3-Clause
"""Features that have names are those of the fit, in its order, or are refused."""

import numpy as np
import pytest

import sipower

da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")
pytest.importorskip("distributed.client")

from sipower.dask import KLNMF  # noqa: E402 - optional

V = np.random.default_rng(0).poisson(2.0, (40, 3)).astype(float)
NAMES = ["apples", "pears", "plums"]
REVERSED = NAMES[::-1]
MISMATCH = "The feature names should match those that were passed during fit."


def model():
    return KLNMF(2, random_state=0, tol=1e-2)


def frame(names=NAMES):
    return pd.DataFrame(V, columns=NAMES)[names]


@pytest.fixture
def files(tmp_path):
    """A file without names, one with them, and one that has them in another order."""
    np.save(tmp_path / "bare.npy", V)
    for name, names in {"named.csv": NAMES, "turned.csv": REVERSED}.items():
        frame(names).to_csv(tmp_path / name, index=False)
    return [str(tmp_path / name) for name in ("bare.npy", "named.csv", "turned.csv")]


def test_transform_compares_names_as_the_local_model_does(client, files):
    bare, named, reordered = files
    result = model().fit([bare, named])
    assert result.feature_names_in_.dtype == object
    assert result.feature_names_in_.tolist() == NAMES
    expected = result.to_local().transform(frame())
    for same in (bare, named):
        np.testing.assert_array_equal(result.transform([same]).compute(), expected)
    with pytest.raises(ValueError, match=rf"turned\.csv.*feature 0 is plums.*{MISMATCH}"):
        result.transform([named, reordered]).compute()
    for local in (result.to_local(), sipower.KLNMF(2, random_state=0, tol=1e-2).fit(frame())):
        with pytest.raises(ValueError, match=MISMATCH):
            local.transform(frame(REVERSED))


def test_names_of_chunks_and_those_of_an_earlier_fit(client):
    plain = da.from_array(V, chunks=(20, -1))

    def chunks(names):
        return plain.map_blocks(pd.DataFrame, columns=names, meta=V[:0])

    result = model().fit(chunks(NAMES))
    with pytest.raises(ValueError, match=rf"Chunk [01] .*{MISMATCH}"):
        result.transform(chunks(REVERSED)).compute()
    numbers = result.transform(chunks(range(3)))  # no names to scikit-learn
    np.testing.assert_array_equal(numbers.compute(), result.transform(plain).compute())
    for unnamed in (plain, chunks(range(3))):
        assert not hasattr(result.fit(chunks(NAMES)).fit(unnamed), "feature_names_in_")
    assert result.transform(chunks(REVERSED)).compute().shape == (40, 2)


def test_named_parts_are_compared_wherever_the_first_of_them_stands(client, files):
    message = r"turned\.csv has other features than .*named\.csv: feature 0 is plums, not apples"
    with pytest.raises(ValueError, match=message):
        model().fit(files)


def test_values_with_names_are_matched_to_the_features_of_the_fit_or_refused(client):
    plain = da.from_array(V, chunks=(20, -1))
    chunks = plain.map_blocks(pd.DataFrame, columns=NAMES, meta=V[:0])
    depth = pd.Series(np.arange(1.0, 41.0))
    expected = model().fit(plain, offsets=depth.to_numpy()).components_
    assert (model().fit(plain, offsets=depth).components_ == expected).all()
    named = depth.rename("sample {}".format)
    for X in (plain, chunks):
        with pytest.raises(ValueError, match="`offsets` has names of samples, but the data on"):
            model().fit(X, offsets=named)
    panel = pd.Series([True, True, False], NAMES)
    with pytest.raises(ValueError, match=r"`mask` has names of features.*or mask\.to_numpy\(\)"):
        model().fit(plain, mask=panel)
    result = model().fit(chunks)
    expected = result.transform(plain, mask=panel.to_numpy()).compute()
    np.testing.assert_array_equal(result.transform(plain, mask=panel[::-1]).compute(), expected)
    known = pd.DataFrame([[1.0, 2.0, 3.0]], ["growth"], NAMES)
    fixed = [
        KLNMF(2, components_fixed=k, random_state=0, tol=1e-2) for k in (known, known[REVERSED])
    ]
    one, other = (each.fit(chunks) for each in fixed)
    np.testing.assert_array_equal(one.components_, other.components_)
    assert other.components_[0].tolist() == [1.0, 2.0, 3.0]
