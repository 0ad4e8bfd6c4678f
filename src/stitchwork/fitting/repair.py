"""Repair a cover after points were added, changed or removed: balls hold their h nearest points again, every point is covered.

A new point affects the balls that contain it, a removed point the balls that held it; all others stay as they are. Only a
neighbourhood of the change is examined, so the cost depends on the change and not on the data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.points import gather
from ..model.lookup import Balls
from .cover import Cover, greedy_cover, put_first

_ROUNDING = 1.0 + 1e-9  # distances are computed in more than one way


class Change(NamedTuple):
    """What happened to points: indices of those that are ``new`` and of those whose response or weight is ``altered``; whether any
    are ``gone``.
    """

    new: Index
    altered: Index
    gone: bool

    @property
    def nothing(self) -> bool:
        """Whether all is as it was."""
        return not (len(self.new) or len(self.altered) or self.gone)


class Repaired(NamedTuple):
    """A cover: balls that were there before, in their order, then new ones.

    Attributes
    ----------
    former : (m,) former index of each ball; of a new one, that of the nearest former ball
    fitted : balls to be refitted, since their points or responses have changed
    """

    members: Index
    centers: Array
    radii: Array
    former: Index
    fitted: Index


def repair_cover(X: Array, cover: Cover, overlap: float, change: Change, whole: bool) -> Repaired:
    """Repair balls over the points ``X`` (n, d), all of them (``whole``) or a sample.

    Parameters
    ----------
    cover : the balls as they were, with -1 for members that are gone
    overlap : as in `greedy_cover`
    """
    members, centers, radii, h = cover.members, cover.centers, cover.radii, cover.members.shape[1]
    dead, holed, again = _find_touched(X, cover, change)
    concerned = np.zeros(len(X) + 1, dtype=bool)  # the last stands for those that are gone, -1
    concerned[members[dead | again]] = concerned[change.new] = True
    affected = np.flatnonzero(concerned[:-1])
    anew = np.flatnonzero(again)
    asked = np.concatenate([X[affected], centers[anew]])
    around = _bound_near(centers, radii, ~(dead | holed), asked)
    near = find_inside(X, *around) if whole else _sampled_inside(X, cover, change.new, *around)
    balls, radii = _find_members(X, near, cover.at(anew), radii, anew)
    stay = np.flatnonzero(~dead)
    spare = _find_redundant(X, centers, radii, overlap, holed & ~dead, stay, affected)
    stay = stay[~np.isin(stay, spare)]
    open_ = affected[~_covering(X, centers, radii, overlap, stay, affected).any_by_query()]
    added = _found_balls(X, near, open_, h, overlap)
    former = _nearest_balls(added.centers, centers, stay if len(stay) else np.arange(len(centers)))
    still = np.isin(anew, stay)
    place = np.searchsorted(stay, anew[still])
    merged = np.empty((len(stay) + len(added), h), dtype=np.intp)
    merged[: len(stay)] = members if len(stay) == len(members) else members[stay]
    merged[place], merged[len(stay) :] = balls[still], added.members
    return Repaired(
        merged,
        np.concatenate([centers[stay], added.centers]),
        np.concatenate([radii[stay], added.radii]),
        np.concatenate([stay, former]),
        np.concatenate([place, len(stay) + np.arange(len(added))]),
    )


def _find_touched(X: Array, cover: Cover, change: Change) -> tuple[NDArray[np.bool_], ...]:
    """Masks of balls: the centre is gone; a member is gone; the centre stays, but points or responses have changed."""
    m = len(cover)
    dead, holed, again = np.zeros((3, m), dtype=bool)
    if change.gone:
        dead[:], holed[:] = cover.members[:, 0] < 0, (cover.members < 0).any(axis=1)
    asked = np.concatenate([change.new, change.altered])
    pairs = Balls(cover.centers, cover.radii * _ROUNDING).covering_pairs(gather(X, asked).T)
    entered = pairs.query < len(change.new)
    again[pairs.region[entered]] = True
    holding = np.unique(pairs.region[~entered])
    again[holding[np.isin(cover.members[holding], change.altered).any(axis=1)]] = True
    return dead, holed, (again | holed) & ~dead


def _bound_near(centers: Array, radii: Array, intact: NDArray[np.bool_], asked: Array) -> tuple[Array, float]:
    """Centre o and half the side of a cube with the h nearest points of every location ``asked`` (k, d).

    An ``intact`` ball, with centre c and radius r, still holds h points. With ρ the greatest distance of a location from o, the h
    nearest points of each location lie within 2 ρ + |o - c| + r of o.
    """
    if not intact.any() or not len(asked):
        return np.zeros(centers.shape[1]), np.inf
    middle = 0.5 * asked.min(axis=0) + 0.5 * asked.max(axis=0)
    away = np.linalg.norm(centers - middle, axis=1)
    nearest = np.flatnonzero(intact)[(away + radii)[intact].argmin()]
    return middle, float(2.0 * np.linalg.norm(asked - middle, axis=1).max() + away[nearest] + radii[nearest]) * _ROUNDING


def find_inside(X: Array, middle: Array, half: float) -> Index:
    """Points in a cube."""
    if half == np.inf:
        return np.arange(len(X))
    inside = np.ones(len(X), dtype=bool)
    for column, o in zip(X.T, middle, strict=True):
        inside &= np.abs(column - o) <= half
    return np.flatnonzero(inside)


def _sampled_inside(X: Array, cover: Cover, new: Index, middle: Array, half: float) -> Index:
    """Points of a sample in a cube, sorted: members of the balls that reach into it, and the new ones."""
    reaching = (np.abs(cover.centers - middle) <= half + cover.radii[:, None] * _ROUNDING).all(axis=1)
    sample = np.unique(np.concatenate([cover.members[reaching].ravel(), new]))
    sample = sample[sample >= 0]
    return sample if half == np.inf else sample[find_inside(X[sample], middle, half)]


def _find_members(X: Array, near: Index, balls: Cover, radii: Array, anew: Index) -> tuple[Index, Array]:
    """The points nearest to the centres of some ``balls``, which are those ``anew``, and the radii of all."""
    if not len(balls):
        return balls.members, radii
    distance, place = cKDTree(X[near]).query(balls.centers, k=np.arange(1, balls.members.shape[1] + 1))
    members, radii = near[place], radii.copy()
    for i in np.flatnonzero(members[:, 0] != balls.members[:, 0]):
        members[i] = put_first(members[i], balls.members[i, 0])
    radii[anew] = np.where(distance[:, -1] > 0.0, distance[:, -1], 1.0)  # one point alone has a ball of any size
    return members, radii


class _Covering(NamedTuple):
    """Pairs of an affected point, by its position of k, and a ball that covers it."""

    query: Index
    ball: Index
    k: int

    def any_by_query(self) -> NDArray[np.bool_]:
        """Whether a ball covers each point."""
        covered = np.zeros(self.k, dtype=bool)
        covered[self.query] = True
        return covered


def _covering(X: Array, centers: Array, radii: Array, overlap: float, balls: Index, points: Index) -> _Covering:
    """Which of some ``balls`` cover which of some ``points``."""
    if not len(points):
        return _Covering(points, points, 0)
    Q, reach = gather(X, points).T, radii[balls] * (_ROUNDING / (1.0 + overlap))
    low, high, at = Q.min(axis=0), Q.max(axis=0), centers[balls]
    close = np.flatnonzero(((at + reach[:, None] >= low) & (at - reach[:, None] <= high)).all(axis=1))
    pairs = Balls(gather(at, close).T, reach[close]).covering_pairs(Q)
    return _Covering(pairs.query, balls[close[pairs.region]], len(points))


def _find_redundant(
    X: Array, centers: Array, radii: Array, overlap: float, grown: NDArray[np.bool_], stay: Index, affected: Index
) -> Index:
    """Balls that a new scan would not make: an earlier ball covers their centre, and other balls cover all that they cover.

    Only balls that have ``grown``, because they lost a member, can become redundant; the newest is tried first.
    """
    if not grown.any():
        return np.empty(0, dtype=np.intp)
    covering = _covering(X, centers, radii, overlap, stay, affected)
    count = np.bincount(covering.query, minlength=covering.k)
    order = np.argsort(covering.ball, kind="stable")
    query, ball = covering.query[order], covering.ball[order]
    at = {tuple(x): i for i, x in enumerate(X[affected])}
    earliest = np.full(covering.k, len(centers))
    np.minimum.at(earliest, query, ball)
    spare = []
    for j in np.flatnonzero(grown)[::-1]:
        mine = query[np.searchsorted(ball, j) : np.searchsorted(ball, j, side="right")]
        if earliest[at[tuple(centers[j])]] < j and (count[mine] >= 2).all():
            count[mine] -= 1
            spare.append(j)
    return np.array(spare, dtype=np.intp)


def _found_balls(X: Array, near: Index, scan: Index, h: int, overlap: float) -> Cover:
    """Balls around points that none covers, in the order of the scan."""
    if not len(scan):
        return Cover(np.empty((0, h), dtype=np.intp), X[scan], np.empty(0))
    added = greedy_cover(X[near], h, overlap, np.searchsorted(near, scan))
    return replace(added, members=near[added.members])


def _nearest_balls(places: Array, centers: Array, balls: Index) -> Index:
    """The nearest of some balls to each place."""
    if not len(places):
        return np.empty(0, dtype=np.intp)
    if len(places) == 1:
        return balls[[np.square(centers[balls] - places[0]).sum(axis=1).argmin()]]
    return np.asarray(balls[cKDTree(centers[balls]).query(places)[1]])
