# SPDX-License-Identifier: BSD-3-Clause
"""Check the configuration files of public services against their schemas (part of `make lint`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "dependabot": ".github/dependabot.yml",
    "readthedocs": ".readthedocs.yaml",
    "citation-file-format": "CITATION.cff",
}


def main() -> None:
    """Check all files, and exit with 1 if one is missing or does not fit its schema."""
    failed = False
    for schema, pattern in SCHEMAS.items():
        files = sorted(ROOT.glob(pattern))
        if not files:
            print(f"{pattern}: no such file")
            failed = True
            continue
        command = ["check_jsonschema", "--quiet", "--builtin-schema", f"vendor.{schema}", *files]
        failed |= subprocess.run([sys.executable, "-m", *command], check=False).returncode != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
