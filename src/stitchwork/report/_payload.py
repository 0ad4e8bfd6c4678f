"""What the page is told of a model: facts, errors, and, where it is small enough, the model itself."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._polynomial import monomials
from .._radial import Radial, wendland_terms
from .._slices import data_bounds, feature_names, layer_values, make_slice, target_names
from .._stitch import SILENCE

Array = NDArray[np.float64]

LARGEST_MODEL = 30 * 2**20  # bytes of a model that goes into a page
_SHOWN = 4000  # points in the plots of errors
_FROZEN = 101  # points along a side of the picture of a model that is too large


def payload(model: Any, test: tuple[Array, Array] | None, title: str, live: bool) -> dict[str, Any]:
    """Everything the page shows, as JSON; ``test`` are points and responses to compare with."""
    bounds, view, errors = data_bounds(model), make_slice(model), _errors(model, test)
    facts: dict[str, Any] = {
        "title": title,
        "summary": model.summary().rows,
        "features": feature_names(model),
        "targets": target_names(model),
        "bounds": bounds.tolist(),
        "at": view.at.tolist(),
        "axes": list(view.features),
        "relevance": model.feature_relevance_.tolist(),
        "metric": model.metric_.tolist(),
        "smoothness": min(float(model.smoothness_), 99.0),
        "errors": errors,
        "live": live,
        "model": None,
        "frozen": None,
    }
    if not live:
        whole = _model(model)
        if whole is not None:
            facts["model"] = whole
        else:
            facts["frozen"] = _frozen(model)
    return facts


def _errors(model: Any, test: tuple[Array, Array] | None) -> list[dict[str, Any]]:
    """Errors to be drawn: leave-one-out, where it has a closed form, and of the given data."""
    found = []
    if model._assembly.settings is not None:
        left_out = model.leave_one_out()
        found.append(_error_set("leave-one-out", left_out.X, left_out.y, left_out.residual))
    if test is not None:
        X, y = test
        found.append(_error_set("given data", X, y, y.reshape(len(X), -1) - model._jet(X, 0).value))
    return found


def _error_set(name: str, X: Array, y: Array, residual: Array) -> dict[str, Any]:
    y, residual = y.reshape(len(X), -1), residual.reshape(len(X), -1)
    rmse = np.sqrt((residual**2).mean(axis=0))
    rows = np.arange(0, len(X), max(1, len(X) // _SHOWN))
    return {
        "name": name,
        "count": len(X),
        "rmse": rmse.tolist(),
        "x": _packed(X[rows]),
        "y": _packed(y[rows]),
        "residual": _packed(residual[rows]),
    }


def _packed(array: Any) -> dict[str, Any]:
    """An array as base64 of little-endian numbers, with its shape."""
    kind = "<i4" if np.issubdtype(array.dtype, np.integer) else "<f8"
    data = np.ascontiguousarray(array, dtype=kind).tobytes()
    return {"shape": list(array.shape), "kind": kind[1:], "data": base64.b64encode(data).decode()}


def _model(model: Any) -> dict[str, Any] | None:
    """The arrays of a model, or None if they are too large or not ours."""
    if model._assembly.settings is None:
        return None
    levels = model._assembly.levels
    distinct: list[Any] = list({id(level.models): level.models for level in levels}.values())
    points: list[Any] = list({id(models.X): models.X for models in distinct}.values())
    if sum(_bytes(models) for models in distinct) + sum(X.nbytes for X in points) > LARGEST_MODEL:
        return None
    d = model.n_features_in_
    return {
        "shift": model._space.shift.tolist(),
        "A": model._space.A.tolist(),
        "inverse": np.linalg.pinv(model._space.A).tolist(),
        "unit": model._space.unit,
        "weight": _radial(model._weight),
        "w0": float(model.background_weight),
        "silence": SILENCE,
        "levels": [
            {
                "centers": _packed(level.centers),
                "radii": _packed(np.minimum(level.radii, 1e300)),
                "models": next(k for k, models in enumerate(distinct) if models is level.models),
            }
            for level in levels
        ],
        "points": [_packed(X) for X in points],
        "models": [_regions(models, d) | {"points": next(k for k, X in enumerate(points) if X is models.X)} for models in distinct],
    }


def _bytes(models: Any) -> int:
    return sum(int(array.nbytes) for array in (models.members, models.alpha, models.lam))


def _regions(models: Any, d: int) -> dict[str, Any]:
    settings = models.settings
    arrays = {name: _packed(getattr(models, name)) for name in ("members", "origin", "scale", "sigma", "alpha", "lam")}
    return arrays | {
        "kernels": [_radial(kernel) for kernel in settings.kernels],
        "kernel": settings.kernel.tolist(),
        "degree": settings.degree.tolist(),
        "bandwidth": settings.bandwidth.tolist(),
        "ridge": settings.ridge.tolist(),
        "exponents": monomials(d, int(settings.degree.max())).exponents.tolist(),
    }


def _radial(radial: Radial) -> dict[str, Any]:
    """A radial function by name; a Wendland function by its polynomials, too."""
    return {"name": radial.name, "terms": wendland_terms(radial)}


def _frozen(model: Any) -> dict[str, Any]:
    """Layers on the first slice of a model that is too large for a page."""
    view = make_slice(model)
    axes = view.axes(_FROZEN)
    X = view.points(axes)
    names = [
        name
        for name, order in (("value", 0), ("coverage", 0), ("gradient", 1), ("laplacian", 2))
        if order <= max(0, model.smoothness_)
    ]
    outputs = range(len(target_names(model)))
    layers = {name: _packed(np.stack([layer_values(model, X, name, k) for k in outputs], axis=1)) for name in names}
    own = model._assembly.settings is None
    reason = "The regions of this model are code of your own" if own else "This model is too large for a page"
    return {"size": _FROZEN, "layers": layers, "reason": reason}


def voice_rows(model: Any, x: Array, output: int) -> list[dict[str, Any]]:
    """The regions that speak at a point, as the page lists them."""
    return [
        {
            "level": voice.level,
            "region": voice.region,
            "share": voice.share,
            "value": float(np.atleast_1d(voice.value)[output]),
            "center": voice.center.tolist(),
            "radius": min(voice.radius, 1e300),
            **voice.settings,
        }
        for voice in model.voices(x)
    ]
