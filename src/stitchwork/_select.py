"""Choosing kernel, degree, bandwidth and ridge of every region.

All ways share one path: a `Grid` of candidates, a table of scores for them, and the settings with the best score. The score
is the log of the mean squared leave-one-out residual, in closed form from one factorisation per (kernel, degree, bandwidth)
for all ridges, each point counted by the weight with which its region speaks there. Regions do not choose alone: log scores
are averaged over neighbouring regions, since a hundred points are too few to tell close candidates apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ._blocks import Settings, batch_size, from_center, is_rough, region_batch
from ._cover import Cover
from ._linalg import loo_residuals, spectrum
from ._local import Points
from ._loo import region_loo_errors
from ._parallel import parallel_map, slices
from ._radial import KERNEL_NAMES, NO_KERNEL, Radial, kernel_named

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAPER_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 5.0)
PAPER_RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
AUTO_RIDGES = tuple(10.0**-k for k in range(-1, 15))
FIXED_BANDWIDTH = 1.0
FIXED_RIDGE = 1e-6
RESPONSE_RIDGE = 1e-4  # "about 0.01% of the average response value" (paper, section 3.1)

_SCREENED_POINTS = 3200  # the whole grid is tried on regions with so many points, the others try what was worth it there
_JUDGES = 64  # regions on which a change of all of them is judged
_LITTLE_LOST = 0.02  # what a trusted rank may cost in log squared error: one per cent of the error
_NEGLIGIBLE = 1e-8  # errors below this share of the response's deviation count as none
_JITTER = 1e-6  # share of the response's deviation in a region that rounding may make of a prediction
_POOLED_REGIONS = 10
_CLEARLY = 2.0  # standard errors by which a neighbourhood must speak for a choice of its own
_HARDNESS = 0.25  # power of the squared errors that is averaged over regions
_RIDGE_STEPS = 3  # local ridges are at most so many steps of the grid, powers of ten, from the common one
_KEPT_SHAPES = 3
_WORTH_A_SHAPE = 0.02  # gain in mean log squared error for which another shape is kept: one per cent of the error


class Shape(NamedTuple):
    """What one factorisation serves: index of the kernel, degree, bandwidth in units of b."""

    kernel: int
    degree: int
    bandwidth: float


@dataclass(frozen=True)
class Grid:
    """Candidates: every shape with every ridge."""

    kernels: tuple[Radial, ...]
    shapes: tuple[Shape, ...]
    ridges: Array

    def __len__(self) -> int:
        return len(self.shapes) * len(self.ridges)

    def settings(self, candidate: Index, tolerance: Array | float) -> Settings:
        """Settings of regions that chose ``candidate`` (m,), an index into shapes × ridges, at this tolerance of the rank."""
        tolerance = np.broadcast_to(tolerance, candidate.shape).astype(float)
        shape, ridge = np.divmod(candidate, len(self.ridges))
        kernel, degree, bandwidth = (np.array(column) for column in zip(*self.shapes, strict=True))
        return Settings(self.kernels, kernel[shape], bandwidth[shape].astype(float), self.ridges[ridge], degree[shape], tolerance)


def make_grid(kernels: Sequence[Radial], degrees: Sequence[int], bandwidths: Sequence[float], ridges: Sequence[float]) -> Grid:
    """All combinations that make sense: a scale-free kernel has one bandwidth, and no degree below its least.

    No ``bandwidths`` means those where the search of each kernel starts.
    """
    shapes: dict[Shape, None] = {}
    for index, kernel in enumerate(kernels):
        for degree in degrees:
            for bandwidth in (1.0,) if kernel.scale_free else bandwidths or kernel.bandwidths:
                shapes[Shape(index, max(degree, kernel.least_degree), float(bandwidth))] = None
    return Grid(tuple(kernels), tuple(shapes), np.asarray(ridges, dtype=float))


def candidate_kernels(name: str, local_model: str, h: int, d: int, smoothness: float) -> tuple[Radial, ...]:
    """Kernels of that public name; ``"auto"`` names those that keep the promised ``smoothness`` and leave points to the kernel."""
    if local_model == "poly":
        return (NO_KERNEL,)
    if name != "auto":
        return (kernel_named(name, d),)
    promised = min(smoothness, 2)
    most = auto_degrees(h, d)[-1] if local_model == "krr-poly" else -1
    usual = [kernel_named(name, d) for name in KERNEL_NAMES if name not in ("wendland", "matern72")]
    kept = tuple(k for k in usual if k.smoothness >= promised and k.least_degree <= most)
    return kept


def auto_region_size(n: int, d: int) -> int:
    """100 points in up to three dimensions; beyond them up to 400 while n h² stays moderate, since tables are noisy and sparse."""
    return 100 if d <= 3 else int(np.clip(200.0 * np.sqrt(1e4 / n), 100, 400))


def auto_degrees(h: int, d: int) -> tuple[int, ...]:
    """No polynomial, or a degree that leaves most of a region's ``h`` points to the kernel."""
    return tuple(degree for degree in (-1, 0, 1, 2, 3, 4) if comb(degree + d, d) <= max(h // 3, 1))


def auto_overlap(X: Array, h: int) -> float:
    """Overlap that multiplies the regions of the paper's cover by about four: 1 on a surface, 0.15 in ten dimensions.

    The dimension is that of the points ``X`` (n, d), not of their space: 4 times the points are found within 4^(1/dimension) times
    the distance.
    """
    if h < 8 or len(X) <= h:
        return 0.0
    sample = spread_sample(len(X), 256)
    near, far = cKDTree(X).query(X[sample], k=[max(h // 4, 2), h])[0].T
    usable = near > 0.0
    growth = float(np.median(far[usable] / near[usable])) if usable.any() else 1.0
    return float(np.clip(growth - 1.0, 0.0, 1.0))


def output_scale(points: Points) -> Array:
    """Deviation of each output, (t,), 1 where it is constant."""
    scale = points.y.std(axis=0)
    return np.where(scale > 0.0, scale, 1.0)


def even_outputs(points: Points, scale: Array | None = None) -> Points:
    """The points with responses of unit deviation, so that outputs of any size count alike."""
    return points._replace(y=points.y / (output_scale(points) if scale is None else scale))


class Scorer(NamedTuple):
    """Leave-one-out scores of regions: what they need to know besides the grid; outputs of the points have unit deviation.

    ``reach`` is the share of its radius within which a region speaks; points count by the weight with which it does so at them.
    """

    points: Points
    cover: Cover
    tolerance: float
    weight: Radial
    reach: float
    n_jobs: int | None
    progress: str | None

    def scores(self, regions: Index, grid: Grid) -> Array:
        """Log mean squared leave-one-out residuals, (len(regions), shapes, ridges)."""
        rough = is_rough([grid.kernels[shape.kernel] for shape in grid.shapes])

        def score(part: slice) -> Array:
            batch = region_batch(self.points, self.cover, regions[part], rough)
            (w,) = self.weight(from_center(self.points, self.cover, regions[part]) / self.reach**2)
            if len(self.cover) == 1:
                w[:] = 1.0  # where one region answers for everything, its centre means nothing
            w = w + 1e-3  # a region with few points within its reach is judged by the others, too
            w /= w.sum(axis=1, keepdims=True)
            table = np.empty((len(w), len(grid.shapes), len(grid.ridges)))
            for i, (kernel, degree, bandwidth) in enumerate(grid.shapes):
                K, R, _ = batch.system(grid.kernels[kernel], np.full(len(w), bandwidth), degree, self.tolerance)
                residuals, alpha = loo_residuals(spectrum(K, R.U), batch.weighted_y, grid.ridges)
                table[:, i] = np.einsum("bh,bhte->be", w, residuals * residuals) * _jitter_penalty(alpha, batch.y)
            return np.log(table + _NEGLIGIBLE**2)

        parts = slices(len(regions), batch_size(self.cover.members.shape[1]))
        return np.concatenate(parallel_map(score, parts, self.n_jobs, self.progress))


def _jitter_penalty(alpha: Array, y: Array) -> Array:
    """1 + (ε Σ|α| / jitter that may be)², (B, e): what rounding makes of coefficients that are huge and cancel.

    On noisy data a wide kernel with a tiny ridge is a polynomial in disguise. It may predict as well as others, but its
    coefficients are the noise divided by the ridge.
    """
    jitter = np.finfo(float).eps * np.abs(alpha).sum(axis=1).max(axis=1)
    allowed = _JITTER * np.maximum(y.std(axis=1).max(axis=1), _NEGLIGIBLE)
    return 1.0 + (jitter / allowed[:, None]) ** 2


def search(scorer: Scorer, grid: Grid, moves: Sequence[Callable[[Grid], Grid]]) -> Grid:
    """Narrow the grid to the few shapes worth having on a sample of regions, then vary one thing after the other about them."""
    sample = telling_sample(scorer)
    centers = scorer.points.X[scorer.cover.center[sample]]
    known: dict[Shape, Array] = {}
    for move in (lambda grid: grid, *moves):
        grid = move(grid)
        new = replace(grid, shapes=tuple(shape for shape in grid.shapes if shape not in known))
        if new.shapes:
            known |= dict(zip(new.shapes, np.moveaxis(scorer.scores(sample, new), 1, 0), strict=True))
        if len(grid.shapes) > 1:
            grid = narrowed(grid, np.stack([known[shape] for shape in grid.shapes], axis=1), centers)
    return grid


def local_spread(scorer: Scorer) -> Array:
    """Deviation of the responses in each region, (m,)."""
    members = scorer.cover.members
    parts = [scorer.points.y[members[part]].std(axis=1).mean(axis=1) for part in slices(len(members), 8192)]
    return np.concatenate(parts)


def telling_sample(scorer: Scorer) -> Index:
    """Regions to try the grid on: one half at random, the other from the quarter in which the responses vary most."""
    size = max(_SCREENED_POINTS // scorer.cover.members.shape[1], 4)
    m = len(scorer.cover)
    if m <= size:
        return np.arange(m)
    lively = np.argsort(-local_spread(scorer), kind="stable")[: max(m // 4, size // 2)]
    return np.union1d(spread_sample(m, size // 2), lively[spread_sample(len(lively), size // 2)])


def with_trusted_rank(scorer: Scorer, settings: Settings, error: Array) -> Settings:
    """Settings whose tolerances of the rank follow the ``error`` (m,) that the regions expect.

    An error e in the responses moves the polynomial by some e / s along a direction of singular value s: by more than the spread of
    the responses, where the points hardly extend along it, as across a ship's track. Such directions are left out, unless
    leave-one-out shows a loss, and but for kernels that are positive definite only beside all linear functions: without one of them
    their system may be singular.
    """
    spread, h = local_spread(scorer), scorer.cover.members.shape[1]
    share = np.divide(error, spread, out=np.zeros_like(error), where=spread > 0.0)
    tolerance = np.clip(3.0 * share / np.sqrt(h), scorer.tolerance, 0.3)
    bound = np.array([kernel.least_degree >= 1 for kernel in settings.kernels])[settings.kernel]
    trusting = replace(settings, tolerance=np.where(bound, scorer.tolerance, tolerance))
    touched = np.flatnonzero(trusting.tolerance > settings.tolerance)
    if not len(touched):
        return settings
    judges = touched[spread_sample(len(touched), _JUDGES)]
    before, after = (
        overall(np.log(region_loo_errors(scorer.points, scorer.cover, choice, judges, scorer.n_jobs) + _NEGLIGIBLE**2))
        for choice in (settings, trusting)
    )
    return trusting if after < before + _LITTLE_LOST else settings


def overall(scores: Array) -> Array:
    """One score for all regions from log squared errors (r, ...): between their mean, which the many easy regions decide, and the
    log of the mean squared error, which the few hard ones do.
    """
    top = scores.max(axis=0)
    return top + np.log(np.exp(_HARDNESS * (scores - top)).mean(axis=0)) / _HARDNESS


def overall_sum(scores: Array) -> Array:
    """The log of the sum that `overall` takes the mean of, for parts of the regions: `overall` is `overall_mean` of all parts."""
    return np.asarray(np.logaddexp.reduce(_HARDNESS * scores, axis=0))


def overall_mean(sums: Sequence[tuple[Array, int]]) -> Array:
    """`overall` of all regions from `overall_sum` and the number of regions of each part."""
    total = np.logaddexp.reduce([part for part, _ in sums], axis=0)
    return np.asarray((total - np.log(sum(count for _, count in sums))) / _HARDNESS)


def choose_candidates(scores: Array, centers: Array, at: Array, common: int | None = None) -> tuple[Index, Array]:
    """Index into shapes × ridges for regions at ``at`` (m, d), from scores (r, shapes, ridges) of regions at ``centers`` (r, d),
    and the log squared error to expect.

    The ``common`` candidate, by default that with the best mean over all regions, is the choice unless the neighbourhood speaks
    clearly for another: with D the difference of a candidate's score and that one's over the nearest regions, a region takes the
    least mean(D) + z se(D), among ridges not too far from the common one: leave-one-out hardly sees what a ridge far too small
    does between points that nearly coincide.
    """
    table = scores.reshape(len(scores), -1)
    common = int(overall(table).argmin()) if common is None else common
    D = table - table[:, [common]]
    steps = np.abs(np.arange(D.shape[1]) % scores.shape[2] - common % scores.shape[2])
    far = steps > _RIDGE_STEPS
    k = min(_POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(at, k=np.arange(1, k + 1))
    mean, square = np.zeros((len(at), D.shape[1])), np.zeros((len(at), D.shape[1]))
    for column in nearest.T:
        mean += D[column]
        square += D[column] ** 2
    mean /= k
    error = np.sqrt(np.maximum(square / k - mean * mean, 0.0) / max(k - 1, 1))
    pessimistic = mean + _CLEARLY * error
    pessimistic[:, far] = np.inf
    candidate = pessimistic.argmin(axis=1)
    return candidate, table[nearest, common].mean(axis=1) + mean[np.arange(len(at)), candidate]


def narrowed(grid: Grid, scores: Array, centers: Array) -> Grid:
    """The few shapes that together serve the regions of a sample nearly as well as all do, from scores (r, shapes, ridges)."""
    k = min(_POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(centers, k=np.arange(1, k + 1))
    best = scores[nearest].mean(axis=1).min(axis=2)  # (r, shapes), each shape at its best ridge in the neighbourhood
    chosen = [_smoothest(grid, scores, int(overall(scores).min(axis=1).argmin()))]
    while len(chosen) < min(_KEPT_SHAPES, best.shape[1]):
        so_far = best[:, chosen].min(axis=1, keepdims=True)
        gain = np.maximum(so_far - best, 0.0).mean(axis=0)
        if gain.max() < _WORTH_A_SHAPE:
            break
        chosen.append(int(gain.argmax()))
    return Grid(grid.kernels, tuple(grid.shapes[i] for i in chosen), grid.ridges)


def _smoothest(grid: Grid, scores: Array, best: int) -> int:
    """The shape that is like ``best`` but with the largest bandwidth that is not worse by a standard error."""
    at_ridge = np.take_along_axis(scores, overall(scores).argmin(axis=1)[None, :, None], axis=2)[..., 0]  # (r, shapes)
    choice = best
    for i, shape in enumerate(grid.shapes):
        alike = shape._replace(bandwidth=0.0) == grid.shapes[best]._replace(bandwidth=0.0)
        if alike and shape.bandwidth > grid.shapes[choice].bandwidth:
            D = at_ridge[:, i] - at_ridge[:, best]
            if D.mean() <= D.std() / np.sqrt(len(D)):
                choice = i
    return choice


def with_degrees(grid: Grid, degrees: Sequence[int]) -> Grid:
    """The grid with every shape at each of ``degrees``."""
    least = [kernel.least_degree for kernel in grid.kernels]
    shapes = dict.fromkeys(shape._replace(degree=max(k, least[shape.kernel])) for shape in grid.shapes for k in degrees)
    return replace(grid, shapes=tuple(dict.fromkeys((*grid.shapes, *shapes))))


def with_bandwidths(grid: Grid, factor: float) -> Grid:
    """The grid with every shape also at ``factor`` times and 1 / ``factor`` of its bandwidth."""
    free = [kernel.scale_free for kernel in grid.kernels]
    shapes = [s._replace(bandwidth=s.bandwidth * f) for s in grid.shapes for f in (factor, 1.0 / factor) if not free[s.kernel]]
    return replace(grid, shapes=tuple(dict.fromkeys((*grid.shapes, *shapes))))


def spread_sample(m: int, size: int) -> Index:
    """At most ``size`` of m regions, in order."""
    return np.arange(m) if m <= size else np.sort(np.random.default_rng(0).permutation(m)[:size])
