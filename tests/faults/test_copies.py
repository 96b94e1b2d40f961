# SPDX-License-Identifier: BSD-3-Clause
"""Models and matrices that are pickled, copied, cloned and dumped do what the first one does."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sipower import KLNMF, LpPCA, as_matrix
from sipower.io import open_store
from sipower.store import write_store

V = np.random.default_rng(0).poisson(2.0, (50, 30)).astype(float)


def dump_and_load(thing):
    file = io.BytesIO()
    joblib.dump(thing, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {
    **{f"pickle {p}": lambda thing, p=p: pickle.loads(pickle.dumps(thing, p)) for p in range(2, 6)},
    "joblib": dump_and_load,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
MODELS = {
    "KLNMF": lambda: KLNMF(3, random_state=0).fit(V),
    "KLNMF of float32": lambda: KLNMF(3, random_state=0).fit(sp.csr_array(V.astype(np.float32))),
    "KLNMF by batches": lambda: KLNMF(3, random_state=0).partial_fit(V[:20]).partial_fit(V[20:]),
    "LpPCA": lambda: LpPCA(2, random_state=0).fit(V),
    "LpPCA with a kernel": lambda: LpPCA(2, kernel="rbf", random_state=0).fit(V),
}


def local_of_dask():
    """The model that a cluster has fitted, without one."""
    model = pytest.importorskip("sipower.dask").KLNMF(3, random_state=0)
    source = KLNMF(3, random_state=0).fit(V)
    for name in vars(source).keys() - source.get_params().keys():
        setattr(model, name, getattr(source, name))
    return model


@pytest.mark.parametrize("copy_kind", COPIES)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_copy_of_a_fitted_model_transforms_to_the_same_bits(make, copy_kind):
    model = make()
    again = COPIES[copy_kind](model)
    assert again.get_params() == model.get_params()
    assert vars(again).keys() == vars(model).keys()
    assert again.transform(V).tobytes() == model.transform(V).tobytes()
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


@pytest.mark.parametrize("copy_kind", COPIES)
def test_a_copy_of_the_model_of_a_cluster_is_the_same_model(copy_kind):
    model = local_of_dask()
    again = COPIES[copy_kind](model)
    assert again.get_params() == model.get_params()
    assert again.to_local().transform(V).tobytes() == model.to_local().transform(V).tobytes()


@pytest.mark.parametrize("make", [*MODELS.values(), local_of_dask], ids=[*MODELS, "Dask"])
def test_a_clone_has_the_parameters_and_nothing_else(make):
    model = make()
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert vars(again).keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        again.transform(V)


@pytest.mark.parametrize("copy_kind", COPIES)
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_fitting_a_copy_leaves_the_first_model_alone(make, copy_kind):
    model = make()
    before, again = model.transform(V).tobytes(), COPIES[copy_kind](model)
    again.fit(V[:, :20])
    assert model.transform(V).tobytes() == before


@pytest.mark.parametrize("copy_kind", COPIES)
def test_a_batch_for_a_copy_leaves_what_the_first_model_has_learnt(copy_kind):
    model, expected = (KLNMF(3, random_state=0).partial_fit(V[:20]) for _ in range(2))
    COPIES[copy_kind](model).partial_fit(V[20:40])
    for one in (model, expected):
        one.partial_fit(V[40:])
    assert model.components_.tobytes() == expected.components_.tobytes()


def open_stored(folder, **more):
    write_store(V, folder / "v.sipower", samples=[f"s{i}" for i in range(50)])
    return open_store(folder / "v.sipower", **more)


MATRICES = {
    "dense": lambda folder: as_matrix(V),
    "bytes": lambda folder: as_matrix(V.astype(np.uint8)),
    "sparse": lambda folder: as_matrix(sp.csr_array(V)),
    "rows alone": lambda folder: as_matrix(sp.csr_array(V), rows_only=True),
    "transposed": lambda folder: as_matrix(sp.csr_array(V)).T,
    "stored": open_stored,
    "stored, transposed": lambda folder: open_stored(folder).T,
}


@pytest.mark.parametrize("copy_kind", COPIES)
@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_a_copy_of_a_matrix_is_fitted_to_the_same_bits(tmp_path, make, copy_kind):
    matrix = make(tmp_path)
    again = COPIES[copy_kind](matrix)
    assert (again.shape, again.dtype, again.layout) == (matrix.shape, matrix.dtype, matrix.layout)
    for side in ("row_names", "column_names"):
        assert np.array_equal(getattr(again, side), getattr(matrix, side))
    first, second = (KLNMF(3, solver="mu", random_state=0, tol=0, max_iter=4) for _ in range(2))
    assert first.fit_transform(matrix).tobytes() == second.fit_transform(again).tobytes()
