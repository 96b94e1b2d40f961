# SPDX-License-Identifier: BSD-3-Clause
"""The declared roles of the arguments of kernels are those of the compiled functions."""

import re

import numpy as np
import pytest

from sipower import kernels

# The roles are no public names: Dask alone divides the arguments of a kernel.
from sipower.kernels.doors import ARGUMENTS, TERM_DIMENSIONS, Role, term_role

NO_ITEMS = {"sums", "certify", "model_steps"}  # not for `for_items`, which divides the items


def arguments(kernel):
    """The name and the type of the arguments after the range of items, as nanobind prints them."""
    text = getattr(kernels, kernel).__nb_signature__[0][0]
    pairs = re.findall(r"(\w+): (\w+(?:\.\w+)*(?:\[[^]]*\])?)", text.partition("end: int, ")[2])
    return dict(pairs)


@pytest.mark.parametrize("kernel", ARGUMENTS)
def test_the_roles_are_those_of_the_compiled_kernel(kernel):
    found = arguments(kernel)
    assert list(ARGUMENTS[kernel]) == list(found)
    for name, role in ARGUMENTS[kernel].items():
        is_array = found[name].startswith("ndarray")
        is_written = is_array and "writable=False" not in found[name]
        assert is_written == (role is Role.WRITTEN), name
        assert is_array or role is Role.SHARED, name


def test_every_kernel_of_items_has_roles():
    public = {
        name for name in kernels.__all__ if hasattr(getattr(kernels, name), "__nb_signature__")
    }
    doors = {
        name for name in public if "begin: int" in str(getattr(kernels, name).__nb_signature__)
    }
    assert doors - NO_ITEMS == set(ARGUMENTS)


@pytest.mark.parametrize("name", TERM_DIMENSIONS)
def test_a_term_of_a_basis_is_for_all_items_or_has_a_row_for_each(name):
    K = 4  # and as many items
    shared = 0.5 if name == "ridge" else np.ones(K)
    assert term_role(name, shared) is Role.SHARED
    assert term_role(name, None) is Role.SHARED
    each = np.ones(K) if name == "ridge" else np.ones((K, K))
    assert term_role(name, each) is Role.PER_ITEM
