# SPDX-License-Identifier: BSD-3-Clause
"""The argument `rng` of SPEC 7 beside `seed` and `random_state`: conversion to an integer seed."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

RNG: TypeAlias = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None


class _Default(int):
    """An integer that `choose_seed` can tell from an equal one that the caller passed."""


DEFAULT_SEED = _Default(0)


def choose_seed(rng: RNG, name: str, seed: Any) -> Any:
    """Return the seed that the caller chose, by `rng` or by the older argument.

    An integer is the seed itself. From a Generator or BitGenerator one integer below 2³² is drawn,
    by `Generator.integers`, so that the next call with the same generator has another seed. A
    SeedSequence gives the first integer of ``np.random.default_rng(rng)``, the same in every call.

    Parameters
    ----------
    rng
        Argument `rng` of the calling function; None: the older argument decides.
    name, seed
        Name and value of the older argument, whose default is None or `DEFAULT_SEED`.

    Returns
    -------
    int or the value of `seed`
        A non-negative integer, or, if `rng` is None, what the caller passed as `seed`.
    """
    if rng is None:
        return int(seed) if seed is DEFAULT_SEED else seed
    if seed is not None and seed is not DEFAULT_SEED:
        raise ValueError(f"`rng` and `{name}` must not both be given: pass one of them.")
    if isinstance(rng, int | np.integer) and rng >= 0:
        return int(rng)
    if isinstance(rng, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence):
        return int(np.random.default_rng(rng).integers(2**32))
    raise ValueError(
        "`rng` must be a non-negative integer, a numpy.random.Generator, BitGenerator or "
        f"SeedSequence, or None, got {rng!r}."
    )
