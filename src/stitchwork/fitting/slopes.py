"""Prepare measured slopes for a fit: directional derivatives of embedded points, merged, with missing responses filled in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.points import Points, Slopes
from ..model.chart import Chart

_NO_STEP = 1e-8  # length of a direction that is none: usual ones are about one, but at a pole that of longitude vanishes


def add_slopes(
    rows: Points, slopes: Array, measured: NDArray[np.bool_], inputs: Array, chart: Chart | None, used: Index | None = None
) -> Points:
    """Rows, whose X are places, with slopes (n, d, t) by features of ``inputs`` (n, d), where they were ``measured`` (n, d).

    Features whose slopes were never measured have none; which were is known (``used``) if there are other rows. Responses are NaN
    where there is none; then they are zero, without weight.
    """
    used, valued = np.flatnonzero(measured.any(axis=0)) if used is None else used, ~np.isnan(rows.y[:, 0])
    direction = directions_of(used, inputs if chart is None else chart.features_at(rows.X, inputs), chart)
    length = np.sqrt(np.einsum("nke,nke->nk", direction, direction))
    weight = np.concatenate([valued[:, None], measured[:, used] & (length > _NO_STEP)], axis=1).astype(float)
    own = Slopes(direction, np.ascontiguousarray(slopes[:, used]), weight, feature=_name_features(used, inputs))
    return rows._replace(y=np.where(valued[:, None], rows.y, 0.0), slopes=own)


def directions_of(used: Index, inputs: Array, chart: Chart | None) -> Array:
    """Derivatives (n, k, e) of the embedding by the features ``used`` (k,) at the rows ``inputs`` (n, d)."""
    n, d = inputs.shape
    direction = np.broadcast_to(np.eye(d), (n, d, d)) if chart is None else chart.jacobian(inputs).swapaxes(1, 2)
    return np.ascontiguousarray(direction[:, used])


def features_of(slopes: Slopes | None, d: int) -> Index:
    """The features, of ``d``, by which slopes are."""
    if slopes is None:
        return np.empty(0, dtype=np.intp)
    return np.arange(d) if slopes.feature is None else slopes.feature


def _name_features(used: Index, inputs: Array) -> Index | None:
    return None if len(used) == inputs.shape[1] else used


def measured_features(slopes: Slopes | None, d: int) -> Index:
    """Which features have at least one measured slope."""
    known = features_of(slopes, d)
    return known if slopes is None else known[(slopes.weight[:, 1:] > 0.0).any(axis=0)]


def use_features(points: Points, used: Index, chart: Chart | None, told: bool = False) -> Points:
    """Points, whose X are places, with slopes by the features ``used``, zero and without weight where none was measured.

    Where there were none at all, ``told`` says what is known of errors, as in `Slopes`.
    """
    if not len(used):
        return points._replace(slopes=None)
    inputs = points.X if chart is None else chart.original(points.X)
    (n, t), k = points.y.shape, len(used)
    value, weight = np.zeros((n, k, t)), np.zeros((n, 1 + k))
    weight[:, 0] = points.measured
    if points.slopes is not None:
        known = features_of(points.slopes, inputs.shape[1])
        (kept,) = np.nonzero(np.isin(known, used))
        at = np.searchsorted(used, known[kept])
        value[:, at], weight[:, 1 + at], told = points.slopes.value[:, kept], points.slopes.weight[:, 1 + kept], points.slopes.told
    slopes = Slopes(directions_of(used, inputs, chart), value, weight, told, _name_features(used, inputs))
    return points._replace(slopes=slopes)


def weigh_by_errors(rows: Points, unit: float, variance: Array) -> Points:
    """Rows whose slopes have errors of the ``variance`` (n, k); those of responses of weight one have the variance ``unit``."""
    assert rows.slopes is not None
    weight = rows.slopes.weight.copy()
    weight[:, 1:] = np.where(weight[:, 1:] > 0.0, unit / (variance * rows.v[:, None]), 0.0)
    return rows._replace(slopes=rows.slopes._replace(weight=weight, told=True))


def merge_slopes(rows: Points, location: Index, first: Index) -> tuple[Array, Array, Slopes]:
    """Responses, weights and slopes of locations, from rows at ``location`` (n,): means of what was measured; weights add up."""
    slopes, m = rows.slopes, len(first)
    assert slopes is not None
    own = rows.v[:, None] * slopes.weight
    total = _add(own, location, m)
    safe = np.where(total > 0.0, total, 1.0)
    y = _add(own[:, :1] * rows.y, location, m) / safe[:, :1]
    k, t = slopes.value.shape[1:]
    value = _add((own[:, 1:, None] * slopes.value).reshape(-1, k * t), location, m).reshape(m, k, t) / safe[:, 1:, None]
    v = np.where(total[:, 0] > 0.0, total[:, 0], _add(rows.v[:, None], location, m)[:, 0])
    weight = np.concatenate([(total[:, :1] > 0.0).astype(float), total[:, 1:] / v[:, None]], axis=1)
    return y, v, slopes._replace(direction=slopes.direction[first], value=value, weight=weight)


def _add(columns: Array, location: Index, m: int) -> Array:
    return np.stack([np.bincount(location, weights=column, minlength=m) for column in columns.T], axis=1)


def fill_responses(points: Points) -> Points:
    """Points with a response everywhere: a missing one is extrapolated by the slopes from a neighbour that has one.

    y_j + ½ (∇_i + ∇_j)·(x_i - x_j), exact for quadratic functions, from the measured points outwards. These numbers have no weight;
    they only say how large responses are.
    """
    known = points.measured
    if points.slopes is None or known.all():
        return points
    if not known.any():
        raise ValueError("`y` must have a response in at least one row: slopes determine a function only up to a constant.")
    G = gradients_of(points.slopes)
    unit = points.X.std(axis=0)
    X, y = points.X / np.where(unit > 0.0, unit, 1.0), points.y.copy()
    known = known.copy()
    while not known.all():
        left, there = np.flatnonzero(~known), np.flatnonzero(known)
        distance, nearest = cKDTree(X[there]).query(X[left])
        now = distance <= np.median(distance)
        i, j = left[now], there[nearest[now]]
        y[i] = y[j] + 0.5 * np.einsum("ntd,nd->nt", G[i] + G[j], points.X[i] - points.X[j])
        known[i] = True
    return points._replace(y=y)


def fill_embedded(points: Points, features: int, chart: Chart | None) -> Points:
    """The same for points in the space of the regions: neighbours are those among the places that were given."""
    if points.measured.all():
        return points
    return points._replace(y=fill_responses(as_places(points, features, chart)).y)


def as_places(points: Points, features: int, chart: Chart | None) -> Points:
    """Points in the space of the regions as places again, and their slopes along directions of these."""
    assert points.given is not None
    return use_features(points._replace(X=points.given, given=None), features_of(points.slopes, features), chart)


def gradients_of(slopes: Slopes) -> Array:
    """Gradients (n, t, d) of least norm that have the measured slopes."""
    used = (slopes.weight[:, 1:] > 0.0)[..., None]
    return np.swapaxes(np.linalg.pinv(slopes.direction * used) @ (slopes.value * used), 1, 2)
