"""Tables to files, in blocks, whole or not at all; ``-`` is CSV to standard output."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import need
from .._types import Array
from ..storage.whole import is_stream, replacing
from .tables import STANDARD

Write = Callable[[Any], None]
Writer = Callable[[Path, Sequence[str]], AbstractContextManager[Write]]


def make_block(names: Sequence[str], numbers: Array, kept: Mapping[str, Any] | None = None) -> Any:
    """An Arrow table: columns that are kept, then numbers (rows, columns), null where there is none."""
    import pyarrow as pa

    columns = {
        name: pa.array(np.ascontiguousarray(column), from_pandas=True) for name, column in zip(names, numbers.T, strict=True)
    }
    return pa.table({**(kept or {}), **columns})


@contextmanager
def _text_writer(path: Path, names: Sequence[str], delimiter: str = ",") -> Iterator[Write]:
    from pyarrow import csv as arrow

    with open(path, "wb") if path != STANDARD else _left_open() as file:
        head = io.StringIO()
        csv.writer(head, delimiter=delimiter, lineterminator="\n").writerow(names)
        file.write(head.getvalue().encode())
        options = {"include_header": False, "delimiter": delimiter}
        yield lambda block: arrow.write_csv(block, file, arrow.WriteOptions(**options, quoting_style=_quoting(block, delimiter)))
        file.flush()


def _quoting(block: Any, delimiter: str) -> str:
    """Quotes around text only where some of it needs them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = [column for column in block.columns if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)]
    special = any(pc.any(pc.match_substring_regex(column, f'["\\r\\n{delimiter}]')).as_py() for column in text)
    return "needed" if special else "none"


def holds_formulas(column: Any) -> bool:
    """Whether some text of an Arrow column is a formula to a spreadsheet: = or @ before all else, + or - before a word."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    suspect = pc.match_substring_regex(column, r"^\s*([=@]|[+-].*[\pL(|!])")
    number = pc.match_substring_regex(column, r"^\s*[+-]?([\d.,]+([eE][+-]?\d+)?|inf|nan)\s*$")
    return bool(pc.any(pc.and_(suspect, pc.invert(number))).as_py())


@contextmanager
def _left_open() -> Iterator[Any]:
    yield sys.stdout.buffer


@contextmanager
def _parquet_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow import parquet

    writers: list[Any] = []

    def write(block: Any) -> None:
        if not writers:
            writers.append(parquet.ParquetWriter(path, block.schema))
        writers[0].write_table(block)

    try:
        yield write
        if not writers:
            write(pa.table({name: pa.array([], pa.float64()) for name in names}))
    finally:
        for writer in writers:
            writer.close()


@contextmanager
def _gathering_writer(path: Path, names: Sequence[str], store: Callable[[Path, dict[str, Any]], None]) -> Iterator[Write]:
    """For formats that are written from memory."""
    import pyarrow as pa

    blocks: list[Any] = []
    yield blocks.append
    whole = pa.concat_tables(blocks) if blocks else pa.table({name: pa.array([], pa.float64()) for name in names})
    store(path, {name: column.to_numpy() for name, column in zip(whole.column_names, whole.columns, strict=True)})


def _store_npz(path: Path, columns: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **{name: column.astype(str) if column.dtype == object else column for name, column in columns.items()})


def _store_netcdf(path: Path, columns: dict[str, Any]) -> None:
    xarray = need("xarray", "NetCDF")
    words = {name: np.where(column == None, "", column) for name, column in columns.items() if column.dtype == object}  # noqa: E711
    write_dataset(path, xarray.Dataset({name: ("row", words.get(name, column)) for name, column in columns.items()}))


def write_dataset(path: Path, dataset: Any) -> None:
    """Write NetCDF. A slash separates groups there: dy/da becomes dy_da, and keeps its name as an attribute."""
    renamed = {name: str(name).replace("/", "_") for name in dataset.variables}
    for name in dataset.variables:
        dataset[name].attrs.setdefault("long_name", name)
    dataset = dataset.rename(renamed)
    try:
        content = dataset.to_netcdf(engine="h5netcdf")  # in memory: on a full disk HDF5 takes the whole process down
    except (TypeError, ValueError):  # xarray before 2025.9 writes only an older format in memory
        dataset.to_netcdf(path)
    else:
        path.write_bytes(content)


_WRITERS: dict[str, Writer] = {
    ".csv": _text_writer,
    ".tsv": partial(_text_writer, delimiter="\t"),
    ".txt": _text_writer,
    ".parquet": _parquet_writer,
    ".npz": partial(_gathering_writer, store=_store_npz),
    ".nc": partial(_gathering_writer, store=_store_netcdf),
}
SUFFIXES = tuple(_WRITERS)
_PICTURES = (".png", ".jpg", ".jpeg", ".pdf", ".svg")


@contextmanager
def table_writer(path: Path, names: Sequence[str]) -> Iterator[Write]:
    """A function that appends Arrow tables to a new file, which is there when the block ends and not if it raises.

    ``names`` are those of the columns of every such table.
    """
    check_output(path, SUFFIXES)
    if path == STANDARD:
        with _text_writer(path, names) as write:
            yield write
        return
    with replacing(path) as temporary, _WRITERS[path.suffix.lower()](temporary, names) as write:
        yield write


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A temporary name to write to; what was written takes the place of ``path``, or goes to standard output."""
    if path != STANDARD:
        with replacing(path) as temporary:
            yield temporary
        return
    with tempfile.TemporaryDirectory() as folder:
        temporary = Path(folder) / "standard"
        yield temporary
        with temporary.open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def check_output(path: Path, suffixes: Sequence[str] = (), inputs: Sequence[Path] = ()) -> None:
    """Raise, before any work is done, where a file cannot be written, or is one that is read."""
    if path == STANDARD:
        return
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"`--output` would overwrite {str(source)!r}, which is read. Name another file.")
    if suffixes and path.suffix.lower() not in suffixes:
        picture = " `stitchwork report` draws maps." if path.suffix.lower() in _PICTURES else ""
        raise ValueError(f"`--output` must end in one of {', '.join(suffixes)}, got {str(path)!r}.{picture}")
    if path.is_dir():
        raise IsADirectoryError(f"`--output` must be a file, and {str(path)!r} is a folder.")
    if is_stream(path):  # written to as it is, whatever its folder allows
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} to write {path.name!r} to. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {str(path.parent)!r} cannot be written to. Name another place with `--output`.")
