"""How far apart the points of regions are, and how far queries are from them.

The gap of a region is the upper quartile of the distances from places between its points to the nearest point. For tracks it is
half of the distance between tracks, not that of points on one. A few stray points do not change it. The compiled library has the
same (`measure_gaps`).
"""

from __future__ import annotations

import numpy as np

from .._types import Array, Index

PLACES = 32  # in each region
GOLDEN = 0.618034  # 1 / golden ratio: its multiples modulo one are evenly spread, so places do not favour the points of a grid
LEAST = 1e-12  # gap of points in one place, relative to the radius
_BLOCK = 1 << 22  # numbers held at once


def measure_gaps(X: Array, members: Index) -> Array:
    """Gaps (m,) of regions that hold the points ``members`` (m, h) of ``X`` (n, d).

    The k-th place lies at x_i + u_k (x_j - x_i), u_k the fractional part of k / golden ratio, j = i + h / 2 (mod h).
    """
    m, h = members.shape
    count = min(h, PLACES)
    first = np.arange(count) * h // count
    second = (first + h // 2) % h
    share = (GOLDEN * np.arange(1, count + 1) % 1.0)[:, None]
    gaps, size = np.empty(m), max(1, _BLOCK // (count * h))
    for start in range(0, m, size):
        at = X[members[start : start + size]]
        places = at[:, first] + share * (at[:, second] - at[:, first])
        gaps[start : start + size] = np.sort(_least_distance(places, at), axis=1)[:, 3 * count // 4]
    return gaps


def measure_nearest(X: Array, members: Index, region: Index, Q: Array) -> Array:
    """Distance of each of ``Q`` (p, d) from the nearest point of its ``region`` (p,)."""
    found, size = np.empty(len(Q)), max(1, _BLOCK // members.shape[1])
    for start in range(0, len(Q), size):
        part = slice(start, start + size)
        found[part] = _least_distance(Q[part, None], X[members[region[part]]])[:, 0]
    return found


def _least_distance(places: Array, X: Array) -> Array:
    """Distance of each of ``places`` (b, k, d) from the nearest of ``X`` (b, h, d), (b, k)."""
    square = np.zeros((*places.shape[:2], X.shape[1]))
    for axis in range(X.shape[2]):
        square += (places[:, :, None, axis] - X[:, None, :, axis]) ** 2
    return np.asarray(np.sqrt(square.min(axis=2)))
