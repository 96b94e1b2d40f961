# SPDX-License-Identifier: BSD-3-Clause
"""Where the run comes from, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sipower.estimators import KLNMF
from sipower.results.report.sections import section
from sipower.results.report.text import Html, name, paragraph, table, text

__all__ = ["provenance", "repeat"]


def provenance(facts: dict[str, Any]) -> Html:
    """Every recorded fact as a table, and the command or call that repeats the run."""
    rows = [(key, _value(value)) for key, value in _flat(facts) if key != "format"]
    if not rows:
        return section("provenance", "Provenance", paragraph("Nothing was recorded of this run."))
    again = facts.get("command") or repeat(facts.get("parameters") or {})
    call = Html(f"<h3>To repeat it</h3><pre><code>{text(again)}</code></pre>") if again else ""
    return section("provenance", "Provenance", table("Provenance", ("fact", "value"), rows), call)


def repeat(parameters: dict[str, Any]) -> str:
    """The call in Python with what is not the default; V is the data with the recorded hash."""
    usual = KLNMF().get_params()
    given = ", ".join(
        f"{key}={value!r}"
        for key, value in parameters.items()
        if key in usual and value != usual[key]
    )
    if not given:
        return ""
    return f"from sipower import KLNMF\n\nmodel = KLNMF({given})\nW = model.fit_transform(V)"


def _flat(facts: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}: ")
        else:
            yield f"{above}{key}", value


def _value(value: Any) -> Html:
    listed = isinstance(value, list | tuple)
    return name(" × ".join(map(str, value)) if listed else str(value))
