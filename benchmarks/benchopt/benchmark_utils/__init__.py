# SPDX-License-Identifier: BSD-3-Clause
"""What objective, datasets and solvers of the benchmark share."""

import sys
from pathlib import Path

ZOO_PARENT = str(Path(__file__).parents[2])
if ZOO_PARENT not in sys.path:
    sys.path.append(ZOO_PARENT)  # `zoo`, the generators of the data
