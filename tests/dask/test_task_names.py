# SPDX-License-Identifier: BSD-3-Clause
"""The dashboard shows what the tasks of a fit do: all are called sipower-<what>."""

import numpy as np
import pytest
import scipy.sparse as sp

from lazy_fits import RANK, V, lazy
from sipower.store import write_store

pytest.importorskip("distributed.client")

from dask.utils import key_split
from distributed import SchedulerPlugin

from sipower.dask import KLNMF
from sipower.dask.task_names import task_key


class TaskNames(SchedulerPlugin):
    """The names of all tasks that the scheduler has seen, as the dashboard shows them."""

    name = "task-names"

    def __init__(self):
        self.names = set()

    def transition(self, key, start, finish, *_, **__):
        if finish == "processing":  # not tasks of earlier tests, which end at any time
            self.names.add(key_split(key))


def seen(dask_scheduler):
    names = dask_scheduler.plugins[TaskNames.name].names
    copy = set(names)
    names.clear()
    return copy


@pytest.fixture
def names(client):
    """A function that returns the names of the tasks since its last call."""
    client.register_plugin(TaskNames())
    yield lambda: client.run_on_scheduler(seen)
    client.unregister_scheduler_plugin(TaskNames.name)


def test_keys_are_grouped_by_their_words():
    assert key_split(task_key("_solve_items-rows", 3)) == "sipower-solve-items-rows"


@pytest.mark.parametrize("solver", sorted(KLNMF._parameter_constraints["solver"][0].options))
def test_all_tasks_of_a_fit_have_the_name_of_sipower(client, names, tmp_path, solver):
    np.save(tmp_path / "first.npy", V[:100])
    sp.save_npz(tmp_path / "second.npz", sp.csr_array(V[100:].astype(np.float32)))
    write_store(sp.csr_array(V), tmp_path / "counts.sipower")
    weighted = {"sample_weight": np.linspace(1, 2, 240), "mask": V < 5}
    files = [tmp_path / "first.npy", tmp_path / "second.npz"]
    for X, given in ((files, {}), (files, weighted), ([tmp_path / "counts.sipower"], {})):
        model = KLNMF(RANK, solver=solver, random_state=0, max_iter=5, tol=0)
        model.set_params(checkpoint=tmp_path / "fit.npz")
        model.fit_transform(X, **given).compute()
        model.transform(X).compute()
        (tmp_path / "fit.npz").unlink()
        found = names()
        assert {"sipower-chunk", "sipower-info", "sipower-rows"} <= found
        found = {name for name in found if not name.startswith("finalize-")}  # of W.compute()
        assert all(name.startswith("sipower-") for name in found), found


def test_tasks_of_an_array_keep_their_names(client, names):
    KLNMF(RANK, random_state=0, max_iter=3, tol=0).fit(lazy())
    others = {name for name in names() if not name.startswith("sipower-")}
    assert all("csr" in name or "array" in name for name in others), others
