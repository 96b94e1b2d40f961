# SPDX-License-Identifier: BSD-3-Clause
"""Runs, plots and reports of fitted models and arrays."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sipower import KLNMF, pl
from sipower.data.formats import RUN
from sipower.datasets import poisson_topics
from sipower.report import write_report
from sipower.results import Run, load_run, save_run
from sipower.results.as_run import as_run
from sipower.results.describe import describe


@pytest.fixture(scope="module")
def fitted_model():
    frame = pd.DataFrame(poisson_topics(40, 30, 3, length=80, seed=0).toarray())
    frame.columns = [f"word{j}" for j in range(30)]
    model = KLNMF(3, random_state=5, dtype=np.float32)
    return model, model.fit_transform(frame)


def test_a_run_is_made_of_a_fitted_model(fitted_model, tmp_path):
    model, W = fitted_model
    run = Run.from_model(model, W, samples=[f"document {i}" for i in range(40)])
    np.testing.assert_array_equal(run.W, W[:, run.order])
    np.testing.assert_array_equal(run.H, model.components_[run.order])
    assert run.features[:2] == ("word0", "word1")
    assert run.samples[-1] == "document 39"
    assert list(run.trace) == list(model.trace_)
    facts = run.facts
    assert (facts["status"], facts["rounds"]) == (model.status_, model.n_iter_)
    assert (facts["divergence"], facts["certified_gap"]) == (
        model.kl_divergence_, model.kkt_residual_,
    )  # fmt: skip
    assert facts["parameters"]["random_state"] == 5
    assert facts["parameters"]["dtype"] == "float32"
    assert load_run(save_run(run, tmp_path)).facts == {**RUN.stamp(), **facts}


def test_a_model_after_partial_fit_is_a_run_without_a_trace(tmp_path):
    V = poisson_topics(40, 30, 3, length=80, seed=0)
    model = KLNMF(3, random_state=np.random.RandomState(0)).partial_fit(V)
    run = load_run(save_run(Run.from_model(model, model.transform(V)), tmp_path))
    assert not run.trace
    assert "status" not in run.facts
    assert run.facts["parameters"]["random_state"].startswith("RandomState")


def test_what_is_no_run_and_no_fitted_model_is_refused(fitted_model):
    model, W = fitted_model
    run = Run(W, model.components_)
    np.testing.assert_array_equal(as_run(run).W, run.W)
    with pytest.raises(ValueError, match="`W` must be given with a fitted model"):
        as_run(model)
    with pytest.raises(ValueError, match="which has its own W"):
        as_run(run, W=W)
    with pytest.raises(TypeError, match=r"or a pair \(W, H\), got a ndarray"):
        as_run(W)
    with pytest.raises(ValueError, match="`key` must only be given with an AnnData object"):
        as_run(run, key="nmf")
    with pytest.raises(NotFittedError):
        as_run(KLNMF(3), W=W)


def test_a_pipeline_is_told_to_pass_its_step(tmp_path):
    V = poisson_topics(20, 30, 2, length=80, seed=0)
    pipe = make_pipeline(MaxAbsScaler(), KLNMF(2, random_state=0))
    W = pipe.fit_transform(V)
    for use in (
        lambda: Run.from_model(pipe, W),
        lambda: write_report(pipe, tmp_path / "report.html", W=W),
        lambda: pl.structure(pipe, W=W),
        lambda: describe(pipe, W=W),
    ):
        with pytest.raises(TypeError, match=r"got a Pipeline: pass its KLNMF step, pipe\[-1\]"):
            use()
    assert Run.from_model(pipe[-1], W).W.shape == (20, 2)


def test_names_can_be_given_with_a_model_or_a_pair_of_arrays(fitted_model, tmp_path):
    model, W = fitted_model
    words = [f"term {j}" for j in range(30)]
    text = write_report(model, tmp_path / "model.html", W=W, features=words).read_text("utf-8")
    assert "term 7" in text
    assert "word7" not in text
    about = describe((W, model.components_), features=words)
    assert about.top_features(3) == describe(model, W=W, features=words).top_features(3)
    assert {word.split()[0] for row in about.top_features(3) for word in row} == {"term"}


def test_plots_and_the_report_of_a_model_are_those_of_its_run(fitted_model, tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    model, W = fitted_model
    run = Run.from_model(model, W)

    def pixels(draw, *arguments, **more):
        figure = figures.Figure()
        draw(*arguments, ax=figure.add_subplot(), **more)
        file = io.BytesIO()
        figure.savefig(file, format="raw")
        return file.getvalue()

    for draw, more in ((pl.convergence, ()), (pl.structure, ()), (pl.top_features, (2,))):
        assert pixels(draw, model, *more, W=W) == pixels(draw, run, *more)
    of_model = write_report(model, tmp_path / "model.html", W=W).read_bytes()
    assert of_model == write_report(run, tmp_path / "run.html").read_bytes()
    assert b"word7" in of_model
