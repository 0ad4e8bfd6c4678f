"""A table: named columns, read in blocks of rows. Whatever file it comes from, its cells become numbers here.

Numbers are numbers, dates are days since 1970, words have numbers in the order in which they come; what is missing is NaN. A cell
that is none of these is an error with its column and row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .._types import Array
from .cells import AMBIGUOUS, DATE, NUMBER, WORD, code_words, parse_text, split_missing
from .dates import orders_in
from .text import Reading

ROWS = 1 << 16  # rows of a block
STANDARD = Path("-")  # standard input or output
_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
NOTHING_SAID = Reading()


class Block(NamedTuple):
    """Some rows: as Arrow has them, and the columns that were asked for as numbers (rows, columns)."""

    batch: Any
    numbers: Array


class Table(ABC):
    """A file of named columns. ``note`` says in words how it was understood."""

    decimal = "."
    attributes: Mapping[str, Mapping[str, str]] = MappingProxyType({})  # what a file says of a column besides its numbers
    padded: frozenset[str] = frozenset()  # columns of numbers such as 007, which would not be the same without their zeros

    def __init__(self, path: Path, names: Sequence[str], note: str, hints: Reading = NOTHING_SAID):
        self.path, self.names, self.note = path, list(names), note
        self.title = "standard input" if path == STANDARD else str(path)
        self.words: dict[str, dict[str, int]] = {}
        self.unknown: dict[str, Counter[str]] = {}  # words that a model does not know, and how often they came, by column
        self.spaced: Counter[str] = Counter()  # cells with blanks around their word, by column
        self._closed: set[str] = set()
        self._missing = split_missing(hints.missing)
        self._form = hints.date_format
        self._orders: dict[str, dict[str, str]] = {}  # what dates such as 31/12/2020 say of the order of day and month, by column

    @abstractmethod
    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """All rows, in Arrow's record batches of up to so many."""

    @abstractmethod
    def first_kind(self, name: str) -> str:
        """What the first cells of a column are: numbers, dates, words, or dates that can be read in two ways."""

    def kind(self, name: str) -> str:
        """Whether a column has numbers, dates or words; one day above 12 tells how the dates of a whole column are to be read."""
        first = self.first_kind(name)
        if first != AMBIGUOUS:
            return first
        if name not in self._orders:
            self._orders[name] = orders_in(self._slashed_cells(name))
        return DATE if len(self._orders[name]) == 1 else AMBIGUOUS

    def _slashed_cells(self, name: str) -> Iterator[str]:
        """The different cells of a column, in each block of rows."""
        for batch in self.sample():
            cells = _as_text(batch.column(self.names.index(name))).dictionary_encode().dictionary
            yield from (cell for cell in cells.to_pylist() if cell is not None)

    def sample(self) -> Iterator[Any]:
        """Rows to look at before the table is read: all of them, where they can be read twice."""
        return self.batches()

    @property
    def done(self) -> float | None:
        """The share of the file that was read; None where its size is not known."""
        return None

    def spell(self, names: Sequence[str], known: Sequence[str] | None = None) -> None:
        """Read these columns as words, each with a number; if ``known`` words are given, all others count as missing."""
        for name in names:
            self.words[name] = {word: k for k, word in enumerate(known or ())}
        if known is not None:
            self._closed |= set(names)

    def check(self, names: Sequence[str], role: str) -> None:
        """Raise a `ValueError` for a column that is not there."""
        for name in names:
            if name not in self.names:
                raise ValueError(f"{self.title!r} has no column {name!r} ({role}). Its columns: {', '.join(self.names)}.")

    def blocks(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Block]:
        """All rows in blocks, with the numbers of the columns ``names``, NaN where one is missing."""
        before = 0
        for batch in self.batches(rows):
            columns = [self.numbers_of(batch, name, before) for name in names]
            yield Block(batch, np.stack(columns, axis=1) if columns else np.empty((len(batch), 0)))
            before += len(batch)

    def read(self, names: Sequence[str]) -> Array:
        """All rows of the columns ``names``."""
        return stack_rows((block.numbers for block in self.blocks(names)), len(names))

    def numbers_of(self, batch: Any, name: str, before: int = 0) -> Array:
        """The numbers of a column in a batch; ``before`` is the number of rows before it."""
        column, (words, numbers) = batch.column(self.names.index(name)), self._missing
        if name in self.words:
            return self._codes(_as_text(column), name, words)
        kind = self.kind(name)
        if kind == WORD:
            raise ValueError(
                f"Column {name!r} of {self.title!r} holds words, not numbers, such as {column[0]}. Leave it out with `--exclude`,"
                " or encode it."
            )
        if kind == AMBIGUOUS:
            raise ValueError(self._say_ambiguous(name, str(column[0])))
        form = self._form or next(iter(self._orders.get(name, {})), "")
        found, wrong = to_numbers(column, kind, self.decimal, words, form)
        if wrong is not None:
            cell = str(column[wrong]).strip()
            if "\n" in cell:
                raise ValueError(f"{self.title!r} is not a table of text: a cell has several lines. Is a quote left open?")
            raise ValueError(
                f"{cell!r} in column {name!r}, row {before + wrong + 1} of {self.title!r} is not a {kind}."
                f" Correct it, leave the column out, or say `--missing {cell}` if it stands for nothing."
            )
        return np.where(np.isin(found, numbers), np.nan, found) if len(numbers) else found

    def _say_ambiguous(self, name: str, cell: str) -> str:
        formats = [
            f"{example!r} has the {'day' if order == 'dmy' else 'month'} first" for order, example in self._orders[name].items()
        ]
        why = f" ({', '.join(formats)})" if formats else f", such as {cell}, and no day above 12 tells which"
        return (
            f"Column {name!r} of {self.title!r} has dates that can be read in two ways{why}. Say `--date-format dmy` or"
            " `--date-format mdy`, or write dates as 2020-12-31."
        )

    def _codes(self, text: Any, name: str, words: frozenset[str]) -> Array:
        codes, unknown, spaced = code_words(text, self.words[name], name not in self._closed, words)
        if unknown:
            self.unknown.setdefault(name, Counter()).update(unknown)
        self.spaced[name] += spaced
        return codes


def stack_rows(blocks: Iterable[Array], columns: int) -> Array:
    """All rows of some blocks."""
    return np.concatenate([np.empty((0, columns)), *blocks])


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def to_numbers(column: Any, kind: str, decimal: str, words: frozenset[str], form: str = "") -> tuple[Array, int | None]:
    """Numbers (n,) of an Arrow array of this kind, and the index of the first cell that is none; ``form`` is that of dates."""
    import pyarrow as pa

    if _is_text(column.type):
        return parse_text(_as_text(column), kind, decimal, words, form)
    if kind == DATE:
        return _days(column), None
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64), None


def _days(column: Any) -> Array:
    """Days since 1970-01-01 of an Arrow array of dates or timestamps."""
    import pyarrow as pa

    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    ticks = column.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return np.asarray(ticks / (86_400.0 * _SECONDS[column.type.unit]))


def _is_text(type_: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def type_kind(type_: Any) -> str | None:
    """The kind of a column by its type; None for text, whose cells tell."""
    import pyarrow as pa

    if _is_text(type_):
        return None
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    if numeric or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return NUMBER
    return DATE if pa.types.is_timestamp(type_) or pa.types.is_date(type_) else WORD
