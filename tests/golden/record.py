# SPDX-License-Identifier: BSD-3-Clause
"""Record the golden curves anew and tell what changed most: python tests/golden/record.py."""

from __future__ import annotations

from cases import CASES, SETS, Curve, load_curves, record


def change(now: Curve, then: Curve) -> float:
    """The largest relative change of a value; infinite for a curve of other rounds."""
    if len(now) != len(then):
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in zip(now, then, strict=True))


def main() -> None:
    """Rewrite the curves of every set."""
    for name, make in SETS.items():
        before = load_curves(name)
        curves = {case: run(make()) for case, run in CASES.items()}
        changes = {case: change(curves[case], before[case]) for case in curves if case in before}
        record(name, curves)
        largest = max(changes, key=lambda case: changes[case], default="none")
        print(  # noqa: T201 - what a script is for
            f"{name}: {len(curves)} curves, {len(curves) - len(changes)} of them new, "
            f"{len(before.keys() - curves.keys())} gone; largest relative change "
            f"{changes.get(largest, 0.0):.1e} ({largest})"
        )


if __name__ == "__main__":
    main()
