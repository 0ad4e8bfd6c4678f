"""Fields of xarray: gaps filled, another grid, a model where a field has its points; names, units and other attributes are kept.

The dimensions that a model is fitted along are its features. Others, such as time, stand by themselves: every slice along them has
a model of its own. Longitude and latitude, by their attributes, are on the globe. Needs ``pip install 'stitchwork[files]'``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from .._extras import need
from .._regressor import StitchedRegressor
from .._types import Array
from .._validation.fills import repeated_far_value
from ..views.asked import Asked
from ..views.like import coordinate_like, evaluate_like, globe_of, numbers_of

__all__ = ["evaluate", "fill", "regrid"]

Fit = Callable[[Array, Array], StitchedRegressor]


def fill(field: Any, dims: Sequence[str] | None = None, estimator: StitchedRegressor | None = None) -> Any:
    """A field whose gaps (NaN) are filled by a model of what is known; known values stay as they are.

    Parameters
    ----------
    field : xarray.DataArray
        Of numbers. Its dimensions have numbers or times as coordinates; one without coordinates is counted.
    dims : names of dimensions, optional
        Those to fit along, all by default. Slices along the others are filled each by itself; one without any value stays empty.
    estimator : StitchedRegressor, optional
        With the parameters to fit with; it is not changed. Features are ``dims`` in their order.

    Returns
    -------
    xarray.DataArray
        Of the same shape, dimensions, coordinates, name and attributes.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> from stitchwork.xarray import fill
    >>> x = np.linspace(0, 6, 30)
    >>> field = xarray.DataArray(np.sin(x), coords={"x": x}, name="wave", attrs={"units": "m"})
    >>> gap = field.where((field.x < 2) | (field.x > 2.6))
    >>> filled = fill(gap)
    >>> int(gap.isnull().sum()), bool(abs(filled - field).max() < 1e-3), filled.attrs["units"]
    (3, True, 'm')
    """
    along = _check_dims(field, dims)
    _warn_of_fills(field)
    X, fit = _points(field, along), _fitter(field, along, estimator)
    moved = field.transpose(*(name for name in field.dims if name not in along), *along)
    values = moved.values.reshape(-1, len(X)).astype(np.result_type(field.dtype, np.float32))
    for row in values:
        gap = np.isnan(row)
        if gap.any() and not gap.all():
            row[gap] = fit(X[~gap], row[~gap].astype(float)).predict(X[gap])
    return moved.copy(data=values.reshape(moved.shape)).transpose(*field.dims)


def regrid(field: Any, like: Any, estimator: StitchedRegressor | None = None) -> Any:
    """A field on the grid of another, by a model of what is known of it.

    Parameters
    ----------
    field : xarray.DataArray
        Of numbers; gaps (NaN) are left out.
    like : xarray.DataArray or xarray.Dataset
        Has the new coordinates of some dimensions of ``field``: by the same name, or by the standard name or unit of longitude and
        latitude. Dimensions that it lacks stay, each of their slices with a model of its own.
    estimator : StitchedRegressor, optional
        With the parameters to fit with; it is not changed. Features are the dimensions that are replaced, in their order.

    Returns
    -------
    xarray.DataArray
        With the name and attributes of ``field`` and the coordinates of ``like``.

    Examples
    --------
    >>> import numpy as np, xarray
    >>> from stitchwork.xarray import regrid
    >>> field = xarray.DataArray(np.arange(8.0) ** 2, coords={"x": np.arange(8.0)}, attrs={"units": "K"})
    >>> fine = regrid(field, xarray.Dataset(coords={"x": [2.5, 3.5]}))
    >>> fine.values.round(2), fine.attrs
    (array([ 6.25, 12.25]), {'units': 'K'})
    """
    xarray = need("xarray", "A field")
    _check_dims(field, None)
    if not hasattr(like, "coords"):
        raise ValueError(
            f"`like` must be an `xarray.DataArray` or `xarray.Dataset` with the new coordinates, got {type(like).__name__}."
        )
    new = {name: found for name in field.dims if (found := coordinate_like(like, name, field)) is not None}
    if not new:
        raise ValueError(f"`like` has coordinates for none of the dimensions {', '.join(map(str, field.dims))}.")
    along = list(new)
    _warn_of_fills(field)
    targets = xarray.broadcast(*(numbers_of(one) for one in new.values()))
    X, fit = _points(field, along), _fitter(field, along, estimator)
    Q = np.stack([one.values.ravel() for one in targets], axis=1)
    others = [name for name in field.dims if name not in along]
    moved = field.transpose(*others, *along)
    rows = moved.values.reshape(-1, len(X)).astype(float)
    found = np.full((len(rows), len(Q)), np.nan)
    asked = np.isfinite(Q).all(axis=1)
    for row, answers in zip(rows, found, strict=True):
        known = np.isfinite(row)
        if known.any() and asked.any():
            answers[asked] = fit(X[known], row[known]).predict(Q[asked])
    kept = {name: one for name, one in field.coords.items() if set(one.dims) <= set(others)}
    dims, shape = targets[0].dims, (*(moved.sizes[name] for name in others), *targets[0].shape)
    given = {name: one for name, one in like.coords.items() if set(one.dims) <= set(dims) and name not in kept}
    kind = np.result_type(field.dtype, np.float32)
    return xarray.DataArray(found.reshape(shape).astype(kind), kept | given, [*others, *dims], field.name, dict(field.attrs))


def _warn_of_fills(field: Any) -> None:
    """Warn of a value that looks like a stand-in for missing ones."""
    if found := repeated_far_value(np.asarray(field.values, dtype=float).ravel()):
        warnings.warn(
            f"{found[0]:g} stands {found[1]:,} times in the field, far from all other values. If it means that there is none, use"
            f" `field.where(field != {found[0]:g})`.",
            UserWarning,
            stacklevel=3,
        )


def evaluate(
    model: StitchedRegressor,
    like: Any,
    *,
    gradient: bool = False,
    unit: str | None = None,
    coverage: bool = False,
    std: bool = False,
    function_std: bool = False,
) -> Any:
    """A fitted model where a field has its points, as a dataset of the same grid, with its coordinates and attributes.

    Parameters
    ----------
    model : StitchedRegressor
        Fitted to features with names. Each is the coordinate or variable of its name in ``like``; what that lacks stands at its
        median.
    like : xarray.DataArray or xarray.Dataset
    gradient, unit, coverage, std, function_std
        As in `StitchedRegressor.grid`.

    Examples
    --------
    >>> import pandas as pd, xarray
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.xarray import evaluate
    >>> data = pd.DataFrame({"lat": [0.0, 1, 0, 1], "lon": [0.0, 0, 1, 1], "t": [0.0, 1, 2, 3]})
    >>> model = StitchedRegressor().fit(data[["lat", "lon"]], data["t"])
    >>> like = xarray.Dataset(coords={"lon": [0.5], "lat": [0.0, 1.0]})
    >>> found = evaluate(model, like)["t"]
    >>> found.dims, found.values.round(6)
    (('lon', 'lat'), array([[1., 2.]]))
    """
    return evaluate_like(model.model_, like, Asked(gradient, coverage, std, function_std, unit))


def _check_dims(field: Any, dims: Sequence[str] | None) -> list[str]:
    """The dimensions to fit along, once they and the field are checked."""
    if not hasattr(field, "dims") or hasattr(field, "data_vars"):
        raise ValueError(f"`field` must be an `xarray.DataArray`, got {type(field).__name__}. Take one variable of a dataset.")
    if field.dtype.kind not in "fiub":
        raise ValueError(f"`field` must hold numbers, got {field.dtype}.")
    along = list(field.dims) if dims is None else [dims] if isinstance(dims, str) else list(dims)
    unknown = [name for name in along if name not in field.dims]
    if unknown or not along:
        raise ValueError(f"`dims` must be some of {', '.join(map(str, field.dims))}, got {dims!r}.")
    return along


def _points(field: Any, along: Sequence[str]) -> Array:
    """The points (n, d) of a slice, the last dimension fastest."""
    axes = []
    for name in along:
        axis = numbers_of(field[name]).values  # xarray counts a dimension that has no coordinates
        if len(np.unique(axis)) < len(axis) or not np.isfinite(axis).all():
            raise ValueError(f"The coordinates of dimension {name!r} must be different finite numbers.")
        axes.append(axis)
    return np.stack([one.ravel() for one in np.meshgrid(*axes, indexing="ij")], axis=1)


def _fitter(field: Any, along: Sequence[str], estimator: StitchedRegressor | None) -> Fit:
    """Fits a fresh model; on the globe where the attributes of two dimensions say that they are longitude and latitude."""
    start = StitchedRegressor(geographic=globe_of(field, along)) if estimator is None else estimator
    return lambda X, y: clone(start).fit(X, y)
