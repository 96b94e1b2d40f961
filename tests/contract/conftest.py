# SPDX-License-Identifier: BSD-3-Clause
"""The registered problems, one after another."""

import pytest

from contract.problem_examples import EXAMPLES
from sipower.problems import (
    REGISTRY,
)


@pytest.fixture(params=sorted(REGISTRY))
def problem(request):
    return EXAMPLES[request.param]()
