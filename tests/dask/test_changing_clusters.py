# SPDX-License-Identifier: BSD-3-Clause
"""Clusters of their own that change during a fit: workers come and go, the scheduler restarts."""

from contextlib import contextmanager

import numpy as np
import pytest

from lazy_fits import curve, lazy, model

distributed = pytest.importorskip("distributed")


@contextmanager
def cluster(workers, threads):
    """Start a cluster that is that of this thread until the block ends."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=threads, processes=True, dashboard_address=":0"
        ) as started,
        distributed.Client(started) as client,
    ):
        yield started, client


@pytest.mark.stress
def test_workers_with_several_threads_that_come_and_go_change_nothing(plain):
    with cluster(2, 3) as (started, client):
        np.testing.assert_allclose(
            curve(model().fit(lazy()).trace_), curve(plain.trace_), rtol=1e-9
        )
        counts = {3: 3, 6: 1, 9: 2}
        seen = []

        def scale(record):
            if record.round in counts:
                started.scale(counts[record.round])
                client.wait_for_workers(min(counts[record.round], 2), timeout=300)
                seen.append(record.round)

        disturbed = model(on_round=scale).fit(lazy())
    assert seen == [3, 6, 9]
    np.testing.assert_allclose(curve(disturbed.trace_), curve(plain.trace_), rtol=1e-8)


@pytest.mark.stress
def test_a_scheduler_that_is_restarted_ends_the_fit_in_a_sentence(plain, tmp_path):
    """What the checkpoint holds is not lost: the fit goes on from there."""
    file = tmp_path / "fit.npz"
    with cluster(2, 2) as (_, client):
        restarts = []

        def restart(record):
            if record.round == 5:
                restarts.append(client.restart(timeout=300))

        disturbed = model(on_round=restart, checkpoint=file, checkpoint_every=0)
        with pytest.raises(RuntimeError, match=r"scheduler was closed or restarted.*Fit again\."):
            disturbed.fit(lazy())
        assert restarts
        assert not hasattr(disturbed, "components_")
        resumed = model(checkpoint=file).fit(lazy())
    assert resumed.n_iter_ == 12
    np.testing.assert_allclose(curve(resumed.trace_), curve(plain.trace_), rtol=1e-8)
