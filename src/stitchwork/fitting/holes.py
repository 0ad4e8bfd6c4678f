"""Regions at the border of the data or of a hole.

Leave-one-out does not see what happens in a hole: a point's neighbours hide it. A kernel that fits rough data best between the
points may swing wildly where there are none. Regions that answer for empty space therefore take the calmest kernel, a
multiquadric that is nearly a linear spline, if that costs them little where there are points. On smooth data it would cost
much, and they keep their choice, which extrapolates well there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._parallel import slices
from .._types import Array
from ..local.batch import squared_distances
from ..local.points import gather
from ..local.settings import Settings
from .candidates import Candidates, Shape
from .cover import Cover
from .defaults import CALM_BANDWIDTH, CALM_COST, CALM_DIMENSION, CALM_KERNEL, EMPTY, JUDGES, NEAR, NEAR_NEIGHBOUR
from .points import random_sample
from .scores import Scorer, pool


def measure_emptiness(X: Array, cover: Cover, reach: float) -> Array:
    """How much of what each region answers for is empty, (m,): the share of mirror images of its points with no point near.

    Points within ``reach`` are mirrored at the centre, so that the images stay on a surface if the points lie on one. Near means
    within one and a half times the distance of the centre's eighth neighbour; of points scattered at random 1e-4 are not.
    """
    m, h = cover.members.shape
    share = np.zeros(m)
    for part in slices(m, 256):
        offset = gather(X, cover.members[part]) - gather(X, cover.center[part])[..., None]
        rho = np.sqrt(np.einsum("dbh,dbh->bh", offset, offset)) / cover.radii[part, None]
        inside = rho < reach
        count = max(int(inside.sum(axis=1).max()), 1)  # members are sorted by distance
        nearest = squared_distances(-offset[..., :count], offset, rough=False).min(axis=2)
        near = NEAR * rho[:, min(NEAR_NEIGHBOUR, h - 1)] * cover.radii[part]
        share[part] = ((nearest > near[:, None] ** 2) & inside[:, :count]).sum(axis=1) / np.maximum(inside.sum(axis=1), 1)
    return share


def calm_holes(scorer: Scorer, settings: Settings, ridges: Array) -> Settings:
    """The settings with the calm kernel in regions that answer for empty space, if leave-one-out allows it.

    Asked in up to three dimensions, and only where the calm kernel is a candidate.
    """
    names = [kernel.name for kernel in settings.kernels]
    if scorer.points.X.shape[1] > CALM_DIMENSION or CALM_KERNEL not in names:
        return settings
    holed = np.flatnonzero(measure_emptiness(scorer.points.X, scorer.cover, scorer.reach) > EMPTY)
    if not len(holed):
        return settings
    judges = holed[random_sample(len(holed), JUDGES)]
    calm = Shape(names.index(CALM_KERNEL), 0, CALM_BANDWIDTH)
    mine = [Shape(int(settings.kernel[j]), int(settings.degree[j]), float(settings.bandwidth[j])) for j in judges]
    shapes = tuple(dict.fromkeys((calm, *mine)))
    table = scorer.score(judges, Candidates(settings.kernels, shapes, ridges))
    at = [
        (i, shapes.index(shape), int(np.abs(ridges - settings.ridge[j]).argmin()))
        for i, (j, shape) in enumerate(zip(judges, mine, strict=True))
    ]
    present = np.array([table[place] for place in at])
    best = int(pool(table[:, 0]).argmin())
    if pool(table[:, 0])[best] > pool(present) + CALM_COST:
        return settings
    changed = {"kernel": calm.kernel, "degree": calm.degree, "bandwidth": calm.bandwidth, "ridge": ridges[best]}
    rows = {name: getattr(settings, name).copy() for name in changed}
    for name, value in changed.items():
        rows[name][holed] = value
    return replace(settings, **rows)
