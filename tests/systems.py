# SPDX-License-Identifier: BSD-3-Clause
"""What only some systems have: marks for the tests that need it, and a limit of memory."""

import os
import sys
from pathlib import Path

import pytest

unix_only = pytest.mark.skipif(
    os.name != "posix", reason="needs the signals, processes or owners of files of Unix"
)
linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="needs /proc or the limits of memory of Linux"
)


def memory_used() -> int:
    """Return the address space of this process in bytes."""
    import resource  # noqa: PLC0415 - Unix only

    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages[0]) * resource.getpagesize()


def limit_memory(more: int) -> None:
    """Make allocations fail once this process has so many more bytes."""
    import resource  # noqa: PLC0415 - Unix only

    limit = memory_used() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
