"""Variances of the regions, stitched: of values and of gradients. The formulas are those of `deviation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from ..local.own import OwnModels
from ..local.points import Jet, gather
from ..local.radial import Radial
from .deviation import LevelScales, Moments, blocks_of
from .link import IDENTITY
from .lookup import Pairs
from .query import in_chunks
from .row import row_moments
from .stitch import Level, Regions, background_weight, ball_weights


def find_moments(model: Any, X: Array, threads: Threads) -> tuple[Array, Array]:
    """Variance of the function and of the noise of a `StitchedModel` at ``X`` (q, d), (q, t) each, before the common factor."""
    chain, _, spread = model.level_scales(threads)
    evaluator = model.evaluator(1) if len(X) == 1 and model.origin.link == IDENTITY else None
    if evaluator is not None and (found := row_moments(evaluator, model.levels, chain, X, model.coordinates)) is not None:
        return found
    Q = model.coordinates(X)
    out = np.empty((2, len(Q), model.n_outputs))

    def fill(query: Index) -> None:
        out[:, query] = stitch_moments(model.levels, chain, gather(Q, query).T, model.weight, model.w0, spread)[1:]

    # In tables, some 32 regions contain a query; their kernel values are not kept.
    in_chunks(Q, 8 * 32 * (model.dimension + 4 * model.n_outputs + 8), fill, threads)
    return out[0], out[1]


class _Covered(NamedTuple):
    """Queries (k,) of a level as indices into all queries, their pairs with its regions (queries from zero), and weights (p, 1)."""

    query: Index
    pairs: Pairs
    w: Array

    def quiet(self, level: Level) -> Index:
        """Queries whose weights are so small that the next level is needed, too, as the pairs count them."""
        return level.quiet(_sum_by_query(self.pairs.query, self.w, len(self.query))[:, 0])


def stitch_moments(
    levels: Sequence[Level], scales: Sequence[LevelScales], Q: Array, weight: Radial, w0: float, spread: Array
) -> Moments:
    """Value, variance and noise at ``Q`` (q, d); ``spread`` (t,) is the variance of the responses, behind the last level."""
    if len(levels) == 1:
        value = levels[0].regions.predict(np.zeros(len(Q), dtype=np.intp), Q, 0).value
        return Moments(value, np.broadcast_to(spread, value.shape), np.zeros(value.shape))
    alike = [level for level in levels[:-1] if level.regions is levels[0].regions]
    covered = _cover_queries(alike, Q, weight)
    estimates = _estimate_regions(levels[0].regions, scales[0], Q, covered)
    found, left = None, covered[-1].query[covered[-1].quiet(alike[len(covered) - 1])]
    if len(left):
        found = stitch_moments(levels[len(alike) :], scales[len(alike) :], gather(Q, left).T, weight, w0, spread)
    for level, own, terms in reversed(list(zip(alike[: len(covered)], covered, estimates, strict=True))):
        found = _stitch_level(level, own, terms, found, weight, w0)
    assert found is not None
    return found


def _cover_queries(levels: Sequence[Level], Q: Array, weight: Radial) -> list[_Covered]:
    """Queries and pairs of each level of the same regions; a level takes the queries that the narrower ones leave to it."""
    found, query = [], np.arange(len(Q))
    for level in levels:
        pairs = level.balls.covering_pairs(Q if len(query) == len(Q) else gather(Q, query).T)
        found.append(_Covered(query, pairs, ball_weights(level, pairs, weight, 0).value))
        query = query[found[-1].quiet(level)]
        if not len(query):
            break
    return found


def _estimate_regions(regions: Regions, scales: LevelScales, Q: Array, covered: list[_Covered]) -> list[tuple[Array, ...]]:
    """Values, variances and noise (p, t) of the regions, for the pairs of each level. No pair is evaluated twice."""
    keys = [own.pairs.region * len(Q) + own.query[own.pairs.query] for own in covered]
    asked, back = (keys[0], None) if len(keys) == 1 else np.unique(np.concatenate(keys), return_inverse=True)
    region, query = np.divmod(asked, max(len(Q), 1))
    at = gather(Q, query).T
    if isinstance(regions.models, OwnModels):
        f, v = regions.predict(region, at, 0).value, regions.models.variance(region, at)
    else:
        estimates, variance = blocks_of(regions).estimate(region, at)
        f, v = regions.bounded(region, Jet(estimates)).value, np.maximum(variance, 0.0)[:, None]
    growth = scales.growth(regions, region, at)
    v = np.minimum(growth * scales.scale[region] * v, scales.most[region])
    terms = f, v, growth * scales.noise[region]
    if back is None:
        return [terms]
    ends = np.cumsum([len(key) for key in keys])[:-1]
    return list(zip(*(np.split(term[back], ends) for term in terms), strict=True))


def _stitch_level(
    level: Level, covered: _Covered, estimates: tuple[Array, ...], behind: Moments | None, weight: Radial, w0: float
) -> Moments:
    """Moments (k, t) of a level at its queries: its regions' ``estimates``, and those ``behind`` it where its weights are small."""
    (f, v, noises), q, query = estimates, len(covered.query), covered.pairs.query
    by_output = covered.w * _output_factor(level.regions, covered.pairs.region)
    W = _sum_by_query(query, covered.w * np.ones_like(f), q)
    first, variance, noise = (_sum_by_query(query, by_output * term, q) for term in (f, v, noises))
    if behind is not None:
        quiet = covered.quiet(level)
        w_b = background_weight(level, Jet(W[quiet]), weight, w0).value
        for total, term in zip((W, first, variance, noise), (np.ones(1), *behind), strict=True):
            total[quiet] += w_b * term
    mean = first / W
    # Squares of differences from the mean, not mean squares: values may be large compared with their differences.
    variance += _sum_by_query(query, by_output * (f - mean[query]) ** 2, q)
    if behind is not None:
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
    terms *= _output_factor(level.regions, pairs.region)[..., None, None]
    W = _sum_by_query(pairs.query, w, len(Q))
    flat = _sum_by_query(pairs.query, w * terms.reshape(len(w), int(np.prod(terms.shape[1:]))), len(Q))
    total = flat.reshape(len(Q), *terms.shape[1:])
    quiet = level.quiet(W[:, 0])
    if len(quiet):
        w_b = background_weight(level, Jet(W[quiet]), weight, w0).value
        behind = stitch_slopes(rest, scales[1:], gather(Q, quiet).T, weight, w0, spread, gradient[quiet])
        total[quiet] += w_b[..., None, None] * behind
        W[quiet] += w_b
    return np.asarray(total / W[..., None, None])


def _output_factor(regions: Regions, region: Index) -> Array:
    """The factor of the weight of each ``region`` (p,) for each output: (p, t), or (1, 1) where outputs share their weights."""
    return np.ones((1, 1)) if regions.output_factor is None else regions.output_factor[region]


def _outer(a: Array) -> Array:
    return a[..., :, None] * a[..., None, :]


def _sum_by_query(query: Index, terms: Array, q: int) -> Any:
    """Sums (q, t) over pairs."""
    return np.stack([np.bincount(query, weights=column, minlength=q).astype(float) for column in terms.T], axis=1)
