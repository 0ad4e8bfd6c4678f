"""Variances of the regions, stitched: of values and of gradients. The formulas are those of `deviation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Array, Index
from ..local.own import OwnModels
from ..local.points import Jet, gather
from ..local.radial import Radial
from .deviation import LevelScales, Moments, blocks_of
from .stitch import HANDOVER, Level, Regions, ball_weights


def stitch_moments(
    levels: Sequence[Level], scales: Sequence[LevelScales], Q: Array, weight: Radial, w0: float, spread: Array
) -> Moments:
    """Value, variance and noise at ``Q`` (q, d); ``spread`` (t,) is the variance of the responses, behind the last level."""
    level, *rest = levels
    if not rest:
        value = level.regions.predict(np.zeros(len(Q), dtype=np.intp), Q, 0).value
        return Moments(value, np.broadcast_to(spread, value.shape), np.zeros(value.shape))
    models = level.models
    pairs = level.balls.covering_pairs(Q)
    w = ball_weights(level, pairs, weight, 0).value
    at = gather(Q, pairs.query).T
    if isinstance(models, OwnModels):
        f, v = level.regions.predict(pairs.region, at, 0).value, models.variance(pairs.region, at)
    else:
        said, variance = blocks_of(level.regions).estimate(pairs.region, at)
        f, v = level.regions.bounded(pairs.region, Jet(said)).value, np.maximum(variance, 0.0)[:, None]
    growth = scales[0].growth(level.regions, pairs.region, at)
    v = np.minimum(growth * scales[0].scale[pairs.region] * v, np.broadcast_to(scales[0].most, scales[0].scale.shape)[pairs.region])
    by_output = w * _stress(level.regions, pairs.region)
    W = _sum_by_query(pairs.query, w * np.ones_like(f), len(Q))
    terms = (f, v, growth * scales[0].noise[pairs.region])
    first, variance, noise = (_sum_by_query(pairs.query, by_output * term, len(Q)) for term in terms)
    quiet = np.flatnonzero(W[:, 0] < HANDOVER * level.usual)
    if len(quiet):
        behind = stitch_moments(rest, scales[1:], gather(Q, quiet).T, weight, w0, spread)
        w_b = w0 * level.usual * weight((W[quiet] / (HANDOVER * level.usual)) ** 2)[0]
        for total, term in zip((W, first, variance, noise), (np.ones(1), *behind), strict=True):
            total[quiet] += w_b * term
    mean = first / W
    # The disagreement about the mean, not from mean squares: values may be large beside their differences.
    variance += _sum_by_query(pairs.query, by_output * (f - mean[pairs.query]) ** 2, len(Q))
    if len(quiet):
        variance[quiet] += w_b * (behind.value - mean[quiet]) ** 2
    return Moments(mean, variance / W, noise / W)


def stitch_slopes(
    levels: Sequence[Level], scales: Sequence[LevelScales], Q: Array, weight: Radial, w0: float, spread: Array, gradient: Array
) -> Array:
    """Covariance (q, t, d, d) of the gradient at ``Q`` (q, d), about the stitched ``gradient`` (q, t, d)."""
    level, *rest = levels
    if not rest:
        own = level.regions.predict(np.zeros(len(Q), dtype=np.intp), Q, 1).gradient
        return spread[:, None, None] * np.eye(Q.shape[1]) + _outer(own - gradient)
    models = blocks_of(level.regions)
    pairs = level.balls.covering_pairs(Q)
    w = ball_weights(level, pairs, weight, 0).value
    at = gather(Q, pairs.query).T
    free, (_, covariance) = models.evaluate(pairs.region, at, 1), models.variance(pairs.region, at, 1)
    bounds = level.regions.bounds
    slack = np.ones_like(free.value) if bounds is None else bounds.at(pairs.region).saturate(free.value)[1]  # ∇s(f) = s' ∇f
    own = slack[..., None] * free.gradient
    scale = slack**2 * scales[0].growth(level.regions, pairs.region, at) * scales[0].scale[pairs.region]
    terms = scale[:, :, None, None] * covariance[:, None] + _outer(own - gradient[pairs.query])  # type: ignore[index]
    terms *= _stress(level.regions, pairs.region)[..., None, None]
    W = _sum_by_query(pairs.query, w, len(Q))
    flat = _sum_by_query(pairs.query, w * terms.reshape(len(w), int(np.prod(terms.shape[1:]))), len(Q))
    total = flat.reshape(len(Q), *terms.shape[1:])
    quiet = np.flatnonzero(W[:, 0] < HANDOVER * level.usual)
    if len(quiet):
        w_b = w0 * level.usual * weight((W[quiet] / (HANDOVER * level.usual)) ** 2)[0]
        behind = stitch_slopes(rest, scales[1:], gather(Q, quiet).T, weight, w0, spread, gradient[quiet])
        total[quiet] += w_b[..., None, None] * behind
        W[quiet] += w_b
    return np.asarray(total / W[..., None, None])


def _stress(regions: Regions, region: Index) -> Array:
    """What counts of each of ``region`` (p,) for each output, beside its weight: (p, t) or (1, 1)."""
    return np.ones((1, 1)) if regions.stress is None else regions.stress[region]


def _outer(a: Array) -> Array:
    return a[..., :, None] * a[..., None, :]


def _sum_by_query(query: Index, terms: Array, q: int) -> Any:
    """Sums (q, t) over pairs."""
    return np.stack([np.bincount(query, weights=column, minlength=q).astype(float) for column in terms.T], axis=1)
