"""The block system of KRR-POLY, for stacks of small regions (paper, section 4).

    [ K + η I   P ] [ α ]   [ y ]
    [ Pᵀ        0 ] [ λ ] = [ 0 ]

α lies in the null space of Pᵀ. With U an orthonormal basis of the range of P (rank revealing, so P may be deficient) and the
projector Π = I - U Uᵀ, the system falls apart into (Π K Π + η) α = Π y and λ = P⁺ (y - K α): the solution that the paper's
truncated singular value decomposition of the whole block matrix gives, at a fraction of its cost. Π K Π is K less a matrix of
rank 2 rank(P), so no basis of the null space is ever formed.

Shapes: B regions of h points, s monomials, t outputs: K (B, h, h), P (B, h, s), y (B, h, t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A leave-one-out residual is α_i / B_ii. Where a point alone decides a direction of the fit, both vanish and without it nothing
# is known there; below this share of the mean of B the residual is the response itself.
_LEAST_FREEDOM = 1e-8


@dataclass(frozen=True)
class PolynomialRange:
    """Singular value decomposition of P, cut off at the rank tolerance: P⁺ = Vᵀᵀ diag(inverse) Uᵀ.

    Attributes
    ----------
    U : (B, h, r), zero in the columns beyond the rank
    inverse : (B, r) reciprocal singular values, zero beyond the rank
    Vt : (B, r, s)
    """

    U: Array
    inverse: Array
    Vt: Array

    @property
    def rank(self) -> NDArray[np.int64]:
        """Numerical rank of each P, (B,)."""
        return np.count_nonzero(self.inverse, axis=-1)

    def solve(self, UTy: Array) -> Array:
        """Least-squares coefficients of least norm, P⁺ y, from Uᵀ y (B, r, t)."""
        return self.Vt.swapaxes(1, 2) @ (self.inverse[..., None] * UTy)


def polynomial_range(P: Array, tolerance: Array | float) -> PolynomialRange:
    """Range of each P; singular values below ``tolerance``, one number or (B,), times the largest count as zero."""
    if not P.shape[-1]:
        B, h, _ = P.shape
        return PolynomialRange(np.zeros((B, h, 0)), np.zeros((B, 0)), np.zeros((B, 0, 0)))
    U, S, Vt = np.linalg.svd(P, full_matrices=False)
    inside = (np.reshape(tolerance, (-1, 1)) * S[:, :1] < S) & (S > 0.0)
    inverse = np.divide(1.0, S, out=np.zeros_like(S), where=inside)
    return PolynomialRange(U * inside[:, None, :], inverse, Vt)


def project(K: Array, U: Array, shift: Array) -> tuple[Array, Array]:
    """Π K Π + shift U Uᵀ, written over ``K``, and UᵀK of the K that was given; ``shift`` is (B,).

    With W = UᵀK - ½ (UᵀKU + shift) Uᵀ, the result is K - U W - (U W)ᵀ: one product of rank 2r.
    """
    UTK = U.swapaxes(1, 2) @ K
    if U.shape[-1]:
        core = UTK @ U
        diagonal = np.arange(U.shape[-1])
        core[:, diagonal, diagonal] += shift[:, None]
        W = UTK - 0.5 * core @ U.swapaxes(1, 2)
        K -= np.concatenate([U, W.swapaxes(1, 2)], axis=2) @ np.concatenate([W, U.swapaxes(1, 2)], axis=1)
    return K, UTK


def projected_trace(K: Array, U: Array) -> Array:
    """Trace of Π K Π, (B,)."""
    return np.einsum("bii->b", K) - np.einsum("bhr,bhr->b", U, K @ U)


def solve_blocks(K: Array, P: PolynomialRange, y: Array, eta: Array) -> tuple[Array, Array]:
    """α (B, h, t) and λ (B, s, t) of the block system at one ridge per region (B,); overwrites ``K``.

    On the range of P the system matrix is given the mean diagonal of K, which leaves the solution alone.
    """
    h = K.shape[1]
    diagonal = np.arange(h)
    M, UTK = project(K, P.U, np.abs(np.einsum("bii->b", K)) / h)
    M[:, diagonal, diagonal] += eta[:, None]
    UT = P.U.swapaxes(1, 2)
    UTy = UT @ y
    alpha = np.asarray(np.linalg.solve(M, y - P.U @ UTy), dtype=float)
    alpha -= P.U @ (UT @ alpha)
    return alpha, P.solve(UTy - UTK @ alpha)


@dataclass(frozen=True)
class Spectrum:
    """Π K Π = V diag(values) Vᵀ on the null space of Pᵀ: one factorisation for every ridge.

    Attributes
    ----------
    values : (B, h), zero outside the null space
    V : (B, h, h)
    inside : (B, h) whether a vector belongs to the null space
    """

    values: Array
    V: Array
    inside: NDArray[np.bool_]

    def inverse(self, etas: Array) -> Array:
        """1 / (values + η) on the null space, 0 elsewhere: (B, h, e) for ridges ``etas`` (e,) or (B, e)."""
        return self.inside[..., None] / (self.values[..., None] + np.atleast_2d(etas)[:, None, :])


def spectrum(K: Array, U: Array) -> Spectrum:
    """Eigenvectors of Π K Π in the null space of Pᵀ; overwrites ``K``.

    The range of P is pushed to eigenvalues below -‖K‖, where no vector of the null space can mix with it.
    """
    bound = np.abs(K).sum(axis=2).max(axis=1)  # the ∞-norm bounds the spectral radius
    bound[bound == 0.0] = 1.0
    M, _ = project(K, U, -2.0 * bound)
    values, V = np.linalg.eigh(M)
    inside = values > -bound[:, None]
    return Spectrum(np.where(inside, np.maximum(values, 0.0), 0.0), V, inside)


def loo_residuals(S: Spectrum, y: Array, etas: Array) -> Array:
    """Leave-one-out residuals (B, h, t, e) for ridges ``etas`` (e,) or (B, e), in closed form.

    With B = V (Λ + η)⁻¹ Vᵀ: α = B y, and the residual of point i, had it been left out, is α_i / B_ii.
    """
    inverse = S.inverse(etas)
    VTy = S.V.swapaxes(1, 2) @ y
    B, h, t = y.shape
    alpha = S.V @ (inverse[:, :, None, :] * VTy[..., None]).reshape(B, h, -1)
    freedom = (S.V * S.V) @ inverse  # B_ii
    known = freedom > np.maximum(_LEAST_FREEDOM * freedom.mean(axis=1, keepdims=True), np.finfo(float).tiny)
    residuals = np.broadcast_to(y[..., None], (B, h, t, inverse.shape[2])).copy()
    np.divide(alpha.reshape(residuals.shape), freedom[:, :, None, :], out=residuals, where=known[:, :, None, :])
    return residuals
