# SPDX-License-Identifier: BSD-3-Clause
"""Callbacks that raise: what they raise reaches the caller, and the model is as it was."""

import numpy as np
import pytest

from sipower import KLNMF, Interrupted, consensus, nmf, solve
from sipower.nmf import Factorization, make_solver

V = np.random.default_rng(0).poisson(2.0, (50, 30))
RAISED = (
    StopIteration,
    GeneratorExit,
    SystemExit,
    ValueError,
    MemoryError,
    OSError,
    ExceptionGroup,
)


class Unexpected(BaseException):
    """Of no kind that anybody knows."""


def raising(kind, at):
    """A callback, and the very exception that it raises in a round."""
    what = (
        kind("in a callback", [ValueError()]) if kind is ExceptionGroup else kind("in a callback")
    )

    def on_round(record):
        if record.round == at:
            raise what

    return on_round, what


def fit_model(**more):
    return KLNMF(3, **{"random_state": 0, "max_iter": 6, "tol": 0} | more)


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("kind", [*RAISED, Unexpected])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_what_a_callback_raises_reaches_the_caller_as_it_is(tmp_path, kind, at, checkpoint):
    on_round, what = raising(kind, at)
    path = tmp_path / "run.npz" if checkpoint else None
    model = fit_model(on_round=on_round, checkpoint=path)
    with pytest.raises(kind) as caught:
        model.fit(V)
    assert caught.value is what
    assert vars(model).keys() == KLNMF().get_params().keys()  # not fitted, not even in part
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_a_model_whose_callback_raised_is_as_it_was_and_fits_to_the_same_bits(solver):
    expected = fit_model(solver=solver).fit(V)
    model = fit_model(solver=solver).fit(V[:, :20])
    before = vars(model).copy()
    on_round, _ = raising(ZeroDivisionError, 2)
    with pytest.raises(ZeroDivisionError):
        model.set_params(on_round=on_round).fit(V)
    assert vars(model.set_params(on_round=None)) == before
    model.transform(V[:, :20])
    assert model.fit(V).components_.tobytes() == expected.components_.tobytes()


def test_a_callback_that_raises_keyboard_interrupt_is_ctrl_c():
    model = fit_model(on_round=raising(KeyboardInterrupt, 3)[0])
    with pytest.raises(Interrupted):
        model.fit(V)
    assert (model.status_, model.n_iter_) == ("interrupted", 3)


@pytest.mark.parametrize("solver", nmf.SOLVERS)
def test_what_a_callback_of_solve_raises_reaches_the_caller_as_it_is(solver):
    on_round, what = raising(StopIteration, 2)
    with pytest.raises(StopIteration) as caught:
        solve(Factorization(V, 3), make_solver(solver), on_round=on_round)
    assert caught.value is what


def test_a_batch_that_fails_leaves_what_partial_fit_has_learnt(monkeypatch):
    model, expected = (fit_model().partial_fit(V[:25]) for _ in range(2))

    def no_memory(*args):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("sipower.estimators.fitting.np.maximum", no_memory)
        with pytest.raises(MemoryError):
            model.partial_fit(V[25:])
    model, expected = (one.partial_fit(V[25:]) for one in (model, expected))
    assert model.components_.tobytes() == expected.components_.tobytes()
    assert model.n_steps_ == expected.n_steps_ == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_that_raises_in_a_replicate_ends_all_of_them():
    on_round, what = raising(ValueError, 2)
    with pytest.raises(ValueError, match="in a callback") as caught:
        consensus(V, fit_model(on_round=on_round, n_jobs=2), replicates=4)
    assert caught.value is what
