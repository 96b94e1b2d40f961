# SPDX-License-Identifier: BSD-3-Clause
"""Digests of the factors of every golden case, to the last bit: python tests/golden/factors.py.

For rebuilding the house without changing a number: recorded before the first move, compared with
`--compare` after the last one. Bits hold for one instruction set and one version of NumPy only.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cases
import numpy as np

from sipower import KLNMF, solve

FILE = Path(__file__).parent / "factors.json"


def _update(digest: Any, value: Any) -> None:
    """Add arrays, wherever they are in tuples and dataclasses, to a digest."""
    if isinstance(value, np.ndarray):
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        for part in value:
            _update(digest, part)
    elif hasattr(value, "__dict__"):
        _update(digest, list(vars(value).values()))


def digests() -> dict[str, str]:
    """Return the digest of what each case on each set ends with."""
    digests = {}
    for name, make in cases.SETS.items():
        for case, run in cases.CASES.items():
            digest = hashlib.sha256()

            def solve_and_note(*args: Any, digest: Any = digest, **options: Any) -> Any:
                result = solve(*args, **options)
                _update(digest, result.x)
                return result

            class DigestRecorder(KLNMF):
                def fit(self, *args: Any, digest: Any = digest, **options: Any) -> Any:
                    super().fit(*args, **options)
                    _update(digest, self.components_)
                    return self

                def partial_fit(self, *args: Any, digest: Any = digest, **options: Any) -> Any:
                    super().partial_fit(*args, **options)
                    _update(digest, self.components_)
                    return self

            with patch.multiple(cases, solve=solve_and_note, KLNMF=DigestRecorder):
                run(make())
            digests[f"{name}: {case}"] = digest.hexdigest()
    return digests


def main() -> None:
    """Record the digests, or compare with the recorded ones."""
    now = digests()
    if "--compare" not in sys.argv:
        FILE.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        return
    then = json.loads(FILE.read_text())
    changed = sorted(case for case in then.keys() | now.keys() if then.get(case) != now.get(case))
    print(f"{len(now)} cases, {len(changed)} changed", *changed, sep="\n")  # noqa: T201
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
