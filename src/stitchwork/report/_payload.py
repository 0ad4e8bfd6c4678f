"""What the page is told of a model: facts, data, errors, and, where it is small enough, the model itself."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.polynomial import monomials
from ..local.radial import Polynomial, Radial, kernel_named
from ..model.description import describe
from ..model.link import IDENTITY
from ..model.stitched import StitchedModel
from ..views.advice import count_known
from ..views.errors import share_inside
from ..views.slices import find_map, layer_values, make_slice
from ..views.summary import summarize

LARGEST_MODEL = 30 * 2**20  # bytes of a model that goes into a page
_SHOWN = 4000  # points in the plots of errors
_DATA = 20_000  # data points in a page, of which those near a slice are drawn
_CURVE, _PICTURE, _TABLE = 400, 61, 41  # points along a side of the picture of deviations, the last for large regions
_LARGE = 300  # points of a region
_BAND = 0.9  # confidence of the band around a curve
_FROZEN = 101  # points along a side of the picture of a model that is too large
_HUGE = 1e300  # stands for infinity, which JSON has no word for
_UNUSED = re.compile(r"scores|deviation/.*|.*/(y|v|group|often|spread)")  # parts of a description that the page has no use for


def view_levels(model: StitchedModel) -> StitchedModel:
    """The model as its levels speak, which is how the page evaluates it: with a link, of log(y), and by that name."""
    if model.origin.link == IDENTITY:
        return model
    names = tuple(f"log({name})" for name in model.target_names)
    return replace(model, origin=replace(model.origin, link=IDENTITY, target_names=names), known_loo_error=None)


def payload(
    model: StitchedModel, test: tuple[Array, Array] | None, title: str, live: bool, threads: Threads = ALONE
) -> dict[str, Any]:
    """Everything the page shows, as JSON; ``test`` are points and responses to compare with."""
    view, errors = make_slice(model), _errors(model, test, threads)
    whole = None if live else _model(model)
    return {
        "title": title,
        "summary": summarize(model, threads).rows,
        "features": model.feature_names,
        "targets": model.target_names,
        "bounds": model.frame[:2].tolist(),
        "extremes": model.extremes.tolist(),
        "map": find_map(model.feature_names, model.frame[:2]),
        "data": _data(model),
        "at": view.at.tolist(),
        "axes": list(view.features),
        "relevance": model.relevance.tolist(),
        "metric": model.metric_at(view.at).tolist(),
        "smoothness": min(model.smoothness, 99.0),
        "errors": errors,
        "sure": None if model.settings is None else _sure(model, test, threads),
        "live": live,
        "model": whole,
        "frozen": _frozen(model, threads) if whole is None and not live else None,
    }


def _errors(model: StitchedModel, test: tuple[Array, Array] | None, threads: Threads) -> list[dict[str, Any]]:
    """Errors to be drawn: leave-one-out, where it has a closed form, and of the given data."""
    found = []
    if model.settings is not None:
        left_out = model.left_out(threads)
        found.append(_error_set("leave-one-out", left_out.X, left_out.y, left_out.residual, left_out.errors()))
    if test is not None:
        X, y = test
        residual = y.reshape(len(X), -1) - model.jet(X, 0, threads).value
        found.append(_error_set(_name_given(model, test), X, y.reshape(len(X), -1), residual, np.sqrt((residual**2).mean(axis=0))))
    return found


def _name_given(model: StitchedModel, test: tuple[Array, Array]) -> str:
    """What given data are called: what the model was fitted to says little of its errors."""
    X, y = test
    return "data it was fitted to" if 2 * count_known(model, X, y.reshape(len(X), -1)) > len(X) else "given data"


def _sure(model: StitchedModel, test: tuple[Array, Array] | None, threads: Threads) -> dict[str, Any]:
    """Deviations on the first slice, a band around a curve, and how often intervals hold what they say."""
    view, size = make_slice(model), _CURVE if model.n_features == 1 else _PICTURE if model.region_size <= _LARGE else _TABLE
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
        "layers": {"deviation": _packed(moments.deviation())},
        "confidence": _BAND,
        "band": [_packed(ends[..., k]) for k in range(2)] if model.n_features == 1 else None,
        "nominal": nominal.tolist(),
        "curves": curves,
    }


def _error_set(name: str, X: Array, y: Array, residual: Array, rmse: Array) -> dict[str, Any]:
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
    later = (rows >= chosen).astype(int)
    return {
        "x": _packed(model.X[rows]),
        "y": _packed(model.points.y[rows]),
        "later": _packed(later) if later.any() else None,
        "count": model.n_points,
        "added": max(model.n_points - chosen, 0),
    }


def _some(n: int, most: int) -> Index:
    """Rows to draw, in random order: all of ``n``, or so many, always the same ones."""
    return np.random.default_rng(0).permutation(n)[:most]


def _packed(array: Any) -> dict[str, Any]:
    """An array as base64 of little-endian numbers, with its shape."""
    kind = "<i4" if np.issubdtype(array.dtype, np.integer) else "<f8"
    finite = array if kind == "<i4" else np.minimum(array, _HUGE)
    data = np.ascontiguousarray(finite, dtype=kind).tobytes()
    return {"shape": list(array.shape), "kind": kind[1:], "data": base64.b64encode(data).decode()}


def _model(model: StitchedModel) -> dict[str, Any] | None:
    """The description of a model for `engine.js`, or None if it is too large, has measured slopes, or is not ours.

    Besides what `describe` says there are the radial functions by name and the exponents of the monomials of every degree in use.
    """
    if model.settings is None or model.points.slopes is not None:
        return None
    header, arrays = describe(model)
    arrays = {name: array for name, array in arrays.items() if not _UNUSED.fullmatch(name)}
    if sum(array.nbytes for array in arrays.values()) > LARGEST_MODEL:
        return None
    d, degree = model.dimension, max(int(array.max()) for name, array in arrays.items() if name.endswith("/degree"))
    functions = [model.weight, *(kernel_named(name, d) for name in header["kernels"].split(","))]
    return {
        "weight": header["weight"],
        "kernels": header["kernels"].split(","),
        "arrays": {name: _packed(array) for name, array in arrays.items()},
        "inverse": _packed(model.space.inverse),
        "functions": {function.name: _polynomials(function) for function in functions},
        "exponents": monomials(d, degree).exponents.tolist(),
    }


def _polynomials(radial: Radial) -> list[dict[str, Any]] | None:
    """A Wendland function and its powers of D by their coefficients; other functions the page knows by name."""
    if not (isinstance(radial.profile, Polynomial) and radial.profile.power is not None):
        return None
    terms = [radial.profile.derivative(k) for k in range(3)]
    return [{"coefficients": list(term.numbers), "lowest": term.lowest, "power": term.power} for term in terms]


def _frozen(model: StitchedModel, threads: Threads) -> dict[str, Any]:
    """Layers on the first slice of a model that is too large for a page."""
    view = make_slice(model)
    X = view.points(view.axes(_FROZEN))
    orders = {"value": 0, "coverage": 0, "gradient": 1, "laplacian": 2}
    names = [name for name, order in orders.items() if order <= max(0, model.smoothness)]
    outputs = range(model.n_outputs)
    layers = {name: _packed(np.stack([layer_values(model, X, name, k, threads) for k in outputs], axis=1)) for name in names}
    reason = "This model is too large for a page"
    if model.settings is None:
        reason = "The regions of this model are code of your own"
    elif model.points.slopes is not None:
        reason = "A page cannot evaluate models with measured slopes"
    return {"size": _FROZEN, "layers": layers, "reason": reason}


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
