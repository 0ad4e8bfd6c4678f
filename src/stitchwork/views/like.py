"""A model on the grid of another field: on its coordinates, with its dimensions, their names and attributes.

A feature is the coordinate or variable of its name; longitude and latitude are also found by what the CF conventions call them, and
the coordinates of a map in another reference system are projected. Features that the field does not have stand at their medians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .asked import Asked
from .project import project_coordinates

_ROWS = 1 << 16
_CF = {0: ("longitude", "degrees_east", ("lon", "longitude", "x")), 1: ("latitude", "degrees_north", ("lat", "latitude", "y"))}
_CATEGORY = "category"  # attribute of a feature: the column of which it is one category


def evaluate_like(model: StitchedModel, like: Any, asked: Asked, threads: Threads = ALONE) -> Any:
    """Values, and more if asked for, where a dataset or data array ``like`` has its points, as a dataset of the same grid."""
    xarray = need("xarray", "A grid")
    asked.check(model)
    given = find_features(model, like)
    arrays = xarray.broadcast(*given.values())
    dims = [name for name in _dimensions(like) if name in arrays[0].dims]
    X = np.tile(model.frame[2], (arrays[0].size, 1))
    for name, array in zip(given, arrays, strict=True):
        X[:, model.feature_names.index(name)] = array.transpose(*dims).values.ravel()
    found = fill_rows(X, len(asked.names(model)), lambda some: asked.rows(model, some, threads), threads)
    shape, about = tuple(arrays[0].sizes[name] for name in dims), asked.describe(model)
    mapping = grid_mapping_of(like)
    shared = {"grid_mapping": mapping} if mapping else {}
    field = xarray.Dataset(
        {name: (dims, column.reshape(shape), about[name] | shared) for name, column in zip(about, found.T, strict=True)}
    )
    coordinates = {name: one for name, one in like.coords.items() if set(one.dims) <= set(dims)}
    if mapping and mapping in getattr(like, "variables", like.coords):
        coordinates[mapping] = like[mapping]
    return field.assign_coords(coordinates).assign_attrs(like.attrs if hasattr(like, "data_vars") else {})


def fill_rows(X: Array, columns: int, ask: Callable[[Array], Array], threads: Threads) -> Array:
    """What ``ask`` says at points ``X`` (q, d), (q, columns), in parts; NaN where a point lacks a number."""
    found = np.full((len(X), columns), np.nan)
    complete = np.flatnonzero(np.isfinite(X).all(axis=1))
    for start in threads.show(range(0, len(complete), _ROWS), "grid"):
        part = complete[start : start + _ROWS]
        found[part] = ask(X[part])
    return found


def find_features(model: StitchedModel, like: Any) -> dict[str, Any]:
    """The features of a model that a dataset or data array has, as data arrays of numbers by their names."""
    found = project_coordinates(model, like, grid_mapping_of(like))
    for k, name in enumerate(model.feature_names):
        if name in found:
            continue
        variable = _find(model, like, k, name)
        if variable is not None:
            found[name] = numbers_of(variable)
        elif (column := model.origin.attributes.get(name, {}).get(_CATEGORY)) in _names(like):
            found[name] = (like[column].astype(str) == name[len(str(column)) + 1 :]).astype(float)
    if not found:
        raise ValueError(
            f"The grid has none of the features {', '.join(model.feature_names)}. Its coordinates: {', '.join(_names(like))}."
        )
    return found


def _find(model: StitchedModel, like: Any, k: int, name: str) -> Any:
    """The variable of a feature by its name, or by what longitude and latitude are called elsewhere."""
    names = _names(like)
    if name in names:
        return like[name]
    if model.chart is None or model.chart.globe is None or k not in model.chart.globe:
        return None
    which = model.chart.globe.index(k)
    matches = [other for other in names if _is(like[other], which)]
    matches += [other for other in names if str(other).lower() in _CF[which][2]]
    return like[matches[0]] if matches else None


def _is(variable: Any, which: int) -> bool:
    """Whether attributes say that a variable is longitude (0) or latitude (1)."""
    standard, units, _ = _CF[which]
    return variable.attrs.get("standard_name") == standard or variable.attrs.get("units") == units


def globe_of(field: Any, dims: Sequence[str]) -> tuple[int, int] | None:
    """Which of these dimensions of a field are longitude and latitude, by their attributes."""
    found = [next((k for k, name in enumerate(dims) if _is(field[name], which)), None) for which in (0, 1)]
    return None if found[0] is None or found[1] is None else (found[0], found[1])


def coordinate_like(like: Any, name: str, field: Any) -> Any:
    """The coordinate of ``like`` that takes the place of a dimension of a field, or None."""
    if name in like.coords:
        return like.coords[name]
    which = next((which for which in (0, 1) if _is(field[name], which)), None)
    matches = [one for one in like.coords.values() if which is not None and _is(one, which)]
    return matches[0] if matches else None


def numbers_of(variable: Any) -> Any:
    """A variable as numbers: times as days since 1970-01-01."""
    if variable.dtype.kind not in "fiubM":
        raise ValueError(f"{variable.name!r} must hold numbers or times to be a feature, got {variable.dtype}.")
    if variable.dtype.kind != "M":
        return variable.astype(float)
    days = variable.values.astype("datetime64[ns]").astype(np.int64) / 86_400e9
    return variable.copy(data=np.where(np.isnat(variable.values), np.nan, days))


def _names(like: Any) -> list[str]:
    return [*like.coords, *getattr(like, "data_vars", ())]


def _dimensions(like: Any) -> Sequence[str]:
    """The dimensions in the order in which a field has them: that of the variable with the most."""
    if not hasattr(like, "data_vars"):
        return tuple(like.dims)
    most = max((one.dims for one in like.data_vars.values()), key=len, default=())
    return (*most, *(name for name in like.sizes if name not in most))


def grid_mapping_of(like: Any) -> str:
    """The name of the variable that describes the reference system of a field; empty where it has none."""
    fields = like.data_vars.values() if hasattr(like, "data_vars") else [like]
    names = [one.attrs.get("grid_mapping") or one.encoding.get("grid_mapping") for one in fields]
    return next((name for name in names if name), "spatial_ref" if "spatial_ref" in like.coords else "")
