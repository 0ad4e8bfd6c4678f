"""Quantiles of standardised errors of a model with one region: it has few points, so Student's distribution replaces the Gaussian.

The residuals are too small, since the same n points determine the polynomial, the length scales and the ridge. With
ν = n − (parameters) degrees of freedom, their mean square, times n / ν, estimates the factor F² of the region's variance. A second
estimate, F₀², uses only the mean and the standard deviation of the responses. It counts for ν₀ degrees of freedom, and is clipped
to what the χ² distribution of the first allows. Then

    log F² = (ν log F²_loo + ν₀ log F₀²) / (ν + ν₀),      quantile = F · shape · t / Gaussian,

where the shape of the residuals' own quantiles is shrunk towards a Gaussian one.
"""

from __future__ import annotations

from math import comb

import numpy as np
from scipy.special import chdtri, ndtri, stdtrit

from .._types import Array
from ..local.blocks import BlockModels
from .stitch import Regions

LEVELS = np.concatenate([np.linspace(0.02, 0.98, 49), [0.985, 0.99, 0.995]])  # of the quantiles that are kept
_LEAST_QUANTILE = 1e-8  # of the standardised residuals: where all of them vanish, nothing divides by zero
_PRIOR_FREEDOM = 6.0  # ν₀: 260 generated sets of fewer than 10, 30 and 60 rows have 86, 91 and 88 % in 90 % intervals
_SAME = 1e-13  # relative extent of points in a direction that is only rounding
_OPTIMISM = 0.5  # in log F², divided by √ν: the models were chosen by these residuals. Without it one per cent less
_PLAUSIBLE = 0.05  # chance, on either side, that F² is beyond what residuals allow
_SHAPE_POINTS = 20.0  # points that a Gaussian shape counts for


def quantiles_of(z: Array, weights: Array | None = None) -> Array:
    """Quantiles (len(LEVELS), t) of absolute standardised residuals ``z`` (n, t), weighted or not; Gaussian quantiles if n = 0."""
    if not len(z):
        return np.tile(ndtri(0.5 + 0.5 * LEVELS)[:, None], z.shape[1])
    if weights is None:
        return np.maximum(np.quantile(z, LEVELS, axis=0), _LEAST_QUANTILE)
    found = np.quantile(z, LEVELS, axis=0, weights=weights, method="inverted_cdf")
    return np.maximum(found, _LEAST_QUANTILE)


def student_quantiles(z: Array, baseline: Array, dof: Array | None, weights: Array | None = None) -> Array:
    """Quantiles (len(LEVELS), t) for new points, from standardised residuals ``z`` (n, t) of left-out points.

    ``baseline`` (n, t) are the standard deviations of the responses in the unit of z. With many regions ``dof`` (t,) is None: then
    the result is the quantiles of z, with ``weights`` (n,) if given.
    """
    if dof is None or not len(z):
        return quantiles_of(z, weights)
    gaussian = ndtri(0.5 + 0.5 * LEVELS)[:, None]
    n, tiny = len(z), np.finfo(float).tiny
    size = np.maximum(np.sqrt(np.square(z).mean(axis=0)), _LEAST_QUANTILE)
    estimate = np.log(size**2 * n / dof) + _OPTIMISM / np.sqrt(dof)
    allowed = [estimate + np.log(dof / chdtri(dof, p)) for p in (_PLAUSIBLE, 1.0 - _PLAUSIBLE)]
    prior = 2.0 * np.log(np.maximum(baseline, tiny)).mean(axis=0) + np.log((n + 1) / max(n - 1, 1))  # of a new response
    prior = np.clip(prior, *allowed)
    factor = np.exp(0.5 * (dof * estimate + _PRIOR_FREEDOM * prior) / (dof + _PRIOR_FREEDOM))
    share = n / (n + _SHAPE_POINTS)
    shape = np.exp(share * np.log(np.maximum(quantiles_of(z) / size, _LEAST_QUANTILE)) + (1.0 - share) * np.log(gaussian))
    nu = np.minimum(dof + _PRIOR_FREEDOM, max(n - 1, 1))  # the deviation of the responses has n - 1
    return np.asarray(factor * shape * stdtrit(nu, 0.5 + 0.5 * LEVELS[:, None]) / gaussian)


def residual_dof(regions: Regions) -> Array | None:
    """Degrees of freedom (t,) of the residuals of one region that holds everything; None where there are more regions."""
    models = regions.models
    assert isinstance(models, BlockModels)
    if len(models.members) > regions.models_per_ball:
        return None
    (h,), known = models.members.shape[1:], models.settings.degree
    X = models.X - models.X.mean(axis=0)
    size = np.abs(X).max(axis=0)
    d = int(np.linalg.matrix_rank(X / np.where(size > 0.0, size, 1.0), rtol=_SAME))  # constant and repeated columns tell nothing
    factor = regions.output_factor
    used = np.ones((len(known), models.points.y.shape[1]), dtype=bool) if factor is None else factor > 0.0
    degrees = [int(np.median(known[column])) for column in used.T]
    metrics = models.settings.local_metrics
    turned = metrics is not None and any(np.count_nonzero(metric) > d for metric in metrics)  # a rotation: d (d - 1) / 2 more
    fitted = d + 1 + (d * (d - 1) // 2 if turned else 0)
    return np.array([max(h - comb(max(degree, 0) + d, d) - fitted, 1) for degree in degrees], dtype=float)
