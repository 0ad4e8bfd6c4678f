"""What the page is told of a model: facts, data, errors, and, where it is small enough, the model itself."""

from __future__ import annotations

import base64
import gzip
import re
from typing import Any

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..model.description import Description, describe
from ..model.link import IDENTITY
from ..model.stitched import StitchedModel
from ..storage.file import pack_description
from ..views.advice import count_known
from ..views.columns import Column, find_columns, label_feature, sum_by_column
from ..views.errors import share_inside
from ..views.slices import Slice, find_map, label_of, layer_values, make_slice
from ..views.summary import summarize
from ._headline import headlines
from ._ranges import find_range, layer_ranges

ErrorSet = tuple[str, Array, Array, Array]  # a name, points, responses and residuals

LARGEST_MODEL = 30 * 2**20  # bytes of a model that goes into a page
_SHOWN = 4000  # points in the plots of errors
_DATA = 20_000  # data points in a page, of which those near a slice are drawn
_CURVE, _PICTURE, _TABLE = 400, 61, 41  # points along a side of the picture of deviations, the last for large regions
_LARGE = 300  # points of a region
_BAND = 0.9  # confidence of the band around a curve
_FROZEN, _FROZEN_OWN = 401, 101  # points along a side of the picture of a model that is too large, and of one that is code
_HUGE, _LARGE_SINGLE = 1e300, 3e38  # stand for infinity, which JSON has no word for
_ERROR_TAIL = 0.005  # share of errors on each side that colours do not tell apart
# Arrays of a description that evaluation does not need.
_UNUSED = re.compile(
    r"scores|growth|errors|rows/.*|deviation/.*|.*/(v|group|often|spread|given|row|tolerance|slopes(/.*)?)|regions\d+/y"
)


def payload(
    model: StitchedModel, test: tuple[Array, Array] | None, title: str, live: bool, threads: Threads = ALONE
) -> dict[str, Any]:
    """Everything the page shows, as JSON; ``test`` are points and responses to compare with."""
    columns = find_columns(model)
    view, errors = first_slice(model, columns), _errors(model, test, threads)
    whole = None if live else _model(model)
    sure = None if model.settings is None else _sure(model, view, test, threads)
    return {
        "title": title,
        "headline": headlines(model, _telling(errors), _held(model, threads)),
        "summary": summarize(model, threads).rows,
        "features": model.feature_names,
        "labels": [label_feature(model, k) for k in range(model.n_features)],
        "targets": model.target_names,
        "targetLabels": [label_of(model, name) for name in model.target_names],
        "columns": [column._asdict() for column in columns],
        "bounds": model.frame[:2].tolist(),
        "map": find_map(model.feature_names, model.frame[:2]),
        "data": _data(model),
        "at": view.at.tolist(),
        "axes": list(view.features),
        "relevance": sum_by_column(columns, model.relevance).tolist(),
        "metric": model.metric_at(view.at).tolist(),
        "smoothness": min(model.smoothness, 99.0),
        "ranges": _ranges(model, view, errors, sure, threads),
        "errors": [_error_set(*one, _rmse(model, one, threads)) for one in errors],
        "sure": sure and {name: value for name, value in sure.items() if name != "deviation"},
        "live": live,
        "model": whole,
        "frozen": _frozen(model, view, threads) if whole is None and not live else None,
    }


def first_slice(model: StitchedModel, columns: list[Column]) -> Slice:
    """A slice along the two most relevant columns of numbers or dates; words make poor axes."""
    plain = [column.features[0] for column in columns if column.kind != "category"]
    if not plain:
        return make_slice(model)
    order = np.argsort(-model.relevance.mean(axis=0)[plain], kind="stable")[:2]
    return make_slice(model, sorted(plain[k] for k in order))


def _telling(errors: list[ErrorSet]) -> list[ErrorSet]:
    """Sets of errors, those on held-out data first, without those on data that the model was fitted to."""
    order = {"given data": 0, "leave-one-out": 1}
    return sorted((one for one in errors if one[0] in order), key=lambda one: order[one[0]])


def _held(model: StitchedModel, threads: Threads) -> Array | None:
    """The share (t,) of left-out points inside of 90 % intervals."""
    return None if model.settings is None else np.asarray(model.calibration(threads).held(np.array([_BAND]))[0])


def _ranges(
    model: StitchedModel, view: Slice, errors: list[ErrorSet], sure: dict[str, Any] | None, threads: Threads
) -> dict[str, list[dict[str, Any]]]:
    """Ranges of the layers; those of deviations and errors are known already."""
    ranges, outputs = layer_ranges(model, view, threads), range(model.n_outputs)
    for name, _, _, residual in errors[:1]:
        if name == "leave-one-out":
            ranges["error"] = [find_range(np.abs(residual[:, k]), _ERROR_TAIL) for k in outputs]
    if sure is not None:
        ranges["deviation"] = [find_range(sure["deviation"][:, k]) for k in outputs]
    return ranges


def _errors(model: StitchedModel, test: tuple[Array, Array] | None, threads: Threads) -> list[ErrorSet]:
    """Errors by name: leave-one-out, where it has a closed form, and of the given data."""
    found: list[ErrorSet] = []
    if model.settings is not None:
        found.append(("leave-one-out", *model.left_out(threads)[:3]))
    if test is not None:
        X, y = test[0], test[1].reshape(len(test[0]), -1)
        found.append((_name_given(model, test), X, y, y - model.jet(X, 0, threads).value))
    return found


def _rmse(model: StitchedModel, one: ErrorSet, threads: Threads) -> Array:
    """Root mean squared errors (t,); where rows repeat, each location counts as often as it was observed."""
    name, _, _, residual = one
    return model.left_out(threads).errors() if name == "leave-one-out" else np.sqrt((residual**2).mean(axis=0))


def _name_given(model: StitchedModel, test: tuple[Array, Array]) -> str:
    """The name of given data, which says whether the model was fitted to them."""
    X, y = test
    return "data it was fitted to" if 2 * count_known(model, X, y.reshape(len(X), -1)) > len(X) else "given data"


def _sure(model: StitchedModel, view: Slice, test: tuple[Array, Array] | None, threads: Threads) -> dict[str, Any]:
    """Standard deviations on the first slice, a band around a curve, and how often intervals hold the observations."""
    line = len(view.features) == 1
    size = _CURVE if line else _PICTURE if model.region_size <= _LARGE else _TABLE
    moments, calibration = model.moments(view.points(view.axes(size)), threads), model.calibration(threads)
    ends = calibration.intervals(moments, _BAND)
    nominal = np.linspace(0.05, 0.95, 19)
    curves = [{"name": "leave-one-out", "actual": _packed(calibration.held(nominal))}]
    if test is not None:
        X, y = test
        said, truth = model.moments(X, threads), y.reshape(len(X), -1)
        held = [share_inside(calibration.intervals(said, level), truth) for level in nominal]
        curves.append({"name": _name_given(model, test), "actual": _packed(np.array(held))})
    return {
        "size": size,
        "at": view.at.tolist(),
        "axes": list(view.features),
        "deviation": moments.deviation(),
        "layers": {"deviation": _packed(moments.deviation())},
        "confidence": _BAND,
        "band": [_packed(ends[..., k]) for k in range(2)] if line else None,
        "nominal": nominal.tolist(),
        "curves": curves,
    }


def _error_set(name: str, X: Array, y: Array, residual: Array, rmse: Array) -> dict[str, Any]:
    """A set of errors, or some of them, to be drawn."""
    rows = _some(len(X), _SHOWN)
    return {
        "name": name,
        "count": len(X),
        "rmse": rmse.tolist(),
        "x": _packed(X[rows]),
        "y": _packed(y[rows]),
        "residual": _packed(residual[rows]),
    }


def _data(model: StitchedModel) -> dict[str, Any]:
    """The data, or some of them, and which came after the model was chosen."""
    rows, chosen = _some(model.n_points, _DATA), model.growth.chosen
    later, std = (rows >= chosen).astype(int), None
    if model.errors is not None and model.origin.link == IDENTITY:
        std = np.sqrt(model.errors.unit / model.points.v[rows, None])
    return {
        "x": _packed(model.X[rows]),
        "y": _packed(model.responses[rows]),
        "std": None if std is None else _packed(std),
        "later": _packed(later) if later.any() else None,
        "count": model.n_points,
        "added": max(model.n_points - chosen, 0),
    }


def _some(n: int, most: int) -> Index:
    """Rows to draw, in random order: all of ``n``, or so many, always the same ones."""
    return np.random.default_rng(0).permutation(n)[:most]


def _packed(array: Any, kind: str = "<f8") -> dict[str, Any]:
    """An array as base64 of little-endian numbers, with its shape."""
    kind = "<i4" if np.issubdtype(array.dtype, np.integer) else kind
    finite = array if kind == "<i4" else np.minimum(array, _HUGE if kind == "<f8" else _LARGE_SINGLE)
    data = np.ascontiguousarray(finite, dtype=kind).tobytes()
    return {"shape": list(array.shape), "kind": kind[1:], "data": base64.b64encode(data).decode()}


def compress(data: bytes) -> str:
    """Bytes as base64 of gzip, the same for the same bytes."""
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()


def _model(model: StitchedModel) -> dict[str, Any] | None:
    """The file of a model, without what evaluating it does not need, or None if it is too large or has custom local models.

    With it comes the map from the space of the regions, where their centres are, back to features.
    """
    if model.settings is None:
        return None
    header, arrays = describe(model)
    arrays = {name: array for name, array in arrays.items() if not _UNUSED.fullmatch(name)}
    arrays["points/y"] = arrays["points/y"][:1]  # how many outputs there are
    if sum(array.nbytes for array in arrays.values()) > LARGEST_MODEL:
        return None
    header = {name: header[name] for name in ("weight", "kernels", "link") if name in header}
    chart = model.chart and {"period": model.chart.periods, "globe": model.chart.globe or (-1, -1), "start": model.chart.start}
    return {
        "file": compress(pack_description(Description(header, arrays))),
        "space": {"shift": model.space.shift.tolist(), "inverse": model.space.inverse.tolist(), "chart": chart},
    }


def _frozen(model: StitchedModel, view: Slice, threads: Threads) -> dict[str, Any]:
    """Layers on the first slice of a model that is not in the page: it is too large, or has custom local models."""
    own = model.settings is None
    size = _FROZEN_OWN if own else max(_FROZEN_OWN, int(_FROZEN / model.n_outputs**0.5))
    X = view.points(view.axes(size))
    orders = {"value": 0, "coverage": 0, "gradient": 1, "laplacian": 2}
    names = [name for name, order in orders.items() if order <= max(0, model.smoothness)]
    outputs, kind = range(model.n_outputs), "<f8" if own else "<f4"
    layers = {name: _packed(np.stack([layer_values(model, X, name, k, threads) for k in outputs], axis=1), kind) for name in names}
    reason = "The regions of this model are code of your own" if own else "This model is too large for a page"
    return {"size": size, "layers": layers, "reason": reason}


def contribution_rows(model: StitchedModel, x: Array, output: int) -> list[dict[str, Any]]:
    """What makes up the prediction of an output at a point, as the page lists it, the largest share first."""
    rows = [
        {
            "level": one.level,
            "region": one.region,
            "share": float(np.atleast_1d(one.share)[output]),
            "value": float(np.atleast_1d(one.value)[output]),
            "center": one.center.tolist(),
            "radius": min(one.radius, _HUGE),
            **one.settings,
        }
        for one in model.contributions(x)
    ]
    return sorted((row for row in rows if row["share"] > 0.0), key=lambda row: -row["share"])
