"""Length scales and ridge by the restricted likelihood of a Gaussian process with a polynomial mean.

With K̃ = v^½ K v^½ the kernel matrix of the scaled rows, η the ridge, U an orthonormal basis of the weighted polynomials and
Π = I - U Uᵀ, the responses, less their polynomial part, have the covariance s² (Π K̃ Π + η). On the range of Π, with B its inverse,

    L = ½ (n - p) log s² + ½ log det(Π K̃ Π + η),      s² = ỹᵀ B ỹ / (n - p),      dL = ½ tr((B - α αᵀ / s²) dK̃),

α = B ỹ. Repeated responses at one location determine the noise directly: k degrees of freedom with the sum of
squares S about the locations' means add ½ k log(s² η) + S / (2 s² η), so that

    L = ½ (n - p + k) log s² + ½ log det(Π K̃ Π + η) + ½ k log η,      s² = (ỹᵀ B ỹ + S / η) / (n - p + k).

Where the variance σ² of the noise of a row of weight one is known, s² = σ² / η is no number of its own:

    L = ½ (n - p) log s² + ½ log det(Π K̃ Π + η) + ½ ỹᵀ B ỹ / s².

Π K̃ Π + U Uᵀ + η has the same inverse on the range of Π and is positive definite, so that one Cholesky factorisation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

from .._types import Array, Index
from ..local.hermite import hermite_monomials
from ..local.points import Repeats
from ..local.polynomial import monomials
from ..local.radial import Radial
from ..local.system import project, span_range
from .defaults import LEAST_NOISE, LIKELY_START, SCALE_PRIOR
from .slope_likelihood import ScaledSlopes

_LOWEST, _HIGHEST = -7.0, 4.0  # bounds of log scales, relative to √d standard deviations; irrelevant features fade out
_MOST_NOISE = 1e2
_HOPELESS = 1e10  # returned where the factorisation fails


class Rows(NamedTuple):
    """Rows X (n, e) with columns of unit deviation, responses y (n, t), roots (n,) of weights with mean one.

    Columns of one ``block`` (e,), such as the two of a feature with a period, share a length scale. ``repeats`` has the spread of
    responses that were observed at one place, in the unit of y; None without any. ``noise`` (t,) is the variance of the noise of a
    row of weight one, where it is known. With ``slopes`` along these directions (n, k, e),
    y (N, t) and root_v (N,) have a row for each equation, N = n (1 + k), zero weight where there is none.
    """

    X: Array
    y: Array
    root_v: Array
    block: Index
    repeats: Repeats | None = None
    slopes: Array | None = None
    noise: Array | None = None

    def within(self) -> tuple[float, Array]:
        """Degrees of freedom k, and sums of squares S (t,), of responses about the means of their places."""
        if self.repeats is None or not self.repeats.spread.any():  # copies are weights
            return 0.0, np.zeros(self.y.shape[1])
        return float(np.maximum(self.repeats.often - 1.0, 0.0).sum()), self.repeats.spread.sum(axis=0)

    def at(self, rows: Index) -> Rows:
        """Some of them."""
        repeats, every = None if self.repeats is None else self.repeats.at(rows), rows
        if self.slopes is not None:
            n, k = self.slopes.shape[:2]
            every = np.concatenate([rows, (n + rows[:, None] * k + np.arange(k)).ravel()])
        slopes = None if self.slopes is None else self.slopes[rows]
        return Rows(self.X[rows], self.y[every], self.root_v[every], self.block, repeats, slopes, self.noise)

    def along(self, axes: Array | None) -> Rows:
        """The rows in coordinates along ``axes`` (e, e), each with a length scale of its own; as they are without any."""
        return self if axes is None else self._replace(X=self.X @ axes, block=np.arange(axes.shape[1]))

    def weigh_slopes(self, weight: float) -> Rows:
        """The same with another weight of all slopes."""
        return self if self.slopes is None or weight == 1.0 else self._replace(root_v=self.root_v * self._factors(weight))

    def _factors(self, weight: float) -> Array:
        return np.where(np.arange(len(self.y)) < len(self.X), 1.0, np.sqrt(weight))

    def kernel_matrix(self, kernel: Radial, scales: Array) -> Array:
        """Values of a kernel between all rows, without their weights."""
        if self.slopes is None:
            return kernel(squared_scaled(self, scales)[1])[0]
        return self.scaled(kernel, scales).matrix()

    def scaled(self, kernel: Radial, scales: Array) -> ScaledSlopes:
        """Rows with slopes, times their scales."""
        assert self.slopes is not None
        return ScaledSlopes(kernel, self.X * scales[self.block], self.slopes * scales[self.block])


def polynomial_basis(rows: Rows, degree: int, tolerance: float) -> Array:
    """U (n, p), an orthonormal basis of the weighted polynomials."""
    basis = monomials(rows.X.shape[1], degree)
    P = basis.values(rows.X.T) if rows.slopes is None else hermite_monomials(basis, rows.X.T[:, None], rows.slopes[None])[0]
    R = span_range((P * rows.root_v[:, None])[None], tolerance)
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
    """The least ridge for which the likelihood of n rows is not dominated by rounding."""
    return float(LEAST_NOISE * n * np.finfo(float).eps)


def negative_log_likelihood(theta: Array, rows: Rows, U: Array, kernel: Radial) -> tuple[float, Array]:
    """L and its gradient at log scales and log ridge ``theta``, with a prior of heavy tails that draws the scales together.

    Several outputs share the kernel, and their L is averaged.
    """
    if rows.slopes is not None:
        return add_prior(*_slope_likelihood(theta, rows, U, kernel), theta)
    scales, eta = np.exp(theta[:-1]), np.exp(theta[-1])
    Z, s = squared_scaled(rows, scales)
    K, DK = kernel(s, 1)  # DK = 2 dK / d(distance²)
    weights = rows.root_v[:, None] * rows.root_v
    M = project((K * weights)[None], U[None], np.ones(1))[0]
    found = _profile(M, U, rows.y * rows.root_v[:, None], eta, rows.within(), rows.noise)
    if found is None:
        return _HOPELESS, np.zeros(len(theta))
    value, W, ridge = found
    gradient = np.empty(len(theta))
    gradient[-1] = ridge
    W *= DK * weights
    slope = 2.0 * (W.sum(axis=1) @ (Z * Z) - np.einsum("nd,nd->d", Z, W @ Z))
    gradient[:-1] = np.bincount(rows.block, slope, minlength=len(scales))
    return add_prior(value, gradient, theta)


def _profile(
    M: Array, U: Array, y: Array, eta: float, within: tuple[float, Array], noise: Array | None
) -> tuple[float, Array, float] | None:
    """L and its derivatives, W (n, n) by the elements of K̃ and one by log η.

    From Π K̃ Π + U Uᵀ, which is overwritten, weighted responses, k and S of those that were observed more than once, and the
    variance of the noise if it is known.
    """
    k, S = within
    n, p, t = len(M), U.shape[1], y.shape[1]
    M[np.diag_indices(n)] += eta
    factor, info = dpotrf(M, lower=1, clean=0, overwrite_a=1)
    if info:
        return None
    log_det = 2.0 * np.log(np.diagonal(factor)).sum() - p * np.log1p(eta)
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    B = np.tril(inverse) + np.tril(inverse, -1).T - U @ (U.T / (1.0 + eta))
    alpha = B @ y
    # A constant response leaves rounding, of either sign.
    least = np.finfo(float).eps * np.square(y).mean(axis=0) + np.finfo(float).tiny
    square = np.einsum("nt,nt->t", y, alpha)
    if noise is not None:
        s2 = noise / eta
        value = 0.5 * ((n - p) * np.log(s2) + square / s2).mean() + 0.5 * log_det
        W = 0.5 * (B - (alpha / s2) @ alpha.T / t)
        return value, W, float(eta * np.trace(W) - 0.5 * (n - p - square / s2).mean())
    s2 = np.maximum((square + S / eta) / (n - p + k), least)
    value = 0.5 * (n - p + k) * np.log(s2).mean() + 0.5 * log_det + 0.5 * k * np.log(eta)
    W = 0.5 * (B - (alpha / s2) @ alpha.T / t)
    return value, W, float(eta * np.trace(W) + 0.5 * k - 0.5 * (S / (eta * s2)).mean())


def _slope_likelihood(theta: Array, rows: Rows, U: Array, kernel: Radial) -> tuple[float, Array]:
    """The same for rows with slopes: equations that were not measured are left out."""
    scales, eta, scaled = np.exp(theta[:-1]), np.exp(theta[-1]), rows.scaled(kernel, np.exp(theta[:-1]))
    K, root_v, y, used = scaled.matrix(), rows.root_v, rows.y, rows.root_v > 0.0
    if not used.all():
        K, root_v, y, U = K[np.ix_(used, used)], root_v[used], y[used], U[used]
    weights = root_v[:, None] * root_v
    K *= weights
    found = _profile(project(K[None], U[None], np.ones(1))[0], U, y * root_v[:, None], eta, rows.within(), rows.noise)
    if found is None:
        return _HOPELESS, np.zeros(len(theta))
    value, W, ridge = found
    W *= weights
    if not used.all():
        every = np.zeros((len(used), len(used)))
        every[np.ix_(used, used)] = W
        W = every
    return value, np.append(np.bincount(rows.block, scaled.slope(W), minlength=len(scales)), ridge)


def add_prior(value: float, gradient: Array, theta: Array) -> tuple[float, Array]:
    """L and its gradient with the prior of the scales."""
    apart = theta[:-1] - theta[:-1].mean()
    slope = SCALE_PRIOR * apart / (1.0 + apart * apart)
    gradient[:-1] += slope - slope.mean()
    value += 0.5 * SCALE_PRIOR * np.log1p(apart * apart).sum()
    return float(value), gradient


def start_likelihood(rows: Rows, sizes: Sequence[tuple[float, float]] = LIKELY_START) -> list[Array]:
    """Where the search begins: log length scales of these sizes, in √d deviations, and log ridges.

    Where the noise is known, the ridge is that of a function of unit variance.
    """
    d = int(rows.block.max()) + 1
    ridges = [ridge if rows.noise is None else float(rows.noise.mean()) for _, ridge in sizes]
    return [
        np.append(np.full(d, -np.log(np.sqrt(d) * size)), np.log(ridge)) for (size, _), ridge in zip(sizes, ridges, strict=True)
    ]


def maximise_likelihood(
    rows: Rows, kernel: Radial, degree: int, starts: list[Array], steps: int, tolerance: float
) -> tuple[Array, float]:
    """The best θ = (log scales, log ridge) found from some starts in so many steps, and its negative log likelihood.

    The ridge stays above what rounding makes of the kernel matrix.
    """
    U = polynomial_basis(rows, degree, tolerance)
    middle = -0.5 * np.log(rows.X.shape[1])
    least = np.log(least_ridge(len(rows.y)))
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
