"""What the numbers of a layer range over, so that colours mean the same on every screen and on every slice."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..model.stitched import StitchedModel
from ..views.slices import Slice

_ROWS = {"value": 20_000, "gradient": 4000, "laplacian": 1000}  # data points that are asked, fewer where it is more work
_GRID = 41  # points along a side of the first slice, which is asked, too, where there are data
_NUMBERS = 4_000_000  # that are computed at once
_TAIL = {"value": 0.0005, "gradient": 0.005, "laplacian": 0.01}  # share that may lie outside on each side: few points must not rule
_FLAT = 1e-7  # of what is natural for a layer: less is rounding
_LOG_FROM = 100.0  # logarithmic where the bulk spans so much …
_LOW = 0.1  # … and its median lies so low in it that linear colours would show one colour
_SIGNED_LOG_FROM = 1000.0  # likewise of two signs: greatest against median size


def layer_ranges(model: StitchedModel, view: Slice, threads: Threads) -> dict[str, list[dict[str, Any]]]:
    """For every layer that the model computes, the range of each output."""
    ranges = {}
    for order, layer in enumerate(_ROWS):
        if order and order > model.smoothness:
            break
        each = model.n_outputs * model.n_features**order
        rows = min(_ROWS[layer], max(50, _NUMBERS // each))
        X = _places(model, view, rows, threads)
        jet = model.jet(X, order, threads)
        values = (jet.value, jet.gradient, jet.hessian)[order]
        if order == 1:
            values = np.linalg.norm(values, axis=-1)
        elif order == 2:
            values = np.trace(values, axis1=-2, axis2=-1)
        natural = natural_sizes(model, order)
        ranges[layer] = [find_range(values[:, k], _TAIL[layer], float(natural[k])) for k in range(model.n_outputs)]
    return ranges


def find_range(values: Array, tail: float = 0.0, natural: float = 0.0) -> dict[str, Any]:
    """Least, greatest and least positive number that colours tell apart, whether they are logarithmic, and what is constant.

    Examples
    --------
    >>> found = find_range(np.array([1.0, 2.0, 3.0]))
    >>> found["low"], found["high"], found["log"], found["constant"]
    (1.0, 3.0, False, None)
    >>> find_range(np.array([2.0, 2.0]))["constant"]
    2.0
    >>> find_range(10.0 ** np.arange(6))["log"]
    True
    """
    values = values[np.isfinite(values)]
    low, high = (float(end) for end in np.quantile(values, [tail, 1.0 - tail], method="nearest"))
    if np.ptp(values) < 1.5 * (high - low):  # nothing stands out, so nothing is cut off
        low, high = float(values.min()), float(values.max())
    size = max(-low, high)
    constant = None if high - low > max(_FLAT * natural, 1e-12 * size) else 0.5 * (low + high)
    few, middle, most = np.quantile(values, [0.02, 0.5, 0.98])
    floor = max(float(few), low, high * 1e-12) if few > 0.0 else 0.0
    if low < 0.0 < high and -low > 0.01 * high:
        sizes = np.abs(values)
        log = bool(size > _SIGNED_LOG_FROM * np.median(sizes) > 0.0)
    else:
        log = bool(few > 0.0 and most > _LOG_FROM * few and middle - few < _LOW * (most - few))
    return {"low": low, "high": high, "floor": floor, "log": log, "constant": constant}


def natural_sizes(model: StitchedModel, order: int) -> Array:
    """The natural size (t,) of a derivative: the range of the responses within the extent of the narrowest feature."""
    y, spans = model.responses, np.ptp(model.frame[:2], axis=0)
    spans = spans[spans > 0.0]
    extent = np.maximum(np.ptp(y, axis=0), 1e-9 * np.abs(y).max(axis=0))
    return np.asarray(extent / (spans.min() if len(spans) else 1.0) ** order)


def _places(model: StitchedModel, view: Slice, rows: int, threads: Threads) -> Array:
    """Some data points, and those of the first slice that have data around them."""
    some = np.random.default_rng(0).permutation(model.n_points)[:rows]
    grid = view.points(view.axes(_GRID))[: max(rows, 1)]
    return np.concatenate([model.X[some], grid[model.coverage(grid, threads) > 0.9]])
