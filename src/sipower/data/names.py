# SPDX-License-Identifier: BSD-3-Clause
"""`match_names`: samples or features of two sides are matched by name, here and nowhere else.

- Both sides have names: they are matched by name, and what only one side has is reported.
- Neither side has names: they are matched by their order.
- One side alone has names: this is refused, because nobody would notice another order. An array
  that belongs to named data, such as weights of its samples, has the order of the data.

The numbers 0, 1, 2, ... in this order, which pandas gives to rows and columns by itself, are no
names. The texts "0", "1", "2", ..., which AnnData gives, are names only beside such texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sipower._files import quote, shorten
from sipower.data.containers import (
    as_frame,
    frame_names,
    is_table,
    library_name,
    refuse_columns,
)
from sipower.data.plausibility import warn_user
from sipower.data.row_blocks import RowBlocks

__all__ = [
    "Items",
    "Matching",
    "Names",
    "arrange",
    "as_names",
    "axis_labels",
    "check_both_named",
    "data_items",
    "has_labels",
    "match_all",
    "match_names",
    "plain_form",
]

Names = tuple[str, ...]


@dataclass(frozen=True)
class Items:
    """The samples or features of one side.

    Parameters
    ----------
    kind
        "sample" or "feature".
    count
        Number of them.
    names, ids
        Names and ids, or None if there are none.
    title
        What the side is called in messages, such as "`H`", a file or "the data".
    named_form, plain_form
        What to pass so that the side has names, or has none.
    """

    kind: str
    count: int
    names: Names | None = None
    ids: Names | None = None
    title: str = "the data"
    named_form: str = "data with names"
    plain_form: str = "them without names"

    def beside(self, other: Items) -> Items:
        """Return the same without names, if these only number the items and `other` has none."""
        names = self.names
        if names is None or names[:1] != ("0",) or names != tuple(map(str, range(len(names)))):
            return self
        has_same = other.names is not None and not set(names).isdisjoint(other.names)
        return self if has_same else replace(self, names=None)

    @property
    def has(self) -> str:
        """The verb that follows the title."""
        return "have" if self.title.startswith("the data") else "has"


class Matching(NamedTuple):
    """The items that two sides share.

    Attributes
    ----------
    first, second
        Positions of the shared items on each side; those of `first` ascend.
    is_same
        Whether both sides have the same items in the same order.
    kind
        "id" or "name", whichever was compared; "order" where there are no names.
    remarks
        Sentences for the user.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    is_same: bool
    kind: str
    remarks: tuple[str, ...] = ()


def match_names(
    own: Items,
    other: Items,
    *,
    by_order: bool = False,
    may_repeat: bool = False,
    turn: str = "transpose the data",
) -> Matching:
    """Match the items of two sides by id if both have ids, else by name, else by their order.

    Parameters
    ----------
    own, other
        The two sides. What the one has as a name may be an id of the other.
    by_order
        Whether sides of which not both have names are matched by their order with a remark; the
        caller has to show it. False refuses sides of which one alone has names.
    may_repeat
        Whether a name may be more than once among the items of `own`.
    turn
        What to do if the names are those of the other axis.
    """
    own, other = own.beside(other), other.beside(own)
    kind, own_keys, other_keys = _keys(own, other)
    if own_keys is None or other_keys is None:
        if not by_order:
            check_both_named(own, other)
        _check_counts(own, other)
        remark = f"{_capital(other.title)} or {own.title} has no {own.kind} names: {own.kind}s are "
        remarks = (f"{remark}matched by their order.",) if by_order else ()
        return _same(own, "order", remarks)
    if own_keys == other_keys:
        return _same(own, kind)
    for side, keys in ((other, other_keys), (own, () if may_repeat else own_keys)):
        _check_unique(side, kind, keys)
    places = {key: at for at, key in enumerate(other_keys)}
    positions = np.array([places.get(key, -1) for key in own_keys], np.intp)
    shared = np.flatnonzero(positions >= 0)
    if not len(shared):
        raise ValueError(
            f"No {own.kind} of {own.title} is in {other.title}: {own.kind}s are matched by {kind}, "
            f"such as {quote(own_keys[0])} in {own.title} and {quote(other_keys[0])} in "
            f"{other.title}; use the same {kind}s or, if samples and features are exchanged, "
            f"{turn}."
        )
    return Matching(shared, positions[shared], False, kind)


def _same(own: Items, kind: str, remarks: tuple[str, ...] = ()) -> Matching:
    return Matching(np.arange(own.count), np.arange(own.count), True, kind, remarks)


def match_all(own: Items, other: Items) -> tuple[NDArray[np.intp], list[str]]:
    """Return the position in `other` of every item of `own`, and remarks for the user.

    An item that `other` lacks is an error; those that only `other` has are reported in a remark.
    """
    matching = match_names(own, other, may_repeat=True)
    count = len(matching.first)
    if count < own.count:
        missing = np.flatnonzero(~np.isin(np.arange(own.count), matching.first))
        others = len(missing) - 1
        more = f", and {others:,} other{'s' if others > 1 else ''}" if others else ""
        name = shorten((own.names or own.ids or ())[int(missing[0])])
        raise ValueError(
            f"{other.title} lacks the {own.kind} {name!r} of {own.title}{more}: add what is "
            f"missing, under the names of the {own.kind}s in {own.title}."
        )
    unused = np.setdiff1d(np.arange(other.count), matching.second)
    if not len(unused):
        return matching.second, []
    number = "1 name is" if len(unused) == 1 else f"{len(unused):,} names are"
    name = shorten((other.names or other.ids or ())[int(unused[0])])
    remark = f"{other.title}: {number} not among the {own.kind}s of {own.title}, such as {name!r}"
    return matching.second, [f"{remark}, and not used."]


def check_both_named(own: Items, other: Items) -> None:
    """Refuse two sides of which one alone has names."""
    own, other = own.beside(other), other.beside(own)
    if (own.names is None) == (other.names is None):
        return
    named, bare = (own, other) if other.names is None else (other, own)
    title = _capital(named.title)
    raise ValueError(
        f"{title} {named.has} names of {named.kind}s, but {bare.title} {bare.has} none: pass "
        f"{bare.named_form}, or {named.plain_form} if both have the same order."
    )


def _keys(own: Items, other: Items) -> tuple[str, Names | None, Names | None]:
    """Return "id" or "name", and the ids or names by which the items are matched.

    If some ids are empty, names are used. An id that one side has as its name, as in files of
    CELLxGENE, is an id too.
    """
    if own.ids is not None and other.ids is not None and all(own.ids) and all(other.ids):
        return "id", own.ids, other.ids
    pairs = (
        ("name", own.names, other.names),
        ("id", own.names, other.ids),
        ("id", own.ids, other.names),
    )
    for kind, first, second in pairs:
        if first is not None and second is not None and not set(first).isdisjoint(second):
            return kind, first, second
    return pairs[0]


def _check_counts(own: Items, other: Items) -> None:
    if own.count != other.count:
        raise ValueError(
            f"{_capital(other.title)} must have the {own.count:,} {own.kind}s of {own.title}, got "
            f"{other.count:,}: give both names, to match {own.kind}s by name."
        )


def _check_unique(side: Items, kind: str, keys: Names) -> None:
    repeated = [key for key, uses in Counter(keys).items() if uses > 1]
    if repeated:
        more = f", and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
        title, name = _capital(side.title), shorten(repeated[0])
        raise ValueError(
            f"{title} {side.has} the {side.kind} {name!r} more than once{more}, so"
            f" {side.kind}s cannot be matched by {kind}: make the {kind}s unique, or add "
            "up what belongs together."
        )


def _capital(title: str) -> str:
    """Return a title as the first word of a sentence; files keep their names."""
    return f"T{title[1:]}" if title.startswith("the ") else title


# ---- names of what users pass --------------------------------------------------------------------


def as_names(labels: Any) -> Names | None:
    """Return labels as texts; None if there are none, or if they only number the items."""
    if labels is None or _are_positions(labels):
        return None
    return tuple(map(str, labels))


def _are_positions(labels: Any) -> bool:
    """Return whether labels are the numbers 0, 1, 2, ... in this order."""
    numbers = np.asarray(labels)
    return numbers.dtype.kind in "iu" and np.array_equal(numbers, np.arange(len(numbers)))


def axis_labels(values: Any) -> tuple[Any, ...]:
    """Return the labels of each axis of a value, None for an axis without; () for an array."""
    if isinstance(values, RowBlocks):
        return values.row_names, values.column_names
    if is_table(values):
        return values.samples, values.features
    if library_name(values) == "xarray":
        values = values.to_pandas() if values.ndim == 1 else as_frame(values)
    if hasattr(values, "index") and hasattr(values, "iloc") and not hasattr(values, "columns"):
        return (np.asarray(values.index),)  # a Series of pandas
    labels = frame_names(values)
    return () if all(label is None for label in labels) else labels


def data_items(X: Any, title: str = "the data") -> tuple[Items, Items]:
    """Return the samples and the features of data, which may be anything that `KLNMF` accepts."""
    X = as_frame(X)
    labels = axis_labels(X) or (None, None)
    shape = X.counts.shape if is_table(X) else getattr(X, "shape", (0, 0))
    forms = f"{title} as a DataFrame", plain_form(title.strip("`"), X)
    rows, columns = (
        Items(kind, size, as_names(own), None, title, *forms)
        for kind, size, own in zip(("sample", "feature"), shape, labels, strict=True)
    )
    return rows, columns


def has_labels(values: Any) -> bool:
    """Return whether a value has labels of its items, as a DataFrame or a Series has."""
    return any(label is not None for label in axis_labels(values))


def plain_form(argument: str, value: Any) -> str:
    """Return what to pass for an argument without its names."""
    if isinstance(value, RowBlocks):
        return f"{argument}.with_names(None, None)"
    if is_table(value):
        return f"{argument}.counts"
    if hasattr(value, "components_"):
        return f"{argument}.components_"
    is_fit = hasattr(value, "W") and hasattr(value, "H")
    return f"{argument}.H" if is_fit else f"{argument}.to_numpy()"


def arrange(
    argument: str, values: Any, *axes: Items | None, say: Callable[[str], object] | None = None
) -> Any:
    """Return the values of an argument in the order of the data.

    Values with names, as in a DataFrame or a Series, become an array; others stay as they are.

    Parameters
    ----------
    argument
        The argument, for messages.
    values
        Its value.
    *axes
        Samples or features of the data along each axis of the values; None: something else.
    say
        Called with remarks; None: they become warnings.
    """
    labels = axis_labels(values)
    if len(labels) != len(axes) or np.ndim(values) != len(axes):
        return values  # an array, or a shape that the caller refuses
    refuse_columns(values, f"`{argument}` has")
    array = np.asarray(values)
    for axis, (items, own) in enumerate(zip(axes, labels, strict=True)):
        if items is None or own is None:
            continue
        form = plain_form(argument, values)
        side = Items(items.kind, len(own), as_names(own), title=f"`{argument}`", plain_form=form)
        side = side.beside(items)
        if side.names is None:
            _check_positions(argument, items)
            continue
        positions, remarks = match_all(items, side)
        array = array.take(positions, axis)
        for remark in remarks:
            (say or warn_user)(remark)
    return array


def _check_positions(argument: str, items: Items) -> None:
    """Refuse values numbered 0, 1, 2, ... for data whose names are these numbers in other order."""
    names = items.names
    if names is not None and set(names) == set(map(str, range(len(names)))):
        raise ValueError(
            f"`{argument}` numbers its {items.kind}s 0, 1, 2, ..., but {items.title} {items.has} "
            f"these names in another order: give `{argument}` the names of {items.title}, or pass "
            f"{argument}.to_numpy() if both have the same order."
        )
