"""Fit the block systems of many regions, and compute their leave-one-out residuals.

POLY is the block system with a kernel that is zero, KRR the one with no polynomial, so one path serves all three.
"""

from __future__ import annotations

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array, Index
from .batch import batch_size, is_rough, make_batch
from .blocks import BlockModels
from .factors import CACHE, factorise_regions, solve_systems
from .groups import weigh_judged
from .points import Points
from .polynomial import monomials
from .settings import Settings
from .system import spectrum


def fit_blocks(points: Points, members: Index, settings: Settings, threads: Threads = ALONE, keep: bool = False) -> BlockModels:
    """Fit the block system of the region of each row of ``members`` (m, h) at its own settings; factors may be kept."""
    m, h = members.shape
    d, t = points.X.shape[1], points.y.shape[1]
    origin, scale, sigma, alpha = np.empty((m, d)), np.empty(m), np.empty(m), np.empty((m, h, t))
    lam = np.zeros((m, len(monomials(d, settings.highest_degree)), t))
    beta = None if points.slopes is None else np.empty((m, h, t, d))
    models = BlockModels(points, members, origin, scale, settings, sigma, alpha, lam, beta)

    def fit_stack(regions: Index) -> None:
        kernel, own = settings.kernels[settings.kernel[regions[0]]], settings.at(regions)
        batch = make_batch(points, members[regions], is_rough([kernel]), settings.local_metric_of(regions[0]), own.slope_weights)
        factors, L = factorise_regions(batch, kernel, own)
        if keep and points.slopes is None:
            CACHE.keep(models.owner, regions, factors)
        a, coefficients = solve_systems(factors, batch.weighted_y, L)
        alpha[regions] = a[:, :h]
        lam[regions, : coefficients.shape[1]] = coefficients
        sigma[regions] = batch.sigma(kernel, own.bandwidth)
        if beta is not None and batch.slopes is not None:
            along = a[:, h:].reshape(*batch.slopes.shape[:3], t)
            beta[regions] = np.einsum("bhkt,bhkd->bhtd", along, batch.slopes) / sigma[regions, None, None, None]
        origin[regions], scale[regions] = batch.origin, batch.scale

    threads.map(fit_stack, settings.stacks(batch_size(h * points.equations)), "fit")
    return models


def stack_residuals(points: Points, members: Index, settings: Settings) -> Array:
    """Leave-one-out residuals (B, h, t) in regions of one kernel and degree; a point is left out with its slopes and its group."""
    kernel = settings.kernels[settings.kernel[0]]
    batch = make_batch(points, members, is_rough([kernel]), settings.local_metric_of(0), settings.slope_weights)
    K, R, _ = batch.system(kernel, settings.bandwidth, int(settings.degree[0]), settings.tolerance)
    e = batch.leave_out(spectrum(K, R.U), settings.ridge[:, None])[0][:, : batch.h, :, 0]
    if batch.root_v is None:
        return e
    root_v = batch.root_v[:, : batch.h, None]
    return np.divide(e, root_v, out=np.zeros_like(e), where=root_v > 0.0)  # what was not measured has no residual


def region_errors(points: Points, members: Index, settings: Settings, threads: Threads = ALONE) -> Array:
    """Mean squared leave-one-out residual of each region by itself, (m,)."""

    def error_of(regions: Index) -> Array:
        w = weigh_judged(points, members[regions], np.ones(members[regions].shape))
        e2 = np.square(stack_residuals(points, members[regions], settings.at(regions))).mean(axis=2)
        return np.asarray(np.einsum("bh,bh->b", w, e2) / w.sum(axis=1))

    stacks = settings.stacks(batch_size(members.shape[1]))
    found = np.empty(len(members))
    for regions, errors in zip(stacks, threads.map(error_of, stacks), strict=True):
        found[regions] = errors
    return found
