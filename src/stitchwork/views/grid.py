"""A fitted model on a regular grid: as an `xarray.Dataset` with the data's own names, or row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .asked import Asked
from .slices import points_up

LARGEST_GRID = 10**8  # points in memory
LARGEST_TABLE = 10**9  # points that are written row by row, some tens of gigabytes
_ROWS = 1 << 16
_COORDINATES = 200  # along a feature where the user says nothing
_GEOGRAPHIC = (("longitude", "degrees_east"), ("latitude", "degrees_north"))

Shape = int | Sequence[int] | Mapping[str, int]
Limits = Mapping[str, tuple[float, float]]


class Grid(NamedTuple):
    """Coordinates along some features by name; the others stand at their medians, ``at`` (d,)."""

    axes: dict[str, Array]
    at: Array
    names: list[str]

    @property
    def size(self) -> int:
        """Number of points."""
        return prod(len(axis) for axis in self.axes.values())

    def points(self, rows: slice) -> Array:
        """Some of the points, (rows, d), the last axis fastest."""
        index = np.unravel_index(np.arange(rows.start, rows.stop), tuple(len(axis) for axis in self.axes.values()))
        X = np.tile(self.at, (rows.stop - rows.start, 1))
        for (name, axis), k in zip(self.axes.items(), index, strict=True):
            X[:, self.names.index(name)] = axis[k]
        return X

    def parts(self) -> Iterator[slice]:
        """Consecutive rows that make up the grid."""
        return (slice(start, min(start + _ROWS, self.size)) for start in range(0, self.size, _ROWS))


def grid_dataset(model: StitchedModel, grid: Grid, asked: Asked, threads: Threads = ALONE) -> Any:
    """Values, and more if asked for, on a grid; see `StitchedRegressor.grid`."""
    xarray = need("xarray", "A grid")
    asked.check(model)
    plain = asked._replace(samples=0)
    about = describe_variables(model, plain)
    features, answers = list(about)[: model.n_features], list(about)[model.n_features :]
    found, paths = np.empty((len(answers), grid.size)), np.empty((grid.size, model.n_outputs, asked.samples))
    for part in threads.show(list(grid.parts()), "grid"):
        X = grid.points(part)
        found[:, part] = plain.rows(model, X, threads).T
        if asked.samples:
            paths[part] = asked.paths(model, X, threads)
    called = dict(zip(grid.names, features, strict=True))
    size, dims = tuple(len(axis) for axis in grid.axes.values()), [called[name] for name in grid.axes]
    places = {name: (name, grid.axes[given], about[name]) for given, name in called.items() if given in grid.axes}
    medians = dict(zip(grid.names, grid.at.tolist(), strict=True))
    fixed = {name: ((), medians[given], about[name]) for given, name in called.items() if given not in grid.axes}
    variables = {name: (dims, rows.reshape(size), about[name]) for name, rows in zip(answers, found, strict=True)}
    for o, target in enumerate(model.target_names if asked.samples else ()):
        said = _shown(model.origin.attributes.get(target, {})) | {"long_name": f"samples of {target}"}
        variables[f"{target}_sample".replace("/", "_")] = (["sample", *dims], paths[:, o].T.reshape(-1, *size), said)
    return xarray.Dataset(
        variables, coords=places | fixed, attrs={"title": "values of a stitched model", "smoothness": str(model.smoothness)}
    )


def describe_variables(model: StitchedModel, asked: Asked) -> dict[str, dict[str, Any]]:
    """Names of the coordinates and variables of a grid, in their order, with the attributes of each."""
    known, features = model.origin.attributes, model.feature_names
    places = {
        name.replace("/", "_"): {"long_name": name} | _shown(known.get(name, {})) | coordinate_facts(model, k)
        for k, name in enumerate(features)
    }
    about = places | {name: _shown(text) for name, text in asked.describe(model).items()}
    names = [*features, *asked.names(model)]
    if len(about) < len(names):
        raise ValueError(f"Two variables of the grid would have one name, of {', '.join(names)}. Fit with other names of columns.")
    return about


def _shown(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes of a variable, without its reference system: that is an attribute of the whole grid."""
    return {name: text for name, text in attributes.items() if name != "crs"}


def coordinate_facts(model: StitchedModel, feature: int) -> dict[str, Any]:
    """Attributes of a coordinate: its period, and for longitude and latitude what the CF conventions call them."""
    if model.chart is None:
        return {}
    period, globe = model.chart.periods[feature], model.chart.globe or ()
    facts: dict[str, Any] = {"period": period} if period else {}
    if feature in globe:
        facts |= dict(zip(("standard_name", "units"), _GEOGRAPHIC[globe.index(feature)], strict=True))
    return facts


def make_grid(
    model: StitchedModel,
    shape: Shape | None = None,
    bounds: Limits | None = None,
    most: int = LARGEST_GRID,
    spacing: float | Mapping[str, float] | None = None,
) -> Grid:
    """A grid over the data, unless ``bounds`` of a feature say otherwise; features that a mapping leaves out stay at medians.

    With ``spacing`` instead of ``shape``, coordinates are its multiples, from the last one below the data to the first one above;
    with neither, spacings are round numbers.
    """
    names, limits = model.feature_names, dict(zip(model.feature_names, model.frame[:2].T.tolist(), strict=True))
    if shape is not None and spacing is not None:
        raise ValueError("Give `shape` or `spacing`, not both.")
    if shape is None:
        steps = _steps(spacing, names, limits | dict(bounds or {}), len(_pair(model)) == 2)
        _check_names([*(bounds or ()), *steps], names, steps)
        _check_bounds(bounds or {}, {})
        sizes = {
            name: (high - low) / steps[name] + 2 for name, (low, high) in (limits | dict(bounds or {})).items() if name in steps
        }
        _check_size(sizes, most, "Raise `spacing`")
        axes = {name: _stepped(model, name, steps[name], limits, bounds or {}) for name in names if name in steps}
    else:
        sizes = _sizes(shape, names)
        _check_names([*(bounds or ()), *sizes], names, sizes)
        if not sizes or min(sizes.values()) < 1:
            raise ValueError(f"`shape` must be a positive number for each of the {len(names)} features, got {shape!r}.")
        _check_size(sizes, most, "Lower `shape`")
        _check_bounds(bounds or {}, sizes)
        limits |= dict(bounds or {})
        axes = {name: np.linspace(limits[name][0], limits[name][1], sizes[name]) for name in names if name in sizes}
    return Grid(_as_map(model, axes), model.frame[2], names)


def _as_map(model: StitchedModel, axes: dict[str, Array]) -> dict[str, Array]:
    """The axes with latitude before longitude, and northing before easting of a known reference system, as maps are stored."""
    pair = _pair(model)
    if len(pair) != 2 or not set(pair) <= set(axes):
        return axes
    order = list(axes)
    i, j = map(order.index, pair)
    if i < j:
        order[i], order[j] = order[j], order[i]
    return {name: axes[name] for name in order}


def _pair(model: StitchedModel) -> list[str]:
    """Longitude and latitude, or easting and northing of a known reference system, where the model has them."""
    globe = None if model.chart is None else model.chart.globe
    projected = [name for name in model.feature_names if "crs" in model.origin.attributes.get(name, {})]
    return sorted(projected, key=points_up) if globe is None else [model.feature_names[k] for k in globe]


def _check_names(asked: Sequence[str], names: Sequence[str], sizes: Mapping[str, Any]) -> None:
    for name in asked:
        if name not in names:
            raise ValueError(f"A grid over {name!r} is asked for, which is no feature. The features: {', '.join(names)}.")
        if name not in sizes:
            raise ValueError(f"`bounds` names {name!r}, and `shape` does not. Say how many coordinates it is to have.")


def _check_size(sizes: Mapping[str, float], most: int, remedy: str) -> None:
    if prod(sizes.values()) > most:
        raise ValueError(f"A grid of {' × '.join(f'{n:,.0f}' for n in sizes.values())} points is too large. {remedy}.")


def _check_bounds(bounds: Limits, sizes: Mapping[str, int]) -> None:
    for name, (low, high) in bounds.items():
        if not (np.isfinite([low, high]).all() and (low < high or (low == high and sizes.get(name) == 1))):
            raise ValueError(f"`bounds` of {name!r} must be two finite numbers, the smaller first, got {low:g} and {high:g}.")


def _steps(spacing: float | Mapping[str, float] | None, names: list[str], limits: Limits, alike: bool) -> dict[str, float]:
    """The step along each feature, round where none is given, and the same for coordinates that are ``alike``."""
    if spacing is None:
        if len(names) > 2:
            raise ValueError(f"Say which of {', '.join(names)} to vary with `shape`, such as {names[0]}=100,{names[1]}=100.")
        spans = [limits[name][1] - limits[name][0] for name in names]
        return {name: _round_step(max(spans) if alike else span) for name, span in zip(names, spans, strict=True)}
    steps = dict(spacing) if isinstance(spacing, Mapping) else dict.fromkeys(names, float(spacing))
    wrong = [step for step in steps.values() if not (np.isfinite(step) and step > 0.0)]
    if wrong or not steps:
        raise ValueError(f"`spacing` must be a positive number, or one for each of some features, got {spacing!r}.")
    return steps


def _round_step(span: float) -> float:
    """The least of 1, 2, 5, 10, … times a power of ten with which a span has fewer than _COORDINATES coordinates."""
    if span <= 0.0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(span / _COORDINATES))
    return float(next(step for k in (1, 2, 5, 10, 20) if span / (step := k * power) <= _COORDINATES - 2))


def _stepped(model: StitchedModel, name: str, step: float, limits: Limits, bounds: Limits) -> Array:
    """Coordinates by a step: multiples of it around the data, or from the lower bound on if bounds are given."""
    low, high = bounds.get(name, limits[name])
    if name in bounds:
        return np.asarray(np.round(low + step * np.arange(int((high - low) / step + 1e-9) + 1), 12))
    axis = np.round(step * np.arange(np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9) + 1), 12)
    k = model.feature_names.index(name)
    if model.chart is not None and model.chart.globe is not None and k == model.chart.globe[1]:
        axis = axis[np.abs(axis) <= 90.0]
    if model.chart is not None and model.chart.periods[k]:  # the last coordinate would be the first again
        axis = axis[axis < axis[0] + model.chart.periods[k] - 0.5 * step]
    return np.asarray(axis)


def _sizes(shape: Shape, names: list[str]) -> dict[str, int]:
    if isinstance(shape, Mapping):
        return {name: int(size) for name, size in shape.items()}
    given = [shape] * len(names) if isinstance(shape, int | np.integer) else list(shape)
    if len(given) != len(names):
        raise ValueError(
            f"`shape` must be one number, one for each feature ({', '.join(names)}), or a mapping of some of them, got {shape!r}."
        )
    return {name: int(size) for name, size in zip(names, given, strict=True)}
