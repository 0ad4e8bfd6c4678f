"""One length scale a feature, by the marginal likelihood of a Gaussian process on some rows.

On 300 rows it finds more than descent of the leave-one-out error does, and takes in far fewer features by chance: `pendulum` 1.03
of the best peer's error against 1.5, a table of 25 features 1.2 against 1.7.

With K the kernel matrix of the scaled rows, η its noise, U the constant, and B the inverse of K + η / v where Uᵀ vanishes,

    L = ½ (n - 1) log yᵀ B y + ½ log det(K + η / v) + ½ log Uᵀ (K + η / v)⁻¹ U,      dL = ½ tr((B - α αᵀ / s²) dK),

α = B y and s² = yᵀ α / (n - 1); several outputs share the kernel, and their L is averaged.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from .._types import Array
from ..local.points import Points
from ..local.radial import Radial
from .defaults import LIKELY_STEPS, SCALE_PRIOR
from .points import random_sample

_LEAST, _MOST = -8.0, 4.0  # log scales relative to where they start: a feature without relevance fades out
_NOISE = np.log(1e-9), np.log(1e2)


def find_scales(points: Points, most: int, kernel: Radial) -> Array:
    """Factors (d,) of the features of ``points``, whose features have unit deviation: larger where the response varies more.

    They are those of a ``kernel``, found on at most ``most`` rows.
    """
    rows = random_sample(len(points.X), most)
    X, y, v = points.X[rows], points.y[rows], points.v[rows]
    y = y - np.average(y, axis=0, weights=v)
    spread = np.sqrt((y * y).mean(axis=0))
    y, d = y[:, spread > 0.0] / spread[spread > 0.0], X.shape[1]
    distance = np.sqrt(2.0 * X.var(axis=0).sum()) or 1.0
    start = np.append(np.full(d, -np.log(distance)), np.log(1e-2))
    if not y.shape[1] or len(rows) < 3:
        return np.ones(d)
    bounds = [(a + _LEAST, a + _MOST) for a in start[:d]] + [_NOISE]
    unit = v / v.mean()
    found = minimize(
        negative_log_likelihood,
        start,
        (X, y, unit, kernel),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": LIKELY_STEPS},
    )
    return np.exp(found.x[:d] - found.x[:d].max())


def negative_log_likelihood(theta: Array, X: Array, y: Array, v: Array, kernel: Radial) -> tuple[float, Array]:
    """L / n and its gradient at log scales and log noise ``theta`` (d + 1,), with a prior that draws the scales together."""
    (n, d), t = X.shape, y.shape[1]
    Z, eta = X * np.exp(theta[:d]), np.exp(theta[d])
    norm = np.einsum("nd,nd->n", Z, Z)
    K, DK = kernel(np.maximum(norm[:, None] + norm[None] - 2.0 * Z @ Z.T, 0.0), 1)  # DK = 2 dK / d(distance²)
    K[np.diag_indices(n)] += eta / v
    factor, _ = cho_factor(K, lower=True, check_finite=False)
    inverse, _ = dpotri(factor, lower=1)  # its lower triangle, in a third of the time of a solve
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    u = inverse.sum(axis=1)
    B = inverse - np.outer(u, u) / u.sum()
    alpha = B @ y
    # A constant response leaves rounding, of either sign.
    least = np.finfo(float).eps * np.square(y).mean(axis=0) + np.finfo(float).tiny
    s2 = np.maximum(np.einsum("nt,nt->t", y, alpha) / (n - 1), least)
    value = 0.5 * (n - 1) * np.log(s2).mean() + np.log(np.diagonal(factor)).sum() + 0.5 * np.log(u.sum())
    W = 0.5 * (B - (alpha / s2) @ alpha.T / t)
    S = W * DK
    gradient = np.empty(d + 1)
    gradient[:d] = 2.0 * (S.sum(axis=1) @ (Z * Z) - np.einsum("nd,nd->d", Z, S @ Z))
    gradient[d] = eta * (np.diagonal(W) / v).sum()
    apart = theta[:d] - theta[:d].mean()
    gradient[:d] += SCALE_PRIOR * apart
    return float(value + 0.5 * SCALE_PRIOR * apart @ apart) / n, gradient / n
