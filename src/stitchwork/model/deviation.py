"""Standard deviations of the stitched prediction: variances of the regions, stitched, and calibrated by leave-one-out.

A region's variance is a quadratic form, v(q), in units of a scale c² that leave-one-out tells: without point i its residual e_i has
the variance c² / B_ii, so c² is the mean of e_i² B_ii, pooled over neighbours with the same settings (others have another unit).
With w̄ the shares of the regions,

    variance = Σ w̄_j c_j² v_j + Σ w̄_j (f_j − f̂)²,      noise = Σ w̄_j c_j² η_j,

In large regions c_j² = c_j²(q) grows along a slope, since the noise may vary within them. The sums run through all levels, each
the background of the one before; behind the last stands the variance of the responses. Then every point is left out of the
stitched prediction. Quantiles of the standardised residuals give intervals, and one factor for each output scales the standard
deviations. The range of its points' responses bounds not only a region's prediction but also its standard deviation: c_j² v_j is at
most the square of that range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import ndtr, ndtri

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.batch import batch_size, from_center
from ..local.blocks import BlockModels
from ..local.own import OwnModels
from ..local.points import Points
from ..local.radial import Radial
from ..local.variance import Knowledge, Stack
from .bounds import MARGIN
from .errors import LeftOutParts, find_factor
from .few import LEVELS, quantiles_of, residual_dof, student_quantiles
from .loo import hold_residuals
from .noise import find_noise, find_slopes, group_alike, observation_errors
from .stitch import Level, Regions, distinct_levels

# The scale of a region pools the residuals of its nearest regions: at most so many, with so many points in all, and this share of
# all regions. Scores of 95 % intervals relative to those with 10 regions: on the satellite field 0.97 with 5, 1.00 with 2 and 1.28
# with 1; on ozone and rio 0.94 with 5.
_POOLED_REGIONS, _POOLED_POINTS, _POOLED_SHARE = 5, 1000, 0.1
_LEAST_WEIGHT = 1e-3  # least weight of a point in the scale of its region, where the stitching weight is smaller
FIELD_DIMENSION = 3  # features: up to here queries may lie anywhere, beyond it they are taken to be like the rows of the data
MOST = 9.0  # largest variance of the function, in variances of the responses: three of their standard deviations
_NO_SCALE = 2.0 * np.finfo(float).tiny  # c² where no point could be left out
_JUDGED = (0.68, 0.8, 0.9, 0.95)  # levels at which quantiles of the residuals are compared with Gaussian ones, to get the factor


class Moments(NamedTuple):
    """The stitched function at q points: value, variance of the function and variance of the noise, (q, t) each."""

    value: Any
    variance: Any
    noise: Any

    def deviation(self, of_function: bool = False) -> Any:
        """Standard deviation of a new observation, or of the function alone; never zero."""
        total = self.variance if of_function else self.variance + self.noise
        return np.maximum(np.sqrt(total), np.finfo(float).tiny)

    def beyond(self, threshold: float) -> Any:
        """The probability that the function exceeds a threshold, (q, t)."""
        return ndtr((self.value - threshold) / self.deviation(of_function=True))

    def around(self, half: Any) -> Any:
        """Lower and upper end, (q, t, 2): ``half`` is a number of standard deviations of a new observation on each side."""
        width = half * self.deviation()
        return np.stack([self.value - width, self.value + width], axis=-1)


class Calibration(NamedTuple):
    """The calibration of standard deviations by leave-one-out.

    Attributes
    ----------
    scales : c² of every region, (m, t), for each set of regions in the order of the levels, those of the last level left out
    noises : the variance of the noise of one observation in every region, in the same shapes
    quantiles : (len(LEVELS), t) of the absolute standardised residuals
    slopes : of log c² in every region, per radius, (m, t, d), in the same order
    """

    scales: tuple[Array, ...]
    noises: tuple[Array, ...]
    quantiles: Array
    slopes: tuple[Array, ...]

    @property
    def factor(self) -> Array:
        """The factor (t,) by which the regions' standard deviations are multiplied."""
        at = np.stack([np.interp(_JUDGED, LEVELS, column) for column in self.quantiles.T], axis=1)
        gaussian = ndtri(0.5 + 0.5 * np.array(_JUDGED))[:, None]
        return np.asarray(np.exp(np.log(np.maximum(at, np.finfo(float).tiny) / gaussian).mean(axis=0)))

    def intervals(self, moments: Moments, confidence_level: float) -> Any:
        """Lower and upper end, (q, t, 2)."""
        return moments.around(self.half_width(confidence_level) / self.factor)

    def held(self, nominal: Array) -> Array:
        """Share (k, t) of left-out points inside Gaussian intervals of the calibrated deviations, at levels ``nominal`` (k,)."""
        reach, columns = ndtri(0.5 + 0.5 * nominal), zip(self.factor, self.quantiles.T, strict=True)
        return np.stack([np.interp(factor * reach, column, LEVELS, left=0.0, right=1.0) for factor, column in columns], axis=1)

    def half_width(self, confidence_level: float) -> Array:
        """Half the width of an interval, in the regions' standard deviations, (t,); Gaussian growth beyond the stored quantiles."""
        known = min(max(confidence_level, LEVELS[0]), LEVELS[-1])
        at = np.array([np.interp(known, LEVELS, column) for column in self.quantiles.T])
        return np.asarray(at * ndtri(0.5 + 0.5 * confidence_level) / ndtri(0.5 + 0.5 * known))


def calibrate(
    points: Points, levels: Sequence[Level], weight: Radial, threads: Threads = ALONE, features: int | None = None
) -> Calibration:
    """Scales of all regions, and the standardised leave-one-out residuals of the stitched prediction.

    ``features`` is the number of the user's features, where embedded points have more coordinates.
    """
    scales, noises, slopes, z = [], [], [], np.full((2, *points.y.shape), np.nan)
    distinct = distinct_levels(levels)
    if isinstance(levels[0].models, OwnModels):
        return trust_own(levels[0].models, distinct)
    first = know_regions(levels[0], weight, threads)
    for level in distinct:
        known = first if level is distinct[0] else know_regions(level, weight, threads)
        scale = pool_scales(known, level.regions)
        noises.append(find_noise(scale, blocks_of(level.regions)))
        untold = noises[-1] / blocks_of(level.regions).settings.ridge[:, None]
        scales.append(np.where(scale > _NO_SCALE, scale, np.maximum(untold, np.finfo(float).tiny)))
        slopes.append(np.concatenate([one.slope for one in known])[np.argsort(np.concatenate([one.regions for one in known]))])
        # With groups, points that the regions cannot judge are left to a level of thinner samples.
        if level is levels[0] or (points.group is not None and blocks_of(level.regions).points is points):
            z = np.where(np.isnan(z), _standardise(level.regions, known, scales[-1], noises[-1]), z)
    finite = np.isfinite(z[0, :, 0])
    volume, z = point_volumes(levels[0].regions, features or points.X.shape[1]), z[:, finite]
    quantiles = student_quantiles(z[0], z[1], residual_dof(levels[0].regions), None if volume is None else volume[finite])
    found = Calibration(tuple(scales), tuple(noises), quantiles, tuple(slopes))
    if points.repeats is None or not points.repeats.spread.any():
        return found
    return use_repeats(found, points, distinct, first)


def point_volumes(regions: Regions, d: int) -> Array | None:
    """The volume (n,) that each point of a field of d features stands for, from the radii of its regions.

    Queries of a field may lie anywhere, so points beside holes count more than those among others. None for tables, whose new rows
    are like the known ones, and for a single region.
    """
    models = blocks_of(regions)
    if d > FIELD_DIMENSION or len(models.members) == regions.models_per_ball:
        return None
    n, members = len(models.points.X), models.members
    volume = np.repeat((regions.radii / np.median(regions.radii)) ** d, members.shape[1])
    held = np.bincount(members.ravel(), minlength=n)
    return np.asarray(np.bincount(members.ravel(), weights=volume, minlength=n) / np.maximum(held, 1))


def use_repeats(found: Calibration, points: Points, levels: Sequence[Level], known: list[Known]) -> Calibration:
    """The calibration with the noise estimated from repeated observations, and quantiles of single observations at these locations.

    The factor of the function stays, and does not apply to this noise. Where this noise leaves errors unexplained, the variances of
    the function are increased.
    """
    factor = found.factor
    noises = [find_noise(factor**2 * c2, blocks_of(level.regions)) for c2, level in zip(found.scales, levels, strict=True)]
    usual = noises[0].mean(axis=0)
    seen, error, variance = stitch_left_out(levels[0].regions, known, factor**2 * found.scales[0], noises[0])
    if not seen.any():  # as at one location: the mean of its observations is all that is known
        seen, error, variance = ~seen, np.zeros_like(points.y), usual / points.v[:, None]
    v = points.v[seen]
    of_mean = usual / v[:, None]
    parts = LeftOutParts(error, np.maximum(variance - of_mean, 0.0), of_mean)
    more = np.maximum(find_factor(parts), 1.0)
    z = observation_errors(error, more * parts.function + of_mean, np.broadcast_to(usual, error.shape), v)
    single = found._replace(quantiles=quantiles_of(z))
    return found._replace(
        scales=tuple(more * c2 for c2 in found.scales),
        noises=tuple(noise / factor**2 for noise in noises),
        quantiles=factor * single.quantiles / single.factor,
    )


def trust_own(models: OwnModels, levels: Sequence[Level]) -> Calibration:
    """Use the standard deviations of the user's own models as they are, without calibration."""
    if not all(hasattr(model, "deviation") for model in models.models):
        raise ValueError("A `local_model` of your own has deviations only if its fitted models have a method `deviation(X)`.")
    shapes = [(len(level.regions.radii), models.n_outputs) for level in levels]
    level_slopes = tuple(np.zeros((*shape, level.regions.centers.shape[1])) for shape, level in zip(shapes, levels, strict=True))
    gaussian = quantiles_of(np.empty((0, models.n_outputs)))
    return Calibration(tuple(map(np.ones, shapes)), tuple(map(np.zeros, shapes)), gaussian, level_slopes)


class LevelScales(NamedTuple):
    """Of the regions of one level: the scale of their variances and the variance of the noise, (m, t) each, their slope, the most
    that a variance may be, (m, t), and whether there is a slope.
    """

    scale: Array
    noise: Array
    slope: Array
    most: Array
    sloped: bool

    def growth(self, regions: Regions, region: Index, Q: Array) -> Array:
        """c²(q) / c² of each pair of a region and a point of ``Q`` (p, d), (p, t)."""
        if not self.sloped:
            return np.ones((len(region), self.scale.shape[1]))
        u = (Q - regions.centers[region]) / regions.radii[region, None]
        u /= np.maximum(np.linalg.norm(u, axis=1), 1.0)[:, None]  # beyond its radius the noise of a region stays constant
        return np.exp(np.einsum("pd,ptd->pt", u, self.slope[region]))


class Known(NamedTuple):
    """Leave-one-out in a stack of regions: their indices, weights w of their members, residuals e (B, h, t), variances in units of
    c² (B, h), whether a member is judged, the slope of log c² (B, t, d), and its factor of c² at the members (B, h, t).
    """

    regions: Index
    w: Array
    residual: Array
    variance: Array
    judged: NDArray[np.bool_]
    slope: Array
    growth: Array


def know_regions(level: Level, weight: Radial, threads: Threads) -> list[Known]:
    """Leave-one-out residuals and variances in the regions of a level, in stacks."""
    models = blocks_of(level.regions)
    members, radii, reach = models.members, level.regions.radii, min(level.reach, 1.0)

    def know(regions: Index) -> Known:
        known = know_points(models, regions)
        (w,) = weight(from_center(models.X, members[regions], level.regions.centers[regions], radii[regions]) / reach**2)
        w = np.ones_like(w) if len(members) == level.regions.models_per_ball else np.maximum(w, _LEAST_WEIGHT)
        if level.regions.portion is not None:
            w *= level.regions.portion[regions, None]
        v = models.points.v[members[regions]]
        e, variance = known.residual / np.sqrt(v)[..., None], known.variance / v
        e = hold_residuals(level.regions, regions, models.points.y[members[regions]], e)
        usable = (variance > 0.0) & known.judged
        u = (models.X[members[regions]] - level.regions.centers[regions][:, None]) / radii[regions][:, None, None]
        return Known(regions, w, e, variance, usable, *find_slopes(e, variance, usable, u))

    return threads.map(know, models.settings.stacks(batch_size(members.shape[1] * models.points.equations)), "calibrate")


def know_points(models: BlockModels, regions: Index) -> Knowledge:
    """Leave-one-out residuals and variances in ``regions`` (B,) of one kind; factors made for this are cached for later queries."""
    found = models.leave_out(regions, keep=True)
    if found is None:
        return Stack(models.points, models.members[regions], models.settings.at(regions)).know()
    residual, precision = found
    return Knowledge(residual, 1.0 / precision, np.ones(precision.shape, dtype=bool))


def blocks_of(regions: Regions) -> BlockModels:
    """The block models of regions; a model of the user's own has no variance."""
    if not isinstance(regions.models, BlockModels):
        raise ValueError("Only the built-in local models can tell this. A `local_model` of your own cannot.")
    return regions.models


def most_variance(regions: Regions, factor: Array, noise: Array) -> Array:
    """Upper bound (m, t) of the variance of a region's prediction, before standard deviations are multiplied by ``factor`` (t,).

    It is never below the variance of the ``noise`` (m, t).
    """
    if regions.bounds is None:
        return np.array(np.inf)
    with np.errstate(over="ignore"):
        return np.maximum(np.square(regions.bounds.margin / (MARGIN * np.maximum(factor, 1.0))), noise)


def scale_levels(levels: Sequence[Level], calibration: Calibration) -> tuple[list[LevelScales], Array]:
    """Scales and noise of the regions of every level but the last, and the factor of deviations."""
    sets = {id(level.regions): level.regions for level in levels[:-1]}
    by_set = {}
    for each, scale, noise, slope in zip(sets.values(), calibration.scales, calibration.noises, calibration.slopes, strict=True):
        most = np.broadcast_to(most_variance(each, calibration.factor, noise), scale.shape)
        by_set[id(each)] = LevelScales(scale, noise, slope, most, bool(slope.any()))
    return [by_set[id(level.regions)] for level in levels[:-1]], calibration.factor


def pool_scales(known: list[Known], regions: Regions) -> Array:
    """c² of every region (m, t): the mean of e² / variance, as a mean of logs over the nearest regions with the same settings.

    Regions that can judge none of their points take no part, unless all are such.
    """
    models = blocks_of(regions)
    t = known[0].residual.shape[2]
    scale, told = np.empty((len(models.members), t)), np.zeros(len(models.members), dtype=bool)
    for one in known:
        told[one.regions] = one.judged.any(axis=1)
        usable = (one.variance > 0.0) & (one.judged | ~one.judged.any(axis=1, keepdims=True))
        z2 = np.divide(one.residual**2, one.variance[..., None], out=np.zeros_like(one.residual), where=usable[..., None])
        z2 /= one.growth
        scale[one.regions] = np.einsum("bh,bht->bt", one.w * usable, z2) / np.maximum((one.w * usable).sum(axis=1), 1e-300)[:, None]
    logs = np.log(np.maximum(scale, np.finfo(float).tiny))
    pooled = np.empty_like(logs)
    for alike in group_alike(models.settings):
        tell = alike[told[alike]] if told[alike].any() else alike
        enough = int(np.clip(_POOLED_POINTS // models.members.shape[1], 1, _POOLED_REGIONS))
        k = int(np.clip(len(models.members) * _POOLED_SHARE, 1, min(enough, len(tell))))
        _, nearest = cKDTree(regions.centers[tell]).query(regions.centers[alike], k=np.arange(1, k + 1))
        pooled[alike] = logs[tell][nearest].mean(axis=1)
    return np.exp(pooled)


class LeftOutErrors(NamedTuple):
    """Which points (n,) can be judged, their errors when they are left out, and the variances of these, (k, t) each."""

    seen: NDArray[np.bool_]
    error: Array
    variance: Array


def leave_out_deviations(points: Points, levels: Sequence[Level], weight: Radial, threads: Threads) -> LeftOutErrors:
    """Errors of the stitched prediction, every point left out of all regions that hold it, with the variances that these expect."""
    known = know_regions(levels[0], weight, threads)
    scale = pool_scales(known, levels[0].regions)
    return LeftOutErrors(*stitch_left_out(levels[0].regions, known, scale, find_noise(scale, blocks_of(levels[0].regions))))


def _standardise(regions: Regions, known: list[Known], scale: Array, noise: Array) -> Array:
    """Standardised residuals |e| / √variance of the stitched prediction, and the same with the standard deviation of the responses
    in the place of |e|: (2, n, t).

    Every point is left out of all regions that hold it. NaN where none of them can judge it.
    """
    seen, mean, total = stitch_left_out(regions, known, scale, noise)
    y = blocks_of(regions).points.y
    z, errors = np.full((2, *y.shape), np.nan), np.stack([np.abs(mean), np.broadcast_to(y.std(axis=0), mean.shape)])
    z[:, seen] = np.divide(errors, np.sqrt(total), out=np.ones_like(errors), where=total > 0.0)
    return z


def stitch_left_out(
    regions: Regions, known: list[Known], scale: Array, noise: Array, function: bool = False
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Which points (n,) are judged, their errors, and the variances of these: of observations or, if asked, of the ``function``."""
    models = blocks_of(regions)
    members, (n, t), ridge = models.members, models.points.y.shape, models.settings.ridge
    most = np.broadcast_to(most_variance(regions, np.ones(t), noise), scale.shape)
    W, mean, variance = np.zeros(n), np.zeros((n, t)), np.zeros((n, t))

    def add(total: Array, which: Index, w: Array, term: Array) -> None:
        output_factor = 1.0 if regions.output_factor is None else regions.output_factor[which][:, None]
        np.add.at(total, members[which].ravel(), (w[..., None] * (output_factor * term)).reshape(-1, t))

    for which, w, e, _, judged, *_ in known:
        np.add.at(W, members[which].ravel(), (w * judged).ravel())
        add(mean, which, w * judged, e)
    seen = W > 0.0  # a thinner sample leaves out some
    mean[seen] /= W[seen, None]
    for which, w, e, v, judged, _, growth in known:
        c2 = growth * scale[which][:, None, :]
        own_noise = c2 * (ridge[which][:, None] / models.points.v[members[which]])[..., None]
        own = np.minimum(c2 * v[..., None], most[which][:, None, :] + own_noise) + (e - mean[members[which]]) ** 2
        if function:
            own -= own_noise
        elif models.points.repeats is not None:  # their noise is not c² η
            own += ((noise - scale * ridge[:, None])[which][:, None, :]) / models.points.v[members[which]][..., None]
        add(variance, which, w * judged, np.maximum(own, 0.0))
    return seen, mean[seen], variance[seen] / W[seen, None]
