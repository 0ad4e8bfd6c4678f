"""Files that are read whole: NPZ, NetCDF, workbooks, and points with geometries, each as named columns.

Nothing here knows what the columns are used for. A column is an array of numbers, of times, or of text,
with None where there is none.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, is_zipfile

import numpy as np

from .._extras import need
from .text import Reading


class Columns(NamedTuple):
    """Columns by name, how the file was understood in words, and what is known of a column besides its numbers."""

    columns: dict[str, Any]
    note: str
    attributes: dict[str, dict[str, str]] = {}  # noqa: RUF012 - never written to


def read_npz(path: Path, hints: Reading) -> Columns:
    """The arrays of an NPZ file; two-dimensional ones are columns a0, a1, …"""
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
    return Columns(columns, "arrays of NumPy")


def read_netcdf(path: Path, hints: Reading) -> Columns:
    """The variables of a NetCDF file, a row for each point of its grid."""
    xarray = need("xarray", "NetCDF")
    try:
        with xarray.open_dataset(path) as dataset:
            dataset = dataset.load()
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read as NetCDF ({error}).") from error
    frame = dataset.to_dataframe().reset_index()
    kept = [name for name in frame.columns if name not in dataset.sizes or name in dataset.variables]  # no bare counts of rows
    kept = [name for name in kept if not is_grid_mapping(dataset, str(name))]
    names = {name: own_name(dataset, str(name)) for name in kept}
    units = {name: dataset[name].attrs.get("units") for name in kept if name in dataset.variables}
    about = {names[name]: {"units": unit} for name, unit in units.items() if isinstance(unit, str)}
    shape = " × ".join(f"{size:,} {name}" for name, size in dataset.sizes.items())
    return Columns({names[name]: frame[name].to_numpy() for name in kept}, f"NetCDF, {shape}", about)


def is_grid_mapping(dataset: Any, name: str) -> bool:
    """Whether a variable describes the coordinate reference system and holds no data."""
    return name in dataset.variables and bool({"grid_mapping_name", "crs_wkt"} & set(dataset[name].attrs))


def own_name(dataset: Any, name: str) -> str:
    """The name that a variable had before its slashes were replaced to write it."""
    long = str(dataset.variables[name].attrs.get("long_name", name)) if name in dataset.variables else name
    return long if long.replace("/", "_") == name else name


def read_workbook(path: Path, hints: Reading) -> Columns:
    """A sheet of a workbook of Excel: names in the first row that has any cells, values as they were last computed."""
    openpyxl = need("openpyxl", "Excel")
    if not is_zipfile(path):
        raise ValueError(f"{str(path)!r} is not a workbook of Excel (.xlsx). Save it as such, or as CSV.")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (KeyError, BadZipFile, ValueError) as error:
        raise ValueError(f"{str(path)!r} is not a workbook of Excel, or it is damaged ({error}).") from error
    if hints.sheet and hints.sheet not in book.sheetnames:
        raise ValueError(f"{str(path)!r} has no sheet {hints.sheet!r}. Its sheets: {', '.join(book.sheetnames)}.")
    sheet = book[hints.sheet or book.sheetnames[0]]
    rows = [row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    others = [name for name in book.sheetnames if name != sheet.title]
    book.close()
    if not rows:
        raise ValueError(f"Sheet {sheet.title!r} of {str(path)!r} is empty. Name another with `--sheet`.")
    width = max(k + 1 for k, cell in enumerate(rows[0]) if cell is not None)
    names = ["" if cell is None else str(cell).strip() for cell in rows[0][:width]]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise ValueError(f"{str(path)!r} has two columns named {max(named, key=named.count)!r}. Rename one of them.")
    columns = {name: _cells([row[k] if k < len(row) else None for row in rows[1:]]) for k, name in enumerate(names) if name}
    note = f"sheet {sheet.title!r}" + (f", not {', '.join(map(repr, others))}" if others else "")
    return Columns(columns, note)


def _cells(cells: Sequence[Any]) -> Any:
    """A column of a workbook: numbers or times where all its cells are, else text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float, bool}:
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    if kinds <= {datetime, date}:
        return np.array(["NaT" if cell is None else cell.isoformat() for cell in cells], dtype="datetime64[us]")
    return np.array([_text(cell) for cell in cells], dtype=object)


def _text(cell: Any) -> str | None:
    if cell is None:
        return None
    if isinstance(cell, datetime) and cell.time() == time(0):
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, datetime | date) else str(cell)


def read_geometries(path: Path, hints: Reading) -> Columns:
    """The points of a GeoPackage, a Shapefile or GeoJSON: their coordinates, then their attributes."""
    frame = need("geopandas", "Files with geometries", "geo").read_file(path)
    if not hasattr(frame, "geometry") or frame.empty:
        raise ValueError(f"{str(path)!r} has no points.")
    kinds = sorted(set(frame.geometry.geom_type.dropna()))
    if kinds != ["Point"]:
        raise ValueError(f"{str(path)!r} has geometries of type {', '.join(kinds)}, and points are needed. Take centroids first.")
    names = ("longitude", "latitude") if frame.crs is not None and frame.crs.is_geographic else ("x", "y")
    attributes = frame.drop(columns=frame.geometry.name)
    taken = [name for name in names if name in attributes.columns]
    if taken:
        raise ValueError(f"{str(path)!r} has an attribute {taken[0]!r}, which is the name of a coordinate. Rename it.")
    columns = dict(zip(names, (frame.geometry.x.to_numpy(), frame.geometry.y.to_numpy()), strict=True))
    columns |= {str(name): _plain(attributes[name]) for name in attributes.columns}
    system = "no reference system" if frame.crs is None else frame.crs.to_string()[:40]
    crs = {} if frame.crs is None else {name: {"crs": frame.crs.to_wkt()} for name in names}
    return Columns(columns, f"points, {system}, coordinates {' and '.join(names)}", crs)


def _plain(column: Any) -> Any:
    """A column of pandas as an array of numbers, times, or text with None."""
    if column.dtype.kind in "fiubM":
        return column.to_numpy()
    return np.array([None if cell is None or cell != cell else str(cell) for cell in column], dtype=object)
