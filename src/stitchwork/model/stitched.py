"""`StitchedModel`: a fitted function, frozen, with its values, derivatives and uncertainties.

Arrays in, arrays out: queries X (q, d) in the user's features, results for all t outputs. Callers check what users pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.points import Jet, Merging, Points, empty_jet, gather
from ..local.radial import Radial
from ..local.settings import Settings
from ..native import Evaluator, make_evaluator
from .arrays import describe_chart, describe_function, kernel_names
from .bounds import Bounds, bound_answers, bound_features, chain_inner, chain_outer
from .chart import Chart
from .coverage import coverage
from .deviation import MOST, Calibration, LevelScales, Moments, blocks_of, calibrate, scale_levels
from .errors import KnownErrors
from .explain import explain
from .known_errors import calibrate_errors
from .left_out import leave_out_points
from .link import IDENTITY, LogMoments, link_jet, link_values
from .loo import LeftOut
from .moments import find_moments, stitch_slopes
from .origin import Growth, Origin
from .query import SMALL_QUERY, in_chunks
from .relevance import sample_rows, share_features, slopes_at
from .space import Space
from .stitch import Contribution, Level, average_models, check_smoothness, stitch

_FEW_QUERIES, _REGIONS_PER_QUERY = 4, 1000  # making the compiled evaluator costs 4 µs a region, a single query in NumPy about 1 ms


_MADE_WHEN_ASKED = ("_compiled", "_level_scales", "_left_out", "_sampled_errors")


@dataclass(frozen=True, eq=False)
class StitchedModel:
    """A fitted function.

    Attributes
    ----------
    levels : the regions, then the levels of their background, the last with one infinite ball
    points : the training data, in the space of the regions
    space : the map from the user's features, or their embedded points, to that space
    weight, w0 : the stitching weight, and the weight of the background
    frame : (3, d) least, greatest and median value of every feature
    extremes : (2, t) least and greatest response
    flat : whether the responses had one axis
    origin : how it came about
    growth : what updates need to know
    known_loo_error, known_calibration : leave-one-out error and calibration of standard deviations, None until they are computed
    asked : number of queries since the last update, None for models that were not updated: see `evaluator`
    chart : embeds features with a period and the globe, as points with e coordinates; None where features are used as they are
    limits : (2, e) least and greatest coordinates of the embedded points, None without a chart: those of ``frame``
    errors, merged : known errors of observations, and rows at one location; None where there are none
    """

    levels: tuple[Level, ...]
    points: Points
    space: Space
    weight: Radial
    w0: float
    frame: Array
    extremes: Array
    flat: bool
    origin: Origin
    growth: Growth
    known_loo_error: float | None = None
    known_calibration: Calibration | None = None
    asked: int | None = None
    chart: Chart | None = None
    limits: Array | None = None
    errors: KnownErrors | None = None
    merged: Merging | None = None

    @property
    def n_features(self) -> int:
        """d."""
        return self.frame.shape[1]

    @property
    def dimension(self) -> int:
        """e, of the space of the regions: d without a chart."""
        return len(self.space.shift)

    @property
    def n_outputs(self) -> int:
        """t."""
        return self.points.y.shape[1]

    @property
    def n_points(self) -> int:
        """Number of distinct points."""
        return len(self.points.X)

    @property
    def grouped(self) -> bool:
        """Whether points are left out in groups."""
        return self.points.group is not None

    @property
    def X(self) -> Array:
        """The distinct points in the user's features, (n, d)."""
        return self.embedded_points if self.chart is None else self.chart.original(self.embedded_points)

    @property
    def n_regions(self) -> int:
        """m."""
        return len(self.levels[0].regions.radii) // self.models_per_ball

    @property
    def models_per_ball(self) -> int:
        """k, the number of local models of each region."""
        return self.levels[0].regions.models_per_ball

    @property
    def region_size(self) -> int:
        """h."""
        return int(self.levels[0].models.members.shape[1])

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: those of the data, or x0, x1, …"""
        return list(self.origin.feature_names or (f"x{k}" for k in range(self.n_features)))

    @property
    def target_names(self) -> list[str]:
        """Names of the outputs: those of the data, or y, or y0, y1, …"""
        t = self.n_outputs
        return list(self.origin.target_names or (["y"] if t == 1 else [f"y{k}" for k in range(t)]))

    def rename(self, features: Sequence[str], targets: Sequence[str]) -> StitchedModel:
        """The same function with names for its columns."""
        return replace(self, origin=replace(self.origin, feature_names=tuple(features), target_names=tuple(targets)))

    @property
    def settings(self) -> Settings | None:
        """The hyperparameters of the regions; None for custom local models."""
        models = self.levels[0].models
        return models.settings if isinstance(models, BlockModels) else None

    @property
    def centers(self) -> Array:
        """(m, d), in the user's features."""
        return self.original(self.levels[0].regions.centers[:: self.models_per_ball])

    @property
    def embedded_points(self) -> Array:
        """The embedded distinct points (n, e), exactly as given where that is known."""
        return self.space.original(self.points.X) if self.points.given is None else self.points.given

    @property
    def box(self) -> Array:
        """(2, e) least and greatest coordinates of the embedded points."""
        return self.frame[:2] if self.limits is None else self.limits

    def embed(self, X: Array) -> Array:
        """Points ``X`` (q, d) embedded, (q, e): themselves, without a chart."""
        return X if self.chart is None else self.chart.embed(X)

    def coordinates(self, X: Array) -> Array:
        """Points ``X`` (q, d) in the space of the regions, (q, e), after those outside of the data saturate."""
        return self.space.coordinates(self.inside.saturate(self.embed(X))[0])

    def original(self, U: Array) -> Array:
        """The points (n, d), in the user's features, that are ``U`` (n, e) in the space of the regions."""
        E = self.space.original(U)
        return E if self.chart is None else self.chart.original(E)

    def metric_at(self, x: Array) -> Array:
        """The metric (d, d) of small steps of the features from ``x`` (d,): of all steps, without a chart."""
        return self.space.metric if self.chart is None else self.chart.tangent_metric(self.space.metric, x)

    def per_metre(self, X: Array) -> Array:
        """Factors (q, d) that make derivatives by longitude and latitude those by metres to the east and north."""
        assert self.chart is not None
        return self.chart.per_metre(X)

    @property
    def inside(self) -> Bounds:
        """Bounds beyond which embedded points saturate."""
        return bound_features(self.box)

    @property
    def radii(self) -> Array:
        """(m,), as the metric measures them."""
        return self.levels[0].regions.radii[:: self.models_per_ball] / self.space.unit

    @cached_property
    def smoothness(self) -> float:
        """t, where the function is C^t."""
        return float(min(self.weight.smoothness, *(level.models.smoothness for level in self.levels)))

    @property
    def spread(self) -> float:
        """Root mean square over the outputs of the standard deviations of the responses."""
        return float(np.sqrt(self.responses.var(axis=0).mean()))

    @property
    def responses(self) -> Array:
        """The responses at the distinct points, (n, t)."""
        return link_values(self.origin.link, self.points.y)

    @cached_property
    def relevance(self) -> Array:
        """Share of each feature in the variation of each output, (t, d), for any metric: see `share_features`."""
        X, rows = self.X, sample_rows(self.n_points)
        jet = self.jet if self.chart is None else lambda X, order: self.jet(self.chart.clip(X), order)
        slopes = slopes_at(jet, self.smoothness, X[rows], X.std(axis=0))
        return share_features(slopes, X.var(axis=0), self.points.y.var(axis=0))

    def jet(self, X: Array, order: int, threads: Threads = ALONE) -> Jet:
        """Values (q, t) with derivatives (q, t, d), (q, t, d, d) up to ``order``."""
        check_smoothness(order, self.smoothness, self.weight.name)
        if (evaluator := self.evaluator(len(X))) is None:
            return self.reference_jet(X, order, threads)
        self._check(X)
        return link_jet(self.origin.link, Jet(*evaluator.jet(X, order, threads)))

    def reference_jet(self, X: Array, order: int, threads: Threads = ALONE) -> Jet:
        """The same by NumPy: the reference for the compiled library, and the substitute without it."""
        if self.chart is None:
            return self._embedded_jet(X, order, threads)
        return self.chart.pull_back(self._embedded_jet(self.chart.embed(X), order, threads), X)

    def _embedded_jet(self, E: Array, order: int, threads: Threads) -> Jet:
        """The same for embedded points ``E`` (q, e), with derivatives with respect to them."""
        inside = self.inside
        if inside.are_met(E):
            return self._bounded(self._free_jet(E, order, threads))
        E, first, second = inside.saturate(E)
        return self._bounded(chain_inner(self._free_jet(E, order, threads), first, second))

    def _check(self, X: Array) -> None:
        if self.chart is not None:
            self.chart.check(X)

    def evaluator(self, q: int) -> Evaluator | None:
        """The compiled evaluator for q more queries; None for the first few of a growing model, since making it takes longer."""
        if self.asked is None or "_compiled" in vars(self):
            return self._compiled
        object.__setattr__(self, "asked", self.asked + q)
        return None if self.asked <= _FEW_QUERIES + self.n_regions // _REGIONS_PER_QUERY else self._compiled

    @cached_property
    def _compiled(self) -> Evaluator | None:
        """The compiled library over these arrays, built at first use; None without one and for custom local models."""
        if self.settings is None:
            return None
        arrays = describe_function(self.levels, self.points, self.space, self.w0)
        arrays |= {"frame": self.frame, "extremes": self.extremes} | describe_chart(self.chart, self.limits)
        return make_evaluator(arrays, self.weight.name, ",".join(kernel_names(self.levels)))

    def __getstate__(self) -> dict[str, Any]:
        """Everything but cached properties: the handle of the compiled library is not valid in another process."""
        return {name: value for name, value in vars(self).items() if name not in _MADE_WHEN_ASKED}

    def _bounded(self, jet: Jet) -> Jet:
        """Predictions, bounded by the range of the responses."""
        bounds = bound_answers(self.extremes)
        return link_jet(self.origin.link, jet if bounds.are_met(jet.value) else chain_outer(jet, bounds))

    def _free_jet(self, E: Array, order: int, threads: Threads) -> Jet:
        """The stitched prediction of the levels, without bounds on the result."""
        Q, d, t = self.space.coordinates(E), self.dimension, self.n_outputs
        evaluate = partial(stitch, self.levels, order=order, weight=self.weight, w0=self.w0)
        if len(Q) <= SMALL_QUERY:
            return self.space.pull_back(evaluate(Q))
        out = empty_jet(len(Q), t, d, order)

        def fill(query: Index) -> None:
            for target, source in zip(out, self.space.pull_back(evaluate(gather(Q, query).T)), strict=True):
                if target is not None:
                    target[query] = source

        in_chunks(Q, 8 * (self.region_size * (order + 3) + 8 * (t + 1) * sum(d**k for k in range(order + 1))), fill, threads)
        return out

    def moments(self, X: Array, threads: Threads = ALONE, s2: Array | None = None) -> Moments:
        """Values, variances of the function and of the noise, (q, t) each; ``s2`` (q, t) are known variances of errors."""
        _, factor, spread = self.level_scales(threads)
        variance, noise = find_moments(self, X, threads)
        kind = Moments if self.origin.link == IDENTITY else LogMoments
        noise = factor**2 * noise if s2 is None else s2 if self.errors is None else self.errors.variance(s2)
        total = factor**2 * variance + self.inside.hidden_share(self.embed(X))[:, None] * spread
        return kind(self.jet(X, 0, threads).value, np.minimum(total, np.maximum(MOST * spread, noise)), noise)

    def slopes(self, X: Array, threads: Threads = ALONE) -> tuple[Array, Array]:
        """Gradients and their standard deviations, (q, t, d) each."""
        rough = {k.name for level in self.levels[:-1] for k in blocks_of(level.regions).settings.used if k.smoothness < 2}
        if rough:
            raise ValueError(
                f"The deviation of the gradient needs kernels with a second derivative at zero, which {', '.join(sorted(rough))}"
                " has not. Fit with a smoother `kernel`, such as 'matern52' or 'auto'."
            )
        check_smoothness(1, self.smoothness, self.weight.name)
        chain, factor, spread = self.level_scales(threads)
        inside, first, _ = self.inside.saturate(self.embed(X))
        Q, A = self.space.coordinates(inside), self.space.A
        J = None if self.chart is None else first[:, :, None] * self.chart.jacobian(X)
        deviation = np.empty((len(Q), self.n_outputs, self.n_features))

        def fill(query: Index) -> None:
            at = gather(Q, query).T
            inner = stitch(self.levels, at, 1, self.weight, self.w0).gradient
            C = stitch_slopes(self.levels, chain, at, self.weight, self.w0, spread, inner)
            if J is None:
                C = np.einsum("ab,qtbc,ac->qta", A, C, A)
            else:
                C = np.einsum("qtab,qad,qbd->qtd", A @ C @ A.T, J[query], J[query])
            deviation[query] = np.sqrt(np.maximum(C, 0.0))

        in_chunks(Q, 8 * 8 * self.region_size * (1 + self.dimension), fill, threads)
        deviation *= factor[:, None] * (first[:, None, :] if J is None else 1.0)
        jet = self.jet(X, 1, threads)
        if self.origin.link != IDENTITY:  # ∇y = y ∇z, y as it is predicted
            deviation *= jet.value[..., None]
        return jet.gradient, np.maximum(deviation, np.finfo(float).tiny)

    def level_scales(self, threads: Threads) -> tuple[list[LevelScales], Array, Array]:
        """Scales and noise of the regions of all levels but the last, a common factor, and the variance of the responses."""
        self.calibration(threads)
        return self._level_scales

    @cached_property
    def _level_scales(self) -> tuple[list[LevelScales], Array, Array]:
        return *scale_levels(self.levels, self.calibration()), self.points.y.var(axis=0)

    def interval(self, X: Array, confidence_level: float, threads: Threads = ALONE) -> Array:
        """Lower and upper end, (q, t, 2), of intervals for a new observation with this confidence, calibrated by leave-one-out."""
        return self.calibration(threads).intervals(self.moments(X, threads), confidence_level)

    def calibration(self, threads: Threads = ALONE) -> Calibration:
        """The calibration of standard deviations by leave-one-out, computed at first use."""
        if self.known_calibration is None:
            asked = self.points, self.levels, self.weight, threads
            found = calibrate(*asked, self.n_features) if self.errors is None else calibrate_errors(*asked, self.errors)
            object.__setattr__(self, "known_calibration", found)
        return self.known_calibration  # type: ignore[return-value]

    def noises(self, threads: Threads = ALONE) -> Array:
        """Standard deviation of the noise of one observation in each region, (m, t)."""
        regions = self.levels[0].regions
        blocks_of(regions)
        if self.errors is not None:
            return np.tile(np.sqrt(self.errors.further), (self.n_regions, 1))
        calibration = self.calibration(threads)
        variance = calibration.noises[0]
        if regions.share is not None:
            k = regions.models_per_ball
            variance = average_models(regions.share[:k], variance.reshape(-1, k, self.n_outputs))
        return np.asarray(calibration.factor * np.sqrt(variance))

    def coverage(self, X: Array, threads: Threads = ALONE) -> Array:
        """The share of the prediction that comes from regions, times how near their points are, (q,): one inside the data."""
        self._check(X)
        evaluator = self.evaluator(len(X))
        return self.reference_coverage(X, threads) if evaluator is None else evaluator.coverage(X, threads)

    def reference_coverage(self, X: Array, threads: Threads = ALONE) -> Array:
        """The same by NumPy."""
        Q = self.space.coordinates(self.embed(X))
        out = np.empty(len(Q))

        def fill(query: Index) -> None:
            out[query] = coverage(self.levels, gather(Q, query).T, self.weight, self.w0)

        in_chunks(Q, 8 * self.region_size, fill, threads)
        return out

    def contributions(self, x: Array) -> list[Contribution]:
        """The contributions of regions to the prediction at one point ``x`` (d,), the largest share (mean over outputs) first."""
        return explain(self, x)

    def left_out(self, threads: Threads = ALONE) -> LeftOut:
        """Leave-one-out predictions, kept once computed; with groups, only of points that lie between others."""
        if "_left_out" not in vars(self):
            found: LeftOut = leave_out_points(self, threads)
            object.__setattr__(self, "known_loo_error", float(np.sqrt(np.mean(found.errors() ** 2))))
            object.__setattr__(self, "_left_out", found)
        found = vars(self)["_left_out"]
        return found

    def loo_error(self, threads: Threads = ALONE) -> float:
        """Root mean squared leave-one-out error, computed at first use."""
        if self.known_loo_error is None:
            self.left_out(threads)
        return self.known_loo_error  # type: ignore[return-value]
