# SPDX-License-Identifier: BSD-3-Clause
"""`sipower cache`: list the stores that fits of files have made, or remove them."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sipower._files import printable
from sipower.cli.application import command
from sipower.cli.console import Console
from sipower.cli.options import Json
from sipower.io.cache import CacheEntry, cache_entries, cache_folder, remove_entry

_ACTION = "list, the default, or clear."
_PATH = "Remove the stores of this file, or one folder of the cache."
_ALL = "Remove all stores of the cache."
_UNUSED = "Remove stores that were not used for this many days."
_FOLDER = "Cache folder; by default $SIPOWER_CACHE, else that of the user."
_DAY = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, kw_only=True)
class ClearOptions:
    """The options that choose what to remove."""

    path: Annotated[Path | None, typer.Argument(help=_PATH)] = None
    everything: Annotated[bool, typer.Option("--all", help=_ALL)] = False
    unused_for: Annotated[float | None, typer.Option(metavar="DAYS", min=0, help=_UNUSED)] = None

    def count(self) -> int:
        """Return how many of them are given."""
        return (self.path is not None) + self.everything + (self.unused_for is not None)

    def choose(self, entries: list[CacheEntry]) -> list[CacheEntry]:
        """Return the entries to remove."""
        if self.count() != 1:
            raise ValueError(
                "sipower cache clear needs PATH, --all or --unused-for DAYS: give one of them."
            )
        if self.path is not None:
            file = self.path.resolve()
            chosen = [e for e in entries if str(file) in (e.source.get("file"), str(e.folder))]
            if not chosen:
                raise ValueError(
                    f"{self.path} has no store in the cache: sipower cache lists those it has."
                )
            return chosen
        if self.unused_for is None:
            return entries
        limit = datetime.now(UTC) - timedelta(days=self.unused_for)
        return [entry for entry in entries if entry.last_used is None or entry.last_used <= limit]


@command("what was not removed yet is still there")
def cache(
    action: Annotated[Literal["list", "clear"], typer.Argument(help=_ACTION)] = "list",
    *,
    choice: ClearOptions,
    folder: Annotated[Path | None, typer.Option("--cache", metavar="FOLDER", help=_FOLDER)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before removing.")] = False,
    as_json: Json = False,
) -> None:
    """List or clear the stores that --memory-limit has made of files, and reuses."""
    console, place = Console(as_json), cache_folder(folder)
    entries = list(cache_entries(place))
    if action == "clear":
        _clear(choice.choose(entries), place, console, yes)
    elif choice.count():
        raise ValueError("PATH, --all and --unused-for are options of sipower cache clear.")
    else:
        _list(entries, place, console)


def _list(entries: list[CacheEntry], place: Path, console: Console) -> None:
    facts = [_facts(entry) for entry in entries]
    console.event("cache", folder=str(place), entries=facts)
    if not entries:
        console.say(f"{place} holds no stores.")
        return
    console.table(
        ("file", "layer", "size", "made", "last used", "state"),
        (
            (
                printable(fact["file"] or fact["folder"]), printable(fact["layer"] or ""),
                f"{fact['bytes'] / 1e6:,.1f} MB", _day(fact["made"]), _day(fact["last_used"]),
                fact["state"],
            )
            for fact in facts
        ),
    )  # fmt: skip
    total = sum(fact["bytes"] for fact in facts)
    console.say(f"{place}: {total / 1e6:,.1f} MB")


def _facts(entry: CacheEntry) -> dict[str, Any]:
    label = entry.label
    source = entry.source
    used = entry.last_used
    return {
        "folder": str(entry.folder),
        "file": source.get("file"),
        "layer": source.get("layer"),
        "bytes": entry.size,
        "made": label.get("made"),
        "last_used": None if used is None else used.isoformat(timespec="seconds"),
        "state": entry.status,
    }


def _day(text: Any) -> str:
    try:
        return datetime.fromisoformat(text).astimezone().strftime(_DAY)
    except (TypeError, ValueError):
        return "?"


def _clear(chosen: list[CacheEntry], place: Path, console: Console, yes: bool) -> None:
    size = sum(entry.size for entry in chosen)
    number = "1 store" if len(chosen) == 1 else f"{len(chosen)} stores"
    what = f"{number}, {size / 1e6:,.1f} MB, from {place}"
    if chosen and not yes:
        if console.as_json or not sys.stdin.isatty():
            raise ValueError(f"Removing {what} needs --yes where nobody can be asked.")
        if not typer.confirm(f"Remove {what}?"):
            console.say("removed nothing")
            return
    for entry in chosen:
        remove_entry(entry)
        console.event("removed", folder=str(entry.folder))
    console.event("done", removed=len(chosen), bytes=size)
    console.say(f"removed {what}")
