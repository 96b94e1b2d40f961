# SPDX-License-Identifier: BSD-3-Clause
"""A pytest plugin that takes away the modules of Unix, as `test_systems.py` uses it."""

import signal
import sys

# Libraries choose their modules for the system that they find, so they come first.
for library in ("asyncio", "dask", "distributed", "joblib", "pandas", "sklearn", "subprocess"):
    try:
        __import__(library)
    except ImportError:  # optional
        continue

for unix in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[unix] = None  # type: ignore[assignment]
del signal.SIGKILL
