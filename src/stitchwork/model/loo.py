"""Leave-one-out residuals of the stitched prediction, in closed form.

Leaving point i out of every region that holds it changes its prediction to Σ_j w_j f_{j,-i}(x_i) / W, so the residual of the
stitched model is the weighted mean of the regions' own, α_i / B_ii.
"""

from __future__ import annotations

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array, Index
from ..local.batch import batch_size, from_center
from ..local.blocks import BlockModels
from ..local.fit import stack_residuals
from ..local.points import Points
from ..local.radial import Radial
from .stitch import Level


def stitched_loo_residuals(points: Points, level: Level, weight: Radial, threads: Threads = ALONE) -> Array:
    """Residuals (n, t) of every point, had it been left out; regions, their settings and their reach are kept."""
    models = level.models
    if not isinstance(models, BlockModels):
        raise AttributeError("Leave-one-out has a closed form for the built-in local models only.")
    members, radii = models.members, level.regions.radii

    def weigh(regions: Index) -> tuple[Array, Array]:
        (w,) = weight(from_center(points.X, members[regions], radii[regions]) / level.reach**2)
        # A point on the border of its only region counts by that region.
        w = np.maximum(w, np.finfo(float).eps)
        if level.regions.share is not None:
            w *= level.regions.share[regions, None]
        return stack_residuals(points, members[regions], models.settings.at(regions)), w

    stacks = models.settings.stacks(batch_size(members.shape[1]))
    n, t = points.y.shape
    total, W = np.zeros((n, t)), np.zeros(n)
    for regions, (e, w) in zip(stacks, threads.map(weigh, stacks), strict=True):
        held = members[regions].ravel()
        np.add.at(W, held, w.ravel())
        np.add.at(total, held, (w[..., None] * e).reshape(-1, t))
    return total / W[:, None]
