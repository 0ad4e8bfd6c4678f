"""`stitchwork grid`: a model on a regular grid or on that of another file, as NetCDF, GeoTIFF or a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._extras import need
from .._parallel import Threads
from ..model.stitched import StitchedModel
from ..views.asked import Asked
from ..views.grid import LARGEST_TABLE, Limits, Shape, grid_dataset, make_grid
from ..views.like import evaluate_like, find_features
from ..views.slices import points_up
from .columns import column_values
from .console import Console
from .loading import check_jobs, load_model
from .options import title_of
from .writing import SUFFIXES, check_output, make_block, placed, table_writer, write_dataset

_RASTERS = (".tif", ".tiff")
_FIELDS = (".nc", *_RASTERS)
# Longitudes and latitudes are those of WGS 84 unless a file says otherwise: as the CF conventions describe it, and as text.
_WGS84 = {
    "crs_wkt": (
        'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],'
        'AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],'
        'UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AUTHORITY["EPSG","4326"]]'
    ),
    "grid_mapping_name": "latitude_longitude",
    "semi_major_axis": 6378137.0,
    "inverse_flattening": 298.257223563,
    "longitude_of_prime_meridian": 0.0,
}


class Place(NamedTuple):
    """Where the grid lies: so many coordinates, or such steps, between bounds; or where another file has its points."""

    shape: Shape | None
    spacing: float | Mapping[str, float] | None
    like: Path | None
    bounds: Limits


def write_grid(path: Path, place: Place, output: Path, asked: Asked, jobs: int, console: Console) -> None:
    """Write a model on a grid: as a field, else a row for each point."""
    check_output(output, (*SUFFIXES, *_RASTERS), inputs=[path, *([place.like] if place.like else [])])
    if place.like is not None and (place.shape is not None or place.spacing is not None or place.bounds):
        raise ValueError("`--like` says where the grid lies: leave out `--shape`, `--spacing` and `--bounds`.")
    if place.like is not None and output.suffix.lower() not in _FIELDS:
        raise ValueError(f"With `--like`, `--output` must end in one of {', '.join(_FIELDS)}, got {str(output)!r}.")
    model, threads = load_model(path, jobs).model_, Threads(check_jobs(jobs), console.live)
    asked.check(model)
    if output.suffix.lower() in _FIELDS:
        field = _on_file(model, place.like, asked, threads, console) if place.like else _on_grid(model, place, asked, threads)
        with placed(output) as temporary:
            (write_raster if output.suffix.lower() in _RASTERS else write_dataset)(temporary, field)
        count, sizes = int(np.prod(list(field.sizes.values()))), dict(field.sizes)
    else:
        count, sizes = _write_table(model, place, output, asked, threads)
    shape = " × ".join(f"{size:,} {name}" for name, size in sizes.items())
    console.announce(f"{count:,} points, {shape}: {title_of(output)}")


def _on_grid(model: StitchedModel, place: Place, asked: Asked, threads: Threads) -> Any:
    """The model on a regular grid, with its reference system where that is known."""
    grid = make_grid(model, place.shape, place.bounds, spacing=place.spacing)
    field = grid_dataset(model, grid, asked, threads)
    return with_reference(model, field)


def with_reference(model: StitchedModel, field: Any) -> Any:
    """A field with the reference system of the model's coordinates: the one that its data had, or that of the globe."""
    xarray = need("xarray", "NetCDF")
    known = [about["crs"] for about in model.origin.attributes.values() if "crs" in about]
    if known:
        facts: dict[str, Any] = {"crs_wkt": known[0], "spatial_ref": known[0]}
    elif model.chart is not None and model.chart.globe is not None:
        facts = _WGS84
    else:
        return field
    field = field.assign_coords(spatial_ref=xarray.DataArray(0, attrs=facts))
    for name in field.data_vars:
        field[name].attrs["grid_mapping"] = "spatial_ref"
    return field


def _on_file(model: StitchedModel, like: Path, asked: Asked, threads: Threads, console: Console) -> Any:
    """The model where another file has its points."""
    if not like.is_file():
        raise FileNotFoundError(f"There is no file {str(like)!r}.")
    if like.suffix.lower() in _RASTERS:
        grid = need("rioxarray", "GeoTIFF", "geo").open_rasterio(like).isel(band=0, drop=True)
    else:
        with need("xarray", "NetCDF").open_dataset(like) as dataset:
            grid = dataset.load()
    found = find_features(model, grid)
    for k, name in enumerate(model.feature_names):
        if name not in found and "category" not in model.origin.attributes.get(name, {}):
            console.warn(f"{like} has no coordinate {name!r}, which stands at its median, {model.frame[2, k]:.6g}.")
    return evaluate_like(model, grid, asked, threads)


def write_raster(path: Path, field: Any) -> None:
    """Write a GeoTIFF with a band for each variable, north up."""
    need("rioxarray", "GeoTIFF", "geo")
    if len(field.sizes) != 2:
        raise ValueError(
            f"A GeoTIFF has two dimensions, and the grid has {', '.join(field.sizes)}. Vary two features with `--shape`."
        )
    y, x = sorted(field.sizes, key=points_up, reverse=True)  # a stable sort: in their own order where names do not tell
    reference = field.coords.get("spatial_ref")
    raster = field.rename({y: "y", x: "x"}).drop_vars([name for name in field.coords if name not in (x, y)])
    raster = raster.transpose("y", "x").sortby("y", ascending=False).rio.set_spatial_dims("x", "y")
    if reference is not None:
        raster = raster.rio.write_crs(reference.attrs.get("crs_wkt") or "EPSG:4326")
    for name in raster.data_vars:
        raster[name].attrs.pop("grid_mapping", None)
    raster.rio.to_raster(path, driver="GTiff")


def _write_table(model: StitchedModel, place: Place, output: Path, asked: Asked, threads: Threads) -> tuple[int, dict[str, int]]:
    grid, answers = make_grid(model, place.shape, place.bounds, LARGEST_TABLE, place.spacing), asked.names(model)
    with table_writer(output, [*column_values(model, model.frame[2:]), *answers]) as write:
        for part in threads.show(list(grid.parts()), "grid"):
            X = grid.points(part)
            write(make_block(answers, asked.rows(model, X, threads), column_values(model, X)))
    return grid.size, {name: len(axis) for name, axis in grid.axes.items()}
