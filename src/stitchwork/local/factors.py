"""Variances of regions from factors that are kept: asking again where somebody asked before costs no factorisation.

With U a basis of the range of P, A = ΠKΠ + η + s UUᵀ is positive definite and falls apart into the range and its complement. For a
query with kernel values k and polynomial values u (see `variance`), b = k − K U u and A = L Lᵀ,

    v = k(0) − 2 uᵀUᵀk + uᵀ(UᵀKU + η)u − |L⁻¹b|² + |Uᵀb|² / (s + η),

which is k(0) − gᵀM⁻¹g with one triangular solve. Where rounding leaves A no Cholesky factor, M is solved instead.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple
from weakref import finalize

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtri

from .._types import Array, Index
from .batch import Batch
from .radial import Radial
from .settings import Settings
from .system import PolynomialRange, block_matrix, project, solve_symmetric

CACHE_BYTES = 1 << 28  # of all models together
_LEAST_LEFT = 1e-6  # of (A⁻¹)_ii in B_ii: points that nearly decide a direction alone are left to eigenvectors


class Factor(NamedTuple):
    """What is kept of one region.

    Attributes
    ----------
    L : (h, h) lower triangular, in Fortran order, or M (h + r, h + r) where there is no such factor
    U, KU : (h, r); core : (r, r) UᵀKU + η; back : (s, r) polynomial values times it are u
    ridge, range_scale : η, and s + η of the part of the range in A
    whole : whether L is M
    """

    L: Array
    U: Array
    KU: Array
    core: Array
    back: Array
    ridge: float
    range_scale: float
    whole: bool = False

    @property
    def nbytes(self) -> int:
        """Memory."""
        return int(self.L.nbytes + self.U.nbytes + self.KU.nbytes + self.core.nbytes + self.back.nbytes)

    def variance(self, prior: float, k: Array, p: Array) -> Array:
        """v (c,) for kernel values ``k`` (c, h), times the factor of the kernel and weights, and monomials ``p`` (c, s)."""
        u = p @ self.back
        if self.whole:
            G = np.concatenate([k, u], axis=1)
            return np.asarray(prior - np.einsum("cg,gc->c", G, solve_symmetric(self.L[None], G.T[None])[0]))
        Uk = k @ self.U
        b = k - u @ self.KU.T
        Ub = Uk - u @ self.core + self.ridge * u
        y = dtrsm(1.0, self.L, b.T, lower=1, overwrite_b=1)  # b is in C order, so that nothing is copied
        known = np.einsum("hc,hc->c", y, y) - np.einsum("cr,cr->c", Ub, Ub) / self.range_scale
        return np.asarray(prior + np.einsum("cr,cr->c", u @ self.core - 2.0 * Uk, u) - known)

    def weigh(self, k: Array, p: Array) -> Array:
        """What the members weigh, (c, h), for the same, in a prediction from weighted responses: U u + A⁻¹ Π b."""
        u = p @ self.back
        if self.whole:
            return np.asarray(solve_symmetric(self.L[None], np.concatenate([k, u], axis=1).T[None])[0, : k.shape[1]].T)
        b = k - u @ self.KU.T
        b -= (b @ self.U) @ self.U.T
        solved, _ = dpotrs(self.L, b.T, lower=1)
        return np.asarray(u @ self.U.T + solved.T)

    def usual(self) -> float:
        """About what the variance is between points: 1 / B_ii − η on average, B_ii the precision of a point given the others."""
        h, r = len(self.U), np.square(self.U).sum()
        if self.whole:
            trace = np.trace(np.linalg.pinv(self.L, hermitian=True)[:h, :h])
        else:
            trace = np.square(dtrtri(self.L, lower=1)[0]).sum() - r / self.range_scale
        return max(h / trace - self.ridge, 0.0) if trace > 0.0 else 0.0

    def solve(self, y: Array) -> tuple[Array, Array]:
        """α (h, t), without the factor of the kernel, and λ (s, t) for weighted responses ``y`` (h, t)."""
        r = self.U.shape[1]
        if self.whole:
            right = np.concatenate([y, np.zeros((r, y.shape[1]))])
            solution = solve_symmetric(self.L[None], right[None])[0]
            alpha, mu = solution[: len(y)], solution[len(y) :]
            return alpha - self.U @ (self.U.T @ alpha), self.back @ mu
        alpha, _ = dpotrs(self.L, y - self.U @ (self.U.T @ y), lower=1)
        alpha -= self.U @ (self.U.T @ alpha)
        return alpha, self.back @ (self.U.T @ y - self.KU.T @ alpha)


class Positive(NamedTuple):
    """A = ΠKΠ + η + s UUᵀ (B, h, h) of a stack of regions, with what it is made of."""

    A: Array
    R: PolynomialRange
    KU: Array
    scale: Array
    range_scale: Array


def make_positive(batch: Batch, kernel: Radial, settings: Settings) -> Positive:
    """A of regions of one kernel and degree."""
    K, R, scale = batch.system(kernel, settings.bandwidth, int(settings.degree[0]), settings.tolerance)
    KU = K @ R.U
    shift = np.maximum(np.einsum("bii->b", K) / K.shape[1], 1.0)
    A = project(K, R.U, shift)
    np.einsum("bii->bi", A)[...] += settings.ridge[:, None]
    return Positive(A, R, KU, scale, shift + settings.ridge)


def factorise(batch: Batch, kernel: Radial, settings: Settings) -> list[tuple[Factor, float]]:
    """Factors of a stack of regions of one kernel and degree, and the factors of their kernels."""
    A, R, KU, scale, range_scale = make_positive(batch, kernel, settings)
    core = R.U.swapaxes(1, 2) @ KU
    np.einsum("bii->bi", core)[...] += settings.ridge[:, None]
    factored = [dpotrf(one.T, lower=1, clean=1) for one in A]
    M = A
    if any(failed for _, failed in factored):
        K, *_ = batch.system(kernel, settings.bandwidth, int(settings.degree[0]), settings.tolerance)
        M = block_matrix(K, R, settings.ridge)
    found = []
    for i, (L, failed) in enumerate(factored):
        parts = (R.U[i], KU[i], core[i], R.back[i], float(settings.ridge[i]), float(range_scale[i]))
        found.append((Factor(M[i] if failed else L, *parts, whole=bool(failed)), float(scale[i])))
    return found


def leave_out(batch: Batch, kernel: Radial, settings: Settings) -> Array | None:
    """Leave-one-out residuals (B, h, t) of weighted responses, each point by itself; None where rounding does not allow it.

    A⁻¹ = B + UUᵀ / (s + η), α = B y, and the residual is α_i / B_ii: the same as `system.loo_residuals` has from eigenvectors,
    which cost eight times as much.
    """
    A, R, _, _, range_scale = make_positive(batch, kernel, settings)
    y = batch.weighted_y
    residual = y.copy()
    for i, one in enumerate(A):
        L, failed = dpotrf(one.T, lower=1)
        if failed:
            return None
        a, _ = dpotrs(L, y[i] - R.U[i] @ (R.U[i].T @ y[i]), lower=1)
        inverse, _ = dpotri(L, lower=1, overwrite_c=1)
        precision = inverse.diagonal() - np.square(R.U[i]).sum(axis=1) / range_scale[i]
        if (precision < _LEAST_LEFT * inverse.diagonal()).any():  # what is left of a difference would be rounding
            return None
        residual[i] = a / precision[:, None]
    return residual


class Owner:
    """A set of regions with their points, weights and hyperparameters."""


class FactorCache:
    """Factors of regions that were asked last, of all models in this process, within a number of bytes; threads share it."""

    def __init__(self, limit: int = CACHE_BYTES):
        self.limit, self.used = limit, 0
        self._kept: OrderedDict[tuple[int, int], tuple[Factor, float]] = OrderedDict()
        self._owners: set[int] = set()
        self._lock = Lock()

    def find(self, owner: Owner, regions: Index) -> list[tuple[Factor, float] | None]:
        """What is kept of ``regions`` (B,) of an owner."""
        with self._lock:
            found = []
            for key in ((id(owner), region) for region in regions.tolist()):
                kept = self._kept.get(key)
                if kept is not None:
                    self._kept.move_to_end(key)
                found.append(kept)
            return found

    def keep(self, owner: Owner, regions: Index, factors: list[tuple[Factor, float]]) -> None:
        """Keep factors as long as the owner lives and others do not need the room."""
        with self._lock:
            if id(owner) not in self._owners:
                self._owners.add(id(owner))
                finalize(owner, self.forget, id(owner))
            for region, one in zip(regions.tolist(), factors, strict=True):
                key = (id(owner), region)
                if key not in self._kept and one[0].nbytes <= self.limit:
                    self._kept[key] = one
                    self.used += one[0].nbytes
            self._shrink()

    def resize(self, limit: int) -> None:
        """Set the number of bytes."""
        with self._lock:
            self.limit = limit
            self._shrink()

    def forget(self, owner: int) -> None:
        """Drop what an owner had, which is no more."""
        with self._lock:
            self._owners.discard(owner)
            for key in [key for key in self._kept if key[0] == owner]:
                self.used -= self._kept.pop(key)[0].nbytes

    def _shrink(self) -> None:
        while self.used > self.limit:
            self.used -= self._kept.popitem(last=False)[1][0].nbytes


CACHE = FactorCache()


def set_cache_bytes(limit: int) -> None:
    """Keep at most so many bytes of factors of regions, of all models in this process; 256 MB unless this is called.

    Standard deviations and `StitchedRegressor.refit` need these factors, and make those that are not there. They are never saved.

    Examples
    --------
    >>> import stitchwork
    >>> stitchwork.set_cache_bytes(2**30)
    >>> stitchwork.set_cache_bytes(2**28)
    """
    if limit < 0:
        raise ValueError(f"`limit` must be a number of bytes, zero for none, got {limit!r}.")
    CACHE.resize(int(limit))
