"""Regions at the border of the data or of a hole.

Leave-one-out does not see what is said in a hole: a point's neighbours hide it. A kernel that fits rough data best between the
points may swing wildly where there are none. Regions that answer for empty space are therefore asked a second question: how well do
they foretell a whole side of their own points, left out together? They take the calmest shape unless it clearly foretells less than
what was chosen, or else one that clearly foretells more, if that costs little between the points, at the ridge that serves it best
there: noise shows between points.
An island of points in a hole answers for the hole alone; it takes the calmest shape unasked, if that costs little.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._parallel import slices
from .._types import Array, Index
from ..local.batch import batch_size, squared_distances
from ..local.groups import find_together
from ..local.points import gather
from ..local.settings import Settings
from .candidates import Candidates, Shape
from .cover import Cover
from .defaults import (
    CALM_COST,
    CALM_SHAPES,
    CLEARLY,
    EMPTY,
    FIELD_DIMENSION,
    ISLAND,
    JUDGES,
    LEAST_JUDGES,
    NEAR,
    NEAR_NEIGHBOUR,
    NOTICEABLE,
)
from .points import random_sample
from .scores import Scorer, pool


def measure_emptiness(X: Array, cover: Cover) -> Array:
    """How much of what each region may answer for is empty, (m,): the share of mirror images of its points with no point near.

    Points are mirrored at the centre, so that the images stay on a surface if the points lie on one. Near means within one and a
    half times the distance of the centre's eighth neighbour; of points scattered at random 1e-4 are not.
    """
    share = np.zeros(len(cover))
    eighth = min(NEAR_NEIGHBOUR, cover.members.shape[1] - 1)  # members are sorted by distance
    for part in slices(len(cover), 256):
        offset = gather(X, cover.members[part]) - gather(X, cover.center[part])[..., None]
        near = NEAR**2 * np.einsum("db,db->b", offset[:, :, eighth], offset[:, :, eighth])
        nearest = squared_distances(-offset, offset, rough=False).min(axis=2)
        share[part] = (nearest > near[:, None]).mean(axis=1)
    return share


def find_islands(X: Array, cover: Cover) -> Index:
    """Regions of which most is empty: some points around the centre, and others far from them, as on an island in a hole.

    The radius is more than twice the usual, and the centre's eighth neighbour nearer than half of what is usual, in radii.
    """
    eighth = min(NEAR_NEIGHBOUR, cover.members.shape[1] - 1)
    near = np.linalg.norm(X[cover.members[:, eighth]] - X[cover.center], axis=1) / cover.radii
    return np.flatnonzero((near < ISLAND * np.median(near)) & (cover.radii > np.median(cover.radii) / ISLAND))


def calm_holes(scorer: Scorer, settings: Settings, ridges: Array) -> Settings:
    """The settings with a shape that foretells more in regions that answer for empty space, if leave-one-out allows it.

    Asked in up to three dimensions, and only where the calm kernel is a candidate.
    """
    calm = find_calm(settings)
    if scorer.points.X.shape[1] > FIELD_DIMENSION or not calm:
        return settings
    holed = np.flatnonzero(measure_emptiness(scorer.points.X, scorer.cover) > EMPTY)
    if len(holed) < LEAST_JUDGES:
        return settings
    judges = holed[random_sample(len(holed), JUDGES)]
    mine = [Shape(int(settings.kernel[j]), int(settings.degree[j]), float(settings.bandwidth[j])) for j in judges]
    candidates = Candidates(settings.kernels, tuple(dict.fromkeys((*mine, *calm))), ridges)
    present = (
        np.arange(len(judges)),
        np.array([candidates.shapes.index(shape) for shape in mine]),
        np.abs(np.log(ridges[None, :] / settings.ridge[judges, None])).argmin(axis=1),
    )
    between, freedom = scorer.judge(judges, candidates)
    ridge = pool(between).argmin(axis=1)  # of each shape
    beyond = scorer.score_caps(judges, candidates, ridge)
    needed = freedom[present[1:]].mean()
    cheap = pool(between).min(axis=1) <= pool(between[present]) + CALM_COST * needed
    foretold = np.where(cheap, pool(beyond), np.inf)
    best, calmest = int(foretold.argmin()), candidates.shapes.index(calm[0])
    D = beyond - beyond[present[:2]][:, None]
    clearly = CLEARLY * D.std(axis=0) / np.sqrt(len(D))
    if cheap[calmest] and D[:, calmest].mean() < clearly[calmest]:
        settings = take_shape(settings, holed, calm[0], ridges[ridge[calmest]])
    elif foretold[best] < pool(beyond[present[:2]]) - NOTICEABLE and D[:, best].mean() < -clearly[best]:
        settings = take_shape(settings, holed, candidates.shapes[best], ridges[ridge[best]])
    if cheap[calmest]:
        settings = take_shape(settings, find_islands(scorer.points.X, scorer.cover), calm[0], ridges[ridge[calmest]])
    return settings


def calm_lonely(scorer: Scorer, settings: Settings, ridges: Array) -> Settings:
    """The settings with a calm shape in regions that hold one group and nothing to judge it by, as on a track far from others.

    Between the points of a track anything may fit to many digits that is wild beside it.
    """
    calm, members = find_calm(settings), scorer.cover.members
    if scorer.points.group is None or not calm:
        return settings
    parts = (find_together(scorer.points, members[part]) for part in slices(len(members), batch_size(members.shape[1])))
    lonely = np.flatnonzero(np.concatenate([~together.judged.any(axis=1) for together in parts if together is not None]))
    if not len(lonely):
        return settings
    scores = pool(scorer.score(lonely[random_sample(len(lonely), JUDGES)], Candidates(settings.kernels, calm, ridges)))
    shape, ridge = np.unravel_index(scores.argmin(), scores.shape)
    return take_shape(settings, lonely, calm[shape], ridges[ridge])


def find_calm(settings: Settings) -> tuple[Shape, ...]:
    """The calm shapes whose kernels are candidates."""
    names = [kernel.name for kernel in settings.kernels]
    return tuple(Shape(names.index(kernel), degree, bandwidth) for kernel, degree, bandwidth in CALM_SHAPES if kernel in names)


def take_shape(settings: Settings, regions: Index, shape: Shape, ridge: float) -> Settings:
    """The settings with one shape and ridge in some regions."""
    rows = {name: getattr(settings, name).copy() for name in ("kernel", "degree", "bandwidth", "ridge")}
    for row, value in zip(rows.values(), (*shape[:3], ridge), strict=True):
        row[regions] = value
    return replace(settings, **rows)
