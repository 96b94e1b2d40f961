# SPDX-License-Identifier: BSD-3-Clause
"""`IgnoreInterrupts`: worker processes that Ctrl-C in the terminal of the client does not end."""

from __future__ import annotations

import signal
from typing import Any

from distributed import WorkerPlugin

__all__ = ["IgnoreInterrupts"]


class IgnoreInterrupts(WorkerPlugin):  # type: ignore[misc]
    """A plugin for workers that were started from a terminal.

    Ctrl-C sends SIGINT to all processes of the terminal. The client needs its workers to evaluate
    the last round, and then ends them.
    """

    name = "sipower-ignore-interrupts"

    def setup(self, worker: Any) -> None:
        """Ignore SIGINT; the event loop of a worker process runs in its main thread."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
