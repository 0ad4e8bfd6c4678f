"""The background: the model where the regions have no weight (the infinite ball B_0 of the paper, section 3.1).

A hierarchy of levels, each the background of the one before: the same regions with a wider radius, since a model a little outside
of its ball beats one on thinner data; stitched models on thinner and thinner samples of the points, up to one region that holds
a sample of everything; and last a polynomial that is defined everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.fit import fit_blocks
from ..local.hermite import hermite_monomials, place_slopes
from ..local.own import RegionModels, fit_own
from ..local.points import Points
from ..local.polynomial import monomials
from ..local.radial import NO_KERNEL
from ..local.settings import SETTINGS, Settings
from ..local.system import span_range
from ..model.bounds import extremes_of_members
from ..model.lookup import Balls
from ..model.stitch import Level, Regions, Support
from .choice import Choice, assign_sample_settings
from .cover import Cover, greedy_cover, sum_weights
from .defaults import HOLE_REACH, THINNING
from .plan import Plan
from .points import deviation_of


def thin_samples(y: Array, h: int) -> list[Index]:
    """Nested samples of points that are sorted in space, each a quarter of the one before, the last of ``h`` points.

    Among a few neighbours, the one whose response in ``y`` (n, t) is nearest to their mean is kept. So samples are even, and noise
    and outliers are thinned out, too (satellite field: error 2.9 from a sixteenth of the points at random, 2.1 from these).
    """
    y = y / deviation_of(y)
    sample, samples = np.arange(len(y)), []
    while len(sample) > h:
        size = max(len(sample) // THINNING, h)
        edges = np.arange(size + 1) * len(sample) // size
        group = np.repeat(np.arange(size), np.diff(edges))
        mean = np.add.reduceat(y[sample], edges[:-1]) / np.diff(edges)[:, None]
        far = np.square(y[sample] - mean[group]).sum(axis=1)
        sample = sample[np.lexsort((far, group))[edges[:-1]]]
        samples.append(sample)
    return samples


def cover_samples(points: Points, whole: bool, plan: Plan) -> list[Cover]:
    """Covers of thinner and thinner samples, and first of the points themselves if they are not ``whole`` but a sample."""
    if plan.background != "hierarchy":
        return []
    samples = thin_samples(points.y, plan.h)
    covers = []
    for sample in samples if whole else [np.arange(len(points.X)), *samples]:
        # No extra overlap: these are used where there are no data, and gain nothing by it.
        cover = greedy_cover(points.X[sample], plan.h, 0.0, np.argsort(points.row[sample]), plan.threads.count)
        covers.append(replace(cover, members=sample[cover.members]))
    return covers


def fit_background(
    points: Points, covers: list[Cover], choice: Choice | None, plan: Plan, before: Sequence[Balls] = (), keep: bool = False
) -> list[Level]:
    """Levels of the covers, then the polynomial that is defined everywhere; no choice means a model of the user's own.

    ``before`` are the balls of the finest level: a thinner sample is scored outside of them. ``keep`` caches factorisations.
    """
    levels, finer = [], list(before)
    for cover in covers:
        settings = None if choice is None else assign_sample_settings(points, cover, choice, plan, finer)
        finer.append(Balls(np.asfortranarray(cover.centers), HOLE_REACH * cover.radii))
        support = Support(HOLE_REACH, sum_weights(points.X, cover, HOLE_REACH, plan.weight) / len(np.unique(cover.members)))
        regions = fit_regions(points, cover, None if settings is None else [settings], plan, keep=keep)
        levels.append(Level(regions, support))
    degree = max(shape.degree for shape in plan.candidates.shapes)
    return [*levels, extend_everywhere(points, min(degree, 1) if plan.background == "hierarchy" else degree, plan.tolerance)]


def fit_regions(
    points: Points, cover: Cover, settings: list[Settings] | None, plan: Plan, shares: Array | None = None, keep: bool = False
) -> Regions:
    """Fit every region of a cover, by a block system for each of its ``settings``, or by the user's own model.

    ``keep`` caches the factorisations for later calls.
    """
    models: RegionModels
    extremes = extremes_of_members(points.y, cover.members)
    if settings is None:
        assert plan.own is not None
        models = fit_own(points, cover.members, cover.radii, plan.own, plan.flat, plan.threads)
        return Regions(np.asfortranarray(cover.centers), cover.radii, models, extremes=extremes)
    k, m = len(settings), len(cover)
    models = fit_blocks(points, np.repeat(cover.members, k, axis=0), interleave(settings), plan.threads, keep)
    share = None if shares is None or k == 1 else shares[np.arange(k * m) % k]
    centers, radii = np.asfortranarray(np.repeat(cover.centers, k, axis=0)), np.repeat(cover.radii, k)
    return Regions(centers, radii, models, share, k, np.repeat(extremes, k, axis=1))


def interleave(settings: Sequence[Settings]) -> Settings:
    """Settings of the first region in every family, then those of the second, and so on."""
    if len(settings) == 1:
        return settings[0]
    rows: dict[str, Any] = {name: np.stack([getattr(family, name) for family in settings], axis=1).ravel() for name in SETTINGS}
    if any(family.slopes is not None for family in settings):
        each = [np.broadcast_to(family.slope_weights, family.degree.shape) for family in settings]
        rows["slopes"] = np.stack(each, axis=1).ravel()
    return replace(settings[0], **rows)


def extend_everywhere(points: Points, degree: int, tolerance: float) -> Level:
    """One infinite ball with the least-squares polynomial of all points, at least a constant."""
    X, y, v = points.X, points.y, points.v
    d = X.shape[1]
    degree = max(degree, 0)
    origin = np.average(X, axis=0, weights=v)
    scale = np.abs(X - origin).max() or 1.0
    root_v, basis, Z = np.sqrt(v)[:, None], monomials(d, degree), ((X - origin) / scale).T
    if points.slopes is None:
        R = span_range((basis.values(Z) * root_v)[None], tolerance)
        lam = R.back @ ((R.U[0] * root_v).T @ y)
    else:
        every = np.arange(len(X))[None]
        C, g, weights, _ = place_slopes(points.slopes, every, v[None], None, np.array([scale]), np.array([scale]), 1.0)
        root = np.sqrt(weights)[..., None]
        R = span_range(hermite_monomials(basis, Z[:, None], C) * root, tolerance)
        lam = R.back @ (R.U.swapaxes(1, 2) @ (np.concatenate([y[None], g], axis=1) * root))
    zero = np.zeros(1, dtype=np.intp)
    settings = Settings((NO_KERNEL,), zero, np.ones(1), np.zeros(1), zero + degree, np.full(1, tolerance), zero)
    models = BlockModels(
        points, zero[:, None], origin[None], np.array([scale]), settings, np.ones(1), np.zeros((1, 1, y.shape[1])), lam
    )
    return Level(Regions(origin[None], np.array([np.inf]), models), Support(1.0, 1.0))
