"""Regions at the border of the data or of a hole.

Leave-one-out does not see what happens in a hole: a point's neighbours hide it. A kernel that fits rough data best between the
points may swing wildly where there are none. Regions that answer for empty space therefore take the calmest kernel, a
multiquadric that is nearly a linear spline, if that costs them little where there are points. On smooth data it would cost
much, and they keep their choice, which extrapolates well there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ._blocks import Settings, squared_distances
from ._cover import Cover
from ._local import gather
from ._parallel import slices
from ._select import Grid, Scorer, Shape, overall, spread_sample

Array = NDArray[np.float64]

_CALM_KERNEL, _CALM_BANDWIDTH = "multiquadric", 0.01
_LITTLE = 0.3  # what calmness may cost in log squared error: 16 per cent of the error
_EMPTY = 0.02  # share of empty space that makes a region answer for a hole
_JUDGES = 64


def empty_share(X: Array, cover: Cover, reach: float) -> Array:
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
        near = 1.5 * rho[:, min(8, h - 1)] * cover.radii[part]
        share[part] = ((nearest > near[:, None] ** 2) & inside[:, :count]).sum(axis=1) / np.maximum(inside.sum(axis=1), 1)
    return share


def calm_at_holes(scorer: Scorer, settings: Settings, ridges: Array) -> Settings:
    """The settings with the calm kernel in regions that answer for empty space, if leave-one-out allows it.

    Asked in up to three dimensions, and only where the calm kernel is a candidate.
    """
    names = [kernel.name for kernel in settings.kernels]
    if scorer.points.X.shape[1] > 3 or _CALM_KERNEL not in names:
        return settings
    holed = np.flatnonzero(empty_share(scorer.points.X, scorer.cover, scorer.reach) > _EMPTY)
    if not len(holed):
        return settings
    judges = holed[spread_sample(len(holed), _JUDGES)]
    calm = Shape(names.index(_CALM_KERNEL), 0, _CALM_BANDWIDTH)
    mine = [Shape(int(settings.kernel[j]), int(settings.degree[j]), float(settings.bandwidth[j])) for j in judges]
    shapes = tuple(dict.fromkeys((calm, *mine)))
    table = scorer.scores(judges, Grid(settings.kernels, shapes, ridges))
    at = [
        (i, shapes.index(shape), int(np.abs(ridges - settings.ridge[j]).argmin()))
        for i, (j, shape) in enumerate(zip(judges, mine, strict=True))
    ]
    present = np.array([table[place] for place in at])
    best = int(overall(table[:, 0]).argmin())
    if overall(table[:, 0])[best] > overall(present) + _LITTLE:
        return settings
    changed = {"kernel": calm.kernel, "degree": calm.degree, "bandwidth": calm.bandwidth, "ridge": ridges[best]}
    rows = {name: getattr(settings, name).copy() for name in changed}
    for name, value in changed.items():
        rows[name][holed] = value
    return replace(settings, **rows)
