"""Standard deviations where the errors of observations are known: the variances of the function alone are calibrated.

What regions say of points that are left out comes first, of all regions or of those of each part of a model. Then one factor of
these variances, and quantiles, follow from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from ..local.own import OwnModels
from ..local.points import Points
from ..local.radial import Radial
from .deviation import Calibration, Known, blocks_of, know_regions, pool_scales, stitch_left_out, trust_own
from .errors import KnownErrors, LeftOutParts, find_further, find_scale, join_left_out
from .few import residual_dof, student_quantiles
from .stitch import Level, distinct_levels


class RegionsJudged(NamedTuple):
    """c² (m, t) of the regions of each level, what the first say of left-out points, the noise c² η (m, t) that these would have,
    and the degrees of freedom (t,) of a single one.
    """

    scales: tuple[Array, ...]
    parts: LeftOutParts
    noise: Array
    free: Array | None


class CommonScale(NamedTuple):
    """The factor (t,) of the variances of the function, and quantiles (len(LEVELS), t) of the standardised residuals."""

    factor: Array
    quantiles: Array

    def calibration(self, scales: Sequence[Array], d: int, errors: KnownErrors) -> Calibration:
        """That of regions with these scales c² (m, t) before the factor, in ``d`` dimensions."""
        slopes = tuple(np.zeros((*scale.shape, d)) for scale in scales)
        found = Calibration(tuple(self.factor * scale for scale in scales), (), self.quantiles, slopes)
        noises = tuple(np.broadcast_to(errors.unit / found.factor**2, scale.shape).copy() for scale in scales)
        return found._replace(noises=noises)


def calibrate_errors(points: Points, levels: Sequence[Level], weight: Radial, threads: Threads, errors: KnownErrors) -> Calibration:
    """The calibration of a model whose observations have known errors."""
    if isinstance(levels[0].models, OwnModels):
        return trust_own(levels[0].models, distinct_levels(levels))
    judged = judge_regions(points, levels, weight, threads, errors)
    common = find_common(judged, points.y.std(axis=0), errors)
    return common.calibration(judged.scales, points.X.shape[1], errors)


def judge_regions(
    points: Points, levels: Sequence[Level], weight: Radial, threads: Threads, errors: KnownErrors, own: int | None = None
) -> RegionsJudged:
    """What the regions of the levels say; of the points, only the first ``own`` are left out if not all belong to this part."""
    known = [know_regions(level, weight, threads) for level in distinct_levels(levels)]
    scales = [pool_scales(one, level.regions) for one, level in zip(known, distinct_levels(levels), strict=True)]
    parts = _leave_out(points, levels[0], known[0], scales[0], errors, own)
    noise = scales[0] * blocks_of(levels[0].regions).settings.ridge[:, None]
    return RegionsJudged(tuple(scales), parts, noise, residual_dof(levels[0].regions))


def scale_regions(levels: Sequence[Level], weight: Radial, threads: Threads) -> tuple[Array, ...]:
    """c² (m, t) of the regions of each level, before any factor."""
    return tuple(pool_scales(know_regions(level, weight, threads), level.regions) for level in distinct_levels(levels))


def join_judged(found: Sequence[RegionsJudged]) -> RegionsJudged:
    """What the regions of all parts say, without their scales."""
    free = found[0].free if len(found) == 1 else None
    return RegionsJudged((), join_left_out([one.parts for one in found]), np.concatenate([one.noise for one in found]), free)


def usual_factor(noise: Array, errors: KnownErrors) -> Array:
    """By how much the variances of the regions are to be multiplied, (t,), for their ``noise`` (m, t) to be that of the errors."""
    tiny = np.finfo(float).tiny
    return np.asarray(np.exp(np.log(np.maximum(errors.unit / np.maximum(noise, tiny), tiny)).mean(axis=0)))


def further_noise(judged: RegionsJudged, errors: KnownErrors) -> Array:
    """The variances (t,) of further noise that left-out points ask for."""
    return find_further(judged.parts, usual_factor(judged.noise, errors))


def find_common(judged: RegionsJudged, spread: Array, errors: KnownErrors) -> CommonScale:
    """What left-out points say; ``spread`` (t,) is the standard deviation of the responses."""
    parts, factor = judged.parts, find_scale(judged.parts, usual_factor(judged.noise, errors))
    baseline = parts._replace(error=np.broadcast_to(spread, parts.error.shape)).standardised(factor)
    return CommonScale(factor, student_quantiles(parts.standardised(factor), baseline, judged.free))


def _leave_out(
    points: Points, level: Level, known: list[Known], scale: Array, errors: KnownErrors, own: int | None
) -> LeftOutParts:
    plain = [one._replace(growth=np.ones((1, 1, 1))) for one in known]
    seen, error, variance = stitch_left_out(level.regions, plain, scale, np.zeros_like(scale), function=True)
    found = LeftOutParts(error, variance, errors.unit / points.v[seen, None])
    return found if own is None else found.at(_first(np.flatnonzero(seen), own))


def _first(point: Index, own: int) -> Index:
    return np.flatnonzero(point < own)
