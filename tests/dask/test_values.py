# SPDX-License-Identifier: BSD-3-Clause
"""Data on workers that do not look like counts draw the remarks of data in memory."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import sipower
from lazy_fits import V, lazy
from sipower.results import Run

pd = pytest.importorskip("pandas")
pytest.importorskip("distributed.client")

from sipower.dask import KLNMF, Files  # noqa: E402 - optional

COUNTS = V[V.sum(axis=1) > 0]
LOGS = np.log1p(1e4 * COUNTS / COUNTS.sum(axis=1, keepdims=True))
ROWS = (30, 0, 150, 50)
OF_COUNTS = "KL-NMF models counts, and these look like logarithms of normalised counts."


def model():
    return KLNMF(2, random_state=0, tol=0.5)


def chunks(data, *, sparse=True):
    return lazy(data, ROWS, sparse)


def warnings_of(action, *, expected=0):
    """Run an action; return its result and the warnings on values, which workers send late."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = action()
        ends = time.monotonic() + (30 if expected else 0.3)
        while len(said := [w for w in seen if "whole numbers" in str(w.message)]) < expected:
            assert time.monotonic() < ends
            time.sleep(0.01)
    return result, said


@pytest.mark.parametrize("sparse", [True, False], ids=["csr", "dense"])
@pytest.mark.parametrize("given", [{}, {"offsets": np.full(len(LOGS), 2.0)}], ids=["", "offsets"])
def test_logarithms_are_warned_of_once_at_the_line_of_the_user(client, sparse, given):
    fitted, said = warnings_of(
        lambda: model().fit(chunks(LOGS, sparse=sparse), **given), expected=1
    )
    text = (
        f"Chunk 2: The data hold no whole numbers (largest {LOGS[30:180].max():.3g}): {OF_COUNTS}"
    )
    assert [str(w.message)[: len(text)] for w in said] == [text]
    assert said[0].filename == __file__
    local, _ = warnings_of(
        lambda: sipower.KLNMF(2, random_state=0, tol=0.5).fit(sp.csr_array(LOGS))
    )
    assert fitted._whole_numbers == local._whole_numbers == 0
    W = fitted.to_local().transform(LOGS)
    assert Run.from_model(fitted, W).facts["remarks"] == [str(said[0].message)]
    assert warnings_of(lambda: fitted.transform(chunks(LOGS)).compute())[1] == []


def test_loaded_data_are_warned_of_by_load_alone(client):
    loaded, said = warnings_of(lambda: model().load(chunks(LOGS)), expected=1)
    assert said[0].filename == __file__
    assert warnings_of(lambda: model().fit(loaded))[1] == []


def test_counts_and_a_store_draw_no_remark(client, tmp_path):
    fitted, said = warnings_of(lambda: model().fit(chunks(COUNTS)))
    assert (said, fitted._whole_numbers) == ([], 1)
    assert warnings_of(lambda: fitted.transform(chunks(COUNTS)).compute())[1] == []
    sipower.store.write_store(sp.csr_array(LOGS), tmp_path / "logs")
    again, said = warnings_of(lambda: fitted.fit([tmp_path / "logs"]))
    assert (said, hasattr(again, "_whole_numbers")) == ([], False)  # `convert` has said it


def test_new_data_are_compared_with_those_of_the_fit_when_they_are_computed(client):
    fitted = model().fit(chunks(COUNTS))
    W, said = warnings_of(lambda: fitted.transform(chunks(LOGS)))
    assert said == []  # nothing has been loaded
    _, said = warnings_of(W.compute, expected=1)
    assert [str(w.message)[:44] for w in said] == ["Chunk 0: The data hold no whole numbers (lar"]
    assert "KL-NMF models counts, as those of the fit were, and these look" in str(said[0].message)
    fitted, _ = warnings_of(lambda: model().fit(chunks(LOGS)))
    _, said = warnings_of(lambda: fitted.transform(chunks(COUNTS)).compute(), expected=1)
    assert "whole numbers" in str(said[0].message)
    assert "those of the fit did not" in str(said[0].message)


def test_a_total_of_every_chunk_and_the_remarks_of_a_file_are_warned_of(client, tmp_path):
    with_total = np.column_stack([COUNTS, COUNTS.sum(axis=1)])
    with pytest.warns(UserWarning, match=r"Chunk 2: The feature 60 .* is the sum of all other fea"):
        model().fit(chunks(with_total))
    names = [f"g{j}" for j in range(COUNTS.shape[1])]
    pd.DataFrame(LOGS, columns=names).to_csv(tmp_path / "logs.csv", index=False)
    _, said = warnings_of(lambda: model().fit(Files([tmp_path / "logs.csv"])), expected=1)
    assert str(said[0].message).startswith("The data hold no whole numbers")
