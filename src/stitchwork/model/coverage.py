"""How much of a prediction comes from regions with data nearby.

Distances from data are measured in gaps (see `gaps`). A stray point that widens a region does not widen its gap, so the empty space
around that point is not covered. Neither is the space beside points whose features nearly depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Array, Index
from ..local.points import Jet
from ..local.radial import Radial
from .gaps import measure_nearest
from .lookup import Balls, Pairs
from .stitch import Level, background_weight, ball_weights

NEARLY = 0.9995  # factor of regions beyond the reach of the first level
COVERED_GAPS, EMPTY_GAPS = 3.0, 10.0  # gaps: Poisson points leave 2^(-6d) of space farther than 3 from them


def coverage(levels: Sequence[Level], Q: Array, weight: Radial, w0: float) -> Array:
    """The share of the prediction that comes from the regions, times how near their points are, (q,).

    Contributions beyond the reach of the first level count a little less, so that one means that only its regions contribute.
    """
    own = [level for level in levels if level.regions is levels[0].regions]
    left, share = np.ones(len(Q)), np.zeros(len(Q))
    for level in own:
        now = left * _share_behind(level, Q, weight, w0)
        share += (1.0 if level is own[0] else NEARLY) * (left - now)
        left = now
    return np.asarray(nearness(own, Q) * share)


def nearness(own: Sequence[Level], Q: Array) -> Array:
    """How near the points of the regions of ``own`` levels are, (q,): max_j S(|q - c_j| / r_j) S(δ_j / g_j).

    δ_j is the distance of the nearest point of region j and g_j its gap. S falls smoothly from one to zero: for the first from the
    reach of the first level to that of the last (or twice the first), for the second from 3 to 10.
    """
    within, beyond, regions = own[0].reach, max(own[-1].reach, 2.0 * own[0].reach), own[0].regions
    pairs = Balls(regions.centers, beyond * regions.radii).covering_pairs(Q)
    rho = np.sqrt(np.einsum("dp,dp->p", pairs.offset, pairs.offset)) / regions.radii[pairs.region]
    inside = fall(rho, within, beyond)
    X, members = regions.models.points.X, regions.models.members
    found = np.zeros(len(Q))
    for some in _in_turn(pairs, rho, len(Q)):
        query, region = pairs.query[some], pairs.region[some]
        better = inside[some] > found[query]
        some, query, region = some[better], query[better], region[better]
        now = inside[some] * fall(measure_nearest(X, members, region, Q[query]) / regions.gaps[region], COVERED_GAPS, EMPTY_GAPS)
        found[query] = np.maximum(found[query], now)
    return found


def fall(x: Array, begin: float, end: float) -> Array:
    """One up to ``begin``, zero from ``end``, a smooth step between: t² (3 - 2t)."""
    t = np.clip((end - x) / (end - begin), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))


def _in_turn(pairs: Pairs, rho: Array, q: int) -> list[Index]:
    """The pairs of the nearest region of each query, then those of the second, …"""
    order = np.lexsort((rho, pairs.query))
    counts = np.bincount(pairs.query, minlength=q)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return [order[rank == k] for k in range(counts.max(initial=0))]


def _share_behind(level: Level, Q: Array, weight: Radial, w0: float) -> Array:
    """The share w_b / (W + w_b) of the next level in the prediction, (q,)."""
    pairs = level.balls.covering_pairs(Q)
    w = ball_weights(level, pairs, weight, 0).value[:, 0]
    W = np.bincount(pairs.query, weights=w, minlength=len(Q)).astype(float)
    w_b = background_weight(level, Jet(W), weight, w0).value
    return np.asarray(w_b / (W + w_b))
