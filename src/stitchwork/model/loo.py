"""Leave-one-out residuals of the stitched prediction, in closed form.

Leaving point i out of every region that holds it changes its prediction to Σ_j w_j f_{j,-i}(x_i) / W, so the residual of the
stitched model is the weighted mean of the regions' own, α_i / B_ii. With groups, i stands for all points of a group. A
group that leaves a region too few points to predict it is judged by the next level of thinner samples, if there is one. Predictions
without a point have the same bounds as those with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.batch import batch_size, from_center
from ..local.blocks import BlockModels
from ..local.fit import stack_residuals
from ..local.groups import find_together
from ..local.points import Points
from ..local.radial import Radial
from .stitch import Level, Regions, distinct_levels


class LeftOut(NamedTuple):
    """Distinct points (n, d), responses (n, t), leave-one-out residuals (n, t), weights (n,) and rows (n,) of the data.

    Where a place was observed more than once, its response is a mean, and ``spread`` (t,) has the sums of squares about these.
    """

    X: Array
    y: Array
    residual: Array
    v: Array
    row: Index
    spread: Array | float = 0.0

    def errors(self) -> Array:
        """Root mean squared error of single observations of each output, (t,), every point with its weight."""
        return np.asarray(np.sqrt((self.v @ self.residual**2 + self.spread) / self.v.sum()))


def stitched_loo_residuals(
    points: Points, levels: Sequence[Level], weight: Radial, threads: Threads = ALONE
) -> tuple[Array, NDArray[np.bool_]]:
    """Leave-one-out residuals (n, t) of every point, and whether there is one (n,).

    ``levels`` have different regions, whose hyperparameters and supports stay.
    """
    residuals, known = np.zeros(points.y.shape), np.zeros(len(points.X), dtype=bool)
    for level in levels:
        total, W = _sum_residuals(points, level, weight, threads)
        new = ~known & (W > 0.0)
        residuals[new], known[new] = total[new] / W[new, None], True
        if known.all():
            break
    if not known.any():  # no group lies between others: leave out single points
        return stitched_loo_residuals(points._replace(group=None), levels, weight, threads)
    return residuals, known


def levels_over(points: Points, levels: Sequence[Level]) -> list[Level]:
    """The levels with different regions over ``points``, without coarse ones of data in parts: these have a sample of their own."""
    distinct = distinct_levels(levels)
    return [level for level in distinct if not isinstance(level.models, BlockModels) or level.models.points is points]


def sampled_residuals(points: Points, level: Level, weight: Radial, threads: Threads, regions: Index) -> tuple[Array, Index]:
    """Residuals (k, t) of those points that some of the ``regions`` hold, as these alone have them, and the points (k,)."""
    total, W = _sum_residuals(points, level, weight, threads, regions)
    seen = np.flatnonzero(W > 0.0)
    return total[seen] / W[seen, None], seen


def _sum_residuals(
    points: Points, level: Level, weight: Radial, threads: Threads, some: Index | None = None
) -> tuple[Array, Array]:
    """Sums over the regions of a level, or over ``some`` of them: weighted residuals (n, t), and weights (n,), zero where no region
    judges a point.
    """
    models = level.models
    if not isinstance(models, BlockModels):
        raise AttributeError("Leave-one-out has a closed form for the built-in local models only.")
    members, radii = models.members, level.regions.radii

    def weigh(regions: Index) -> tuple[Array, Array]:
        (w,) = weight(from_center(points.X, members[regions], level.regions.centers[regions], radii[regions]) / level.reach**2)
        # A point on the border of its only region counts by that region.
        w = np.maximum(w, np.finfo(float).eps)
        if level.regions.portion is not None:
            w *= level.regions.portion[regions, None]
        together = find_together(points, members[regions])
        if together is not None:
            w *= together.judged
        if points.slopes is not None:  # a location without a response has no residual
            w *= points.measured[members[regions]]
        e = point_residuals(points, models, regions)
        e = hold_residuals(level.regions, regions, points.y[members[regions]], e)
        return e if level.regions.output_factor is None else level.regions.output_factor[regions][:, None] * e, w

    some = np.arange(len(members)) if some is None else some
    stacks = [some[stack] for stack in models.settings.at(some).stacks(batch_size(members.shape[1] * points.equations))]
    n, t = points.y.shape
    total, W = np.zeros((n, t)), np.zeros(n)
    for regions, (e, w) in zip(stacks, threads.map(weigh, stacks, "leave-one-out"), strict=True):
        held = members[regions].ravel()
        np.add.at(W, held, w.ravel())
        np.add.at(total, held, (w[..., None] * e).reshape(-1, t))
    return total, W


def point_residuals(points: Points, models: BlockModels, regions: Index) -> Array:
    """Residuals (B, h, t) in ``regions`` (B,) of one kind, from factors or, with groups or slopes, from eigenvectors.

    ``points`` are those of the models, perhaps without their groups.
    """
    alone = models if points.group is models.points.group else replace(models, points=points)
    found = alone.leave_out(regions)
    if found is None:
        return stack_residuals(points, models.members[regions], models.settings.at(regions))
    return found[0] / np.sqrt(points.v[models.members[regions]])[..., None]


def hold_residuals(regions: Regions, which: Index, y: Array, e: Array) -> Array:
    """Residuals after the leave-one-out predictions y - ``e`` (B, h, t) of the regions ``which`` (B,) are bounded."""
    if regions.bounds is None:
        return e
    own = regions.bounds.at(which[:, None])
    beyond = own.beyond(y - e)
    return np.where(beyond, y - own.saturate(y - e)[0], e) if beyond.any() else e
