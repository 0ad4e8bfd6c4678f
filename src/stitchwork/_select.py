"""Choosing kernel, degree, bandwidth and ridge of every region.

All ways share one path: a `Grid` of candidates, a table of scores for them, and the settings with the best score. The score
is the log of the mean squared leave-one-out residual, in closed form from one factorisation per (kernel, degree, bandwidth)
for all ridges, each point counted by the weight with which its region speaks there. Regions do not choose alone: log scores
are averaged over neighbouring regions, since a hundred points are too few to tell close candidates apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ._cover import Cover
from ._linalg import loo_residuals, spectrum
from ._local import Points, Settings, batch_size, is_rough, region_batch
from ._parallel import parallel_map, slices
from ._radial import KERNEL_NAMES, NO_KERNEL, Radial, kernel_named

Array = NDArray[np.float64]
Index = NDArray[np.intp]

PAPER_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 5.0)
PAPER_RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
AUTO_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
AUTO_RIDGES = tuple(10.0**-k for k in range(-1, 15))
FIXED_BANDWIDTH = 1.0
FIXED_RIDGE = 1e-6
RESPONSE_RIDGE = 1e-4  # "about 0.01% of the average response value" (paper, section 3.1)

_POOLED_REGIONS = 10


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

    def settings(self, candidate: Index) -> Settings:
        """Settings of regions that chose ``candidate`` (m,), an index into shapes × ridges."""
        shape, ridge = np.divmod(candidate, len(self.ridges))
        kernel, degree, bandwidth = (np.array(column) for column in zip(*self.shapes, strict=True))
        return Settings(self.kernels, kernel[shape], bandwidth[shape].astype(float), self.ridges[ridge], degree[shape])


def make_grid(kernels: Sequence[Radial], degrees: Sequence[int], bandwidths: Sequence[float], ridges: Sequence[float]) -> Grid:
    """All combinations that make sense: a scale-free kernel has one bandwidth, and no degree below its least."""
    shapes: dict[Shape, None] = {}
    for index, kernel in enumerate(kernels):
        for degree in degrees:
            for bandwidth in (1.0,) if kernel.scale_free else bandwidths:
                shapes[Shape(index, max(degree, kernel.least_degree), float(bandwidth))] = None
    return Grid(tuple(kernels), tuple(shapes), np.asarray(ridges, dtype=float))


def candidate_kernels(name: str, local_model: str, d: int, smoothness: float) -> tuple[Radial, ...]:
    """Kernels of that public name; ``"auto"`` names those that keep the promised ``smoothness``."""
    if local_model == "poly":
        return (NO_KERNEL,)
    if name != "auto":
        return (kernel_named(name, d),)
    promised = min(smoothness, 2)
    usual = [kernel_named(name, d) for name in KERNEL_NAMES if name not in ("wendland", "matern72")]
    kept = tuple(k for k in usual if k.smoothness >= promised and (local_model == "krr-poly" or k.least_degree < 0))
    return kept


def loo_scores(
    points: Points,
    cover: Cover,
    regions: Index,
    grid: Grid,
    tolerance: float,
    weight: Radial,
    n_jobs: int | None = None,
    progress: str | None = None,
) -> Array:
    """Log mean squared leave-one-out residuals, (len(regions), shapes, ridges)."""
    h = cover.members.shape[1]
    rough = is_rough(grid.kernels)

    def score(part: slice) -> Array:
        batch = region_batch(points, cover, regions[part], rough)
        (w,) = weight(np.einsum("bhd,bhd->bh", batch.Z, batch.Z))
        w = w + 1e-3  # a region that speaks nowhere but at its centre still is judged by its points
        w /= w.sum(axis=1, keepdims=True)
        table = np.empty((len(batch.Z), len(grid.shapes), len(grid.ridges)))
        for i, (kernel, degree, bandwidth) in enumerate(grid.shapes):
            K, R, _ = batch.system(grid.kernels[kernel], np.full(len(batch.Z), bandwidth), degree, tolerance)
            residuals = loo_residuals(spectrum(K, R.U), batch.weighted_y, grid.ridges)
            table[:, i] = np.einsum("bh,bhte->be", w, residuals * residuals)
        return np.log(table + np.finfo(float).tiny)

    parts = slices(len(regions), batch_size(h))
    return np.concatenate(parallel_map(score, parts, n_jobs, progress))


def pooled(scores: Array, centers: Array, at: Array) -> Array:
    """Scores (r, ...) of regions at ``centers`` (r, d), averaged over those nearest to each of ``at`` (m, d)."""
    k = min(_POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(at, k=np.arange(1, k + 1))
    return scores[nearest].mean(axis=1)


def best_candidates(scores: Array) -> Index:
    """Index into shapes × ridges of the least score, for scores (m, shapes, ridges)."""
    return scores.reshape(len(scores), -1).argmin(axis=1)
