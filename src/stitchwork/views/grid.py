"""A fitted model on a regular grid: as an `xarray.Dataset` with the data's own names, or row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.samples import sample_paths
from ..model.stitched import StitchedModel
from .slices import derivative_name

LARGEST_GRID = 10**8  # points in memory
LARGEST_TABLE = 10**9  # points that are written row by row, some tens of gigabytes
_ROWS = 1 << 16
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


class Asked(NamedTuple):
    """What is wanted besides values."""

    gradient: bool = False
    coverage: bool = False
    std: bool = False
    samples: int = 0
    seed: int = 0

    def names(self, model: StitchedModel) -> list[str]:
        """Names of the columns of `rows`."""
        names, targets = list(model.target_names), model.target_names
        if self.gradient:
            names += [derivative_name(target, feature) for target in targets for feature in model.feature_names]
        names += [f"{target}_std" for target in targets] if self.std else []
        names += [f"{target}_sample{k}" for target in targets for k in range(self.samples)]
        return [*names, "coverage"] if self.coverage else names

    def rows(self, model: StitchedModel, X: Array, threads: Threads) -> Array:
        """The columns at points ``X``, (q, len(names))."""
        jet = model.jet(X, int(self.gradient), threads)
        found = [jet.value]
        if self.gradient:
            found.append(jet.gradient.reshape(len(X), -1))
        if self.std:
            found.append(model.moments(X, threads).deviation())
        if self.samples:
            found.append(self.paths(model, X, threads).reshape(len(X), -1))
        if self.coverage:
            found.append(model.coverage(X, threads)[:, None])
        return np.concatenate(found, axis=1)

    def paths(self, model: StitchedModel, X: Array, threads: Threads) -> Array:
        """The samples at points ``X``, (q, t, samples)."""
        return sample_paths(model, X, self.samples, np.random.RandomState(self.seed), threads)


VALUES = Asked()


def grid_dataset(
    model: StitchedModel, shape: Shape, bounds: Limits | None = None, asked: Asked = VALUES, threads: Threads = ALONE
) -> Any:
    """Values, and more if asked for, on the product of evenly spaced coordinates; see `StitchedRegressor.grid`."""
    xarray = need("xarray", "A grid")
    grid, plain = make_grid(model, shape, bounds), asked._replace(samples=0)
    about, features = describe_variables(model, asked), model.n_features
    about |= {name: about[name] | coordinate_facts(model, k) for k, name in enumerate(list(about)[:features])}
    answers = list(describe_variables(model, plain))[features:]
    found, paths = np.empty((len(answers), grid.size)), np.empty((grid.size, model.n_outputs, asked.samples))
    for part in threads.show(list(grid.parts()), "grid"):
        X = grid.points(part)
        found[:, part] = plain.rows(model, X, threads).T
        if asked.samples:
            paths[part] = asked.paths(model, X, threads)
    called = dict(zip(grid.names, list(about)[:features], strict=True))
    size, dims = tuple(len(axis) for axis in grid.axes.values()), [called[name] for name in grid.axes]
    places = {name: (name, grid.axes[given], about[name]) for given, name in called.items() if given in grid.axes}
    medians = dict(zip(grid.names, grid.at.tolist(), strict=True))
    fixed = {name: ((), medians[given], about[name]) for given, name in called.items() if given not in grid.axes}
    variables = {name: (dims, rows.reshape(size), about[name]) for name, rows in zip(answers, found, strict=True)}
    for o, target in enumerate(model.target_names if asked.samples else ()):
        name = f"{target}_sample".replace("/", "_")
        variables[name] = (["sample", *dims], paths[:, o].T.reshape(-1, *size), about[name])
    return xarray.Dataset(
        variables, coords=places | fixed, attrs={"title": "values of a stitched model", "smoothness": str(model.smoothness)}
    )


def coordinate_facts(model: StitchedModel, feature: int) -> dict[str, Any]:
    """Attributes of a coordinate: its period, and for longitude and latitude what the CF conventions call them."""
    if model.chart is None:
        return {}
    period, globe = model.chart.periods[feature], model.chart.globe or ()
    facts: dict[str, Any] = {"period": period} if period else {}
    if feature in globe:
        facts |= dict(zip(("standard_name", "units"), _GEOGRAPHIC[globe.index(feature)], strict=True))
    return facts


def describe_variables(model: StitchedModel, asked: Asked) -> dict[str, dict[str, str]]:
    """Names of the coordinates and variables of a grid, in their order, with ``long_name`` and ``units`` of each.

    A slash separates groups in NetCDF: dy/da is called dy_da, and dy/da is its long name.
    """
    known, features, targets = model.origin.attributes, model.feature_names, model.target_names
    found = [(name, {"long_name": name} | known.get(name, {})) for name in (*features, *targets)]
    if asked.gradient:
        for y, a in product(targets, features):
            units = _quotient(*(known.get(name, {}).get("units") for name in (y, a)))
            found.append((derivative_name(y, a), {"long_name": derivative_name(y, a)} | units))
    if asked.std:
        found += [(f"{y}_std", known.get(y, {}) | {"long_name": f"deviation of a new observation of {y}"}) for y in targets]
    if asked.samples:
        found += [(f"{y}_sample", known.get(y, {}) | {"long_name": f"samples of {y}"}) for y in targets]
    if asked.coverage:
        found.append(("coverage", {"long_name": "coverage"}))
    about = {name.replace("/", "_"): text for name, text in found}
    if len(about) < len(found):
        names = ", ".join(name for name, _ in found)
        raise ValueError(f"Two variables of the grid would have one name, of {names}. Fit with other names of columns.")
    return about


def _quotient(over: str | None, under: str | None) -> dict[str, str]:
    """The unit of a derivative, where both units are known."""
    if over is None or under is None:
        return {}
    return {"units": f"{over}/{under}" if under.isalnum() else f"{over}/({under})"}


def make_grid(model: StitchedModel, shape: Shape, bounds: Limits | None, most: int = LARGEST_GRID) -> Grid:
    """A grid over the data, unless ``bounds`` of a feature say otherwise; features that a mapping leaves out stay at medians."""
    names, d = model.feature_names, model.n_features
    sizes = _sizes(shape, names)
    for name in [*(bounds or ()), *sizes]:
        if name not in names:
            raise ValueError(f"A grid over {name!r} is asked for, which is no feature. The features: {', '.join(names)}.")
        if name not in sizes:
            raise ValueError(f"`bounds` names {name!r}, and `shape` does not. Say how many coordinates it is to have.")
    if not sizes or min(sizes.values()) < 1:
        raise ValueError(f"`shape` must be a positive number for each of the {d} features, got {shape!r}.")
    if prod(sizes.values()) > most:
        raise ValueError(f"A grid of {' × '.join(f'{n:,}' for n in sizes.values())} points is too large. Lower `shape`.")
    limits = dict(zip(names, model.frame[:2].T.tolist(), strict=True)) | dict(bounds or {})
    for name, (low, high) in (bounds or {}).items():
        if not (np.isfinite([low, high]).all() and (low < high or (low == high and sizes[name] == 1))):
            raise ValueError(f"`bounds` of {name!r} must be two finite numbers, the smaller first, got {low:g} and {high:g}.")
    axes = {name: np.linspace(limits[name][0], limits[name][1], sizes[name]) for name in names if name in sizes}
    return Grid(axes, model.frame[2], names)


def _sizes(shape: Shape, names: list[str]) -> dict[str, int]:
    if isinstance(shape, Mapping):
        return {name: int(size) for name, size in shape.items()}
    given = [shape] * len(names) if isinstance(shape, int | np.integer) else list(shape)
    if len(given) != len(names):
        raise ValueError(
            f"`shape` must be one number, one for each feature ({', '.join(names)}), or a mapping of some of them, got {shape!r}."
        )
    return {name: int(size) for name, size in zip(names, given, strict=True)}
