# SPDX-License-Identifier: BSD-3-Clause
"""Record the files of a new format version: ``python tests/files/record.py FORMAT VERSION``.

Files of older versions are never changed or removed: users have such files.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from files.examples import EXAMPLES
from files.facts import as_facts

HERE = Path(__file__).parent


def main() -> None:
    """Write the files and the content that reading them must return."""
    name, version = sys.argv[1:]
    folder = HERE / name / version
    folder.mkdir(parents=True)
    content = as_facts(EXAMPLES[name].write(folder))
    (folder / "expected.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
