# SPDX-License-Identifier: BSD-3-Clause
"""Settings that must be there before anything is imported."""

import os
import signal

# scikit-learn's check of array API input runs only with it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Started with `&` or `nohup` a shell has its children ignore Ctrl-C, and they theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
