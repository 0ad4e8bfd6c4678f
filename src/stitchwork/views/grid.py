"""A fitted model on a regular grid, as an `xarray.Dataset` with the data's own names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from .slices import derivative_name

LARGEST_GRID = 10**8  # points


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
    axes = grid_axes(model, shape, bounds)
    about = describe_variables(model, gradient, coverage, std)
    size, names = tuple(len(axis) for axis in axes), list(about)
    X = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    jet = model.jet(X, int(gradient), threads)
    rows = list(jet.value.T)
    if gradient:
        rows += list(jet.gradient.reshape(len(X), -1).T)
    if std:
        rows += list(model.moments(X, threads).deviation().T)
    if coverage:
        rows.append(model.coverage(X, threads))
    features, answers = names[: len(axes)], names[len(axes) :]
    return xarray.Dataset(
        {name: (features, values.reshape(size), about[name]) for name, values in zip(answers, rows, strict=True)},
        coords={name: (name, axis, about[name]) for name, axis in zip(features, axes, strict=True)},
        attrs={"title": "values of a stitched model", "smoothness": str(model.smoothness)},
    )


def describe_variables(model: StitchedModel, gradient: bool, coverage: bool, std: bool) -> dict[str, dict[str, str]]:
    """Names of the coordinates and variables of a grid, in their order, with ``long_name`` and ``units`` of each.

    A slash separates groups in NetCDF: dy/da is called dy_da, and dy/da is its long name.
    """
    known, features, targets = model.origin.attributes, model.feature_names, model.target_names
    found = [(name, {"long_name": name} | known.get(name, {})) for name in (*features, *targets)]
    if gradient:
        for y, a in product(targets, features):
            units = _quotient(*(known.get(name, {}).get("units") for name in (y, a)))
            found.append((derivative_name(y, a), {"long_name": derivative_name(y, a)} | units))
    if std:
        found += [(f"{y}_std", known.get(y, {}) | {"long_name": f"deviation of a new observation of {y}"}) for y in targets]
    if coverage:
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
