"""From a table to arrays: which columns are features, targets, weights and groups, and how they become numbers.

`read_columns` reads data for a fit, `read_known` data for an existing model. Words become categories, one feature
``colour=red`` for each of their values, and the names of a model's features say how to make them again. Three
lines of output say how the table was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..model.stitched import StitchedModel
from .cells import DATE, DAYS, NUMBER, WORD
from .console import Console
from .imputing import Filler
from .notices import quoted, tell_constants, tell_errors, tell_fills, tell_globe, tell_identifiers, tell_spellings
from .tables import Block, Table, stack_rows
from .text import Reading

_NAMED = 5  # rows with missing values that are named in an error
_MANY_VALUES = 20  # categories of a column beyond which there is a warning: each is one more dimension
_NAMES_OF_ROWS = 0.5  # a column with more different words than this share of its rows identifies rows, and predicts nothing


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
    """What a model is fitted to or compared with: X (n, d), y (n, t), and if there are any weights (n,), words for groups (n,),
    standard deviations of errors (n, t) and measured slopes (n, t, d)."""

    X: Array
    y: Array
    weights: Array | None
    groups: NDArray[np.str_] | None
    features: list[str]
    targets: list[str]
    dates: list[str]
    words: dict[str, str]  # the column of each feature that is a word
    errors: Array | None
    rows: Index  # (n,) which rows of the file they are, the first is 1
    slopes: Array | None = None


def read_columns(table: Table, columns: Columns, reading: Reading, console: Console, globe: bool = False) -> Data:
    """The rows of a table to fit, with notices about values that look like fill values and columns that look like identifiers, or
    like longitude and latitude unless those are known (``globe``).
    """
    features, targets, weights, groups, errors, slopes = resolve_columns(columns, table, console)
    sources = [Source(name, table.kind(name)) for name in features]
    table.spell([source.column for source in sources if source.kind == WORD])
    table.spell(groups)
    parts = _Parts(sources, targets, weights, errors, slopes, groups)
    console.announce(f"read           {table.title}: {table.note}")
    rows, numbers, left = _read_complete(table, parts, reading)
    parts = parts._replace(sources=[_with_values(source, table, len(rows), console) for source in sources])
    unused = [name for name in table.names if name and name not in parts.names]
    parts.announce(table, unused, console)
    console.announce(f"rows           {len(rows):,}{left}")
    _tell_oddities(table, parts, rows, console)
    numbered = {source.column: rows[:, k] for k, source in enumerate(sources) if source.kind == NUMBER}
    tell_constants({source.column: rows[:, k] for k, source in enumerate(sources)}, console)
    tell_identifiers(numbered, bool(groups), console)
    tell_errors(weights, console)
    if not globe:
        tell_globe(numbered, console)
    return _cut(table, rows, numbers, parts)


def read_known(
    model: StitchedModel, table: Table, reading: Reading, console: Console, columns: Columns = _NO_COLUMNS, quiet: bool = False
) -> Data:
    """The rows of a table with the features and targets of a model, and what else these ``columns`` say."""
    sources, targets = find_sources(model.feature_names, table), model.target_names
    parts = _Parts(sources, targets, columns.weights, columns.errors, columns.slopes, columns.groups)
    roles = ("target of the model", "weight", "error", "slope", "groups")
    for names, role in zip((targets, parts.weights, parts.errors, parts.slopes, parts.groups), roles, strict=True):
        table.check(names, role)
    table.spell(parts.groups)
    check_error_columns(parts.errors, targets)
    rows, numbers, left = _read_complete(table, parts, reading, known=collapse(model.X, sources))
    if not quiet:
        console.announce(f"read           {table.title}: {table.note}")
        parts.announce(table, (), console)
        console.announce(f"rows           {len(rows):,}{left}")
    _tell_oddities(table, parts, rows, console)
    found = _cut(table, rows, numbers, parts)
    check_latitudes(model, found.X, found.rows)
    return found


class _Parts(NamedTuple):
    """The columns that are read, by what they are used for; in this order they are the columns of the rows."""

    sources: list[Source]
    targets: Sequence[str]
    weights: Sequence[str]
    errors: Sequence[str]
    slopes: Sequence[str]
    groups: Sequence[str]

    @property
    def names(self) -> list[str]:
        """Their names in the table."""
        return [*(source.column for source in self.sources), *self.targets, *self.others]

    @property
    def others(self) -> list[str]:
        """Those that are neither features nor targets."""
        return [*self.weights, *self.errors, *self.slopes, *self.groups]

    def announce(self, table: Table, unused: Sequence[str], console: Console) -> None:
        """Say which columns are used for what."""
        targets = ", ".join(Source(name, table.kind(name)).describe() for name in self.targets)
        beside = f"; with {', '.join(self.others)}" if self.others else ""
        text = f"{targets} from {', '.join(source.describe() for source in self.sources)}{beside}"
        console.announce(f"columns        {text}" + (f"; not used: {', '.join(unused)}" if unused else ""))


def _tell_oddities(table: Table, parts: _Parts, rows: Array, console: Console) -> None:
    """Warn of fill values, and of words that differ only in capitals or blanks."""
    words = [source.column for source in parts.sources if source.kind == WORD]
    known = len(parts.sources) + len(parts.targets)
    tell_fills({name: rows[:, k] for k, name in enumerate(parts.names[:known]) if name not in table.words}, console)
    for name in [*words, *parts.groups]:
        tell_spellings(name, table.words[name], table.spaced[name], console)


def _read_complete(table: Table, parts: _Parts, reading: Reading, known: Array | None = None) -> tuple[Array, Index, str]:
    """The complete rows, after features are filled if that was requested, their numbers, and what was done in words.

    ``known`` (n, features) are the rows that a model was fitted to; missing features are then filled from them.
    """
    names, d = parts.names, len(parts.sources)
    rows = stack_rows((block.numbers for block in checked_blocks(table, names, reading, d)), len(names))
    total, filled = len(rows), ""
    if reading.impute and np.isnan(rows[:, :d]).any():
        kept = np.isfinite(rows[:, d:]).all(axis=1)  # the rows that the model will have
        source = known if known is not None else rows[kept, :d] if kept.any() else rows[:, :d]
        count = int((np.isnan(rows[:, :d]).any(axis=1) & kept).sum())
        rows[:, :d] = make_filler(parts.sources, source, reading)(rows[:, :d])
        filled = f"; what {count:,} rows lacked is filled in by {SAID[reading.impute]}"
    complete = np.isfinite(rows).all(axis=1)
    if not complete.any():
        raise ValueError(f"{table.title!r} has no complete row.")
    left = "" if complete.all() else f" of {total:,}: {_say_left_out(table, total - int(complete.sum()))}"
    return rows[complete], np.flatnonzero(complete) + 1, left + filled


def make_filler(sources: Sequence[Source], rows: Array, reading: Reading) -> Filler:
    """A filler of missing values in columns (n, len(sources)), from these ``rows``."""
    return Filler(rows, [source.kind == WORD for source in sources], reading.impute)


def _say_left_out(table: Table, count: int) -> str:
    unknown = [text for name in table.unknown if (text := say_unknown(table, name))]
    return f"{count:,} lack a number and are left out" + (f" ({'; '.join(unknown)})" if unknown else "")


SAID = {"median": "medians", "model": "models of the other features"}


def check_latitudes(model: StitchedModel, X: Array, rows: Index) -> None:
    """Raise a `ValueError` that names the row of the file, ``rows`` (n,), with a latitude beyond the poles."""
    globe = None if model.chart is None else model.chart.globe
    if globe is None or not len(X):
        return
    latitude = X[:, globe[1]]
    row = int(np.nanargmax(np.abs(latitude))) if np.isfinite(latitude).any() else 0
    if abs(latitude[row]) > 90.0:
        name = model.feature_names[globe[1]]
        raise ValueError(f"Latitudes must be between -90 and 90 degrees, and {name!r} has {latitude[row]:g} in row {rows[row]}.")


def check_error_columns(errors: Sequence[str], targets: Sequence[str]) -> None:
    """Raise a `ValueError` unless there is a column of errors for each target, or none."""
    if errors and len(errors) != len(targets):
        raise ValueError(f"`--error` must name one column for each target, in their order: {len(targets)}, got {len(errors)}.")


def _cut(table: Table, rows: Array, numbers: Index, parts: _Parts) -> Data:
    sources, targets, weights, errors, slopes, groups = parts
    d, t = len(sources), len(targets)
    start = d + t + len(weights)
    end = start + len(errors)
    s = rows[:, start:end] if errors else None
    names = [name for source in sources for name in source.features]
    v = rows[:, d + t] if weights else None
    group = np.array(list(table.words[groups[0]]))[rows[:, -1].astype(int)] if groups else None
    dates = [source.column for source in sources if source.kind == DATE]
    words = {name: source.column for source in sources if source.kind == WORD for name in source.features}
    found = Data(expand(rows[:, :d], sources), rows[:, d : d + t], v, group, names, list(targets), dates, words, s, numbers)
    return found._replace(slopes=_place_slopes(found, slopes, rows[:, end : end + len(slopes)])) if slopes else found


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
            found.append(np.where(np.isfinite(column)[:, None], hit, np.nan))
    return np.concatenate(found, axis=1)


def collapse(X: Array, sources: Sequence[Source]) -> Array:
    """The columns (n, len(sources)) that features ``X`` (n, d) come from: the inverse of `expand`."""
    found, start = [], 0
    for source in sources:
        end = start + len(source.features)
        found.append(X[:, start:end].argmax(axis=1) if source.kind == WORD else X[:, start])
        start = end
    return np.stack(found, axis=1).astype(float)


def _with_values(source: Source, table: Table, n: int, console: Console) -> Source:
    if source.kind != WORD:
        return source
    values = tuple(table.words[source.column])
    if len(values) > max(_MANY_VALUES, _NAMES_OF_ROWS * n):
        raise ValueError(
            f"Column {source.column!r} of {table.title!r} has {len(values):,} different words in {n:,} rows, as if it named them."
            f" Leave it out with `--exclude {quoted(source.column)}`."
        )
    if len(values) > _MANY_VALUES:
        console.warn(
            f"column {source.column!r} has {len(values)} categories, and each of them is one more feature. If that is too much,"
            f" leave it out with `--exclude {quoted(source.column)}`."
        )
    return source._replace(values=values)


def resolve_columns(columns: Columns, table: Table, console: Console) -> tuple[list[str], ...]:
    """Features, targets, weights, groups, errors and slopes by name; if no features are named, all columns without another part."""
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
            console.warn(f"a column of {table.title!r} has no name and is left out.")
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


def checked_blocks(table: Table, names: Sequence[str], reading: Reading, features: int) -> Iterator[Block]:
    """Blocks of rows; an error says where numbers are missing, unless such rows are left out or the first columns filled."""
    before, blocks = 0, table.blocks(names)
    for block in blocks:
        if not (reading.drop_missing or not _lacking(block, reading, features).any()):
            raise ValueError(_say_missing(table, names, chain([block], blocks), before, reading, features))
        before += len(block.numbers)
        yield block


def _lacking(block: Block, reading: Reading, features: int) -> NDArray[np.bool_]:
    """Which numbers are missing and will not be filled in; of ``features``, the first columns, unknown words never are."""
    filled = np.isnan(block.numbers) & (np.arange(block.numbers.shape[1]) < features) & bool(reading.impute)
    return ~np.isfinite(block.numbers) & ~filled


def _say_missing(table: Table, names: Sequence[str], blocks: Iterable[Block], before: int, reading: Reading, features: int) -> str:
    """Which columns lack numbers in which rows, from the first block that does to the last."""
    rows: list[list[int]] = [[] for _ in names]
    for block in blocks:
        for found, column in zip(rows, _lacking(block, reading, features).T, strict=True):
            found += (before + 1 + np.flatnonzero(column)).tolist()
        before += len(block.numbers)
    where = [
        (f"{name} ({unknown}) in" if (unknown := say_unknown(table, name)) else f"{name} in")
        + f" {len(found):,} rows ({', '.join(map(str, found[:_NAMED]))}{', …' if len(found) > _NAMED else ''})"
        for name, found in zip(names, rows, strict=True)
        if found
    ]
    fillable = any(rows[:features]) and not any(rows[features:]) and not reading.impute
    remedy = ", or fill them with `--impute median`" if fillable else ""
    return f"{table.title!r} lacks numbers: {'; '.join(where)}. Use `--drop-missing` to leave these rows out{remedy}."


def say_unknown(table: Table, name: str) -> str:
    """The words of a column that a model does not know, how often each came, and those that it knows."""
    if name not in table.unknown:
        return ""
    words = table.unknown[name].most_common()
    listed = ", ".join(f"{word!r} ({count:,} {'row' if count == 1 else 'rows'})" for word, count in words[:_NAMED])
    listed += ", …" if len(words) > _NAMED else ""
    is_are = "is not a known category" if len(words) == 1 else "are not known categories"
    shown = ", ".join(list(table.words[name])[:_NAMED]) + (", …" if len(table.words[name]) > _NAMED else "")
    return f"{listed} {is_are} of {name}: {shown}. Refit the model to add {'it' if len(words) == 1 else 'them'}"
