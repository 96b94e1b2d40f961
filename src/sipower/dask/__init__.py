# SPDX-License-Identifier: BSD-3-Clause
"""KL-NMF of data in row chunks on the workers of a Dask cluster."""

try:
    from distributed import Client as _Client  # noqa: F401 - checks that it is installed
except ImportError:
    raise ImportError(
        "sipower.dask needs the packages dask and distributed: pip install 'sipower[dask]'."
    ) from None

from sipower.dask.chunks import Files
from sipower.dask.klnmf import KLNMF

__all__ = ["KLNMF", "Files"]
