# SPDX-License-Identifier: BSD-3-Clause
"""One cluster of two worker processes for all tests."""

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed.deploy")
    from distributed import Client  # noqa: PLC0415 - optional

    with (
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
    client.wait_for_workers(2, timeout=30)
