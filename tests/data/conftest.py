# SPDX-License-Identifier: BSD-3-Clause
"""The layouts of a matrix in memory, one after another."""

import pytest

from data.layouts import LAYOUTS


@pytest.fixture(params=sorted(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]
