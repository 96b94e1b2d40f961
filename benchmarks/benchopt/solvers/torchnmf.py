# SPDX-License-Identifier: BSD-3-Clause
"""Multiplicative updates of torchnmf on dense tensors."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from benchmark_utils.curves import CurveSolver, Round

ITERATIONS = 10


class Solver(CurveSolver):
    """torchnmf with beta = 1, ten iterations per round, on the processor."""

    name = "torchnmf"
    requirements = ["pip::torch", "pip::torchnmf"]

    def skip(self, **_objective: Any) -> tuple[bool, str | None]:
        """Skip the solver if its packages are missing."""
        if find_spec("torch") and find_spec("torchnmf"):
            return False, None
        return True, "torchnmf is not installed: pip install torch torchnmf"

    def prepare(self) -> None:
        """Convert data and start to tensors; sparse data become dense."""
        import torch  # noqa: PLC0415 - optional

        dense = self.V.toarray() if sp.issparse(self.V) else self.V
        self.tensors = [torch.tensor(np.ascontiguousarray(a)) for a in (dense, self.W, self.H.T)]

    def iterate_rounds(self) -> Iterator[Round]:
        """Yield the factors every ten iterations; torchnmf has V ≈ H Wᵀ."""
        import torch  # noqa: PLC0415 - optional
        from torchnmf.nmf import NMF  # noqa: PLC0415

        torch.set_num_threads(self.threads)
        V, W, H = self.tensors
        model = NMF(W=H.clone(), H=W.clone())
        for rounds in count():
            yield Round(model.H.detach().numpy(), model.W.detach().numpy().T, rounds * ITERATIONS)
            model.fit(V, beta=1, tol=0, max_iter=ITERATIONS)
