"""The greedy cover: balls around data points that hold exactly h points each (paper, section 3.1).

Points are scanned in order; one that no ball covers yet becomes the centre of a new ball. Neighbours are queried for batches of
candidates; candidates that are covered meanwhile are dropped, so the cover equals that of a point-by-point scan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from .._parallel import slices
from .._types import Array, Index
from ..local.batch import from_center
from ..local.radial import Radial
from .defaults import DIMENSION_POINTS, DIMENSION_SAMPLE, FLAT, MANY_REGIONS
from .points import random_sample

# With more, overlap gains nothing and costs time. Without it, two functions of 500 features, 5,000 rows, take 5.5 and 3.1 ms per
# query instead of 26 and 7.5, fits 14 CPU s instead of 24, and errors are 1.00 and 0.99 times those with overlap; with 100 and 200
# features 0.92 and 1.12 times. With 60 features, which keep the overlap, they would be 1.05 and 1.10 times as large.
_MANY_COORDINATES = 100


@dataclass(frozen=True)
class Cover:
    """Balls over points X (n, d).

    Attributes
    ----------
    members : (m, h) the points nearest to each centre, the nearest first
    centers : (m, d)
    radii : (m,) distance to the farthest member
    """

    members: Index
    centers: Array
    radii: Array

    def __len__(self) -> int:
        return len(self.radii)

    def at(self, regions: Index | slice) -> Cover:
        """Some of the balls."""
        return Cover(self.members[regions], self.centers[regions], self.radii[regions])

    def distances2(self, X: Array) -> Array:
        """Squared distances (m, h) of the members from the centres, in units of the radius."""
        return from_center(X, self.members, self.centers, self.radii)

    def split(self, size: int) -> Cover:
        """Balls of many points in parts of about ``size`` of them each, drawn at random."""
        (m, h), parts = self.members.shape, round(self.members.shape[1] / size)
        if parts < 2:
            return self
        shuffled = self.members[:, np.random.default_rng(0).permutation(h)[: h - h % parts]]
        return Cover(shuffled.reshape(m * parts, h // parts), np.repeat(self.centers, parts, axis=0), np.repeat(self.radii, parts))

    def thin(self, size: int, most: int = 1) -> Cover:
        """Parts of about ``size`` points of each ball, spread as evenly as all of them: up to ``most`` for each, ball by ball.

        The centre comes first in every part; the other points of a ball's parts are different.
        """
        (m, h), every = self.members.shape, max(self.members.shape[1] // size, 1)
        if every == 1:
            return self
        parts, each = min(every, most), (h - 1) // every
        others = [self.members[:, 1 + i :: every][:, :each] for i in range(parts)]
        members = np.stack([np.concatenate([self.members[:, :1], part], axis=1) for part in others], axis=1)
        members = members.reshape(m * parts, each + 1)
        return Cover(members, np.repeat(self.centers, parts, axis=0), np.repeat(self.radii, parts))

    def compact(self) -> tuple[Index, Cover]:
        """The points that are in use, sorted, and the same balls over these alone."""
        used, members = np.unique(self.members, return_inverse=True)
        return used, replace(self, members=members.reshape(self.members.shape))


def greedy_cover(X: Array, h: int, overlap: float = 0.0, order: Index | None = None, workers: int = 1) -> Cover:
    """Cover the points ``X`` (n, d), all distinct, by balls of ``h`` points.

    Parameters
    ----------
    overlap : a point counts as covered within radius / (1 + overlap); 0 is the paper's cover
    order : the points to cover, in the order in which they are scanned; all as stored by default
    workers : threads of the neighbour search
    """
    if h >= len(X):  # one region holds everything, so a second one would be the same
        h, overlap = len(X), 0.0
    tree = cKDTree(X)
    order = np.arange(len(X)) if order is None else order
    n = len(order)
    covered = np.zeros(len(X), dtype=bool)
    radii, members = [], []
    position, batch = 0, 1
    while position < n:
        window = np.arange(position, min(position + 8 * batch + 64, n))
        window = window[~covered[order[window]]][:batch]
        position = window[-1] + 1 if len(window) == batch else min(position + 8 * batch + 64, n)
        if not len(window):
            continue
        candidates = order[window]
        distance, neighbour = tree.query(X[candidates], k=np.arange(1, h + 1), workers=workers)
        accepted = 0
        for i, candidate in enumerate(candidates):
            if covered[candidate]:
                continue
            inside = np.searchsorted(distance[i], distance[i, -1] / (1.0 + overlap), side="right")
            covered[neighbour[i, :inside]] = True
            covered[candidate] = True
            radii.append(distance[i, -1] or 1.0)  # one point alone has a ball of any size
            members.append(put_first(neighbour[i], candidate))
            accepted += 1
        # Twice the batch while most candidates are of use, half of it where they cover each other.
        batch = min(2 * batch, 1024) if 4 * accepted >= 3 * len(candidates) else max(batch // 2, 1)
    found = np.array(members, dtype=np.intp)
    return Cover(found, X[found[:, 0]], np.array(radii))


def sum_weights(X: Array, cover: Cover, reach: float, weight: Radial) -> float:
    """The sum of the weights of all balls, with supports of ``reach`` times their radii, at their own points."""
    within = min(reach, 1.0) ** 2  # a ball has no members beyond its radius
    return float(sum(weight(cover.at(part).distances2(X) / within)[0].sum() for part in slices(len(cover), 4096)))


def put_first(members: Index, center: Index) -> Index:
    """The members with the centre first: if distances underflow, other members are at distance zero, too."""
    if members[0] == center:
        return members
    others = members[members != center]
    return np.concatenate([[center], others[: len(members) - 1]])


def plain_tree(X: Array) -> cKDTree:
    """A k-d tree for few queries: building it takes half the time."""
    return cKDTree(X, balanced_tree=False, compact_nodes=False)


def measure_overlap(X: Array, h: int) -> float:
    """Overlap that multiplies the regions of the paper's cover by about four: 1 on a surface, 0.15 in ten dimensions.

    The dimension is that of the points ``X`` (n, d), not of their space: 4 times the points are found within 4^(1/dimension) times
    the distance. With many coordinates, where every region costs much and gains nothing, there are no more than in that cover.
    """
    if X.shape[1] > _MANY_COORDINATES:
        return 0.0
    return float(np.clip(_measure_growth(X, h) - 1.0, 0.0, 1.0))


def fills_space(X: Array, h: int) -> bool:
    """Whether points ``X`` (n, d) fill the flat space that they span; points on a curved sheet do not."""
    X = X[random_sample(len(X), DIMENSION_POINTS * h)]
    growth = _measure_growth(X, h)
    dimension = np.log(MANY_REGIONS) / np.log(growth) if growth > 1.0 else np.inf
    return bool(dimension > np.linalg.matrix_rank(X - X.mean(axis=0), rtol=FLAT) - 0.5)


def _measure_growth(X: Array, h: int) -> float:
    """How much farther the h-th nearest point is than the (h / 4)-th, in the median; one where it cannot be told."""
    fewer = int(h / MANY_REGIONS)
    if fewer < 2 or len(X) <= h:
        return 1.0
    near, far = plain_tree(X).query(X[random_sample(len(X), DIMENSION_SAMPLE)], k=[fewer, h])[0].T
    usable = near > 0.0
    return float(np.median(far[usable] / near[usable])) if usable.any() else 1.0
