"""Length scales and ridge by the restricted likelihood of a Gaussian process with a polynomial mean.

With K̃ = v^½ K v^½ the kernel matrix of the scaled rows, η the ridge, U an orthonormal basis of the weighted polynomials and
Π = I - U Uᵀ, the responses that a polynomial cannot tell have the covariance s² (Π K̃ Π + η). On the range of Π, with B its inverse,

    L = ½ (n - p) log s² + ½ log det(Π K̃ Π + η),      s² = ỹᵀ B ỹ / (n - p),      dL = ½ tr((B - α αᵀ / s²) dK̃),

α = B ỹ. Responses that were observed more than once at a place tell the noise by themselves: k degrees of freedom with the sum of
squares S about the places' means add ½ k log(s² η) + S / (2 s² η), so that

    L = ½ (n - p + k) log s² + ½ log det(Π K̃ Π + η) + ½ k log η,      s² = (ỹᵀ B ỹ + S / η) / (n - p + k).

Π K̃ Π + U Uᵀ + η has the same inverse on the range of Π and is positive definite, so that one Cholesky factorisation does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from .._types import Array, Index
from ..local.points import Repeats
from ..local.polynomial import monomials
from ..local.radial import Radial
from ..local.system import project, span_range
from .defaults import LEAST_NOISE, SCALE_PRIOR

_LOWEST, _HIGHEST = -7.0, 4.0  # log scales relative to those of √d deviations: a feature without relevance fades out
_MOST_NOISE = 1e2
_HOPELESS = 1e10  # where rounding leaves nothing to factor


class Rows(NamedTuple):
    """Rows X (n, e) with columns of unit deviation, responses y (n, t), roots (n,) of weights with mean one.

    Columns of one ``block`` (e,), such as the two of a feature with a period, share a length scale. ``repeats`` has the spread of
    responses that were observed at one place, in the unit of y; None without any.
    """

    X: Array
    y: Array
    root_v: Array
    block: Index
    repeats: Repeats | None = None

    def within(self) -> tuple[float, Array]:
        """Degrees of freedom k, and sums of squares S (t,), of responses about the means of their places."""
        if self.repeats is None or not self.repeats.spread.any():  # copies are weights
            return 0.0, np.zeros(self.y.shape[1])
        return float(np.maximum(self.repeats.often - 1.0, 0.0).sum()), self.repeats.spread.sum(axis=0)

    def at(self, rows: Index) -> Rows:
        """Some of them."""
        repeats = None if self.repeats is None else self.repeats.at(rows)
        return Rows(self.X[rows], self.y[rows], self.root_v[rows], self.block, repeats)


def polynomial_basis(rows: Rows, degree: int, tolerance: float) -> Array:
    """U (n, p), an orthonormal basis of the weighted polynomials."""
    P = monomials(rows.X.shape[1], degree).values(rows.X.T) * rows.root_v[:, None]
    R = span_range(P[None], tolerance)
    return np.ascontiguousarray(R.U[0][:, : int(R.rank[0])])


def squared_scaled(rows: Rows, scales: Array) -> tuple[Array, Array]:
    """Scaled rows (n, e), and their squared distances (n, n)."""
    Z = rows.X * scales[rows.block]
    size = np.einsum("nd,nd->n", Z, Z)
    s = size[:, None] + size[None] - 2.0 * Z @ Z.T
    np.maximum(s, 0.0, out=s)
    np.fill_diagonal(s, 0.0)
    return Z, s


def least_ridge(n: int) -> float:
    """The least ridge for which the likelihood of n rows is more than rounding."""
    return float(LEAST_NOISE * n * np.finfo(float).eps)


def negative_log_likelihood(theta: Array, rows: Rows, U: Array, kernel: Radial) -> tuple[float, Array]:
    """L and its gradient at log scales and log ridge ``theta``, with a prior of heavy tails that draws the scales together.

    Several outputs share the kernel, and their L is averaged.
    """
    n, p, t = len(rows.X), U.shape[1], rows.y.shape[1]
    scales, eta = np.exp(theta[:-1]), np.exp(theta[-1])
    Z, s = squared_scaled(rows, scales)
    K, DK = kernel(s, 1)  # DK = 2 dK / d(distance²)
    weights = rows.root_v[:, None] * rows.root_v
    M = project((K * weights)[None], U[None], np.ones(1))[0]
    M[np.diag_indices(n)] += eta
    factor, info = dpotrf(M, lower=1, clean=0, overwrite_a=1)
    if info:
        return _HOPELESS, np.zeros(len(theta))
    log_det = 2.0 * np.log(np.diagonal(factor)).sum() - p * np.log1p(eta)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    B = np.tril(inverse) + np.tril(inverse, -1).T - U @ (U.T / (1.0 + eta))
    y = rows.y * rows.root_v[:, None]
    alpha = B @ y
    # A constant response leaves rounding, of either sign.
    least = np.finfo(float).eps * np.square(y).mean(axis=0) + np.finfo(float).tiny
    k, S = rows.within()
    s2 = np.maximum((np.einsum("nt,nt->t", y, alpha) + S / eta) / (n - p + k), least)
    value = 0.5 * (n - p + k) * np.log(s2).mean() + 0.5 * log_det + 0.5 * k * theta[-1]
    W = 0.5 * (B - (alpha / s2) @ alpha.T / t)
    gradient = np.empty(len(theta))
    gradient[-1] = eta * np.trace(W) + 0.5 * k - 0.5 * (S / (eta * s2)).mean()
    W *= DK * weights
    slope = 2.0 * (W.sum(axis=1) @ (Z * Z) - np.einsum("nd,nd->d", Z, W @ Z))
    gradient[:-1] = np.bincount(rows.block, slope, minlength=len(scales))
    apart = theta[:-1] - theta[:-1].mean()
    slope = SCALE_PRIOR * apart / (1.0 + apart * apart)
    gradient[:-1] += slope - slope.mean()
    value += 0.5 * SCALE_PRIOR * np.log1p(apart * apart).sum()
    return float(value), gradient


def maximise_likelihood(
    rows: Rows, kernel: Radial, degree: int, starts: list[Array], steps: int, tolerance: float
) -> tuple[Array, float]:
    """The best θ = (log scales, log ridge) found from some starts in so many steps, and its negative log likelihood.

    The ridge stays above what rounding makes of the kernel matrix.
    """
    U = polynomial_basis(rows, degree, tolerance)
    middle = -0.5 * np.log(rows.X.shape[1])
    least = np.log(least_ridge(len(rows.X)))
    bounds = [(middle + _LOWEST, middle + _HIGHEST)] * (len(starts[0]) - 1) + [(least, np.log(_MOST_NOISE))]
    best: tuple[Array, float] | None = None
    for start in starts:
        start = np.clip(start, *np.array(bounds).T)
        found = minimize(
            negative_log_likelihood,
            start,
            (rows, U, kernel),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps},
        )
        if best is None or found.fun < best[1]:
            best = found.x, float(found.fun)
    assert best is not None
    return best
