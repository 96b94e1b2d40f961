# SPDX-License-Identifier: BSD-3-Clause
"""Command-line entry point. Reports missing optional dependencies."""

import sys

from sipower import __version__


def main() -> None:
    """Run the command `sipower`."""
    try:
        if sys.argv[1:] == ["--version"]:  # skips importing the commands, which takes a second
            print(f"sipower {__version__}", flush=True)  # noqa: T201
            return
        from sipower.cli import main as run  # noqa: PLC0415 - optional
    except ModuleNotFoundError as error:
        sys.exit(_report(f"{error}: install it with pip install 'sipower[all]'"))
    except OSError as error:  # for example if the disk is full
        sys.exit(_report(str(error)))
    run()


def _report(text: str) -> int:
    print(f"sipower: {text}", file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    main()
