"""Checks of arguments, before any work is done. Each message names the argument, what it must be, what it was, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._local import LocalModel, Points
from ._radial import KERNEL_NAMES, weight_named

Array = NDArray[np.float64]

LOCAL_MODELS = ("krr-poly", "krr", "poly")
SELECTIONS = ("loo", "holdout", None)
METRICS = ("auto", "euclidean", "standardized", "learned")
BACKGROUNDS = ("hierarchy", "polynomial")
ORDERS = ("stored", "random")


def check_parameters(parameters: dict[str, Any], d: int) -> None:
    """Raise a `ValueError` for the first constructor parameter that cannot be used with ``d`` features."""
    p = parameters
    if p["region_size"] != "auto":
        _check_integer("region_size", p["region_size"], 2)
    _check_choice("selection", p["selection"], SELECTIONS)
    _check_choice("background", p["background"], BACKGROUNDS)
    _check_choice("order", p["order"], ORDERS)
    _check_choice("kernel", p["kernel"], (*KERNEL_NAMES, "auto"))
    if isinstance(p["local_model"], str):
        _check_choice("local_model", p["local_model"], LOCAL_MODELS)
    elif not isinstance(p["local_model"], LocalModel):
        raise ValueError(
            f"`local_model` must be one of {_listed(LOCAL_MODELS)} or an object with `smoothness` and"
            f" `fit(X, y, sample_weight)`, got {p['local_model']!r}. See `stitchwork.LocalModel`."
        )
    if p["degree"] != "auto":
        _check_integer("degree", p["degree"], 0)
    for name, words in (("bandwidth", ("auto",)), ("ridge", ("auto", "response"))):
        _check_positive_grid(name, p[name], words)
    _check_number("rank_tolerance", p["rank_tolerance"], 0.0)
    if p["overlap"] != "auto":
        _check_number("overlap", p["overlap"], 0.0)
    _check_number("background_weight", p["background_weight"], np.finfo(float).tiny)
    if not isinstance(p["weight"], str):
        raise ValueError(f"`weight` must be a name such as 'wendland-c2', got {p['weight']!r}.")
    weight_named(p["weight"], d)
    _check_metric(p["metric"], d)
    _check_single_values(p)


def _check_single_values(p: dict[str, Any]) -> None:
    if p["selection"] is not None:
        return
    for name in ("bandwidth", "ridge"):
        value = p[name]
        if not isinstance(value, str) and np.ndim(value) and len(value) > 1:
            raise ValueError(
                f"`{name}` must be one value when `selection` is None, got a grid of {len(value)}."
                " Give one value, or `selection`='loo' to choose from the grid."
            )


def _check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"`{name}` must be one of {_listed(choices)}, got {value!r}.")


def _check_integer(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"`{name}` must be an integer of at least {least}, got {value!r}.")


def _check_number(name: str, value: Any, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) < np.inf:
        bound = "non-negative" if least == 0.0 else "positive"
        raise ValueError(f"`{name}` must be a {bound} finite number, got {value!r}.")


def _check_positive_grid(name: str, value: Any, words: Sequence[str]) -> None:
    if isinstance(value, str):
        if value not in words:
            raise ValueError(f"`{name}` must be a number, a sequence of numbers or one of {_listed(words)}, got {value!r}.")
        return
    grid = np.atleast_1d(np.asarray(value, dtype=object)).ravel()
    numbers = all(isinstance(x, Real) and not isinstance(x, bool) for x in grid)
    if not len(grid) or not numbers or not all(0.0 < x < np.inf for x in grid):
        raise ValueError(f"`{name}` must hold positive finite numbers, got {value!r}.")


def _check_metric(metric: Any, d: int) -> None:
    if isinstance(metric, str):
        _check_choice("metric", metric, METRICS)
        return
    M = np.asarray(metric)
    usable = M.shape == (d, d) and np.issubdtype(M.dtype, np.number) and np.isfinite(M).all() and np.allclose(M, M.T)
    if not usable or np.linalg.eigvalsh(M.astype(float)).min() < -1e-10 * np.abs(M).max() or not np.any(M):
        raise ValueError(
            f"`metric` must be one of {_listed(METRICS)} or a symmetric positive semidefinite ({d}, {d}) matrix that is not zero,"
            f" got {'an array of shape ' + str(M.shape) if M.ndim else repr(metric)}."
        )


def _listed(choices: Sequence[Any]) -> str:
    return ", ".join(map(repr, choices))


def check_normals(normals: Any, shape: tuple[int, int]) -> Array:
    """Unit normals (q, d) of a surface at the queries, given with any length but zero."""
    N = np.asarray(normals, dtype=float)
    if N.shape != shape or not np.isfinite(N).all():
        raise ValueError(f"`normals` must be finite, one per query, of shape {shape}, got shape {N.shape}.")
    length = np.linalg.norm(N, axis=1, keepdims=True)
    if not length.all():
        raise ValueError(f"`normals` must not be zero, but row {int(np.argmin(length))} is. Drop that query.")
    return N / length


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights (n,) of the points, one each by default."""
    if sample_weight is None:
        return np.ones(n)
    v = np.asarray(sample_weight, dtype=float)
    v = np.full(n, float(v)) if v.ndim == 0 else v
    if v.shape != (n,):
        raise ValueError(f"`sample_weight` must have shape ({n},), one weight per row of X, got shape {v.shape}.")
    if not np.isfinite(v).all() or (v < 0.0).any():
        raise ValueError("`sample_weight` must be finite and not negative. Give 0 to leave a point out.")
    if not v.any():
        raise ValueError("`sample_weight` must be positive for some point, but all weights are zero.")
    return v


def distinct_points(X: Array, y: Array, v: Array) -> Points:
    """Locations with positive weight, each once, in the order of first appearance.

    The weights of coincident points add up and their responses average, which leaves the minimiser of every local system unchanged.
    """
    if not v.all():
        X, y, v = X[v > 0.0], y[v > 0.0], v[v > 0.0]
    X = X + 0.0  # -0.0 and 0.0 are one location
    order = np.lexsort(X.T)  # stable: equal rows stay in stored order
    new = np.ones(len(X), dtype=bool)
    new[1:] = (X[order[1:]] != X[order[:-1]]).any(axis=1)
    if new.all():
        return Points(X, y, v, np.arange(len(X)))
    first = order[new]
    location = np.empty(len(X), dtype=np.intp)
    location[order] = np.cumsum(new) - 1
    rank = np.empty(len(first), dtype=np.intp)
    stored = np.argsort(first)
    rank[stored] = np.arange(len(first))
    location = rank[location]
    weight: Array = np.bincount(location, weights=v).astype(float)
    mean = np.stack([np.bincount(location, weights=v * column) / weight for column in y.T], axis=1)
    return Points(X[first[stored]], mean, weight, first[stored])


def names_of(y: Any) -> list[str] | None:
    """Names of the outputs if ``y`` is a named series or a data frame."""
    names = getattr(y, "columns", None)
    if names is None:
        name = getattr(y, "name", None)
        names = None if name is None else [name]
    return None if names is None or not all(isinstance(name, str) for name in names) else list(names)
