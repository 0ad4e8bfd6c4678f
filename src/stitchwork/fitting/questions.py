"""Questions: the queries that a region of a field will get, and the points of the region that can imitate them.

A new row of a table is like the known rows, so leave-one-out is the right test. A field is queried anywhere: between points, in
holes, beside tracks. So queries are drawn for every region: midpoints of pairs of its points, and mirror images of its points at
the centre; both stay on a line or a plane that the points lie on. One of the region's points imitates a query: it is left out
together with all neighbours that it has and the query has not, see `scores.choose_left_out`. A query counts by the share that the
region has in the prediction there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._parallel import slices
from .._types import Array, Index
from ..local.points import gather
from ..local.radial import Radial
from ..model.lookup import Balls
from .cover import Cover

PAIRS, MIRRORED_NEAR, MIRRORED = 8, 4, 8  # queries of a region: midpoints, mirror images within reach, and of any of its points
_CHUNK = 64  # regions whose queries are compared with their points at once


class Questions(NamedTuple):
    """Queries of m regions, J each.

    Attributes
    ----------
    target : (m, J) the member that imitates the query
    shift : (m, J, d) from there to the query
    distance : (m, J) from the query to the nearest member
    share : (m, J) of the region in the answer there; zero outside of the data's box
    volume : (m,) that the region answers for
    """

    target: Index
    shift: Array
    distance: Array
    share: Array
    volume: Array

    def at(self, regions: Index | slice) -> Questions:
        """Those of some regions."""
        return Questions(
            self.target[regions], self.shift[regions], self.distance[regions], self.share[regions], self.volume[regions]
        )


def join_questions(parts: Sequence[Questions | None]) -> Questions | None:
    """Those of all parts, one after the other; None where nothing is asked."""
    found = [part for part in parts if part is not None]
    return Questions(*(np.concatenate(field) for field in zip(*found, strict=True))) if found else None


def draw_questions(
    X: Array, cover: Cover, regions: Index, reaches: Sequence[float], weight: Radial, features: int, before: Sequence[Balls] = ()
) -> Questions:
    """Queries of some ``regions`` of a cover of ``X`` (n, d), whose levels have these ``reaches``.

    ``before`` are the balls of finer levels, which answer first. All regions use the same random pattern, applied to members sorted
    by distance, so that results are reproducible.
    """
    u = np.random.default_rng(0).random((PAIRS + MIRRORED_NEAR + MIRRORED, 2))
    h, d = cover.members.shape[1], X.shape[1]
    low, high = X.min(axis=0), X.max(axis=0)
    target = np.empty((len(regions), len(u)), dtype=np.intp)
    distance, inside = np.empty(target.shape), np.empty(target.shape, dtype=bool)
    queries, shift = np.empty((*target.shape, d)), np.empty((*target.shape, d))
    for part in slices(len(regions), _CHUNK):
        balls = cover.at(regions[part])
        far = balls.distances2(X)
        within, held = (np.maximum((far <= reach**2).sum(axis=1), min(3, h))[:, None] for reach in (min(reaches[0], 1.0), 1.0))
        first = (u[:, 0] * np.where(np.arange(len(u)) < PAIRS + MIRRORED_NEAR, within, held)).astype(np.intp)
        second = (u[:PAIRS, 1] * within).astype(np.intp)
        second = np.where(second == first[:, :PAIRS], (second + 1) % within, second)
        first[:, :PAIRS], second = np.minimum(first[:, :PAIRS], second), np.maximum(first[:, :PAIRS], second)  # the inner one
        Z = np.moveaxis(gather(X, balls.members), 0, 2)  # (B, h, d)
        rows = np.arange(len(Z))[:, None]
        q = 2.0 * balls.centers[:, None] - Z[rows, first]
        q[:, :PAIRS] = 0.5 * (Z[rows, first[:, :PAIRS]] + Z[rows, second])
        apart = np.zeros((*first.shape, h))
        for k in range(d):
            apart += (q[:, :, None, k] - Z[:, None, :, k]) ** 2
        target[part], distance[part], queries[part], shift[part] = first, np.sqrt(apart.min(axis=2)), q, q - Z[rows, first]
        inside[part] = ((q >= low) & (q <= high)).all(axis=2)
    share = np.where(inside, _shares(X, cover, regions, queries, reaches, weight, before), 0.0)
    size = (cover.radii[regions] / np.median(cover.radii)) ** features
    return Questions(target, shift, distance, share, share.mean(axis=1) * size)


def _shares(
    X: Array, cover: Cover, regions: Index, queries: Array, reaches: Sequence[float], weight: Radial, before: Sequence[Balls]
) -> Array:
    """The share (r, J) of each region in the answer at its own queries, on the first of its levels where any region answers."""
    Q = np.asfortranarray(queries.reshape(-1, X.shape[1]))
    own = np.repeat(regions, queries.shape[1])
    share, left = np.zeros(len(Q)), np.arange(len(Q))
    for balls in before:
        left = np.setdiff1d(left, left[balls.covering_pairs(Q[left]).query], assume_unique=False)
    centers = np.asfortranarray(cover.centers)
    for reach in reaches:
        radii = reach * cover.radii
        pairs = Balls(centers, radii).covering_pairs(np.asfortranarray(Q[left]))
        Z = pairs.offset / radii[pairs.region]
        (w,) = weight(np.einsum("dp,dp->p", Z, Z))
        W = np.bincount(pairs.query, weights=w, minlength=len(left))
        mine = pairs.region == own[left[pairs.query]]
        answered = pairs.query[mine]
        share[left[answered]] = w[mine] / np.maximum(W[answered], np.finfo(float).tiny)
        left = left[W == 0.0]
        if not len(left):
            break
    return share.reshape(queries.shape[:2])
