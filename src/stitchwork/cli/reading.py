"""From a table to arrays: which columns are features, targets, weights and groups, and how they become numbers.

`read_columns` serves a fit, `read_known` whatever is asked of a model that is there. Words become categories, one feature
``colour=red`` for each of their values, and the names of a model's features tell how to make them again. What was understood is
said in three lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from ..model.stitched import StitchedModel
from .cells import DATE, DAYS, NUMBER, WORD, repeated_far_value
from .tables import Block, Table, stack_rows

Announce = Callable[[str], None]

_NAMED = 5  # rows with missing values that are named in an error
_MANY_VALUES = 20  # categories of a column beyond which there is a warning: each is one more dimension
_NAMES_OF_ROWS = 0.5  # a column with more different words than this share of its rows names rows, and foretells nothing


class Columns(NamedTuple):
    """Columns of a table to fit, by name or pattern; no features means all others but those to ``exclude``."""

    features: Sequence[str]
    targets: Sequence[str]
    weights: Sequence[str] = ()
    groups: Sequence[str] = ()
    exclude: Sequence[str] = ()
    errors: Sequence[str] = ()
    slopes: Sequence[str] = ()


_NO_COLUMNS = Columns((), ())


class Source(NamedTuple):
    """A column that features come from: itself, or one feature for each of its ``values``."""

    column: str
    kind: str
    values: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"{self.column}={value}" for value in self.values] if self.kind == WORD else [self.column]

    def describe(self) -> str:
        """The column and how it is used."""
        if self.kind == WORD:
            shown = ", ".join(self.values[:_NAMED]) + (", …" if len(self.values) > _NAMED else "")
            return f"{self.column} (categories: {shown})"
        return f"{self.column} ({DAYS})" if self.kind == DATE else self.column


class Data(NamedTuple):
    """What a model is fitted to or compared with: X (n, d), y (n, t), and if there are any weights (n,), words for groups (n,) and
    standard deviations of errors (n, t), and measured slopes (n, t, d)."""

    X: Array
    y: Array
    weights: Array | None
    groups: NDArray[np.str_] | None
    features: list[str]
    targets: list[str]
    dates: list[str]
    words: dict[str, str]  # the column of each feature that is a word
    errors: Array | None = None
    slopes: Array | None = None


def read_columns(table: Table, columns: Columns, drop_missing: bool, announce: Announce, warn: Announce) -> Data:
    """The rows of a table to fit, with a warning of values that look like stand-ins for missing ones."""
    features, targets, weights, groups, errors, slopes = resolve_columns(columns, table, warn)
    sources = [Source(name, table.kind(name)) for name in features]
    table.spell([source.column for source in sources if source.kind == WORD])
    table.spell(groups)
    names = [*features, *targets, *weights, *errors, *slopes, *groups]
    announce(f"read           {table.title}: {table.note}")
    rows, left = _read_complete(table, names, drop_missing)
    sources = [_with_values(source, table, len(rows), warn) for source in sources]
    unused = [name for name in table.names if name and name not in names]
    others = [*weights, *errors, *slopes, *groups]
    _tell_columns([Source(name, table.kind(name)) for name in targets], sources, others, unused, announce)
    announce(f"rows           {len(rows):,}{left}")
    _warn_of_fills(table, names, rows, [*features, *targets], warn)
    found = _cut(table, rows, sources, targets, weights, errors, groups)
    at = [names.index(one) for one in slopes]
    return found._replace(slopes=_place_slopes(found, slopes, rows[:, at])) if slopes else found


def read_known(
    model: StitchedModel,
    table: Table,
    drop_missing: bool,
    announce: Announce,
    warn: Announce,
    columns: Columns = _NO_COLUMNS,
) -> Data:
    """The rows of a table with the features and targets of a model, and the weights, errors and groups in these ``columns``."""
    weights, errors, groups = columns.weights, columns.errors, columns.groups
    sources, targets = find_sources(model.feature_names, table), model.target_names
    for names, role in ((targets, "target of the model"), (weights, "weight"), (errors, "error"), (groups, "groups")):
        table.check(names, role)
    table.spell(groups)
    names = [*(source.column for source in sources), *targets, *weights, *errors, *groups]
    check_error_columns(errors, targets)
    announce(f"read           {table.title}: {table.note}")
    rows, left = _read_complete(table, names, drop_missing)
    _tell_columns([Source(name, table.kind(name)) for name in targets], sources, [*weights, *errors, *groups], (), announce)
    announce(f"rows           {len(rows):,}{left}")
    _warn_of_fills(table, names, rows, names[: len(sources) + len(targets)], warn)
    return _cut(table, rows, sources, targets, weights, errors, groups)


def _warn_of_fills(table: Table, names: Sequence[str], rows: Array, asked: Sequence[str], warn: Announce) -> None:
    """Warn of values in some columns that look like stand-ins for missing ones."""
    for name in asked:
        if name not in table.words and (found := repeated_far_value(rows[:, names.index(name)])):
            value, count = found
            warn(
                f"stitchwork: {value:g} stands {count:,} times in column {name!r}, far from all other values."
                f" If it means that there is none, say `--missing {value:g}`."
            )


def _read_complete(table: Table, names: Sequence[str], drop_missing: bool) -> tuple[Array, str]:
    """The rows that lack nothing, and how many were left out in words."""
    total, kept = 0, []
    for block in checked_blocks(table, names, drop_missing):
        total += len(block.numbers)
        kept.append(block.numbers[np.isfinite(block.numbers).all(axis=1)])
    rows = stack_rows(kept, len(names))
    if not len(rows):
        raise ValueError(f"{table.title!r} has no complete row.")
    return rows, f" of {total:,}: {total - len(rows):,} lack a number and are left out" if len(rows) < total else ""


def check_error_columns(errors: Sequence[str], targets: Sequence[str]) -> None:
    """Raise a `ValueError` unless there is a column of errors for each target, or none."""
    if errors and len(errors) != len(targets):
        raise ValueError(f"`--error` must name one column for each target, in their order: {len(targets)}, got {len(errors)}.")


def _cut(
    table: Table,
    rows: Array,
    sources: list[Source],
    targets: Sequence[str],
    weights: Sequence[str],
    errors: Sequence[str],
    groups: Sequence[str],
) -> Data:
    d, t = len(sources), len(targets)
    start = d + t + len(weights)
    s = rows[:, start : start + len(errors)] if errors else None
    names = [name for source in sources for name in source.features]
    v = rows[:, d + t] if weights else None
    group = np.array(list(table.words[groups[0]]))[rows[:, -1].astype(int)] if groups else None
    dates = [source.column for source in sources if source.kind == DATE]
    words = {name: source.column for source in sources if source.kind == WORD for name in source.features}
    return Data(expand(rows[:, :d], sources), rows[:, d : d + t], v, group, names, list(targets), dates, words, s)


def _place_slopes(data: Data, names: Sequence[str], columns: Array) -> Array:
    """Slopes (n, t, d) from ``columns`` of these names, NaN where there is none."""
    slopes = np.full((len(columns), len(data.targets), len(data.features)), np.nan)
    known = {f"d{y}/d{x}": (o, k) for o, y in enumerate(data.targets) for k, x in enumerate(data.features)}
    for name, column in zip(names, columns.T, strict=True):
        if name not in known:
            wanted = f"such as {next(iter(known))!r}"
            raise ValueError(f"`--gradient` must name slopes of targets by features, {wanted}, got {name!r}. Rename the column.")
        slopes[:, known[name][0], known[name][1]] = column
    return slopes


def _tell_columns(
    targets: Sequence[Source], sources: Sequence[Source], others: Sequence[str], unused: Sequence[str], announce: Announce
) -> None:
    used = f"{', '.join(source.describe() for source in targets)} from {', '.join(source.describe() for source in sources)}"
    beside = f"; with {', '.join(others)}" if others else ""
    announce(f"columns        {used}{beside}" + (f"; not used: {', '.join(unused)}" if unused else ""))


def find_sources(features: Sequence[str], table: Table) -> list[Source]:
    """The columns of a table that a model's features come from, in their order; ``colour=red`` is a value of ``colour``."""
    sources: list[Source] = []
    for name in features:
        column = name if name in table.names else _category(name, table.names)
        if column is None or column == name:
            table.check([name], "feature of the model")
            sources.append(Source(name, NUMBER))
        elif sources and sources[-1].column == column:
            sources[-1] = sources[-1]._replace(values=(*sources[-1].values, name[len(column) + 1 :]))
        else:
            sources.append(Source(column, WORD, (name[len(column) + 1 :],)))
    for source in sources:
        if source.kind == WORD:
            table.spell([source.column], source.values)
    return [source if source.kind == WORD else source._replace(kind=table.kind(source.column)) for source in sources]


def _category(name: str, columns: Sequence[str]) -> str | None:
    cuts = [k for k, letter in enumerate(name) if letter == "="]
    return next((name[:k] for k in cuts if name[:k] in columns), None)


def expand(rows: Array, sources: Sequence[Source]) -> Array:
    """Features (n, d) of the columns (n, len(sources)): numbers as they are, words as 0 and 1 for each value, NaN where missing."""
    found = []
    for column, source in zip(rows.T, sources, strict=True):
        if source.kind != WORD:
            found.append(column[:, None])
        else:
            hit = (column[:, None] == np.arange(len(source.values))).astype(float)
            found.append(np.where(np.isnan(column)[:, None], np.nan, hit))
    return np.concatenate(found, axis=1)


def _with_values(source: Source, table: Table, n: int, warn: Announce) -> Source:
    if source.kind != WORD:
        return source
    values = tuple(table.words[source.column])
    if len(values) > max(_MANY_VALUES, _NAMES_OF_ROWS * n):
        raise ValueError(
            f"Column {source.column!r} of {table.title!r} has {len(values):,} different words in {n:,} rows, as if it named them."
            f" Leave it out with `--exclude {source.column}`."
        )
    if len(values) > _MANY_VALUES:
        warn(f"stitchwork: column {source.column!r} has {len(values)} categories, and each of them is one more feature.")
    return source._replace(values=values)


def resolve_columns(columns: Columns, table: Table, warn: Announce) -> tuple[list[str], ...]:
    """Features, targets, weights, groups, errors and slopes by name; features are all columns that have no other part, if none is
    named.
    """
    _, targets, weights, groups, exclude, errors, slopes = map(list, columns)
    table.check(targets, "target")
    table.check(weights, "weight")
    table.check(groups, "groups")
    table.check(errors, "error")
    table.check(slopes, "slope")
    check_error_columns(errors, targets)
    out = set(match_names(exclude, table, "to exclude"))
    features = match_names(columns.features, table, "feature")
    if not features:
        left = [name for name in table.names if name not in {*targets, *weights, *groups, *errors, *slopes}]
        features = [name for name in left if name]
        if len(features) < len(left):
            warn(f"stitchwork: a column of {table.title!r} has no name and is left out.")
    features = [name for name in features if name not in out]
    parts = [*features, *targets, *weights, *groups, *errors, *slopes]
    twice = next((name for name in parts if parts.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"Column {twice!r} is named twice among features, targets, weights, errors, slopes and groups.")
    if not features:
        raise ValueError(f"{table.title!r} has no column that is left to be a feature.")
    return features, targets, weights, groups, errors, slopes


def match_names(patterns: Sequence[str], table: Table, role: str) -> list[str]:
    """The columns that are named or match a pattern, in the order of the patterns, each once unless it is named twice."""
    found: list[str] = []
    for pattern in patterns:
        some = [name for name in table.names if fnmatchcase(name, pattern) and name not in found]
        if pattern in table.names or not some:
            table.check([pattern], role)
            some = [pattern]
        found += some
    return found


def checked_blocks(table: Table, names: Sequence[str], drop_missing: bool) -> Iterator[Block]:
    """Blocks of rows; unless rows that lack a number are to be dropped, an error says where they are."""
    before, blocks = 0, table.blocks(names)
    for block in blocks:
        if not (drop_missing or np.isfinite(block.numbers).all()):
            raise ValueError(_say_missing(table, names, chain([block], blocks), before))
        before += len(block.numbers)
        yield block


def _say_missing(table: Table, names: Sequence[str], blocks: Iterable[Block], before: int) -> str:
    """Which columns lack numbers in which rows, from the first block that does to the last."""
    rows: list[list[int]] = [[] for _ in names]
    for block in blocks:
        for found, column in zip(rows, ~np.isfinite(block.numbers.T), strict=True):
            found += (before + 1 + np.flatnonzero(column)).tolist()
        before += len(block.numbers)
    where = [
        f"{name}{_say_unknown(table, name)} in {len(found):,} rows ({', '.join(map(str, found[:_NAMED]))}"
        f"{', …' if len(found) > _NAMED else ''})"
        for name, found in zip(names, rows, strict=True)
        if found
    ]
    return f"{table.title!r} lacks numbers: {'; '.join(where)}. Use `--drop-missing` to leave these rows out."


def _say_unknown(table: Table, name: str) -> str:
    if name not in table.unknown:
        return ""
    known = ", ".join(table.words[name])
    return f" ({table.unknown[name]!r} is not a known category: {known}. Refit the model to add it)"
