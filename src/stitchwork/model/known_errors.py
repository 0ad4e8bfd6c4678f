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
from .deviation import Calibration, Known, know_regions, pool_scales, stitch_left_out, trust_own
from .errors import KnownErrors, LeftOutParts, find_factor
from .few import free_numbers, student_quantiles
from .stitch import Level, distinct_levels


class RegionsJudged(NamedTuple):
    """c² (m, t) of the regions of each level, what the first say of left-out points, degrees of freedom (t,) of a single one."""

    scales: tuple[Array, ...]
    parts: LeftOutParts
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
    common = find_common(judged.parts, points.y.std(axis=0), judged.free)
    return common.calibration(judged.scales, points.X.shape[1], errors)


def judge_regions(
    points: Points, levels: Sequence[Level], weight: Radial, threads: Threads, errors: KnownErrors, own: int | None = None
) -> RegionsJudged:
    """What the regions of the levels say; of the points, only the first ``own`` are left out if not all belong to this part."""
    known = [know_regions(level, weight, threads) for level in distinct_levels(levels)]
    scales = [pool_scales(one, level.regions) for one, level in zip(known, distinct_levels(levels), strict=True)]
    parts = _leave_out(points, levels[0], known[0], scales[0], errors, own)
    return RegionsJudged(tuple(scales), parts, free_numbers(levels[0].regions))


def scale_regions(levels: Sequence[Level], weight: Radial, threads: Threads) -> tuple[Array, ...]:
    """c² (m, t) of the regions of each level, before any factor."""
    return tuple(pool_scales(know_regions(level, weight, threads), level.regions) for level in distinct_levels(levels))


def leave_out_parts(
    points: Points, level: Level, weight: Radial, threads: Threads, errors: KnownErrors, own: int | None = None
) -> LeftOutParts:
    """Errors and variances of points that are left out of the regions of a level, those that these can judge."""
    known = know_regions(level, weight, threads)
    return _leave_out(points, level, known, pool_scales(known, level.regions), errors, own)


def find_common(parts: LeftOutParts, spread: Array, free: Array | None) -> CommonScale:
    """What left-out points say; ``spread`` (t,) is the standard deviation of the responses."""
    factor = find_factor(parts)
    ignorant = parts._replace(error=np.broadcast_to(spread, parts.error.shape)).standardised(factor)
    return CommonScale(factor, student_quantiles(parts.standardised(factor), ignorant, free))


def _leave_out(
    points: Points, level: Level, known: list[Known], scale: Array, errors: KnownErrors, own: int | None
) -> LeftOutParts:
    plain = [one._replace(growth=np.ones((1, 1, 1))) for one in known]
    seen, error, variance = stitch_left_out(level.regions, plain, scale, np.zeros_like(scale), function=True)
    found = LeftOutParts(error, variance, errors.unit / points.v[seen, None])
    return found if own is None else found.at(_first(np.flatnonzero(seen), own))


def _first(point: Index, own: int) -> Index:
    return np.flatnonzero(point < own)
