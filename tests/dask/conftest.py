# SPDX-License-Identifier: BSD-3-Clause
"""One cluster of two worker processes for all tests."""

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed.deploy")
    import dask.config  # noqa: PLC0415 - optional
    from distributed import Client  # noqa: PLC0415

    # A local cluster gives a killed worker up that is not back within 15 seconds; on a machine
    # that is busy it may be.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def two_workers(client):
    """A killed worker comes back before the next test."""
    yield
    client.wait_for_workers(2, timeout=300)


@pytest.fixture(scope="module")
def plain(client):
    """An undisturbed fit."""
    from lazy_fits import lazy, model  # noqa: PLC0415 - needs Dask

    return model().fit(lazy())
