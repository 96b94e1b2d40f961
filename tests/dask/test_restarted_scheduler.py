# SPDX-License-Identifier: BSD-3-Clause
"""A scheduler in a process of its own that is killed and started again: nothing is lost."""

import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from lazy_fits import curve, lazy, model

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.stress,
    pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning"),
]
CANCELLED = r"^Dask has cancelled the tasks.*the scheduler was closed or restarted.*Fit again\.$"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(*arguments):
    """Run a command of Dask until the block ends, and kill it then if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, "--no-dashboard"], stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def scheduler(port):
    return running("scheduler", "--host", "127.0.0.1", "--port", str(port))


@contextmanager
def workers(port, count=2):
    """Start workers of two threads, without a nanny, which would start them again."""
    if not count:
        yield
        return
    address = f"tcp://127.0.0.1:{port}"
    with running("worker", address, "--nthreads", "2", "--no-nanny"), workers(port, count - 1):
        yield


@contextmanager
def connected(port):
    """Connect to the scheduler when it is there with its two workers."""
    timeouts = {"distributed.comm.timeouts.connect": "10s"}  # until a client gives up
    with (
        dask.config.set(timeouts),
        distributed.Client(f"tcp://127.0.0.1:{port}", timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=300)
        yield client


# The moment may be that of the state on its way into the checkpoint, whose loss is a warning.
@pytest.mark.filterwarnings("ignore:The checkpoint .* could not be written")
@pytest.mark.parametrize("moment", ["between rounds", "within a round"])
def test_the_fit_ends_in_a_sentence_and_goes_on_from_its_checkpoint(plain, tmp_path, moment):
    port, file, rounds = free_port(), tmp_path / "fit.npz", []
    with scheduler(port) as first, workers(port), connected(port):

        def kill(record):
            rounds.append(record.round)
            if record.round == 5 and moment == "between rounds":
                first.kill()
            elif record.round == 5:
                threading.Timer(0.01, first.kill).start()

        disturbed = model(on_round=kill, checkpoint=file, checkpoint_every=0, max_iter=10**6)
        with pytest.raises(RuntimeError, match=CANCELLED):
            disturbed.fit(lazy())
        assert not hasattr(disturbed, "components_")
        with pytest.raises(RuntimeError, match=r"^The scheduler of `client` cannot be reached"):
            disturbed.fit(lazy())
    done = []
    with scheduler(port), workers(port), connected(port):
        limit = max(rounds[-1] + 5, 12)
        resumed = model(
            checkpoint=file, max_iter=limit, on_round=lambda record: done.append(record.round)
        ).fit(lazy())
        whole = model(max_iter=limit).fit(lazy())
    assert done[0] >= rounds[-1]  # no round was lost
    assert resumed.n_iter_ == limit
    np.testing.assert_allclose(curve(resumed.trace_), curve(whole.trace_), rtol=1e-8)
    np.testing.assert_allclose(curve(whole.trace_)[0], curve(plain.trace_)[0], rtol=1e-8)


def test_a_client_whose_scheduler_has_gone_for_good_gets_one_sentence():
    port = free_port()
    with scheduler(port) as first, workers(port), connected(port) as client:
        first.kill()
        client.close()
        with pytest.raises(RuntimeError, match=r"^`client` is closed.*connect a new one\.$"):
            model(client=client).fit(lazy())
