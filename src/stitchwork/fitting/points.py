"""The points of a fit: every location once, and samples of them."""

from __future__ import annotations

import numpy as np

from .._types import Array, Index
from ..local.points import Merging, Points, Repeats
from .defaults import CONSTANT
from .slopes import merge_slopes

_LARGEST = 1e140  # difference of responses of one place: its square must not overflow


def merge_coincident(rows: Points, merge_near: bool = True) -> Points:
    """Locations with positive weight, each once, in the order of first appearance.

    The weights of coincident points add up and their responses average, which leaves the minimiser of every local system unchanged;
    their spread is kept. A location has the coordinates and the group of its first row. Features that vary by rounding alone become
    constant with ``merge_near``.
    """
    if not rows.v.all():
        rows = rows.at(np.flatnonzero(rows.v > 0.0))
    y, v = rows.y, rows.v
    X = np.ascontiguousarray(rows.X) + 0.0  # sums over rows must not depend on their layout; -0.0 and 0.0 are one location
    X = merge_constants(X) if merge_near and len(X) else X
    order = np.lexsort(X.T)  # stable: equal rows stay in stored order
    new = np.ones(len(X), dtype=bool)
    new[1:] = (X[order[1:]] != X[order[:-1]]).any(axis=1)
    if new.all():
        return rows._replace(X=X)
    first = order[new]
    location = np.empty(len(X), dtype=np.intp)
    location[order] = np.cumsum(new) - 1
    rank = np.empty(len(first), dtype=np.intp)
    stored = np.argsort(first)
    rank[stored] = np.arange(len(first))
    location = rank[location]
    first = first[stored]

    def add(columns: Array) -> Array:
        return np.stack([np.bincount(location, weights=column).astype(float) for column in columns.T], axis=1)

    if rows.slopes is not None:
        return _merge_with_slopes(rows.at(first)._replace(X=X[first]), rows, location, first)
    often, spread = rows.observed()
    weight = add(v[:, None])
    mean = add(v[:, None] * y) / weight
    away = np.clip(y - mean[location], -_LARGEST, _LARGEST)
    away[np.abs(away) <= CONSTANT * np.abs(y)] = 0.0  # the mean of copies is rounded
    repeats = Repeats(add(often[:, None])[:, 0], add(spread + v[:, None] * away**2))
    return rows.at(first)._replace(X=X[first], y=mean, v=weight[:, 0], repeats=repeats)


def _merge_with_slopes(at_first: Points, rows: Points, location: Index, first: Index) -> Points:
    """The locations of ``rows``, as they are in the first row of each, with means of what was measured there."""
    y, v, slopes = merge_slopes(rows, location, first)
    valued, (before, apart) = rows.measured, rows.observed()
    away = np.where(valued[:, None], np.clip(rows.y - y[location], -_LARGEST, _LARGEST), 0.0)
    away[np.abs(away) <= CONSTANT * np.abs(rows.y)] = 0.0
    often = np.maximum(np.bincount(location, weights=before * valued), 1.0)
    apart = apart + rows.v[:, None] * np.square(away)
    spread = np.stack([np.bincount(location, weights=column).astype(float) for column in apart.T], axis=1)
    return at_first._replace(y=y, v=v, slopes=slopes, repeats=Repeats(often, spread))


def find_merging(rows: Points) -> Merging:
    """Which of the ``rows`` `merge_coincident` puts together."""
    used = np.flatnonzero(rows.v > 0.0)
    X = merge_constants(np.ascontiguousarray(rows.X[used]) + 0.0)
    _, first, location = np.unique(X, axis=0, return_index=True, return_inverse=True)
    location = location.ravel()
    weight = rows.v[used, None] if rows.slopes is None else rows.v[used, None] * rows.slopes.weight[used]
    total = np.stack([np.bincount(location, weights=column) for column in weight.T], axis=1)[location]
    found = Merging(np.full(len(rows.v), -1), np.zeros((len(rows.v), weight.shape[1])))
    found.first[used] = used[first[location]]
    found.share[used] = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0.0)
    return found if rows.slopes is not None else found._replace(share=found.share[:, 0])


def merge_constants(X: Array) -> Array:
    """``X`` (n, d), in which features that vary by rounding alone are constant."""
    low, high = X.min(axis=0), X.max(axis=0)
    constant = 0.5 * high - 0.5 * low <= CONSTANT * np.maximum(np.abs(low), np.abs(high))
    X[:, constant] = X[0, constant]
    return X


def deviation_of(y: Array) -> Array:
    """Standard deviation of each output, (t,); for a constant output its absolute value, or one if that is zero."""
    size = np.abs(y).max(axis=0)
    unit = np.where(size > 0.0, size, 1.0)
    scale = unit * (y / unit).std(axis=0)  # so that no square overflows or vanishes
    return np.where(scale > CONSTANT * unit, scale, unit)


def random_sample(m: int, size: int) -> Index:
    """At most ``size`` indices below m, sorted, always the same ones."""
    return np.arange(m) if m <= size else np.sort(np.random.default_rng(0).permutation(m)[:size])
