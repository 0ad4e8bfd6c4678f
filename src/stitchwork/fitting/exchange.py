"""What boxes of space exchange: points before they are covered, regions after they are fitted.

Points that a box needs beyond its faces are found by balls that provably contain them. Regions that reach into a box from outside
are copied into it after the fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.points import Points
from ..model.lookup import Balls
from ..model.parts import Part, join_parts
from ..model.space import Space
from .box import BOX_BITS, Box, Loan
from .points import merge_coincident

Cell = tuple[Array, Array]

_LEAF = 8  # neighbours whose needs are found together


def own_points(rows: Points, space: Space) -> Points:
    """The points of a box from rows of the data, in the space of the regions; their order depends on nothing but the rows."""
    points = merge_coincident(rows.at(np.argsort(rows.row)))
    return space.place(points)._replace(given=points.X).sort_in_space()


def find_needs(points: Points, h: int, cell: Cell) -> Balls:
    """Balls, among those that leave the ``cell``, that contain the h nearest points of every point of a box.

    Let c be the mean of a few neighbours, a leaf of a tree, and let h points of the box lie within ρ of c. The h nearest points of
    a neighbour x lie within ρ + |x - c| of x, and within ρ + 2 |x - c| of c. A leaf of h points or more bounds ρ by its own
    spread: this excludes leaves far from the faces of the cell.
    """
    tree = cKDTree(points.X, leafsize=2 * h)
    center, spread, members = find_leaves(tree)
    poor = np.array([len(part) < h for part in members])  # equal coordinates make uneven leaves
    near = np.concatenate([members[i] for i in np.flatnonzero(_leaves_cell(center, 3.0 * spread, cell) | poor)] or [members[0][:0]])
    if not len(near):
        return Balls(center[:0], spread[:0])
    center, spread, _ = find_leaves(cKDTree(points.X[near], leafsize=_LEAF))
    radius = (tree.query(center, k=[h])[0][:, 0] + 2.0 * spread) * (1.0 + 1e-9)
    kept = _leaves_cell(center, radius, cell)
    return Balls(np.asfortranarray(center[kept]), radius[kept])


def _leaves_cell(center: Array, radius: Array, cell: Cell) -> NDArray[np.bool_]:
    return np.asarray(((center - radius[:, None] < cell[0]) | (center + radius[:, None] > cell[1])).any(axis=1))


def find_leaves(tree: cKDTree) -> tuple[Array, Array, list[Index]]:
    """Mean, greatest distance from it, and indices of the points in every leaf of a tree."""
    found, nodes = [], [tree.tree]
    while nodes:
        node = nodes.pop()
        if node.split_dim < 0:
            found.append(node.start_idx)
        else:
            nodes += [node.lesser, node.greater]
    starts = np.sort(np.array(found, dtype=np.intp))
    X, count = tree.data[tree.indices], np.diff(starts, append=tree.n)
    center = np.add.reduceat(X, starts, axis=0) / count[:, None]
    spread = np.linalg.norm(X - np.repeat(center, count, axis=0), axis=1)
    return center, np.maximum.reduceat(spread, starts), np.split(tree.indices, starts[1:])


def lend_points(points: Points, box: int, wanted: Balls) -> Loan:
    """The points of ``box`` inside of the balls that another one needs."""
    found = np.unique(wanted.covering_pairs(points.X).query) if len(wanted.radii) else np.empty(0, dtype=np.intp)
    return Loan(points.at(found), (box << BOX_BITS) + found)


def offer_regions(part: Part, cell: Cell, reach: float) -> Part | None:
    """Regions that reach into another ``cell`` at this reach."""
    centers, radii = part.regions.centers, reach * part.regions.radii
    beyond = centers - np.clip(centers, *cell)
    regions = np.flatnonzero((beyond * beyond).sum(axis=1) < radii**2)
    return part.restrict(regions) if len(regions) else None


def complete_part(part: Part, *offers: Part | None) -> Part:
    """A part with the regions that reach into it from elsewhere."""
    # The box's own points come first, in their order: `restrict` sorts by position, and they precede the borrowed ones.
    return join_parts([part.restrict(np.arange(part.own_regions)), *(offer for offer in offers if offer is not None)])


def count_points(points: Points) -> tuple[int, Cell]:
    """Number of points and the cell around them."""
    if not len(points.X):
        return 0, (np.full(points.X.shape[1], np.inf), np.full(points.X.shape[1], -np.inf))
    return len(points.X), (points.X.min(axis=0), points.X.max(axis=0))


def count_usable(points: Points) -> int:
    """Number of points; zero if only slopes were measured, which determine a function up to a constant."""
    return len(points.X) if points.measured.any() else 0


def bound_balls(balls: Balls) -> Cell:
    """The cell around all balls, empty if there are none."""
    if not len(balls.radii):
        d = balls.centers.shape[1]
        return np.full(d, np.inf), np.full(d, -np.inf)
    return (balls.centers - balls.radii[:, None]).min(axis=0), (balls.centers + balls.radii[:, None]).max(axis=0)


def bound_regions(box: Box, reach: float) -> Cell:
    """The cell around the largest supports of the regions of a box."""
    return bound_balls(Balls(box.cover.centers, reach * box.cover.radii))


def near_cells(cell: Cell, cells: Sequence[Cell], without: int) -> list[int]:
    """Numbers of the ``cells`` that have a point in common with ``cell``, but for one."""
    return [i for i, (low, high) in enumerate(cells) if i != without and (cell[0] <= high).all() and (low <= cell[1]).all()]
