# SPDX-License-Identifier: BSD-3-Clause
"""`task_key`: names of tasks, by which Dask's dashboard groups them."""

from __future__ import annotations

import uuid

__all__ = ["task_key"]


def task_key(task: str, number: int = 0) -> str:
    """Return a new key that the dashboard shows as sipower-<task>.

    The name of a group of tasks ends before the first word that has other characters than letters,
    so underscores become hyphens. Words of eight letters that begin with a to f end it too, because
    Dask takes them for hexadecimal digits: `task` must not contain one.
    """
    words = task.strip("_").replace("_", "-")
    return f"sipower-{words}-{number}-{uuid.uuid4().hex}"
