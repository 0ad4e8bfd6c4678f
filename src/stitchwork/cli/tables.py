"""Tables in files: named columns, read in blocks of rows, so that a file may be larger than memory.

Arrow reads text and Parquet, NumPy reads NPZ, xarray NetCDF. Numbers are numbers, dates are days since 1970, words have numbers in
the order in which they come; what is missing is NaN. A cell that is none of these is an error with its column and row.
"""

from __future__ import annotations

import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np

from .._extras import need
from .._types import Array
from .cells import AMBIGUOUS, DATE, NUMBER, WORD, code_words, kind_of, parse_text, split_missing
from .text import HEAD, Lines, TextHints, understand

ROWS = 1 << 16  # rows of a block
STANDARD = Path("-")  # standard input or output
_BLOCK = 1 << 23  # bytes of text that are read at once
_SAMPLE = 1000  # rows that tell the kind of a column of text
_SECONDS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_NOTHING = TextHints()


class Block(NamedTuple):
    """Some rows: as Arrow has them, and the columns that were asked for as numbers (rows, columns)."""

    batch: Any
    numbers: Array


class Table(ABC):
    """A file of named columns. ``note`` says in words how it was understood."""

    decimal = "."
    padded: frozenset[str] = frozenset()  # columns of numbers such as 007, which would not be the same without their zeros

    def __init__(self, path: Path, names: Sequence[str], note: str, hints: TextHints = _NOTHING):
        self.path, self.names, self.note = path, list(names), note
        self.title = "standard input" if path == STANDARD else str(path)
        self.words: dict[str, dict[str, int]] = {}
        self.unknown: dict[str, str] = {}  # a word that a model does not know, by column
        self._closed: set[str] = set()
        self._missing = split_missing(hints.missing)

    @abstractmethod
    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """All rows, in Arrow's record batches of up to so many."""

    @abstractmethod
    def kind(self, name: str) -> str:
        """Whether a column has numbers, dates or words."""

    @property
    def done(self) -> float | None:
        """The share of the file that was read; None where its size is not known."""
        return None

    def spell(self, names: Sequence[str], known: Sequence[str] | None = None) -> None:
        """Take these columns for words: each has a number, and those that are not ``known``, if any are, are missing."""
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
        """The numbers of a column in some rows, ``before`` which there are so many."""
        column, (words, numbers) = batch.column(self.names.index(name)), self._missing
        if name in self.words:
            return self._codes(_as_text(column), name, words)
        kind = self.kind(name)
        if kind in (WORD, AMBIGUOUS):
            remedy = "Write dates as 2020-12-31." if kind == AMBIGUOUS else "Leave it out with `--exclude`, or encode it."
            does = "has dates that can be read in two ways" if kind == AMBIGUOUS else "holds words, not numbers"
            raise ValueError(f"Column {name!r} of {self.title!r} {does}, such as {column[0]}. {remedy}")
        found, wrong = to_numbers(column, kind, self.decimal, words)
        if wrong is not None:
            cell = str(column[wrong]).strip()
            if "\n" in cell:
                raise ValueError(f"{self.title!r} is not a table of text: a cell has several lines. Is a quote left open?")
            raise ValueError(
                f"{cell!r} in column {name!r}, row {before + wrong + 1} of {self.title!r} is not a {kind}."
                f" Correct it, leave the column out, or say `--missing {cell}` if it stands for nothing."
            )
        return np.where(np.isin(found, numbers), np.nan, found) if len(numbers) else found

    def _codes(self, text: Any, name: str, words: frozenset[str]) -> Array:
        closed = name in self._closed
        codes = code_words(text, self.words[name], not closed, words)
        if closed and name not in self.unknown and np.isnan(codes).any():
            odd = {str(word).strip() for word in text.filter(np.isnan(codes)).to_pylist() if word is not None}
            new = sorted(word for word in odd if not np.isnan(code_words(_as_text([word]), {}, True, words)).all())
            self.unknown |= {name: new[0]} if new else {}
        return codes


def stack_rows(blocks: Iterable[Array], columns: int) -> Array:
    """All rows of some blocks."""
    return np.concatenate([np.empty((0, columns)), *blocks])


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    array = pa.array(column, pa.string()) if isinstance(column, list) else column
    return array if pa.types.is_string(array.type) else array.cast(pa.string())


def to_numbers(column: Any, kind: str, decimal: str, words: frozenset[str]) -> tuple[Array, int | None]:
    """Numbers (n,) of an Arrow array of this kind, and the first cell of text that is none."""
    import pyarrow as pa

    if _is_text(column.type):
        return parse_text(_as_text(column), kind, decimal, words)
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


def _type_kind(type_: Any) -> str | None:
    """The kind of a column by its type; None for text, whose cells tell."""
    import pyarrow as pa

    if _is_text(type_):
        return None
    numeric = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    if numeric or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return NUMBER
    return DATE if pa.types.is_timestamp(type_) or pa.types.is_date(type_) else WORD


class TextTable(Table):
    """Text, laid out in one of many ways; every column is text to Arrow, and is kept as it stands where it is written again."""

    def __init__(self, path: Path, hints: TextHints = _NOTHING):
        self._head = sys.stdin.buffer.read(HEAD) if path == STANDARD else _read_head(path)
        rows = max(self._head.count(b"\n"), 1)  # Arrow reads ahead, so that bytes would say more than was done
        self._rows = 0.0 if path == STANDARD else path.stat().st_size * rows / max(len(self._head), 1)  # about how many there are
        try:
            self.layout = understand(self._head, len(self._head) < HEAD, hints, path.suffix.lower() == ".tsv")
        except ValueError as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error}.") from error
        self._read = 0
        self._started = False
        self._wrong: Any = None
        self.decimal, self.padded = self.layout.decimal, self.layout.padded
        self._kinds = dict(zip(self.layout.names, self.layout.kinds, strict=True))
        super().__init__(path, self.layout.names, self.layout.describe(), hints)

    def kind(self, name: str) -> str:
        """See `Table.kind`."""
        return self._kinds[name]

    @property
    def done(self) -> float | None:
        """See `Table.done`."""
        return min(1.0, self._read / self._rows) if self._rows else None

    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """See `Table.batches`."""
        import pyarrow as pa

        if self._started and self.path == STANDARD:
            raise ValueError("Standard input can be read only once.")
        self._read, self._started = 0, True
        with nullcontext(sys.stdin.buffer) if self.path == STANDARD else open(self.path, "rb") as file:
            lines = Lines(self._head if self.path == STANDARD else b"", file, self.layout)
            try:
                for batch in self._reader(lines):
                    for start in range(0, len(batch), rows):
                        part = batch.slice(start, rows)
                        self._read += len(part)
                        yield part
            except pa.ArrowInvalid as error:
                raise ValueError(self._say_wrong(str(error))) from error
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{self.title!r} is not text in {error.encoding} ({error.reason}). Name its encoding with `--encoding`."
                ) from error

    def _reader(self, lines: Lines) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        def note(row: Any) -> str:
            self._wrong = row
            return "error"

        columns = [f"c{k}" for k in range(len(self.names))]  # names of our own: theirs may be empty
        if not lines.peek():
            return [pa.record_batch([pa.array([], pa.string()) for _ in columns], columns)]
        reading = csv.ReadOptions(block_size=_BLOCK, column_names=columns)
        parsing = csv.ParseOptions(delimiter=self.layout.separator, invalid_row_handler=note)
        types = csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), quoted_strings_can_be_null=False)
        return csv.open_csv(lines, reading, parsing, types)

    def _say_wrong(self, error: str) -> str:
        if self._wrong is not None:
            row, self._wrong = self._wrong, None
            place = f"Row {row.number}" if row.number else "A row"
            return (
                f"{place} of {self.title!r} has {row.actual_columns} cells, and there are {row.expected_columns} columns:"
                f" {row.text[:80]!r}."
            )
        return f"{self.title!r} is not a table of text ({error}). Is a quote left open?"


def _read_head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD)


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: Path, hints: TextHints = _NOTHING):
        from pyarrow import ArrowInvalid, parquet

        try:
            self._file = parquet.ParquetFile(path)
        except ArrowInvalid as error:
            raise ValueError(f"{str(path)!r} is not a Parquet file, or it is truncated ({error}).") from error
        self._schema = self._file.schema_arrow
        self._read = 0
        super().__init__(path, [name for name in self._schema.names if not name.startswith("__index_level_")], "Parquet", hints)

    def kind(self, name: str) -> str:
        """See `Table.kind`."""
        known = _type_kind(self._schema.field(name).type)
        if known is not None:
            return known
        first = next(self._file.iter_batches(_SAMPLE, columns=[name]), None)
        return kind_of(str(cell) for cell in first.column(0).to_pylist() if cell is not None) if first else NUMBER

    @property
    def done(self) -> float | None:
        """See `Table.done`."""
        return self._read / max(self._file.metadata.num_rows, 1)

    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """See `Table.batches`."""
        self._read = 0
        for batch in self._file.iter_batches(rows, columns=self.names):
            self._read += len(batch)
            yield batch


class ArraysTable(Table):
    """Columns that are in memory: an NPZ file, whose two-dimensional arrays are columns a0, a1, …, or a NetCDF file."""

    def __init__(self, path: Path, columns: dict[str, Any], note: str, hints: TextHints = _NOTHING):
        import pyarrow as pa

        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The arrays of {str(path)!r} have different lengths: {lengths}.")
        try:
            arrays = [pa.array(column) for column in columns.values()]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ValueError(f"{str(path)!r} has an array that is neither numbers nor text ({error}).") from error
        self._batch, self._read = pa.record_batch(arrays, list(columns)), 0
        super().__init__(path, list(columns), note, hints)

    def kind(self, name: str) -> str:
        """See `Table.kind`."""
        column = self._batch.column(self.names.index(name))
        known = _type_kind(column.type)
        return known or kind_of(str(cell) for cell in column[:_SAMPLE].to_pylist() if cell is not None)

    @property
    def done(self) -> float | None:
        """See `Table.done`."""
        return self._read / max(len(self._batch), 1)

    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """See `Table.batches`."""
        for start in range(0, len(self._batch), rows):
            self._read = min(start + rows, len(self._batch))
            yield self._batch.slice(start, rows)


def _npz(path: Path, hints: TextHints) -> Table:
    if not is_zipfile(path):
        raise ValueError(f"{str(path)!r} is not an NPZ file.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (BadZipFile, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is damaged ({error}).") from error
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise ValueError(f"Array {name!r} of {str(path)!r} has {array.ndim} dimensions. Columns have one, tables two.")
        columns |= {name: array} if array.ndim == 1 else {f"{name}{i}": column for i, column in enumerate(array.T)}
    return ArraysTable(path, columns, "arrays of NumPy", hints)


def _netcdf(path: Path, hints: TextHints) -> Table:
    with need("xarray", "NetCDF").open_dataset(path) as dataset:
        frame = dataset.to_dataframe().reset_index()
    names = {name: dataset.variables[name].attrs.get("long_name", name) if name in dataset.variables else name for name in frame}
    kept = [name for name in frame.columns if name not in dataset.sizes or name in dataset.variables]  # no bare counts of rows
    return ArraysTable(path, {_own_name(str(name), names[name]): frame[name].to_numpy() for name in kept}, "NetCDF", hints)


def _own_name(name: str, long: Any) -> str:
    """The name that a column had before its slashes were replaced to write it."""
    return str(long) if str(long).replace("/", "_") == name else name


_READERS: dict[str, Callable[[Path, TextHints], Table]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".txt": TextTable,
    ".dat": TextTable,
    ".parquet": ParquetTable,
    ".npz": _npz,
    ".nc": _netcdf,
}


def open_table(path: Path, hints: TextHints = _NOTHING) -> Table:
    """The table in a file, by its suffix; ``-`` is text from standard input."""
    if path == STANDARD:
        return TextTable(path, hints)
    if path.suffix.lower() not in _READERS:
        raise ValueError(f"{str(path)!r} is none of {', '.join(_READERS)}. Convert it to one of them.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return _READERS[path.suffix.lower()](path, hints)
