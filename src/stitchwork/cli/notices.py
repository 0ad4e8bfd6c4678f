"""Warnings about a table before it is fitted: fill values, words that differ only in spelling, columns that identify rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from .._types import Array
from .._validation.fills import repeated_far_value
from ..model.stitched import StitchedModel
from .console import Console

_SHOWN = 3  # examples in one line
_BEYOND = 0.05  # of the range of a feature, by which a row lies outside of the data
_LEAST_ROWS = 20  # a count of fewer rows may be a measurement
_RUN = 5  # least rows for each number, on average, where numbers name lines or subjects
_NAMES_ROWS = {"id", "row", "rowid", "index", "idx", "no", "nr", "record", "fid", "objectid", "uid"}
_NAMES_GROUPS = {
    "line",
    "track",
    "profile",
    "flight",
    "subject",
    "patient",
    "station",
    "site",
    "run",
    "group",
    "cruise",
    "batch",
    "code",
    "pass",
    "orbit",
    "transect",
    "leg",
    "swath",
    "cast",
    "path",
}
_NAMES_ERRORS = {"std", "sd", "stdev", "stddev", "sigma", "error", "err", "errors", "se", "stderr", "uncertainty", "unc"}
_GLOBE = (({"lon", "long", "longitude"}, 360.0), ({"lat", "latitude"}, 90.0))  # names of coordinates, and how far they go


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
        listed = "; ".join(" and ".join(map(repr, spellings)) for spellings in twins[:_SHOWN]) + (
            "; …" if len(twins) > _SHOWN else ""
        )
        console.warn(f"column {name!r} spells categories in several ways, and each counts as one of its own: {listed}.")
    if spaced:
        console.warn(f"column {name!r} has blanks around {spaced:,} of its words, which do not count.")


def tell_identifiers(columns: Mapping[str, Array], grouped: bool, console: Console) -> None:
    """Suggest leaving out whole numbers that identify rows, and grouping by those that identify lines, tracks or subjects."""
    for name, values in columns.items():
        if len(columns) < 2 or len(values) < _LEAST_ROWS or (values != np.round(values)).any():
            continue
        if counts_rows(name, values):
            console.warn(f"column {name!r} seems to number the rows. Leave it out with `--exclude {quoted(name)}`.")
        elif not grouped and names_groups(name, values):
            console.warn(
                f"column {name!r} seems to name {len(np.unique(values)):,} groups of rows. Leave it out with"
                f" `--exclude {quoted(name)}`, or say `--groups {quoted(name)}`, so that they are left out together."
            )


def tell_constants(columns: Mapping[str, Array], console: Console) -> None:
    """Suggest leaving out constant columns."""
    names = [name for name, values in columns.items() if len(values) > 1 and (values == values[0]).all()]
    if names:
        listed = ", ".join(map(repr, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")
        remedy = ",".join(map(quoted, names))
        console.warn(f"{listed}: the same value in every row, which tells nothing. Leave out with `--exclude {remedy}`.")


def tell_errors(names: Sequence[str], console: Console) -> None:
    """Warn of weights with the name of a standard error: as weights, rows with larger errors would count more."""
    for name in names:
        if _words_in(name) & _NAMES_ERRORS:
            console.warn(
                f"column {name!r} is a weight, so that rows where it is large count more, but it has the name of a standard error."
                f" If it is one, say `--error {quoted(name)}` instead."
            )


def tell_formulas(names: Sequence[str], console: Console) -> None:
    """Warn of columns with text that a spreadsheet would calculate; it is written as it was read."""
    if names:
        console.warn(
            f"{', '.join(map(repr, names))}: cells begin with =, +, - or @, which spreadsheets take for formulas. Import the file"
            " as text, or write Parquet, if you do not trust them."
        )


class Outside:
    """Counts rows that lie outside of the ranges of a model's features, and tells of them."""

    def __init__(self, model: StitchedModel):
        self._names, (self._low, self._high) = model.feature_names, model.frame[:2]
        globe = () if model.chart is None else model.chart.globe or ()
        periods = () if model.chart is None else tuple(np.flatnonzero(model.chart.periods))
        self._ranged = np.setdiff1d(np.arange(len(self._names)), [*globe, *periods])
        self._rows = self._count = 0
        self._beyond = np.zeros(len(self._names), dtype=int)

    def add(self, X: Array) -> None:
        """More rows, (q, d)."""
        margin = _BEYOND * (self._high - self._low)
        beyond = np.zeros(X.shape, dtype=bool)
        beyond[:, self._ranged] = ((self._low - margin > X) | (self._high + margin < X))[:, self._ranged]
        self._rows, self._count = self._rows + len(X), self._count + int(beyond.any(axis=1).sum())
        self._beyond += beyond.sum(axis=0)

    def tell(self, console: Console) -> None:
        """Warn of them, with the features that most of them exceed."""
        if self._count:
            worst = [k for k in np.argsort(-self._beyond, kind="stable")[:_SHOWN] if self._beyond[k]]
            ranges = "; ".join(f"{self._names[k]} {self._low[k]:.6g} to {self._high[k]:.6g}" for k in worst)
            console.warn(
                f"{self._count:,} of {self._rows:,} rows lie outside of the data, where predictions extrapolate"
                f" (the data have {ranges}). If units differ, convert them."
            )


def tell_globe(columns: Mapping[str, Array], console: Console) -> None:
    """Suggest to take columns with the names of longitude and latitude for what they are."""
    found = [
        [name for name, values in columns.items() if name.lower() in names and np.abs(values).max() <= most]
        for names, most in _GLOBE
    ]
    if all(len(names) == 1 for names in found):
        pair = ",".join(quoted(names[0]) for names in found)
        console.warn(f"{found[0][0]!r} and {found[1][0]!r} look like places on the globe. Say `--geographic {pair}` if they are.")


def quoted(name: str) -> str:
    """The name of a column as a shell takes it."""
    inner = f'"{name}"' if "," in name else name
    return f"'{inner}'" if re.search(r"[^\w.+=/-]", inner) else inner


def counts_rows(name: str, values: Array) -> bool:
    """Whether whole numbers (n,) are all different and either count up by one, or have the name of a row or of a group."""
    if len(np.unique(values)) < len(values):
        return False
    return bool((np.diff(values) == 1.0).all()) or bool(_words_in(name) & (_NAMES_ROWS | _NAMES_GROUPS))


def names_groups(name: str, values: Array) -> bool:
    """Whether whole numbers (n,) have the name of a group, and each stands in several rows."""
    count = len(np.unique(values))
    return 1 < count <= len(values) / _RUN and bool(_words_in(name) & (_NAMES_GROUPS | {"id"}))


def _words_in(name: str) -> set[str]:
    """The words of a name: row_id, rowId and "Row ID" have two."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
