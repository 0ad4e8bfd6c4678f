"""Which regions contain a query, J(q) (paper, sections 3.2 and 6).

`covering_pairs` answers for a batch of queries: a tree over the *queries* is probed with every ball, or, in high dimension and for
few balls, all distances are filtered by one matrix product. `RadiusLevels` answers for few queries against many regions: balls are
grouped by radius within a factor of two, each group is one tree of centres. All of them return what comparing every
query with every ball returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Measured: beyond this dimension a matrix product beats the tree; below it, only while there are few balls.
_TREE_DIMENSION = 5
_FEW_BALLS = 48
_BLOCK = 1 << 22  # distances held at once


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query and a region that contains it, sorted by region.

    Attributes
    ----------
    query, region : (p,)
    """

    query: Index
    region: Index

    def groups(self) -> list[tuple[int, slice]]:
        """Each region that has a query, with its slice of the pairs."""
        if not len(self.region):
            return []
        start = np.flatnonzero(np.diff(self.region, prepend=-1))
        stop = np.append(start[1:], len(self.region))
        return [(int(self.region[a]), slice(int(a), int(b))) for a, b in zip(start, stop, strict=True)]


def covering_pairs(Q: Array, centers: Array, radii: Array) -> Pairs:
    """Pairs with |q - c| < r for queries ``Q`` (q, d) against balls ``centers`` (m, d), ``radii`` (m,)."""
    if Q.shape[1] > _TREE_DIMENSION or len(radii) <= _FEW_BALLS:
        return _filtered_pairs(Q, centers, radii)
    near = _in_box(Q, *_box(centers, radii))
    finite = np.minimum(radii, np.finfo(float).max)
    found = cKDTree(Q[near], balanced_tree=False, compact_nodes=False).query_ball_point(centers, finite, return_sorted=False)
    counts = np.fromiter(map(len, found), dtype=np.intp, count=len(found))
    query = near[np.fromiter(chain.from_iterable(found), dtype=np.intp, count=counts.sum())]
    return _strictly_inside(Q, centers, radii, query, np.repeat(np.arange(len(radii)), counts))


class RadiusLevels:
    """An index over balls for single queries: trees of centres, the radii in each within a factor of two."""

    def __init__(self, centers: Array, radii: Array):
        self.centers, self.radii, self.box = centers, radii, _box(centers, radii)
        level = np.full(len(radii), np.iinfo(int).max)
        usual = np.isfinite(radii) & (radii > 0.0)
        level[usual] = np.floor(np.log2(radii[usual]))
        groups = [np.flatnonzero(level == value) for value in np.unique(level)]
        self.levels = [(group, cKDTree(centers[group]), radii[group].max()) for group in groups]

    def covering_pairs(self, Q: Array) -> Pairs:
        """The same as `covering_pairs` of all queries ``Q`` (q, d)."""
        regions, queries = [], []
        near = _in_box(Q, *self.box)
        for group, tree, reach in self.levels:
            for q, row in zip(near, tree.query_ball_point(Q[near], min(reach, np.finfo(float).max)), strict=True):
                regions.append(group[row])
                queries.append(np.full(len(row), q))
        if not regions:
            return Pairs(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))
        region = np.concatenate(regions).astype(np.intp, copy=False)
        query = np.concatenate(queries).astype(np.intp, copy=False)
        order = np.lexsort((query, region))
        return _strictly_inside(Q, self.centers, self.radii, query[order], region[order])


def _box(centers: Array, radii: Array) -> tuple[Array, Array]:
    """The box around all balls."""
    return (centers - radii[:, None]).min(axis=0), (centers + radii[:, None]).max(axis=0)


def _in_box(Q: Array, low: Array, high: Array) -> Index:
    """Queries in the box: trees need not bother with the others, whose distances may overflow."""
    return np.flatnonzero(((low <= Q) & (high >= Q)).all(axis=1))


def _filtered_pairs(Q: Array, centers: Array, radii: Array) -> Pairs:
    """Distances by |q|² + |c|² - 2 q·c, with room for its rounding, then exactly for those that pass."""
    c2 = np.einsum("md,md->m", centers, centers)
    queries, regions = [], []
    size = max(1, _BLOCK // max(len(radii), 1))
    for start in range(0, len(Q), size):
        block = Q[start : start + size]
        q2 = np.einsum("qd,qd->q", block, block)
        scale = c2[:, None] + q2
        excess = scale - 2.0 * (centers @ block.T)
        excess -= (radii * radii)[:, None]
        # Not `excess <= …`: an overflowed distance is decided by the exact comparison.
        region, query = np.nonzero(~(excess > 1e-13 * scale))
        queries.append(query + start)
        regions.append(region)
    query, region = np.concatenate(queries), np.concatenate(regions)
    if len(queries) > 1:
        order = np.argsort(region, kind="stable")
        query, region = query[order], region[order]
    return _strictly_inside(Q, centers, radii, query, region)


def _strictly_inside(Q: Array, centers: Array, radii: Array, query: Index, region: Index) -> Pairs:
    offset = Q[query] - centers[region]
    inside = np.einsum("pd,pd->p", offset, offset) < radii[region] ** 2
    inside |= np.isinf(radii[region])  # an infinite ball contains a query whose distance overflows, too
    if inside.all():
        return Pairs(query, region)
    return Pairs(query[inside], region[inside])
