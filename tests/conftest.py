# SPDX-License-Identifier: BSD-3-Clause
"""Settings that must be there before anything is imported."""

import os

# scikit-learn's check of array API input runs only with it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
