# SPDX-License-Identifier: BSD-3-Clause
"""Values from files, shortened for error messages."""

__all__ = ["shorten"]


def shorten(value: object) -> str:
    """Return a value as text for a message: one line, at most 60 characters."""
    text = " ".join(str(value).split())
    if not text and isinstance(value, Exception):
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"
