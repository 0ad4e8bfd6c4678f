"""Responses and slopes that all others contradict: by how much a region fits better without them.

With B as in `local.system`, yᵀBy is the sum of squares that a region leaves, in units of its noise. Without the equations G it
falls by α_Gᵀ (B_GG)⁻¹ α_G, so that with g equations in G, N in all and a polynomial of rank p

    F = (α_Gᵀ (B_GG)⁻¹ α_G / g) / ((yᵀBy − α_Gᵀ (B_GG)⁻¹ α_G) / (N − p − g))

compares G with the rest, in which it has no part. This is the F statistic of a shift in G (Cook and Weisberg 1982, section 2.2). G
is either the response of a location or all of its slopes. Where the errors of
one kind are larger than the weights say, F is relative to them: the denominator is at least the median of the numerators of all
responses, or of all slopes. Regions are averaged by
their weights at the location, F in logs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.batch import batch_size, from_center
from ..local.hermite import solve_small
from ..local.variance import Stack
from .deviation import blocks_of

# Threshold of F. In fits of twelve functions to 20 and 50 runs, and of fields, the largest F was 1 to 20; slopes with a wrong sign
# had 20 to 1500, wherever the function was known at all.
_CONTRADICTED = 20.0
_NEXT_TO = 0.1  # of the largest F in a region: a smaller F is attributed to that location
_LEAST_WEIGHT = 1e-12  # of a region at its own members, so that those on its border count


class Deleted(NamedTuple):
    """Of n locations: F (n, 2, t) of the response and of the slopes, and leave-one-out residuals (n, k, t) of slopes.

    ``largest`` (n, t) is the largest F in regions that hold the location.
    """

    F: Array
    residual: Array
    largest: Array

    def contradicted(self) -> NDArray[np.bool_]:
        """Whether all others contradict the response or the slopes of each location, (n, 2)."""
        return np.asarray(((self.F > _CONTRADICTED) & (_NEXT_TO * self.largest[:, None] <= self.F)).any(axis=2))


def delete_equations(model: Any, threads: Threads = ALONE) -> Deleted:
    """Compare the response and the slopes of every location with all other data; F is zero where nothing was measured."""
    level, points = model.levels[0], model.points
    models = blocks_of(level.regions)
    (n, t), k = points.y.shape, points.equations - 1
    used = np.stack([points.measured, (points.slopes.weight[:, 1:] > 0.0).any(axis=1)], axis=1)

    def compare(regions: Index) -> tuple[Array, Array, Array]:
        members, stack = models.members[regions], Stack(points, models.members[regions], models.settings.at(regions))
        far = from_center(points.X, members, level.regions.centers[regions], level.regions.radii[regions])
        (w,) = model.weight(far / level.reach**2)
        w = np.maximum(w, _LEAST_WEIGHT) * (1.0 if level.regions.portion is None else level.regions.portion[regions, None])
        return w, *compare_equations(stack)

    stacks = models.settings.stacks(batch_size(models.members.shape[1] * points.equations))
    log_F, residual, largest, W = np.zeros((n, 2, t)), np.zeros((n, k, t)), np.zeros((n, t)), np.zeros(n)
    for regions, (w, F, away) in zip(stacks, threads.map(compare, stacks, "slopes"), strict=True):
        members = models.members[regions]
        F = F * used[members][..., None]
        np.add.at(W, members, w)
        np.add.at(log_F, members, w[..., None, None] * np.log(np.maximum(F, np.finfo(float).tiny)))
        np.add.at(residual, members, w[..., None, None] * away)
        np.maximum.at(largest, members, np.broadcast_to(F.max(axis=(1, 2))[:, None], (*members.shape, t)))
    F = np.exp(log_F / W[:, None, None]) * used[..., None]
    return Deleted(F, residual / W[:, None, None], largest)


def compare_equations(stack: Stack) -> tuple[Array, Array]:
    """F (B, h, 2, t) of the response and of the slopes of each member of some regions, and residuals (B, h, k, t) of slopes."""
    batch, h, k = stack.batch, stack.batch.h, stack.h // stack.batch.h - 1
    B = stack.inverse()
    alpha = B @ batch.weighted_y
    left = np.einsum("bht,bht->bt", batch.weighted_y, alpha)[:, None]  # (B, 1, t)
    root_v = np.ones(alpha.shape[:2]) if batch.root_v is None else batch.root_v
    free, found, residual = (root_v > 0.0).sum(axis=1) - stack.rank, [], alpha[:, :0]
    for rows in (np.arange(h)[:, None], h + np.arange(h)[:, None] * k + np.arange(k)):
        own = B[:, rows[:, :, None], rows[:, None, :]]
        residual, _ = solve_small(own, alpha[:, rows], np.zeros_like(alpha[:, rows]))
        g = (root_v[:, rows] > 0.0).sum(axis=2)[..., None]
        fall = np.maximum(np.einsum("bhgt,bhgt->bht", alpha[:, rows], residual), 0.0)
        rest = np.maximum(left - fall, np.finfo(float).eps * left) / np.maximum(free[:, None, None] - g, 1)
        fall = fall / np.maximum(g, 1)
        usual = _medians(fall, g[..., 0] > 0) / chi2_median(rows.shape[1])
        rest = np.maximum(rest, usual[:, None])
        found.append(fall / np.maximum(rest, np.finfo(float).tiny))
    assert batch.slope_units is not None
    unit = (root_v[:, h:] * batch.slope_units).reshape(-1, h, k, 1)
    return np.stack(found, axis=2), np.divide(residual, unit, out=np.zeros_like(residual), where=unit > 0.0)


def _medians(values: Array, some: NDArray[np.bool_]) -> Array:
    """Medians (B, t) of ``values`` (B, h, t) over ``some`` (B, h) of the members; zero of none."""
    return np.array([np.median(one[own], axis=0) if own.any() else 0.0 * one[0] for one, own in zip(values, some, strict=True)])


def chi2_median(g: int) -> float:
    """The median of χ² / g with g degrees of freedom, by Wilson and Hilferty."""
    return float((1.0 - 2.0 / (9.0 * g)) ** 3)
