"""The block system of KRR-POLY, for stacks of small regions (paper, section 4).

    [ K + η I   P ] [ α ]   [ y ]
    [ Pᵀ        0 ] [ λ ] = [ 0 ]

With U an orthonormal basis of the range of P (rank revealing, so P may be deficient) in the place of P, the solution is the one
that the paper's truncated singular value decomposition of the whole block matrix gives, at a fraction of its cost. For
leave-one-out: α lies in the null space of Pᵀ, and with the projector Π = I - U Uᵀ the system falls apart into
(Π K Π + η) α = Π y and λ = P⁺ (y - K α). Π K Π is K less a matrix of rank 2 rank(P), so no basis of the null space is ever formed.

Shapes: B regions of h points, s monomials, t outputs: K (B, h, h), P (B, h, s), y (B, h, t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index

# A leave-one-out residual is α_i / B_ii. Where a point alone decides a direction of the fit, both vanish and without it nothing
# is known there; below this share of the mean of B the residual is the response itself.
_LEAST_PRECISION = 1e-8


# P surely has full rank where the least diagonal entry of R in P = Q R, relative to the largest, exceeds this and 1000 tolerances.
_SURE = 1e-4


@dataclass(frozen=True)
class PolynomialRange:
    """An orthonormal basis of the range of P, and its pseudoinverse P⁺ = back Uᵀ.

    Attributes
    ----------
    U : (B, h, r), zero in the columns beyond the rank
    back : (B, s, r)
    rank : (B,) numerical rank of each P
    """

    U: Array
    back: Array
    rank: NDArray[np.int64]

    def at(self, i: slice) -> PolynomialRange:
        """Of some regions."""
        return PolynomialRange(self.U[i], self.back[i], self.rank[i])


def span_range(P: Array, tolerance: Array | float) -> PolynomialRange:
    """Range of each P; singular values below ``tolerance``, one number or (B,), times the largest count as zero.

    P = Q R tells it where the rank is beyond doubt, singular values elsewhere.
    """
    B, h, s = P.shape
    if not s:
        return PolynomialRange(np.zeros((B, h, 0)), np.zeros((B, 0, 0)), np.zeros(B, dtype=int))
    tolerance = np.broadcast_to(tolerance, B)
    U, R = np.linalg.qr(P)
    size = np.abs(np.einsum("bii->bi", R[:, :, :h]))
    sure = (size.min(axis=1) > np.maximum(_SURE, 1e3 * tolerance) * size.max(axis=1)) & (s <= h)
    if sure.all():
        return PolynomialRange(U, np.linalg.inv(R), np.full(B, s))
    back, rank = np.zeros((B, s, min(h, s))), np.full(B, s)
    if sure.any():
        back[sure] = np.linalg.inv(R[sure])
    V, S, Wt = np.linalg.svd(P[~sure], full_matrices=False)
    inside = (tolerance[~sure, None] * S[:, :1] < S) & (S > 0.0)
    inverse = np.divide(1.0, S, out=np.zeros_like(S), where=inside)
    U[~sure], back[~sure], rank[~sure] = V * inside[:, None, :], Wt.swapaxes(1, 2) * inverse[:, None, :], inside.sum(axis=1)
    return PolynomialRange(U, back, rank)


def project(K: Array, U: Array, shift: Array) -> Array:
    """Π K Π + shift U Uᵀ, written over ``K``; ``shift`` is (B,).

    With W = UᵀK - ½ (UᵀKU + shift) Uᵀ, the result is K - U W - (U W)ᵀ: one product of rank 2r.
    """
    if U.shape[-1]:
        UTK = U.swapaxes(1, 2) @ K
        core = UTK @ U
        np.einsum("bii->bi", core)[...] += shift[:, None]
        W = UTK - 0.5 * core @ U.swapaxes(1, 2)
        K -= np.concatenate([U, W.swapaxes(1, 2)], axis=2) @ np.concatenate([W, U.swapaxes(1, 2)], axis=1)
    return K


def projected_trace(K: Array, U: Array) -> Array:
    """Trace of Π K Π, (B,)."""
    return np.einsum("bii->b", K) - np.einsum("bhr,bhr->b", U, K @ U)


def block_matrix(K: Array, P: PolynomialRange, eta: Array) -> Array:
    """[K + η, U; Uᵀ, 0] at one ridge per region (B,), (B, h + r, h + r)."""
    (B, h, _), r = K.shape, P.U.shape[2]
    block = np.zeros((B, h + r, h + r))
    block[:, :h, :h], block[:, :h, h:], block[:, h:, :h] = K, P.U, P.U.swapaxes(1, 2)
    diagonal = np.einsum("bii->bi", block)
    diagonal[:, :h] += eta[:, None]
    diagonal[:, h:] = np.arange(r) >= P.rank[:, None]  # columns that are zero get the coefficient zero
    return block


def solve_symmetric(M: Array, right: Array) -> Array:
    """M⁻¹ right for stacks of symmetric matrices; where one is singular, the solution of least norm for all of the stack."""
    try:
        return np.asarray(np.linalg.solve(M, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(M, hermitian=True) @ right)


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

    def at(self, i: Index) -> Spectrum:
        """Of some regions."""
        return Spectrum(self.values[i], self.V[i], self.inside[i])

    def inverse(self, etas: Array) -> Array:
        """1 / (values + η) on the null space, 0 elsewhere: (B, h, e) for ridges ``etas`` (e,) or (B, e)."""
        return self.inside[..., None] / (self.values[..., None] + np.atleast_2d(etas)[:, None, :])


def spectrum(K: Array, U: Array) -> Spectrum:
    """Eigenvectors of Π K Π in the null space of Pᵀ; overwrites ``K``.

    The range of P is pushed to eigenvalues below -‖K‖, where no vector of the null space can mix with it.
    """
    bound = np.abs(K).sum(axis=2).max(axis=1)  # the ∞-norm bounds the spectral radius
    bound[bound == 0.0] = 1.0
    values, V = np.linalg.eigh(project(K, U, -2.0 * bound))
    inside = values > -bound[:, None]
    return Spectrum(np.where(inside, np.maximum(values, 0.0), 0.0), V, inside)


def loo_residuals(S: Spectrum, y: Array, etas: Array) -> tuple[Array, Array]:
    """Leave-one-out residuals (B, h, t, e) for ridges ``etas`` (e,) or (B, e), in closed form, and α of the same shape.

    With B = V (Λ + η)⁻¹ Vᵀ: α = B y, and the residual of point i, had it been left out, is α_i / B_ii.
    """
    inverse = S.inverse(etas)
    VTy = S.V.swapaxes(1, 2) @ y
    B, h, t = y.shape
    alpha = S.V @ (inverse[:, :, None, :] * VTy[..., None]).reshape(B, h, -1)
    precision = (S.V * S.V) @ inverse  # B_ii
    known = precision > np.maximum(_LEAST_PRECISION * precision.mean(axis=1, keepdims=True), np.finfo(float).tiny)
    residuals = np.broadcast_to(y[..., None], (B, h, t, inverse.shape[2])).copy()
    alpha = alpha.reshape(residuals.shape)
    np.divide(alpha, precision[:, :, None, :], out=residuals, where=known[:, :, None, :])
    return residuals, alpha
