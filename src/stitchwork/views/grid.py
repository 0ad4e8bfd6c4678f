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
from .slices import derivative_name

LARGEST_GRID = 10**8  # points in memory
LARGEST_TABLE = 10**9  # points that are written row by row, some tens of gigabytes
_ROWS = 1 << 16

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

    def names(self, model: StitchedModel) -> list[str]:
        """Names of the columns of `rows`."""
        names, targets = list(model.target_names), model.target_names
        if self.gradient:
            names += [derivative_name(target, feature) for target in targets for feature in model.feature_names]
        names += [f"{target}_std" for target in targets] if self.std else []
        return [*names, "coverage"] if self.coverage else names

    def rows(self, model: StitchedModel, X: Array, threads: Threads) -> Array:
        """The columns at points ``X``, (q, len(names))."""
        jet = model.jet(X, int(self.gradient), threads)
        found = [jet.value]
        if self.gradient:
            found.append(jet.gradient.reshape(len(X), -1))
        if self.std:
            found.append(model.moments(X, threads).deviation())
        if self.coverage:
            found.append(model.coverage(X, threads)[:, None])
        return np.concatenate(found, axis=1)


def grid_dataset(
    model: StitchedModel,
    shape: Shape,
    bounds: Limits | None = None,
    gradient: bool = False,
    coverage: bool = False,
    std: bool = False,
    threads: Threads = ALONE,
) -> Any:
    """Values, and more if asked for, on the product of evenly spaced coordinates; see `StitchedRegressor.grid`."""
    xarray = need("xarray", "A grid")
    grid, asked = make_grid(model, shape, bounds), Asked(gradient, coverage, std)
    names = asked.names(model)
    found = np.empty((len(names), grid.size))
    for part in threads.show(list(grid.parts()), "grid"):
        found[:, part] = asked.rows(model, grid.points(part), threads).T
    size, dims = tuple(len(axis) for axis in grid.axes.values()), list(grid.axes)
    fixed = {name: value for name, value in zip(grid.names, grid.at.tolist(), strict=True) if name not in grid.axes}
    about = {"title": "values of a stitched model", "smoothness": str(model.smoothness)}
    fields = {name: (dims, rows.reshape(size)) for name, rows in zip(names, found, strict=True)}
    return xarray.Dataset(fields, coords=grid.axes | fixed, attrs=about)


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
            f"`shape` must be one number, one for each of the {len(names)} features, or a mapping of some of them, got {shape!r}."
        )
    return {name: int(size) for name, size in zip(names, given, strict=True)}
