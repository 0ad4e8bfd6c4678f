"""A fitted model on a regular grid, as an `xarray.Dataset` with the data's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .slices import derivative_name

LARGEST_GRID = 10**8  # points
_GEOGRAPHIC = (("longitude", "degrees_east"), ("latitude", "degrees_north"))


def grid_dataset(
    model: StitchedModel,
    shape: int | Sequence[int],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    gradient: bool = False,
    coverage: bool = False,
    std: bool = False,
    threads: Threads = ALONE,
) -> Any:
    """Values, and more if asked for, on the product of evenly spaced coordinates; see `StitchedRegressor.grid`."""
    xarray = need("xarray", "A grid")
    names, targets = model.feature_names, model.target_names
    axes = dict(zip(names, grid_axes(model, shape, bounds), strict=True))
    size = tuple(len(axis) for axis in axes.values())
    X = np.stack([axis.ravel() for axis in np.meshgrid(*axes.values(), indexing="ij")], axis=1)
    jet = model.jet(X, int(gradient), threads)
    variables = dict(zip(targets, jet.value.T, strict=True))
    if gradient:
        for name, rows in zip(targets, jet.gradient.transpose(1, 2, 0), strict=True):
            variables |= {derivative_name(name, feature): row for feature, row in zip(names, rows, strict=True)}
    if std:
        variables |= {f"{name}_std": rows for name, rows in zip(targets, model.moments(X, threads).deviation().T, strict=True)}
    if coverage:
        variables["coverage"] = model.coverage(X, threads)
    about = {"title": "values of a stitched model", "smoothness": str(model.smoothness)}
    coordinates = {name: (name, axis, coordinate_facts(model, k)) for k, (name, axis) in enumerate(axes.items())}
    return xarray.Dataset({name: (names, rows.reshape(size)) for name, rows in variables.items()}, coords=coordinates, attrs=about)


def coordinate_facts(model: StitchedModel, feature: int) -> dict[str, Any]:
    """Attributes of a coordinate: its period, and for longitude and latitude what the CF conventions call them."""
    if model.chart is None:
        return {}
    period, globe = model.chart.periods[feature], model.chart.globe or ()
    facts: dict[str, Any] = {"period": period} if period else {}
    if feature in globe:
        facts |= dict(zip(("standard_name", "units"), _GEOGRAPHIC[globe.index(feature)], strict=True))
    return facts


def grid_axes(model: StitchedModel, shape: int | Sequence[int], bounds: Mapping[str, tuple[float, float]] | None) -> list[Array]:
    """Coordinates of a grid along each feature: over the data, unless ``bounds`` of a feature say otherwise."""
    names, d = model.feature_names, model.n_features
    sizes = [int(shape)] * d if np.ndim(shape) == 0 else [int(size) for size in shape]  # type: ignore[arg-type, union-attr]
    if len(sizes) != d or min(sizes) < 1:
        raise ValueError(f"`shape` must be a positive number for each of the {d} features, got {shape!r}.")
    if np.prod([float(size) for size in sizes]) > LARGEST_GRID:
        raise ValueError(f"A grid of {' × '.join(map(str, sizes))} points is too large. Lower `shape`.")
    limits = dict(zip(names, model.frame[:2].T.tolist(), strict=True))
    for name, limit in (bounds or {}).items():
        if name not in limits:
            raise ValueError(f"`bounds` names {name!r}, which is no feature. The features: {', '.join(names)}.")
        limits[name] = list(limit)
    return [np.linspace(limits[name][0], limits[name][1], size) for name, size in zip(names, sizes, strict=True)]
