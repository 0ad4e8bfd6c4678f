"""The background: what speaks where the regions are silent (the infinite ball B_0 of the paper, section 3.1).

A hierarchy of levels, each the background of the one before: the same regions with a wider radius, since a model a little outside
of its ball beats one on thinner data; stitched models on thinner and thinner samples of the points, up to one region that holds
a sample of everything; and last a polynomial that is defined everywhere.
"""

from __future__ import annotations

import numpy as np

from .._types import Index
from ..local.blocks import BlockModels
from ..local.fit import fit_blocks
from ..local.own import RegionModels, fit_own
from ..local.points import Points, gather
from ..local.polynomial import monomials
from ..local.radial import NO_KERNEL
from ..local.settings import Settings
from ..local.system import span_range
from ..model.stitch import Level, Regions
from .choice import Choice, settle_sample
from .cover import Cover, greedy_cover
from .defaults import ALL_AROUND, THINNING, WIDER
from .plan import Plan


def thin_samples(n: int, h: int) -> list[Index]:
    """Nested samples of n points that are sorted in space, each a quarter of the one before, the last of ``h`` points.

    One point is drawn from every few neighbours, so that samples are even.
    """
    rng, sample, samples = np.random.default_rng(0), np.arange(n), []
    while len(sample) > h:
        size = max(len(sample) // THINNING, h)
        edges = np.arange(size + 1) * len(sample) // size
        sample = sample[rng.integers(edges[:-1], edges[1:])]
        samples.append(sample)
    return samples


def cover_samples(points: Points, whole: bool, plan: Plan) -> list[Cover]:
    """Covers of thinner and thinner samples, and first of the points themselves if they are not ``whole`` but a sample."""
    if plan.background != "hierarchy":
        return []
    samples = thin_samples(len(points.X), plan.h)
    covers = []
    for sample in samples if whole else [np.arange(len(points.X)), *samples]:
        # No extra overlap: these speak where there is no data, and gain nothing by it.
        cover = greedy_cover(points.X[sample], plan.h, 0.0, np.argsort(points.row[sample]), plan.threads.count)
        covers.append(Cover(sample[cover.members], cover.radii))
    return covers


def fit_background(points: Points, covers: list[Cover], choice: Choice | None, plan: Plan) -> list[Level]:
    """Levels of the covers, then the polynomial that is defined everywhere; no choice means a model of the user's own."""
    levels = []
    for cover in covers:
        settings = None if choice is None else settle_sample(points, cover, choice, plan)
        levels.append(Level(fit_regions(points, cover, settings, plan), ALL_AROUND if cover is covers[-1] else WIDER))
    degree = max(shape.degree for shape in plan.candidates.shapes)
    return [*levels, extend_everywhere(points, min(degree, 1) if plan.background == "hierarchy" else degree, plan.tolerance)]


def fit_regions(points: Points, cover: Cover, settings: Settings | None, plan: Plan) -> Regions:
    """Fit every region of a cover, by block systems or by the user's own model."""
    models: RegionModels
    if settings is not None:
        models = fit_blocks(points, cover.members, settings, plan.threads)
    else:
        assert plan.own is not None
        models = fit_own(points, cover.members, cover.radii, plan.own, plan.flat, plan.threads)
    return Regions(gather(points.X, cover.center).T, cover.radii, models)


def extend_everywhere(points: Points, degree: int, tolerance: float) -> Level:
    """One infinite ball with the least-squares polynomial of all points, at least a constant."""
    X, y, v, _ = points
    d = X.shape[1]
    degree = max(degree, 0)
    origin = np.average(X, axis=0, weights=v)
    scale = np.abs(X - origin).max() or 1.0
    root_v = np.sqrt(v)[:, None]
    R = span_range((monomials(d, degree).values(((X - origin) / scale).T) * root_v)[None], tolerance)
    lam = R.back @ (R.U.swapaxes(1, 2) @ (y * root_v)[None])
    zero = np.zeros(1, dtype=np.intp)
    settings = Settings((NO_KERNEL,), zero, np.ones(1), np.zeros(1), zero + degree, np.full(1, tolerance))
    models = BlockModels(
        points, zero[:, None], origin[None], np.array([scale]), settings, np.ones(1), np.zeros((1, 1, y.shape[1])), lam
    )
    return Level(Regions(origin[None], np.array([np.inf]), models), 1.0)
