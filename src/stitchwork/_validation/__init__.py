"""Checks of arguments, before any work is done. Each message names the argument, what it must be, what it was, and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..local.own import LocalModel
from ..local.radial import HIGHEST_ORDER, KERNEL_NAMES, kernel_named, weight_named
from ..model.chart import DEGREES, GREATEST_PERIOD, LEAST_PERIOD, Chart

LOCAL_MODELS = ("krr-poly", "krr", "poly")
SELECTIONS = ("loo", "holdout", None)
METRICS = ("auto", "euclidean", "standardized", "learned")
BACKGROUNDS = ("hierarchy", "polynomial")
ORDERS = ("stored", "random")
HIGHEST_DEGREE = 50
MANY_FEATURES = 50
_GREATEST_RANGE, _GREATEST = 1e152, 1e300  # of responses: what is squared and added must not overflow, nor what is multiplied
_TOO_LARGE = "`y` has numbers as large as {:.3g}: squares of their differences overflow. Divide it by a unit of that size."
_ATTRIBUTES = ("units", "long_name")  # of a column, as xarray and the CF conventions call them


def check_parameters(parameters: dict[str, Any], d: int) -> None:
    """Raise a `ValueError` for the first constructor parameter that cannot be used in ``d`` dimensions."""
    p = parameters
    _check_coordinates(p["periodic"], p["geographic"])
    _check_word_or(p, "region_size", lambda name, value: _check_integer(name, value, 2))
    _check_choice("selection", p["selection"], SELECTIONS)
    _check_choice("background", p["background"], BACKGROUNDS)
    _check_choice("order", p["order"], ORDERS)
    _check_local_model(p["local_model"])
    for name in _items("kernel", p["kernel"]):
        _check_choice("kernel", name, KERNEL_NAMES if name is not p["kernel"] else (*KERNEL_NAMES, "auto"))
    _check_word_or(p, "degree", _check_degrees)
    for name, words in (("bandwidth", ("auto",)), ("ridge", ("auto", "response"))):
        _check_positive_grid(name, p[name], words)
    _check_number("rank_tolerance", p["rank_tolerance"], 0.0)
    _check_word_or(p, "overlap", lambda name, value: _check_number(name, value, 0.0))
    _check_number("background_weight", p["background_weight"], np.finfo(float).tiny)
    if not isinstance(p["weight"], str):
        raise ValueError(f"`weight` must be a name such as 'wendland-c2', or 'auto', got {p['weight']!r}.")
    if p["weight"] != "auto":
        weight_named(p["weight"], d)
    _check_smoothness(p, d)
    if not isinstance(p.get("robust", False), bool):
        raise ValueError(f"`robust` must be True or False, got {p['robust']!r}.")
    _check_metric(p["metric"], d)
    _check_single_values(p)


def check_work(n_jobs: Any, random_state: Any) -> None:
    """Raise a `ValueError` unless the number of threads and the seed are valid."""
    check_jobs(n_jobs)
    seed = isinstance(random_state, Integral) and not isinstance(random_state, bool) and 0 <= int(random_state) < 2**32
    if random_state is not None and not seed and not isinstance(random_state, np.random.RandomState):
        raise ValueError(f"`random_state` must be None, a seed from 0 to 2³² - 1 or a RandomState, got {random_state!r}.")


def check_jobs(n_jobs: Any) -> Any:
    """A number of threads, or a `ValueError`."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"`n_jobs` must be None, a number of threads, or -1 for all cores, got {n_jobs!r}.")
    return n_jobs


def _check_word_or(p: dict[str, Any], name: str, check: Callable[[str, Any], None]) -> None:
    """Accept ``"auto"``, refuse other strings, and leave all else to ``check``."""
    if not isinstance(p[name], str):
        check(name, p[name])
    elif p[name] != "auto":
        raise ValueError(f"`{name}` must be 'auto' or a number, got {p[name]!r}.")


def _check_smoothness(p: dict[str, Any], d: int) -> None:
    """Raise a `ValueError` unless weight, kernels and local model are as smooth as asked."""
    asked = p["smoothness"]
    if isinstance(asked, str) and asked == "auto":
        return
    _check_integer("smoothness", asked, 0)
    if asked > HIGHEST_ORDER:
        raise ValueError(f"`smoothness` must be at most {HIGHEST_ORDER}, got {asked!r}.")
    had = {} if p["weight"] == "auto" else {f"`weight`={p['weight']!r}": weight_named(p["weight"], d).smoothness}
    if not isinstance(p["local_model"], str):
        had["the `local_model`"] = p["local_model"].smoothness
    elif p["local_model"] != "poly":
        named = [name for name in _items("kernel", p["kernel"]) if name != "auto"]
        had |= {f"`kernel`={name!r}": kernel_named(name, d).smoothness for name in named}
    for name, smoothness in had.items():
        if smoothness < asked:
            is_ = f"of class C{smoothness:.0f}" if smoothness >= 0 else "discontinuous"
            raise ValueError(f"`smoothness`={asked} asks for more than {name} has, which is {is_}. Leave one of them to 'auto'.")


def _check_local_model(local_model: Any) -> None:
    if isinstance(local_model, str):
        _check_choice("local_model", local_model, LOCAL_MODELS)
    elif not isinstance(local_model, LocalModel):
        raise ValueError(
            f"`local_model` must be one of {_listed(LOCAL_MODELS)} or an object with `smoothness` and"
            f" `fit(X, y, sample_weight)`, got {local_model!r}. See `stitchwork.LocalModel`."
        )


def _check_degrees(name: str, degree: Any) -> None:
    for value in _items(name, degree):
        _check_integer(name, value, -1)
        if value > HIGHEST_DEGREE:
            raise ValueError(f"`{name}` must be at most {HIGHEST_DEGREE}, got {value!r}. Leave finer detail to the kernel.")


def _items(name: str, value: Any) -> list[Any]:
    """A value, or those of a sequence."""
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        return [value]
    if not len(value) or np.ndim(value) != 1:
        raise ValueError(f"`{name}` must be a value or a non-empty sequence of values, got {value!r}.")
    return list(value)


def _check_single_values(p: dict[str, Any]) -> None:
    if p["selection"] is not None:
        return
    for name in ("kernel", "degree", "bandwidth", "ridge"):
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


def make_chart(periodic: Any, geographic: Any, names: Sequence[str] | None, d: int) -> Chart | None:
    """The chart of ``d`` features, None if no feature has a period and none are longitude and latitude."""
    _check_coordinates(periodic, geographic)
    globe = None if geographic is None else tuple(_feature("geographic", feature, names, d) for feature in geographic)
    periods = [0.0] * d
    for feature, period in (periodic or {}).items():
        k = _feature("periodic", feature, names, d)
        if periods[k] or k in (globe or ()):
            raise ValueError(f"`periodic` must name a feature once, and none of `geographic`, but {feature!r} is there already.")
        periods[k] = float(period)
    if globe is None and not any(periods):
        return None
    if globe is not None:
        if globe[0] == globe[1]:
            raise ValueError(f"`geographic` must be two different features, longitude and latitude, got {geographic!r}.")
        periods[globe[0]] = DEGREES
    return Chart(tuple(periods), globe, tuple(-0.5 * p for p in periods))  # type: ignore[arg-type]


def _check_coordinates(periodic: Any, geographic: Any) -> None:
    """Check that `periodic` is a mapping and `geographic` a pair, or None; the features themselves are checked later."""
    if periodic is not None and not isinstance(periodic, Mapping):
        raise ValueError(f"`periodic` must be a mapping of features to periods, such as {{'phase': 360}}, got {periodic!r}.")
    for feature, period in (periodic or {}).items():
        if isinstance(period, bool) or not isinstance(period, Real) or not LEAST_PERIOD <= float(period) <= GREATEST_PERIOD:
            raise ValueError(f"`periodic` must have positive finite periods, got {period!r} for {feature!r}.")
    pair = isinstance(geographic, Sequence) and not isinstance(geographic, str) and len(geographic) == 2
    if geographic is not None and not pair:
        raise ValueError(f"`geographic` must be a pair of features, such as ('lon', 'lat'), got {geographic!r}.")


def _feature(name: str, feature: Any, names: Sequence[str] | None, d: int) -> int:
    """The index of a feature that is given by its name or index."""
    if isinstance(feature, str):
        if names is None:
            raise ValueError(f"`{name}` has the feature {feature!r}, but `X` has no names. Give its index, from 0 to {d - 1}.")
        if feature not in names:
            raise ValueError(f"`{name}` has {feature!r}, which is no feature of `X`. The features: {', '.join(names)}.")
        return list(names).index(feature)
    if isinstance(feature, bool) or not isinstance(feature, Integral) or not 0 <= int(feature) < d:
        raise ValueError(f"`{name}` must have names of features or indices from 0 to {d - 1}, got {feature!r}.")
    return int(feature)


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


def number_groups(entries: NDArray[Any]) -> Index:
    """A number for each group, a hash of its label: the same label gives the same number in every call and process."""

    def number(entry: Any) -> int:
        called = str(int(entry) if isinstance(entry, float) and entry.is_integer() else entry)
        return int.from_bytes(blake2b(called.encode(), digest_size=8).digest(), "big", signed=True)

    return np.array([number(entry) for entry in entries.tolist()], dtype=np.int64)


def check_outputs(y: Array, flat: bool, t: int) -> None:
    """Raise a `ValueError` unless ``y`` has the outputs of a model."""
    if (y.ndim == 1) != flat or (y.ndim == 2 and y.shape[1] != t):
        expected = "(n,)" if flat else f"(n, {t})"
        raise ValueError(f"`y` must have shape {expected}, as in the fit of the model, got {y.shape}.")


def check_size(y: Array) -> Array:
    """Responses ``y`` (n, t) as they are, or a `ValueError` if they are too large to be added."""
    greatest = max(y.max(initial=0.0), -y.min(initial=0.0))
    if not greatest <= _GREATEST:
        raise ValueError(_TOO_LARGE.format(float(greatest)))
    return y


def check_range(y: Array) -> None:
    """Raise a `ValueError` if squares of differences of the responses ``y`` (n, t) would overflow."""
    half = 0.5 * check_size(y).max(axis=0, initial=-np.inf) - 0.5 * y.min(axis=0, initial=np.inf)
    if (half > _GREATEST_RANGE).any():
        raise ValueError(_TOO_LARGE.format(float(np.abs(y).max())))


def warn_of_features(d: int) -> None:
    """Warn if there are so many features that all distances are about the same."""
    if d > MANY_FEATURES:
        warnings.warn(
            f"There are {d} features. Beyond about {MANY_FEATURES}, all points are about equally far apart: regions predict"
            " little more than the mean, and predictions are slow. Reduce the features first, for example by"
            " `make_pipeline(StandardScaler(), PCA(10), StitchedRegressor())` or with `PLSRegression`.",
            UserWarning,
            stacklevel=3,
        )


def read_bounds(bounds: Any, model: Any) -> Array:
    """Least and greatest value (d, 2) of every feature: of the data, or as given by pairs or by name."""
    names, box = model.feature_names, np.array(model.frame[:2].T)
    if bounds is None:
        return box
    if isinstance(bounds, Mapping):
        unknown = [name for name in bounds if name not in names]
        if unknown:
            raise ValueError(f"`bounds` name {unknown[0]!r}, which is no feature. The features: {', '.join(names)}.")
        for name, pair in bounds.items():
            box[names.index(name)] = pair
    else:
        box = np.asarray(bounds, dtype=float)
    if box.shape != (len(names), 2) or not np.isfinite(box).all():
        raise ValueError(f"`bounds` must be {len(names)} pairs (low, high) of finite numbers, got {bounds!r}.")
    for name, (low, high) in zip(names, box, strict=True):
        if low > high:
            raise ValueError(
                f"`bounds` of {name!r} must have the smaller number first, got {low:g} and {high:g}. A range across the end of a"
                " period continues past it, for example longitudes from 170 to 190."
            )
    return box


def names_of(y: Any) -> tuple[str, ...] | None:
    """Names of the outputs if ``y`` is a named series or a data frame."""
    names = getattr(y, "columns", None)
    if names is None:
        name = getattr(y, "name", None)
        names = None if name is None else (name,)
    return None if names is None or not all(isinstance(name, str) for name in names) else tuple(names)


def unmasked(data: Any, name: str) -> Any:
    """A masked array as a plain one; a `ValueError` if it has masked values. Anything else as it is."""
    if not isinstance(data, np.ma.MaskedArray):
        return data
    if np.ma.is_masked(data):
        raise ValueError(
            f"`{name}` has {int(np.ma.count_masked(data)):,} masked values. Drop the rows that have them, or fill them:"
            f" `{name}.filled(value)`."
        )
    return data.data


def as_table(data: Any, name: str = "X") -> Any:
    """Convert a dataset of xarray to a data frame, the points of a `GeoDataFrame` to columns, and a masked array to a plain one.

    Anything else is returned unchanged.
    """
    if hasattr(data, "columns") and hasattr(data, "geometry") and hasattr(data, "crs"):
        return _with_coordinates(data)
    if not hasattr(data, "data_vars"):
        return unmasked(data, name)
    names = _columns(data)
    shapes = {data[name].dims for name in names}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise ValueError(
            f"A dataset must have variables along one dimension, a row for each of its entries, got dimensions {dict(data.sizes)}."
            " Turn a grid into a table first: `dataset.to_dataframe().reset_index()`."
        )
    return data.to_dataframe()[names]


def _with_coordinates(frame: Any) -> Any:
    """A `GeoDataFrame` of points with columns for their coordinates in the place of the geometry."""
    kinds = sorted(set(frame.geometry.geom_type))
    if kinds != ["Point"]:
        raise ValueError(f"The geometries of a data frame must be points, got {', '.join(map(str, kinds))}. Take centroids first.")
    names = ("longitude", "latitude") if frame.crs is not None and frame.crs.is_geographic else ("x", "y")
    coordinates = dict(zip(names, (frame.geometry.x, frame.geometry.y), strict=True))
    return frame.drop(columns=frame.geometry.name).assign(**coordinates)


def _columns(data: Any) -> list[str]:
    """The variables of a dataset; of one that has coordinates alone, those that are no index."""
    return list(data.data_vars) or [name for name in data.coords if name not in data.indexes]


def attributes_of(data: Any) -> dict[str, dict[str, str]]:
    """Units and long names by column: of the variables of xarray, of a series, or of a data frame with a mapping of each."""
    attrs = getattr(data, "attrs", {})
    if hasattr(data, "data_vars"):
        found = {name: data[name].attrs for name in _columns(data)}
    elif hasattr(data, "columns"):
        named = {key: attrs[key] for key in _ATTRIBUTES if isinstance(attrs.get(key), Mapping)}
        found = {name: {key: of[name] for key, of in named.items() if name in of} for name in data.columns}
    else:
        found = {getattr(data, "name", None) or "y": attrs} if getattr(data, "ndim", 0) == 1 else {}
    kept = {str(name): {key: about[key] for key in _ATTRIBUTES if isinstance(about.get(key), str)} for name, about in found.items()}
    return {name: about for name, about in kept.items() if about}
