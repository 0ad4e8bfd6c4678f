"""What a user should know of a table before it is fitted: stand-ins for nothing, words that differ in little, names of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from .._types import Array
from .cells import repeated_far_value
from .console import Console

_SHOWN = 3  # examples in one line
_LEAST_ROWS = 20  # a count of fewer rows may be a measurement
_RUN = 5  # rows that follow each other with one number, on average, where numbers name lines or subjects
_NAMES_ROWS = {"id", "row", "rowid", "index", "idx", "no", "nr", "record", "fid", "objectid", "uid"}
_NAMES_GROUPS = {"line", "track", "profile", "flight", "subject", "patient", "station", "site", "run", "group", "cruise", "batch"}


def tell_fills(columns: Mapping[str, Array], console: Console) -> None:
    """Warn of values that look like stand-ins for missing ones."""
    for name, values in columns.items():
        if found := repeated_far_value(values):
            value, count = found
            often = "once" if count == 1 else f"{count:,} times"
            console.warn(
                f"{value:g} stands {often} in column {name!r}, far from all other values."
                f" If it means that there is none, say `--missing {value:g}`."
            )


def tell_spellings(name: str, words: Mapping[str, int], spaced: int, console: Console) -> None:
    """Warn of words that are the same but for capitals and blanks, and say that blanks around words do not count."""
    alike: dict[str, list[str]] = {}
    for word in words:
        alike.setdefault(" ".join(word.casefold().split()), []).append(word)
    twins = [spellings for spellings in alike.values() if len(spellings) > 1]
    if twins:
        told = "; ".join(" and ".join(map(repr, spellings)) for spellings in twins[:_SHOWN]) + (
            "; …" if len(twins) > _SHOWN else ""
        )
        console.warn(f"column {name!r} spells categories in several ways, and each counts as one of its own: {told}.")
    if spaced:
        console.warn(f"column {name!r} has blanks around {spaced:,} of its words, which do not count.")


def tell_identifiers(names: Sequence[str], rows: Array, grouped: bool, console: Console) -> None:
    """Suggest to leave out whole numbers that name rows, and to group by those that name lines, tracks or subjects."""
    if len(names) < 2 or len(rows) < _LEAST_ROWS:
        return
    for k, name in enumerate(names):
        values = rows[:, k]
        if (values != np.round(values)).any():
            continue
        if counts_rows(name, values):
            console.warn(f"column {name!r} seems to count the rows. Leave it out with `--exclude {name}`.")
        elif not grouped and names_groups(name, values):
            console.warn(
                f"column {name!r} seems to name {len(np.unique(values)):,} groups of rows. Leave it out with `--exclude {name}`, or"
                f" say `--groups {name}`, so that they are left out together."
            )


def counts_rows(name: str, values: Array) -> bool:
    """Whether whole numbers (n,) are all different and either count up by one, or are called by the name of a row."""
    if len(np.unique(values)) < len(values):
        return False
    return bool((np.diff(values) == 1.0).all()) or bool(_words_in(name) & _NAMES_ROWS)


def names_groups(name: str, values: Array) -> bool:
    """Whether whole numbers (n,) have the name of a group, and each stands in several rows."""
    count = len(np.unique(values))
    return 1 < count <= len(values) / _RUN and bool(_words_in(name) & (_NAMES_GROUPS | {"id"}))


def _words_in(name: str) -> set[str]:
    """The words of a name: row_id, rowId and "Row ID" have two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
