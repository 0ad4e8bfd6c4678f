"""Which regions contain a query, J(q) (paper, sections 3.2 and 6).

Balls are put into classes by their radius, each with a tree of its centres. A batch of queries gets a tree of its own that is
walked along with those. In high dimension and for few balls, all distances are filtered by one matrix product. Both return what
comparing every query with every ball returns. The compiled library has a lookup of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.points import gather

# Measured: beyond this dimension a matrix product beats the trees; below it, only while there are few balls.
_TREE_DIMENSION = 5
_FEW_BALLS = 48
_FEW_PAIRS = 1 << 17  # comparisons that cost less than asking the trees, and far less than making them
_BLOCK = 1 << 22  # distances held at once


@dataclass(frozen=True)
class Pairs:
    """Pairs of a query and a region that contains it, sorted by region.

    Attributes
    ----------
    query, region : (p,)
    offset : (d, p) query less centre
    """

    query: Index
    region: Index
    offset: Array


@dataclass(frozen=True)
class Balls:
    """Balls around ``centers`` (m, d), in Fortran order, with ``radii`` (m,)."""

    centers: Array
    radii: Array

    def covering_pairs(self, Q: Array) -> Pairs:
        """Pairs with |q - c| < r for queries ``Q`` (q, d)."""
        m, (q, d) = len(self.radii), Q.shape
        if m <= _FEW_BALLS or d > _TREE_DIMENSION or q * m <= _FEW_PAIRS:
            return _filtered_pairs(Q, self.centers, self.radii)
        query, region = self._walked(Q)
        order = region.argsort()
        return _strictly_inside(Q, self.centers, self.radii, query[order], region[order])

    def _walked(self, Q: Array) -> tuple[Index, Index]:
        # Queries outside of the box around all balls need no tree, and their distances may overflow.
        low, high = self._box
        near = np.flatnonzero(((low <= Q) & (high >= Q)).all(axis=1))
        tree = cKDTree(Q[near], leafsize=32, balanced_tree=False, compact_nodes=False)
        queries, regions = [], []
        for group, centers, reach in self._classes:
            pairs = tree.sparse_distance_matrix(centers, reach, output_type="ndarray")
            queries.append(near[pairs["i"]])
            regions.append(group[pairs["j"]])
        return np.concatenate(queries), np.concatenate(regions)

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        """The box around all balls."""
        return (self.centers - self.radii[:, None]).min(axis=0), (self.centers + self.radii[:, None]).max(axis=0)

    @cached_property
    def _classes(self) -> list[tuple[Index, cKDTree, float]]:
        """Balls whose volumes lie within a factor of two, the tree of their centres, and their largest radius."""
        d = self.centers.shape[1]
        usual = np.isfinite(self.radii) & (self.radii > 0.0)
        kind = np.full(len(self.radii), np.iinfo(int).max)
        kind[usual] = np.floor(d * np.log2(self.radii[usual]))
        groups = [np.flatnonzero(kind == value) for value in np.unique(kind)]
        most = np.finfo(float).max
        return [(group, cKDTree(self.centers[group], leafsize=4), min(self.radii[group].max(), most)) for group in groups]


def _filtered_pairs(Q: Array, centers: Array, radii: Array) -> Pairs:
    """Distances by |q|² + |c|² - 2 q·c, with room for its rounding, then exactly for those that pass."""
    c2 = np.einsum("md,md->m", centers, centers)
    queries, regions = [], []
    size = max(1, _BLOCK // max(len(radii), 1))
    for start in range(0, max(len(Q), 1), size):
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
    offset, radius = gather(Q, query) - gather(centers, region), radii[region]
    # An infinite ball contains a query whose distance overflows, too.
    inside = (np.einsum("dp,dp->p", offset, offset) < radius * radius) | (radius == np.inf)
    if inside.all():
        return Pairs(query, region, offset)
    return Pairs(query[inside], region[inside], offset[:, inside])
