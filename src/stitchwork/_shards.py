"""A stitched model in parts: what one box of space needs to be covered, fitted and asked by itself.

A box covers its own points, but the members of its regions are the h nearest of *all* points: those beyond its faces are borrowed,
found by balls that provably contain them. Regions that reach into a box from outside are copied into it after the fit, so that
a box answers every query inside of it, and neighbouring boxes agree at their common face.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ._assembly import Assembly, make_scorer, scored_sample, settle, with_response_ridge
from ._background import WIDER
from ._blocks import BlockModels, Settings, fit_blocks
from ._cover import Cover, greedy_cover
from ._local import Points
from ._loo import stitched_loo_residuals
from ._lookup import Balls
from ._metric import Space
from ._plan import Plan
from ._radial import Radial
from ._select import Grid, overall_sum, spread_sample
from ._stitch import Level
from ._validation import distinct_points

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Cell = tuple[Array, Array]

_LEAF = 8  # neighbours that ask for what they need together
_BOX_BITS = 40  # an id is the number of the box and, in this many bits, the position in it


class Loan(NamedTuple):
    """Points with their ids."""

    points: Points
    ids: Index


class Box(NamedTuple):
    """The points of a box, then those that it borrowed, and the cover of its own."""

    loan: Loan
    own: int
    cover: Cover


class Scores(NamedTuple):
    """Leave-one-out scores (r, shapes, ridges) of some regions of a box."""

    scored: Index
    table: Array


@dataclass(frozen=True)
class Shard:
    """Fitted regions of a box over ``points`` with ``ids``; those copied from other boxes come last.

    ``own_points`` and ``own_regions`` count what belongs to the box.
    """

    points: Points
    ids: Index
    own_points: int
    cover: Cover
    own_regions: int
    models: BlockModels

    def levels(self, reach: float, hierarchy: bool) -> list[Level]:
        """The regions as levels, to be followed by those of the coarse model."""
        centers = np.asfortranarray(self.points.X[self.cover.center])
        reaches = (reach, WIDER) if hierarchy else (reach,)
        return [Level(centers, factor * self.cover.radii, self.models) for factor in reaches]

    def restricted(self, regions: Index) -> Shard:
        """Some regions with their points; all of the box's own points stay if all of its own regions do."""
        used, cover = compact(self.cover, regions)
        points, m = self.points.at(used), self.models
        models = BlockModels(
            X=points.X,
            members=cover.members,
            settings=m.settings.at(regions),
            **{name: getattr(m, name)[regions] for name in ("origin", "scale", "sigma", "alpha", "lam")},
        )
        own_points, own_regions = int((used < self.own_points).sum()), int((regions < self.own_regions).sum())
        return Shard(points, self.ids[used], own_points, cover, own_regions, models)

    def own(self) -> Shard:
        """The box's own regions."""
        return self.restricted(np.arange(self.own_regions))


def compact(cover: Cover, regions: Index) -> tuple[Index, Cover]:
    """The points that some regions use, sorted, and their cover over these alone."""
    used, members = np.unique(cover.members[regions], return_inverse=True)
    members = members.reshape(len(regions), cover.members.shape[1])
    return used, Cover(members[:, 0], cover.radii[regions], members)


def joined_points(*parts: Points) -> Points:
    """Points of all parts, one after the other."""
    X, y, v, row = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Points(np.asfortranarray(X), y, v, row)


def joined(shards: Sequence[Shard]) -> Shard:
    """One shard of all regions; points that several know are kept once, in the order of their first appearance."""
    ids = np.concatenate([shard.ids for shard in shards])
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    offset = np.cumsum([0, *(len(shard.ids) for shard in shards)])
    members = [rank[place[start + shard.cover.members]] for start, shard in zip(offset, shards, strict=False)]
    points = joined_points(*(shard.points for shard in shards)).at(first[order])
    all_members = np.concatenate(members)
    cover = Cover(all_members[:, 0], np.concatenate([shard.cover.radii for shard in shards]), all_members)
    models = [shard.models for shard in shards]
    settings = [m.settings for m in models]
    widest = max(m.lam.shape[1] for m in models)

    def all_of(name: str, parts: Sequence[object]) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    stacked = {name: all_of(name, settings) for name in ("kernel", "bandwidth", "ridge", "degree", "tolerance")}
    fitted = BlockModels(
        X=points.X,
        members=all_members,
        settings=Settings(settings[0].kernels, **stacked),
        lam=np.concatenate([np.pad(m.lam, ((0, 0), (0, widest - m.lam.shape[1]), (0, 0))) for m in models]),
        **{name: all_of(name, models) for name in ("origin", "scale", "sigma", "alpha")},
    )
    return Shard(points, ids[first[order]], shards[0].own_points, cover, shards[0].own_regions, fitted)


def own_points(X: Array, y: Array, v: Array, row: Index, space: Space) -> Points:
    """The points of a box from rows of the data, in the space of the regions; their order depends on nothing but the rows."""
    order = np.argsort(row)
    points = distinct_points(X[order], y[order], v[order])
    return points._replace(X=space.coordinates(points.X), row=row[order][points.row]).neighbourly()


def needs(points: Points, h: int, cell: Cell) -> Balls:
    """Balls, among those that leave the ``cell``, that contain the h nearest points of every point of a box.

    Around the mean c of a few neighbours, a leaf of a tree, lie h points of the box within ρ. So the h nearest points of one of
    them, at x, lie within ρ + |x - c| of x, and within ρ + 2 |x - c| of c. A leaf of h points itself is such a ρ: leaves far from
    the faces of the cell are known by that.
    """
    tree = cKDTree(points.X, leafsize=2 * h)
    center, spread, members = leaves(tree)
    poor = np.array([len(part) < h for part in members])  # equal coordinates make uneven leaves
    near = np.concatenate([members[i] for i in np.flatnonzero(_beyond(center, 3.0 * spread, cell) | poor)] or [members[0][:0]])
    if not len(near):
        return Balls(center[:0], spread[:0])
    center, spread, _ = leaves(cKDTree(points.X[near], leafsize=_LEAF))
    radius = (tree.query(center, k=[h])[0][:, 0] + 2.0 * spread) * (1.0 + 1e-9)
    kept = _beyond(center, radius, cell)
    return Balls(np.asfortranarray(center[kept]), radius[kept])


def _beyond(center: Array, radius: Array, cell: Cell) -> NDArray[np.bool_]:
    return np.asarray(((center - radius[:, None] < cell[0]) | (center + radius[:, None] > cell[1])).any(axis=1))


def leaves(tree: cKDTree) -> tuple[Array, Array, list[Index]]:
    """Mean, greatest distance from it, and indices of the points in every leaf of a tree."""
    starts = leaf_starts(tree)
    X, count = tree.data[tree.indices], np.diff(starts, append=tree.n)
    center = np.add.reduceat(X, starts, axis=0) / count[:, None]
    spread = np.linalg.norm(X - np.repeat(center, count, axis=0), axis=1)
    return center, np.maximum.reduceat(spread, starts), np.split(tree.indices, starts[1:])


def leaf_starts(tree: cKDTree) -> Index:
    """Where the leaves of a tree start among its sorted points."""
    starts, nodes = [], [tree.tree]
    while nodes:
        node = nodes.pop()
        if node.split_dim < 0:
            starts.append(node.start_idx)
        else:
            nodes += [node.lesser, node.greater]
    return np.sort(np.array(starts, dtype=np.intp))


def extent(balls: Balls) -> Cell:
    """The box around all balls, empty if there are none."""
    if not len(balls.radii):
        d = balls.centers.shape[1]
        return np.full(d, np.inf), np.full(d, -np.inf)
    return (balls.centers - balls.radii[:, None]).min(axis=0), (balls.centers + balls.radii[:, None]).max(axis=0)


def meet(a: Cell, b: Cell) -> bool:
    """Whether two boxes have a point in common."""
    return bool((a[0] <= b[1]).all() and (b[0] <= a[1]).all())


def lend(points: Points, box: int, wanted: Balls) -> Loan:
    """The points of ``box`` inside of the balls that another one needs."""
    if not len(wanted.radii):
        found = np.empty(0, dtype=np.intp)
    else:
        found = np.unique(wanted.covering_pairs(points.X).query)
    return Loan(points.at(found), (box << _BOX_BITS) + found)


def open_box(points: Points, box: int, plan: Plan, *loans: Loan) -> Box:
    """Cover the points of a box by balls of the h nearest of all points."""
    own = Loan(points, (box << _BOX_BITS) + np.arange(len(points.X)))
    together = joined_points(own.points, *(loan.points for loan in loans))
    ids = np.concatenate([own.ids, *(loan.ids for loan in loans)])
    cover = greedy_cover(together.X, plan.h, plan.overlap or 0.0, plan.scan(points.row))
    return Box(Loan(together, ids), len(points.X), cover)


def excerpt(box: Box, size: int) -> tuple[Points, Cover]:
    """Some regions of a box with their points, to search the grid on."""
    used, cover = compact(box.cover, spread_sample(len(box.cover), size))
    return box.loan.points.at(used), cover


def joined_excerpts(*parts: tuple[Points, Cover]) -> tuple[Points, Cover]:
    """Regions of several boxes as if of one; points that several know are repeated, which no region notices."""
    offset = np.cumsum([0, *(len(points.X) for points, _ in parts)])
    members = np.concatenate([start + cover.members for start, (_, cover) in zip(offset, parts, strict=False)])
    radii = np.concatenate([cover.radii for _, cover in parts])
    return joined_points(*(points for points, _ in parts)), Cover(members[:, 0], radii, members)


def score_box(box: Box, grid: Grid, plan: Plan, scale: Array) -> Scores:
    """Score some of the regions."""
    scored = scored_sample(box.cover)
    return Scores(scored, make_scorer(box.loan.points, box.cover, plan, scale).scores(scored, grid))


def tally(scores: Scores) -> tuple[Array, int]:
    """What the common choice of all boxes needs to know of one."""
    return overall_sum(scores.table.reshape(len(scores.scored), -1)), len(scores.scored)


def fit_box(box: Box, scores: Scores | None, grid: Grid, common: int, plan: Plan, scale: Array) -> Shard:
    """Choose the settings of every region, from its scores if there are any, and fit it."""
    points = box.loan.points
    if scores is None:
        settings = grid.settings(np.full(len(box.cover), common), plan.tolerance)
    else:
        settings = settle(make_scorer(points, box.cover, plan, scale), grid, *scores, plan, common)
    if plan.response_ridge:
        settings = with_response_ridge(points, box.cover, settings)
    models = fit_blocks(points, box.cover, settings)
    return Shard(points, box.loan.ids, box.own, box.cover, len(box.cover), models)


def wide_balls(points: Points, cover: Cover, hierarchy: bool) -> Balls:
    """All that the regions of a cover can ever speak of."""
    return Balls(points.X[cover.center], (WIDER if hierarchy else 1.0) * cover.radii)


def offer(shard: Shard, cell: Cell, hierarchy: bool) -> Shard | None:
    """Regions that reach into another ``cell``."""
    balls = wide_balls(shard.points, shard.cover, hierarchy)
    beyond = balls.centers - np.clip(balls.centers, *cell)
    regions = np.flatnonzero((beyond * beyond).sum(axis=1) < balls.radii**2)
    return shard.restricted(regions) if len(regions) else None


def complete(shard: Shard, *offers: Shard | None) -> Shard:
    """A shard with the regions that reach into it from elsewhere."""
    own = shard.own()
    # The box's own points come first, in their order: `restricted` sorts by position, and they precede the borrowed ones.
    return joined([own, *(part for part in offers if part is not None)])


def loo_sums(shard: Shard, weight: Radial, reach: float) -> tuple[float, float]:
    """Weighted sum of squared leave-one-out residuals at the box's own points, and their weight."""
    settings = shard.models.settings
    residuals = stitched_loo_residuals(shard.points, shard.cover, settings, weight, reach)[: shard.own_points]
    v = shard.points.v[: shard.own_points]
    return float((v * (residuals**2).mean(axis=1)).sum()), float(v.sum())


def merged(shards: Sequence[Shard], coarse: Assembly, reach: float, hierarchy: bool) -> tuple[Points, Assembly]:
    """All shards and the coarse model as one model."""
    whole = joined([shard.own() for shard in shards])
    levels = [*whole.levels(reach, hierarchy), *coarse.levels[1:]]
    return whole.points, replace(coarse, levels=levels, cover=whole.cover, settings=whole.models.settings, scores=None)
