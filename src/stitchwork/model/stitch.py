"""The stitch: local models averaged by a partition of unity, with exact derivatives (paper, section 3.2).

Levels are a chain: the model f_0 of the infinite ball B_0 of one level is the stitched function of the next, and the last level has
one ball that is infinite. The next level is evaluated only where the weights of a level are small: with W the sum of the weights of
its regions at q and u the average of W at its points, B_0 has the weight w_0 u φ(W / τu), which is w_0 u where W = 0, falls
smoothly, and is exactly zero from W = τu on. So a query inside the data costs one level, and data beyond its regions cannot change
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from .._types import Array, Index
from ..local.own import RegionModels
from ..local.points import Jet, gather
from ..local.radial import Radial
from .bounds import Bounds, bound_regions, hold
from .gaps import LEAST, measure_gaps
from .lookup import Balls, Pairs

HANDOVER = 0.3  # τ: the share of its usual sum of weights from which on a level needs no background


@dataclass(frozen=True)
class Regions(Balls):
    """Balls with their local models; ``radii`` are those of the balls that hold the models' points.

    Where one ball has several models, it is repeated ``models_per_ball`` times in a row, each with its ``share`` (m,), or
    (m, t) for each output; those of one ball sum to one. The weight of a ball is the same for all outputs.
    ``extremes`` (2, m, t) are the least and greatest responses of each region's points, which bound its predictions; None
    in the infinite ball, which has no bounds.
    """

    models: RegionModels
    share: Array | None = None
    models_per_ball: int = 1
    extremes: Array | None = None

    @cached_property
    def portion(self) -> Array | None:
        """The share of each model in the weight of its ball, (m,): the mean over the outputs."""
        return self.share if self.share is None or self.share.ndim == 1 else self.share.mean(axis=1)

    @cached_property
    def output_factor(self) -> Array | None:
        """The share of each model for each output in units of its portion, (m, t); None where outputs have common shares."""
        if self.share is None or self.share.ndim == 1:
            return None
        portion = self.share.mean(axis=1, keepdims=True)
        return np.divide(self.share, portion, out=np.zeros_like(self.share), where=portion > 0.0)

    def repeat_shares(self, balls: int) -> Array | None:
        """The shares of as many ``balls``: all balls have the same."""
        if self.share is None:
            return None
        return np.asarray(self.share[np.arange(balls * self.models_per_ball) % self.models_per_ball])

    @cached_property
    def bounds(self) -> Bounds | None:
        """Bounds beyond which the prediction of a region saturates."""
        return None if self.extremes is None else bound_regions(self.extremes)

    @cached_property
    def gaps(self) -> Array:
        """The gap of each region, (m,): how far apart its points are, see `gaps`."""
        found = measure_gaps(self.models.points.X, self.models.members[:: self.models_per_ball])
        return np.maximum(np.repeat(found, self.models_per_ball), LEAST * self.radii)

    def predict(self, region: Index, Q: Array, order: int) -> Jet:
        """The bounded prediction of each of ``region`` (p,), sorted, at its row of ``Q`` (p, d)."""
        return self.bounded(region, self.models.evaluate(region, Q, order))

    def bounded(self, region: Index, jet: Jet) -> Jet:
        """The predictions ``jet`` of ``region`` (p,), within their bounds."""
        return jet if self.bounds is None else hold(jet, self.bounds, region)


class Support(NamedTuple):
    """Supports of regions: balls of ``reach`` times their radii. The sum of weights at the points is ``usual`` on average."""

    reach: float
    mean_weight: float


@dataclass(frozen=True)
class Level:
    """Regions with their support."""

    regions: Regions
    support: Support

    @cached_property
    def balls(self) -> Balls:
        """The support of each region."""
        return Balls(self.regions.centers, self.reach * self.regions.radii)

    @property
    def reach(self) -> float:
        """Radius of the support of a region, relative to its own."""
        return self.support.reach

    @property
    def mean_weight(self) -> float:
        """Mean of the sum of weights at the points."""
        return self.support.mean_weight

    def quiet(self, total: Array) -> Index:
        """Which of the sums of weights ``total`` (q,) are below τu, so that the next level answers, too."""
        return np.flatnonzero(total < HANDOVER * self.mean_weight)

    @property
    def models(self) -> RegionModels:
        """The local models."""
        return self.regions.models


@dataclass
class _Sums:
    """Numerator N = Σ w_j f_j and denominator W = Σ w_j with their derivatives."""

    N: Jet
    W: Jet

    @classmethod
    def over(cls, query: Index, w: Jet, f: Jet, q: int) -> _Sums:
        """Sums over pairs by their ``query`` (p,), of which there are q."""
        if q != 1:
            by_query = csc_array((np.ones(len(query)), query, np.arange(len(query) + 1)), shape=(q, len(query)))

        def summed(a: Array) -> Array:
            if q == 1:
                return a.sum(axis=0, keepdims=True)
            return (by_query @ a.reshape(len(query), int(np.prod(a.shape[1:])))).reshape(q, *a.shape[1:])

        N, W = (Jet(*(summed(a) for a in jet if a is not None)) for jet in (multiply(w, f), w))
        return cls(N, W)

    def add(self, query: Index, w: Jet, f: Jet) -> None:
        """Add w f and w at distinct ``query``."""
        for sums, more in ((self.N, multiply(w, f)), (self.W, w)):
            for total, term in zip(sums, more, strict=True):
                if total is not None:
                    total[query] += term

    def quotient(self) -> Jet:
        """F = N / W; from W F = N by the product rule: ∇F = (∇N - F ∇W) / W, and likewise ∇²F."""
        W = self.W.value
        value: Array = self.N.value / W
        gradient: Any = None
        hessian: Any = None
        if self.N.gradient is not None:
            gradient = (self.N.gradient - value[..., None] * self.W.gradient) / W[..., None]
        if self.N.hessian is not None:
            cross = gradient[..., :, None] * self.W.gradient[..., None, :]
            hessian = self.N.hessian - value[..., None, None] * self.W.hessian - cross - cross.swapaxes(-1, -2)
            hessian /= W[..., None, None]
        return Jet(value, gradient, hessian)


def multiply(w: Jet, f: Jet) -> Jet:
    """w f by the product rule; the weight has one output."""
    value, gradient, hessian = w.value * f.value, None, None
    if f.gradient is not None:
        gradient = w.value[..., None] * f.gradient + f.value[..., None] * w.gradient
    if f.hessian is not None:
        cross = f.gradient[..., :, None] * w.gradient[..., None, :]
        hessian = w.value[..., None, None] * f.hessian + f.value[..., None, None] * w.hessian + cross + cross.swapaxes(-1, -2)
    return Jet(value, gradient, hessian)


def stitch(levels: Sequence[Level], Q: Array, order: int, weight: Radial, w0: float) -> Jet:
    """The stitched function at ``Q`` (q, d) with derivatives up to ``order``.

    f̂ = (w_b f_0 + Σ w_j f_j) / (w_b + Σ w_j) with w_b = w_0 u φ(W / τu) and f_0 the stitched function of the levels that follow.
    """
    level, *rest = levels
    pairs = level.balls.covering_pairs(Q)
    w = ball_weights(level, pairs, weight, order)
    f = stressed(level.regions.output_factor, pairs.region, level.regions.predict(pairs.region, gather(Q, pairs.query).T, order))
    sums = _Sums.over(pairs.query, w, f, len(Q))
    if rest:
        quiet = level.quiet(sums.W.value[:, 0])
        if len(quiet):
            w_b = background_weight(level, _rows(sums.W, quiet), weight, w0)
            sums.add(quiet, w_b, stitch(rest, gather(Q, quiet).T, order, weight, w0))
    return sums.quotient()


class Shares(NamedTuple):
    """Shares of regions in the prediction: ``jet`` (p, 1), (p, 1, d), … of each pair of a ``region`` and a ``query``."""

    level: Level
    region: Index
    query: Index
    jet: Jet


def share_regions(levels: Sequence[Level], Q: Array, order: int, weight: Radial, w0: float) -> Iterator[Shares]:
    """The shares of all regions of each level in the stitched function at ``Q`` (q, d): f̂ = Σ share · f. They sum to one."""
    asked, before = np.arange(len(Q)), _constant(len(Q), Q.shape[1], order)
    for depth, level in enumerate(levels):
        at = gather(Q, asked).T
        pairs = level.balls.covering_pairs(at)
        w = ball_weights(level, pairs, weight, order)
        W = _Sums.over(pairs.query, w, _constant(len(pairs.query), Q.shape[1], order), len(at)).N
        quiet = level.quiet(W.value[:, 0]) if depth + 1 < len(levels) else np.empty(0, dtype=np.intp)
        behind = background_weight(level, _rows(W, quiet), weight, w0)
        for total, term in zip(W, behind, strict=True):
            if total is not None and len(quiet):
                total[quiet] += term
        own = _Sums(w, _rows(W, pairs.query)).quotient()
        yield Shares(level, pairs.region, asked[pairs.query], multiply(_rows(before, pairs.query), own))
        if not len(quiet):
            return
        before = multiply(_rows(before, quiet), _Sums(behind, _rows(W, quiet)).quotient())
        asked = asked[quiet]


def _constant(q: int, d: int, order: int) -> Jet:
    """One everywhere."""
    return Jet(np.ones((q, 1)), *(np.zeros((q, 1) + (d,) * k) for k in range(1, order + 1)))


def _rows(jet: Jet, rows: Index) -> Jet:
    value, *derivatives = (None if part is None else part[rows] for part in jet)
    return Jet(np.asarray(value), *derivatives)


class Contribution(NamedTuple):
    """One region's part in a prediction.

    Attributes
    ----------
    level : 0 for the regions, more for the levels of the background behind them
    region : index of the region in its level
    share : its weight in the average, a float or (t,); those of all contributions sum to one
    value : its prediction, a float or (t,)
    center, radius : of the region, the radius as the metric measures it
    settings : kernel, degree, bandwidth and ridge, empty for a custom local model
    reason : why the region has them, in words

    Examples
    --------
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> largest = StitchedRegressor(kernel="cubic").fit(X, X[:, 0] ** 2).contributions([0.3])[0]
    >>> largest.level, largest.settings["kernel"]
    (0, 'cubic')
    """

    level: int
    region: int
    share: Any
    value: Any
    center: Array
    radius: float
    settings: dict[str, Any]
    reason: str


def contributions(
    levels: Sequence[Level], Q: Array, weight: Radial, w0: float, depth: int = 0, share: float = 1.0
) -> Iterator[tuple[int, int, Array, Array]]:
    """Level, region, share of the average and value, (t,) each, of all that contribute at one query (1, d).

    Shares sum to ``share``.
    """
    level, *rest = levels
    pairs = level.balls.covering_pairs(Q)
    w = ball_weights(level, pairs, weight, 0).value[:, 0]
    f = level.regions.predict(pairs.region, gather(Q, pairs.query).T, 0).value
    W = w.sum()
    w_b = float(background_weight(level, Jet(np.array([W])), weight, w0).value[0]) if rest else 0.0
    output_factor = np.ones_like(f) if level.regions.output_factor is None else level.regions.output_factor[pairs.region]
    for region, part, value in zip(pairs.region.tolist(), w[:, None] * output_factor, f, strict=True):
        yield depth, region, share * part / (W + w_b), value
    if w_b > 0.0:
        yield from contributions(rest, Q, weight, w0, depth + 1, float(share * w_b / (W + w_b)))


def distinct_levels(levels: Sequence[Level]) -> list[Level]:
    """The first level of each set of regions, but for the last, which has no points."""
    return list({id(level.regions): level for level in reversed(levels[:-1])}.values())[::-1]


def ball_weights(level: Level, pairs: Pairs, weight: Radial, order: int) -> Jet:
    """w_j(q) = s_j φ(|q - c_j| / r_j), s_j the portion, with derivatives, for each pair: (p, 1), (p, 1, d), (p, 1, d, d)."""
    radius = level.balls.radii[pairs.region]
    Z = pairs.offset / radius
    f = weight(np.einsum("dp,dp->p", Z, Z), order)
    if level.regions.portion is not None:
        f = tuple(level.regions.portion[pairs.region] * term for term in f)
    gradient, hessian = None, None
    if order >= 1:
        gradient = (f[1] / radius * Z).T[:, None, :]
    if order >= 2:
        Z = Z.T
        eye = np.eye(Z.shape[1])
        hessian = f[1][:, None, None] * eye + f[2][:, None, None] * (Z[:, :, None] * Z[:, None, :])
        hessian = (hessian / (radius * radius)[:, None, None])[:, None]
    return Jet(f[0][:, None], gradient, hessian)


def average_models(shares: Array, values: Array) -> Array:
    """The average (m, t) of the predictions of the k models of each ball, (m, k, t), with ``shares`` (k,) or (k, t)."""
    return np.asarray((shares.reshape(len(shares), -1) * values).sum(axis=1))


def stressed(output_factor: Array | None, region: Index, jet: Jet) -> Jet:
    """The predictions of ``region`` (p,), times their ``output_factor`` (m, t) for each output."""
    if output_factor is None:
        return jet
    own = output_factor[region]
    gradient = None if jet.gradient is None else own[..., None] * jet.gradient
    return Jet(own * jet.value, gradient, None if jet.hessian is None else own[..., None, None] * jet.hessian)


def background_weight(level: Level, W: Jet, weight: Radial, w0: float) -> Jet:
    """The weight w_0 u φ(W / τu) of the next level where the weights of a level sum to ``W``, with derivatives by the chain rule.

    φ is the stitching weight itself, so nothing gets less smooth.
    """
    order, mean_weight = 2 if W.hessian is not None else 1 if W.gradient is not None else 0, level.mean_weight
    x = W.value / (HANDOVER * mean_weight)
    f = weight(x * x, order)
    gradient, hessian = None, None
    if order >= 1:
        slope = x * f[1] * (w0 / HANDOVER)
        gradient = slope[..., None] * W.gradient
    if order >= 2:
        curvature = (f[1] + x * x * f[2]) * (w0 / (HANDOVER**2 * mean_weight))
        dW = W.gradient
        hessian = slope[..., None, None] * W.hessian
        hessian = hessian + curvature[..., None, None] * (dW[..., :, None] * dW[..., None, :])
    return Jet(w0 * mean_weight * f[0], gradient, hessian)


def check_smoothness(order: int, smoothness: float, weight: str) -> None:
    """Raise a `ValueError` where a prediction of class C^smoothness has no derivatives of that ``order``."""
    if order == 0 or order <= smoothness:
        return
    name = {1: "gradient", 2: "hessian"}[order]
    is_ = f"is of class C{smoothness:.0f}" if smoothness >= 0 else "jumps at the borders of regions"
    raise ValueError(
        f"`{name}` needs a prediction of class C{order}, but with `weight`={weight!r} and the kernels in use this one"
        f" {is_}. Fit with `weight`='wendland-c2' (or a higher order) and a smoother `kernel`, such as 'gaussian' or 'auto'."
    )
