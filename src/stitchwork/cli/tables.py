"""Tables in files: named columns of numbers, read and written in blocks of rows, so that a file may be larger than memory.

CSV needs nothing beyond the standard library, NPZ NumPy; Parquet is read by pyarrow and NetCDF by xarray, where they are there. A
missing number is NaN; a cell that is no number is an error with its column and row. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import os
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO
from zipfile import BadZipFile, is_zipfile

import numpy as np

from .._extras import need
from .._types import Array
from ..storage.whole import replacing

ROWS = 1 << 16  # rows of a block
_MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "?"}
_DELIMITERS = ",;\t "


class Table(ABC):
    """A file of named columns."""

    def __init__(self, path: Path, names: Sequence[str]):
        self.path, self.names = path, list(names)
        self.words: dict[str, dict[str, int]] = {}

    @abstractmethod
    def blocks(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Array]:
        """The columns ``names`` in blocks (up to ``rows``, len(names)), NaN where a number is missing."""

    def spell(self, names: Sequence[str]) -> None:
        """Take these columns for words: every other one becomes another number, an empty one is missing."""
        self.words |= {name: {} for name in names}

    def code(self, name: str, cells: Iterable[str]) -> Array:
        """Numbers of the words in a column."""
        known = self.words[name]
        numbers = [np.nan if cell.strip().lower() in _MISSING else known.setdefault(cell.strip(), len(known)) for cell in cells]
        return np.array(numbers, dtype=np.float64)

    def check(self, names: Sequence[str], role: str) -> None:
        """Raise a `ValueError` for a column that is not there."""
        for name in names:
            if name not in self.names:
                raise ValueError(f"{str(self.path)!r} has no column {name!r} ({role}). Its columns: {', '.join(self.names)}.")

    def read(self, names: Sequence[str]) -> Array:
        """All rows of the columns ``names``."""
        return stack_blocks(self.blocks(names), len(names))


def stack_blocks(blocks: Iterable[Array], columns: int) -> Array:
    """All rows of some blocks."""
    return np.concatenate([np.empty((0, columns)), *blocks])


class CsvTable(Table):
    """Text with a delimiter; the first line has the names, unless it is all numbers."""

    def __init__(self, path: Path):
        with _opened(path) as file:
            lines = list(islice((line for line in file if line.strip()), 2))
        if not lines:
            raise ValueError(f"{str(path)!r} is empty.")
        self.delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(lines)
        first = next(self._rows(lines[:1]))
        # Numbers are data, unless they count the columns, as pandas names them.
        counted = first == [str(i) for i in range(len(first))] and len(lines) > 1
        self.has_header = counted or not all(_is_number(cell) for cell in first)
        names = first if self.has_header else [f"column{i + 1}" for i in range(len(first))]
        if len(set(names)) < len(names):
            raise ValueError(f"{str(path)!r} has two columns named {max(names, key=names.count)!r}. Rename one of them.")
        super().__init__(path, names)

    def _rows(self, lines: Any) -> Iterator[list[str]]:
        # A line of blanks is no row; runs of spaces are one delimiter.
        kept = (line for line in lines if line.strip())
        stripped = (line.strip() for line in kept) if self.delimiter == " " else kept
        reader = csv.reader(stripped, delimiter=self.delimiter, skipinitialspace=True)
        return ([cell.strip() for cell in row] for row in reader if row)

    def blocks(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Array]:
        """See `Table.blocks`."""
        columns, number, found = [self.names.index(name) for name in names], 0, []
        with _opened(self.path) as file:
            for line, row in enumerate(self._rows(file)):
                if line == 0 and self.has_header:
                    continue
                number += 1
                if len(row) != len(self.names):
                    raise ValueError(
                        f"Row {number} of {str(self.path)!r} has {len(row)} cells, and there are {len(self.names)} columns."
                    )
                found.append([row[i] for i in columns])
                if len(found) == rows:
                    yield self._numbers(found, names, number - len(found))
                    found = []
        if found:
            yield self._numbers(found, names, number - len(found))

    def _numbers(self, rows: list[list[str]], names: Sequence[str], before: int) -> Array:
        for j, name in enumerate(names):
            if name in self.words:
                for row, number in zip(rows, self.code(name, [row[j] for row in rows]), strict=True):
                    row[j] = str(number)
        try:
            return np.array(rows, dtype=np.float64)
        except ValueError:
            pass  # some cell is missing or no number: look at each
        numbers = np.empty((len(rows), len(names)))
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                if cell.lower() in _MISSING:
                    numbers[i, j] = np.nan
                elif _is_number(cell):
                    numbers[i, j] = float(cell)
                else:
                    raise ValueError(
                        f"{cell!r} in column {names[j]!r}, row {before + i + 1} of {str(self.path)!r} is not a number."
                        " Leave the column out, or encode it."
                    )
        return numbers


class ParquetTable(Table):
    """A Parquet file, by pyarrow."""

    def __init__(self, path: Path):
        parquet = need("pyarrow.parquet", "Parquet")
        self.file = parquet.ParquetFile(path)
        super().__init__(path, [name for name in self.file.schema_arrow.names if not name.startswith("__index_level_")])

    def blocks(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Array]:
        """See `Table.blocks`."""
        import pyarrow as pa

        for batch in self.file.iter_batches(rows, columns=list(dict.fromkeys(names))):
            try:
                columns = [self._column(pa, batch, name) for name in names]
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ValueError(f"A column of {str(self.path)!r} does not hold numbers: {error}") from error
            yield np.stack(columns, axis=1)

    def _column(self, pa: Any, batch: Any, name: str) -> Array:
        if name in self.words:
            return self.code(name, ["" if cell is None else str(cell) for cell in batch.column(name).to_pylist()])
        return np.asarray(batch.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False))


class ArraysTable(Table):
    """Columns that are in memory: an NPZ file, whose two-dimensional arrays are columns a0, a1, …, or a NetCDF file."""

    def __init__(self, path: Path, columns: dict[str, Any]):
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The arrays of {str(path)!r} have different lengths: {lengths}.")
        super().__init__(path, list(columns))
        self.columns = columns

    def blocks(self, names: Sequence[str], rows: int = ROWS) -> Iterator[Array]:
        """See `Table.blocks`."""
        for name in names:
            numbers = np.issubdtype(self.columns[name].dtype, np.number) or self.columns[name].dtype == bool
            if not numbers and name not in self.words:
                raise ValueError(f"Column {name!r} of {str(self.path)!r} does not hold numbers.")
        length = len(next(iter(self.columns.values()), ()))
        for start in range(0, length, rows):
            yield np.stack([self._column(name, slice(start, start + rows)) for name in names], axis=1)

    def _column(self, name: str, rows: slice) -> Array:
        column = self.columns[name][rows]
        return self.code(name, column.astype(str)) if name in self.words else column.astype(np.float64)


def _npz(path: Path) -> Table:
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
    return ArraysTable(path, columns)


def _netcdf(path: Path) -> Table:
    with need("xarray", "NetCDF").open_dataset(path) as dataset:
        frame = dataset.to_dataframe().reset_index()
    return ArraysTable(path, {str(name): frame[name].to_numpy() for name in frame.columns})


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".txt": CsvTable,
    ".parquet": ParquetTable,
    ".npz": _npz,
    ".nc": _netcdf,
}


def open_table(path: Path) -> Table:
    """The table in a file, by its suffix."""
    if path.suffix.lower() not in _READERS:
        raise ValueError(f"{str(path)!r} is none of {', '.join(_READERS)}. Convert it to one of them.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    return _READERS[path.suffix.lower()](path)


Write = Callable[[Array], None]


@contextmanager
def _csv_writer(path: Path, names: list[str], delimiter: str = ",") -> Iterator[Write]:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(names)
        yield lambda block: writer.writerows(block.tolist())


@contextmanager
def _parquet_writer(path: Path, names: list[str]) -> Iterator[Write]:
    parquet = need("pyarrow.parquet", "Parquet")
    import pyarrow as pa

    schema = pa.schema([(name, pa.float64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        yield lambda block: writer.write_table(pa.table(list(np.ascontiguousarray(block.T)), schema=schema))


@contextmanager
def _npz_writer(path: Path, names: list[str]) -> Iterator[Write]:
    blocks = [np.empty((0, len(names)))]
    yield blocks.append
    with open(path, "wb") as file:
        np.savez(file, **dict(zip(names, np.concatenate(blocks).T, strict=True)))


_WRITERS: dict[str, Callable[[Path, list[str]], AbstractContextManager[Write]]] = {
    ".csv": _csv_writer,
    ".tsv": partial(_csv_writer, delimiter="\t"),
    ".txt": _csv_writer,
    ".parquet": _parquet_writer,
    ".npz": _npz_writer,
}


@contextmanager
def table_writer(path: Path, names: list[str]) -> Iterator[Write]:
    """A function that appends blocks of rows to a new file, which is there when the block ends and not if it raises."""
    check_output(path, tuple(_WRITERS))
    with replacing(path) as temporary, _WRITERS[path.suffix.lower()](temporary, names) as write:
        yield write


def check_output(path: Path, suffixes: Sequence[str] = (), inputs: Sequence[Path] = ()) -> None:
    """Raise, before any work is done, where a file cannot be written, or is one that is read."""
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"`--output` would overwrite {str(source)!r}, which is read. Name another file.")
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"`--output` must end in one of {', '.join(suffixes)}, got {str(path)!r}.")
    if path.is_dir():
        raise IsADirectoryError(f"`--output` must be a file, and {str(path)!r} is a folder.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {str(path.parent)!r} cannot be written to. Name another place with `--output`.")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            yield file
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not text in UTF-8 ({error.reason}).") from error
    except csv.Error as error:
        raise ValueError(f"{str(path)!r} is not a table of text ({error}). Is a quote left open?") from error


def _delimiter(lines: list[str]) -> str:
    """The first mark that stands, outside of quotes, in the first line, and in the second if there is one."""
    bare = [re.sub(r'"[^"]*"', "", line.strip()) for line in lines]
    return next((mark for mark in _DELIMITERS if all(mark in line for line in bare)), ",")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
