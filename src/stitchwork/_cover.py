"""The greedy cover: balls around data points that hold exactly h points each (paper, section 3.1).

Points are scanned in order; one that no ball covers yet becomes the centre of a new ball. Neighbours are asked for in batches of
candidates, of which those covered meanwhile are thrown away, so the cover is the one of the point-by-point scan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Cover:
    """Balls over points X (n, d).

    Attributes
    ----------
    center : (m,) the point each ball is drawn around
    radii : (m,) distance to the farthest member
    members : (m, h) the nearest points, the centre first
    """

    center: Index
    radii: Array
    members: Index

    def __len__(self) -> int:
        return len(self.radii)


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
    centers, radii, members = [], [], []
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
            centers.append(candidate)
            radii.append(distance[i, -1] or 1.0)  # one point alone has a ball of any size
            members.append(neighbour[i])
            accepted += 1
        # Twice the batch while most candidates are of use, half of it where they cover each other.
        batch = min(2 * batch, 1024) if 4 * accepted >= 3 * len(candidates) else max(batch // 2, 1)
    return Cover(np.array(centers, dtype=np.intp), np.array(radii), np.array(members, dtype=np.intp))
