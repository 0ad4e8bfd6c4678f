"""Regions in holes of a field: balls around places that have no point, but points on all sides.

A greedy cover draws its balls around points. At the rim of a hole such a ball has its points on one side, so that a prediction in
the hole is extrapolated from its rim. A ball around a place in the hole has the same number of points on all sides.
"""

from __future__ import annotations

from math import gamma, pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..model.lookup import Balls
from .cover import Cover
from .defaults import HOLE_STEP, MOST_PLACES, SURROUNDED


def cover_holes(X: Array, cover: Cover, overlap: float, workers: int = 1) -> Cover:
    """The ``cover`` of points ``X`` (n, d), and balls of as many points that cover the holes between them by the same rule."""
    h = cover.members.shape[1]
    places = open_places(X, cover, overlap)
    if h >= len(X) or not len(places):
        return cover
    distance, members = cKDTree(X).query(places, k=np.arange(1, h + 1), workers=workers)
    inside = is_surrounded(X, places, members)
    places, members, radii = places[inside], members[inside], distance[inside, -1]
    chosen = take_open(places, radii / (1.0 + overlap))
    found = (members[chosen], places[chosen], radii[chosen])
    return Cover(*(np.concatenate(pair) for pair in zip((cover.members, cover.centers, cover.radii), found, strict=True)))


def open_places(X: Array, cover: Cover, overlap: float) -> Array:
    """Places (k, d) of a grid along the principal axes of ``X`` (n, d) that no ball covers, the farthest from the centres first.

    The grid turns with the points. Places outside of the box of the points have none on some side, and are left out at once.
    """
    middle = X.mean(axis=0)
    _, axes = np.linalg.eigh((X - middle).T @ (X - middle))
    Z = (X - middle) @ axes
    low, high = Z.min(axis=0), Z.max(axis=0)
    step = HOLE_STEP * np.median(cover.radii)
    extent = np.sort(np.maximum((high - low) / step, 1.0))[::-1]
    step *= max(1.0, *(np.cumprod(extent) / (MOST_PLACES * len(X))) ** (1.0 / np.arange(1, len(extent) + 1)))
    counts = np.maximum(((high - low) / step).astype(int), 1)
    lines = [a + 0.5 * b + step * (np.arange(k) - 0.5 * (k - 1)) for a, b, k in zip(low, high - low, counts, strict=True)]
    places = middle + np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, X.shape[1]) @ axes.T
    places = places[((places >= X.min(axis=0)) & (places <= X.max(axis=0))).all(axis=1)]
    balls = Balls(np.asfortranarray(cover.centers), cover.radii / (1.0 + overlap))
    places = np.delete(places, balls.covering_pairs(np.asfortranarray(places)).query, axis=0)
    return places[np.argsort(-cKDTree(cover.centers).query(places)[0], kind="stable")]


def take_open(places: Array, reach: Array) -> Index:
    """Of balls around ``places`` (k, d), in their order, those whose centre none before covers within its ``reach`` (k,)."""
    waiting, chosen = np.ones(len(places), dtype=bool), []
    for i in range(len(places)):
        if waiting[i]:
            chosen.append(i)
            waiting &= np.square(places - places[i]).sum(axis=1) > reach[i] ** 2
    return np.array(chosen, dtype=np.intp)


def is_surrounded(X: Array, places: Array, members: Index) -> NDArray[np.bool_]:
    """Whether ``members`` (k, h) lie on all sides of each place: their mean direction is short.

    That of points in all directions of a half-space is Γ(d/2) / (√π Γ((d+1)/2)): 1 on a line, 2/π in the plane.
    """
    d = X.shape[1]
    offset = X[members] - places[:, None]
    size = np.linalg.norm(offset, axis=2, keepdims=True)
    mean = np.divide(offset, size, out=np.zeros_like(offset), where=size > 0.0).mean(axis=1)
    half_space = gamma(d / 2) / (sqrt(pi) * gamma((d + 1) / 2))
    return np.asarray(np.linalg.norm(mean, axis=1) < SURROUNDED * half_space)
