# SPDX-License-Identifier: BSD-3-Clause
"""The door to the command: says what is missing where its libraries are not installed."""

import sys


def main() -> None:
    """Run `sipower`."""
    try:
        from sipower.cli import main as run  # noqa: PLC0415 - optional
    except ModuleNotFoundError as missing:
        print(f"sipower: {missing}: install it by pip install 'sipower[all]'", file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None
    run()


if __name__ == "__main__":
    main()
