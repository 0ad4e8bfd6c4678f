"""Leave-one-out residuals of the stitched prediction, in closed form.

Leaving point i out of every region that holds it changes its prediction to Σ_j w_j f_{j,-i}(x_i) / W, so the residual of the
stitched model is the weighted mean of the regions' own, α_i / B_ii.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._blocks import Settings, alike_slices, batch_size, from_center, is_rough, region_batch
from ._cover import Cover
from ._linalg import loo_residuals, spectrum
from ._local import Points
from ._parallel import parallel_map
from ._radial import Radial

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def stitched_loo_residuals(
    points: Points, cover: Cover, settings: Settings, weight: Radial, reach: float, n_jobs: int | None = None
) -> Array:
    """Residuals (n, t) of every point, had it been left out; cover, settings and the ``reach`` of the regions are kept."""

    def weighted(regions: Index) -> tuple[Array, Array]:
        (w,) = weight(from_center(points, cover, regions) / reach**2)
        # A point on the border of its only region counts by that region.
        return _residuals(points, cover, settings, regions), np.maximum(w, np.finfo(float).eps)

    parts = alike_slices(settings, batch_size(cover.members.shape[1]))
    n, t = points.y.shape
    total, W = np.zeros((n, t)), np.zeros(n)
    for regions, (e, w) in zip(parts, parallel_map(weighted, parts, n_jobs), strict=True):
        members = cover.members[regions].ravel()
        np.add.at(W, members, w.ravel())
        np.add.at(total, members, (w[..., None] * e).reshape(-1, t))
    return total / W[:, None]


def region_loo_errors(points: Points, cover: Cover, settings: Settings, regions: Index, n_jobs: int | None = None) -> Array:
    """Mean squared leave-one-out residual of each of the ``regions`` by itself."""

    def error_of(part: Index) -> Array:
        return np.square(_residuals(points, cover, settings, regions[part])).mean(axis=(1, 2))

    parts = alike_slices(settings.at(regions), batch_size(cover.members.shape[1]))
    found = np.empty(len(regions))
    for part, errors in zip(parts, parallel_map(error_of, parts, n_jobs), strict=True):
        found[part] = errors
    return found


def _residuals(points: Points, cover: Cover, settings: Settings, regions: Index) -> Array:
    """Leave-one-out residuals (B, h, t) in regions of one kernel and degree."""
    kernel = settings.kernels[settings.kernel[regions[0]]]
    batch = region_batch(points, cover, regions, is_rough([kernel]))
    K, R, _ = batch.system(kernel, settings.bandwidth[regions], int(settings.degree[regions[0]]), settings.tolerance[regions])
    e = loo_residuals(spectrum(K, R.U), batch.weighted_y, settings.ridge[regions, None])[0][..., 0]
    return e if batch.root_v is None else e / batch.root_v[..., None]
