"""Tables in files: text and Parquet are read in blocks of rows, so that a file may be larger than memory; others are read whole."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from .cells import NUMBER, kind_of
from .formats import Columns, read_geometries, read_netcdf, read_npz, read_workbook
from .table import NOTHING_SAID, ROWS, STANDARD, Block, Table, stack_rows, type_kind
from .text import HEAD, Lines, Reading, understand

__all__ = ["ROWS", "STANDARD", "ArraysTable", "Block", "ParquetTable", "Table", "TextTable", "open_table", "stack_rows"]

_GZIP = ".gz"
_BLOCK = 1 << 23  # bytes of text that are read at once
_SAMPLE = 1000  # rows that tell the kind of a column of text


class TextTable(Table):
    """Text, laid out in one of many ways; every column is text to Arrow, and is kept as it stands where it is written again."""

    def __init__(self, path: Path, hints: Reading = NOTHING_SAID):
        self._head = sys.stdin.buffer.read(HEAD) if path == STANDARD else _read_head(path)
        rows = max(self._head.count(b"\n"), 1)  # Arrow reads ahead, so that bytes would say more than was done
        known = path != STANDARD and path.suffix.lower() != _GZIP  # the size of the text
        self._rows = path.stat().st_size * rows / max(len(self._head), 1) if known else 0.0  # about how many there are
        try:
            self.layout = understand(self._head, len(self._head) < HEAD, hints, ".tsv" in map(str.lower, path.suffixes[-2:]))
        except ValueError as error:
            raise ValueError(f"{str(path)!r} cannot be read: {error}.") from error
        self._read = 0
        self._started = False
        self._wrong: Any = None
        self.decimal, self.padded = self.layout.decimal, self.layout.padded
        self._kinds = dict(zip(self.layout.names, self.layout.kinds, strict=True))
        super().__init__(path, self.layout.names, self.layout.describe(), hints)

    def first_kind(self, name: str) -> str:
        """See `Table.first_kind`."""
        return self._kinds[name]

    @property
    def done(self) -> float | None:
        """See `Table.done`."""
        return min(1.0, self._read / self._rows) if self._rows else None

    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """See `Table.batches`."""
        if self._started and self.path == STANDARD:
            raise ValueError("Standard input can be read only once.")
        self._read, self._started = 0, True
        with nullcontext(sys.stdin.buffer) if self.path == STANDARD else _open_text(self.path) as file:
            for batch in self._parse(Lines(self._head if self.path == STANDARD else b"", file, self.layout)):
                for start in range(0, len(batch), rows):
                    part = batch.slice(start, rows)
                    self._read += len(part)
                    yield part

    def sample(self) -> Iterator[Any]:
        """See `Table.sample`; of standard input, which is read once, what was looked at."""
        if self.path != STANDARD:
            return self.batches()
        known = self._head[: self._head.rfind(b"\n") + 1] or self._head
        return self._parse(Lines(known, io.BytesIO(), self.layout))

    def _parse(self, lines: Lines) -> Iterator[Any]:
        import pyarrow as pa

        try:
            yield from self._reader(lines)
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
        reading = csv.ReadOptions(use_threads=False, block_size=_BLOCK, column_names=columns)  # threads lose row numbers
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
    with _open_text(path) as file:
        return file.read(HEAD)


@contextmanager
def _open_text(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where it is compressed."""
    try:
        with gzip.open(path) if path.suffix.lower() == _GZIP else open(path, "rb") as file:
            yield cast(BinaryIO, file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is not a whole gzip file ({error}).") from error


class ParquetTable(Table):
    """A Parquet file."""

    def __init__(self, path: Path, hints: Reading = NOTHING_SAID):
        from pyarrow import ArrowInvalid, parquet

        try:
            self._file = parquet.ParquetFile(path)
        except ArrowInvalid as error:
            raise ValueError(f"{str(path)!r} is not a Parquet file, or it is truncated ({error}).") from error
        self._schema = self._file.schema_arrow
        self._read = 0
        super().__init__(path, [name for name in self._schema.names if not name.startswith("__index_level_")], "Parquet", hints)

    def first_kind(self, name: str) -> str:
        """See `Table.first_kind`."""
        known = type_kind(self._schema.field(name).type)
        if known is not None:
            return known
        first = next(self._file.iter_batches(_SAMPLE, columns=[name]), None)
        return (
            kind_of((str(cell) for cell in first.column(0).to_pylist() if cell is not None), form=self._form) if first else NUMBER
        )

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
    """Columns that are in memory."""

    def __init__(self, path: Path, read: Columns, hints: Reading = NOTHING_SAID):
        import pyarrow as pa

        columns, note, self.attributes = read
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The arrays of {str(path)!r} have different lengths: {lengths}.")
        try:
            arrays = [pa.array(column) for column in columns.values()]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ValueError(f"{str(path)!r} has an array that is neither numbers nor text ({error}).") from error
        self._batch, self._read = pa.record_batch(arrays, list(columns)), 0
        super().__init__(path, list(columns), note, hints)

    def first_kind(self, name: str) -> str:
        """See `Table.first_kind`."""
        column = self._batch.column(self.names.index(name))
        known = type_kind(column.type)
        return known or kind_of((str(cell) for cell in column[:_SAMPLE].to_pylist() if cell is not None), form=self._form)

    @property
    def done(self) -> float | None:
        """See `Table.done`."""
        return self._read / max(len(self._batch), 1)

    def batches(self, rows: int = ROWS) -> Iterator[Any]:
        """See `Table.batches`."""
        for start in range(0, len(self._batch), rows):
            self._read = min(start + rows, len(self._batch))
            yield self._batch.slice(start, rows)


def _arrays(read: Callable[[Path, Reading], Columns]) -> Callable[[Path, Reading], Table]:
    return lambda path, hints: ArraysTable(path, read(path, hints), hints)


_READERS: dict[str, Callable[[Path, Reading], Table]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".txt": TextTable,
    ".dat": TextTable,
    ".xlsx": _arrays(read_workbook),
    ".parquet": ParquetTable,
    ".npz": _arrays(read_npz),
    ".nc": _arrays(read_netcdf),
    ".gpkg": _arrays(read_geometries),
    ".shp": _arrays(read_geometries),
    ".geojson": _arrays(read_geometries),
}


def open_table(path: Path, hints: Reading = NOTHING_SAID) -> Table:
    """The table in a file, by its suffix; ``-`` is text from standard input."""
    if path == STANDARD:
        return TextTable(path, hints)
    packed = path.suffix.lower() == _GZIP
    read = _READERS.get(Path(path.stem if packed else path.name).suffix.lower())
    if read is None or (packed and read is not TextTable):
        raise ValueError(f"{str(path)!r} is none of {', '.join(_READERS)}, or text with .gz. Convert it to one of them.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return read(path, hints)
