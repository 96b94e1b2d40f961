# SPDX-License-Identifier: BSD-3-Clause
"""Wrong arguments, starts and answers of KLNMF get one sentence."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from contract.small_fits import H0, W0, V, quick
from sipower import KLNMF, non_negative_factorization

BAD = {
    "n_components": ({"n_components": 0}, "n_components"),
    "solver": ({"solver": "simplex"}, "solver"),
    "solver cd": ({"solver": "cd"}, "solver='cd' is for the Frobenius norm"),
    "init": ({"init": "best"}, "init"),
    "init without factors": (
        {"init": "custom"},
        "`W` and `H` must both be given with init='custom'",
    ),
    "tol": ({"tol": -1.0}, "tol"),
    "max_iter": ({"max_iter": 0}, "max_iter"),
    "max_time": ({"max_time": -1}, "max_time"),
    "random_state": ({"random_state": "x"}, "random_state"),
    "n_jobs": ({"n_jobs": 1.5}, "n_jobs"),
    "dtype": ({"dtype": "int32"}, "`dtype` must be float32 or float64"),
    "transform_tol": ({"transform_tol": 0.0}, "transform_tol"),
    "forget_factor": ({"forget_factor": 2.0}, "forget_factor"),
    "verbose": ({"verbose": -1}, "verbose"),
    "beta_loss": (
        {"beta_loss": "frobenius"},
        "`beta_loss` must be 'kullback-leibler', got 'frobenius'",
    ),
    "beta_loss as number": ({"beta_loss": 0.5}, "`beta_loss` must be 'kullback-leibler', got 0.5"),
    "l1_ratio": ({"l1_ratio": 2.0}, "l1_ratio"),
    "shuffle": ({"shuffle": "yes"}, "shuffle"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arguments_get_one_sentence(what):
    options, message = BAD[what]
    with pytest.raises(ValueError, match=message) as caught:
        KLNMF(**{"n_components": 2, **options}).fit(V)
    assert "\n" not in str(caught.value)


BAD_STARTS = {
    "only W": (W0, None, "must both be given"),
    "W of another shape": (W0[:5], H0.T, r"`W` must have shape \(60, 3\), got \(5, 3\)"),
    "H of another shape": (W0, H0, r"`H` must have shape \(3, 40\), got \(40, 3\)"),
    "negative": (-W0, H0.T, "`W` must be finite and non-negative"),
    "NaN": (W0, H0.T * np.nan, "`H` must be finite and non-negative"),
    "zero": (W0, H0.T * 0, "`H` must not be all zero"),
}


@pytest.mark.parametrize("what", BAD_STARTS)
def test_bad_starts_get_one_sentence(what):
    W, H, message = BAD_STARTS[what]
    with pytest.raises(ValueError, match=message):
        KLNMF(3, init="custom").fit(V, W=W, H=H)


def test_other_misuse():
    with pytest.raises(ValueError, match="`W` and `H` are used only with init='custom'"):
        KLNMF(3).fit(V, W=W0, H=H0.T)
    with pytest.raises(NotFittedError):
        KLNMF(3).transform(V)
    model = quick().fit(V)
    with pytest.raises(ValueError, match="39 features"):
        model.transform(V[:, 1:])
    with pytest.raises(ValueError, match=r"`X` must have shape \(samples, 3\)"):
        model.inverse_transform(np.ones((2, 5)))
    with pytest.raises(ValueError, match="`H` must be given with update_H=False"):
        non_negative_factorization(V, update_H=False)
    with pytest.raises(ValueError, match=r"Negative values in data: entry \(0, 0\)"):
        model.transform(-V - 1)


def test_overflow_of_the_answer_is_a_sentence():
    with pytest.raises(ValueError, match="too large for float64"):
        non_negative_factorization(V * 1e150, H=np.ones((2, 40)) * 1e-200, update_H=False)
    with pytest.raises(ValueError, match="must not be all zero in float32"):
        non_negative_factorization(V.astype("f4"), H=np.ones((2, 40)) * 1e-60, update_H=False)
    with pytest.raises(ValueError, match="finite and non-negative in float32"):
        non_negative_factorization(V.astype("f4"), H=np.ones((2, 40)) * 1e300, update_H=False)


@pytest.mark.parametrize(
    ("W", "H", "message"),
    [
        ([1, 2], 3, "`H` must have shape"),
        ("abc", H0.T, "`W` must be a dense array of numbers"),
        (W0, sp.csr_array(H0.T), "`H` must be a dense array of numbers"),
    ],
)
def test_odd_starts_get_one_sentence(W, H, message):
    with pytest.raises(ValueError, match=message):
        KLNMF(init="custom").fit(V, W=W, H=H)
