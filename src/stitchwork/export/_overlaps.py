"""How many balls can contain one point: the number of regions that a query of fixed shape has to look at.

Deliberately an upper bound: it is never too small, and exact only where that is cheap.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from ..model.lookup import Balls

_MOST_PAIRS = 1 << 21  # pairs of balls that are held at once, or of a box and a ball that are looked at in all
_MOST_ROUNDS = 4  # pairs to look at in all, as a multiple of those at the start, if that is more
_CENTRES_AT_ONCE = 512
_ROUNDING = 1e-12  # by which balls are enlarged where they are compared with boxes
_GOOD_ENOUGH = 8  # the search ends once the bound is within one part in this many of a number that was seen


def most_balls_at_a_point(centers: Array, radii: Array) -> int:
    """An upper bound on the number of balls ``centers`` (m, d), ``radii`` (m,) that contain one point.

    Let j be the smallest of the balls that contain a point: the others meet j and are not smaller. So one plus the largest number
    of balls that meet a ball and are not smaller is a bound. The box around each ball is then halved again and again, with the
    balls that still meet each part, and parts with no more balls than were seen at some point are dropped.
    """
    if not np.isfinite(radii).all():
        return len(radii)
    box, ball, most = _meeting_balls(centers, radii)
    if len(box) == 0:
        return most
    low, high = centers - radii[:, None], centers + radii[:, None]
    seen, left = 1, max(_MOST_PAIRS, _MOST_ROUNDS * len(box))
    while True:
        middle = 0.5 * (low + high)
        containing = _squared_gap(centers[ball], middle[box], middle[box]) < radii[ball] ** 2
        seen = max(seen, int(np.bincount(box[containing], minlength=1).max()))
        count = np.bincount(box, minlength=len(low))
        bound = max(seen, int(count.max(initial=0)))
        deep = count > seen
        left -= 2 * int(count[deep].sum())
        if bound <= seen + seen // _GOOD_ENOUGH or left < 0:
            return bound
        low, high, box, ball = _halved(low, high, box, ball, deep)
        close = _squared_gap(centers[ball], low[box], high[box]) < (1.0 + _ROUNDING) * radii[ball] ** 2
        box, ball = box[close], ball[close]


def _meeting_balls(centers: Array, radii: Array) -> tuple[Index, Index, int]:
    """Pairs of a ball and one that meets it and is not smaller, itself included, and the most that one ball has.

    No pairs where there are too many of them to go on.
    """
    balls = Balls(np.asfortranarray(centers), 2.0 * (1.0 + _ROUNDING) * radii)
    firsts, seconds, most, total = [], [], 1, 0
    for start in range(0, len(radii), _CENTRES_AT_ONCE):
        pairs = balls.covering_pairs(np.asfortranarray(centers[start : start + _CENTRES_AT_ONCE]))
        first, second = pairs.query + start, pairs.region
        reach = (1.0 + _ROUNDING) * (radii[first] + radii[second])
        meet = (np.einsum("dp,dp->p", pairs.offset, pairs.offset) < reach**2) & (radii[second] >= radii[first])
        first, second = first[meet], second[meet]
        most, total = max(most, int(np.bincount(first, minlength=1).max())), total + len(first)
        if total <= _MOST_PAIRS:
            firsts.append(first)
            seconds.append(second)
    if total > _MOST_PAIRS:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), most
    return np.concatenate(firsts), np.concatenate(seconds), most


def _squared_gap(points: Array, low: Array, high: Array) -> Array:
    """Squared distances of ``points`` (p, d) from the boxes ``low`` to ``high`` (p, d)."""
    gap = np.maximum(np.maximum(low - points, points - high), 0.0)
    return np.einsum("pd,pd->p", gap, gap)


def _halved(low: Array, high: Array, box: Index, ball: Index, kept: NDArray[np.bool_]) -> tuple[Array, Array, Index, Index]:
    """The ``kept`` boxes halved along their longest edges, lower halves first; both halves inherit the balls."""
    low, high = low[kept], high[kept]
    new = np.cumsum(kept) - 1
    box, ball = new[box[kept[box]]], ball[kept[box]]
    row, axis = np.arange(len(low)), (high - low).argmax(axis=1)
    middle = 0.5 * (low[row, axis] + high[row, axis])
    upper_low, lower_high = low.copy(), high.copy()
    upper_low[row, axis] = lower_high[row, axis] = middle
    return (
        np.concatenate([low, upper_low]),
        np.concatenate([lower_high, high]),
        np.concatenate([box, box + len(low)]),
        np.concatenate([ball, ball]),
    )
