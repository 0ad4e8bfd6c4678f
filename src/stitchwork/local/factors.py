"""Variances of regions from cached factors: queries in regions that were queried before need no factorisation.

With U a basis of the range of P, A = ΠKΠ + η + s UUᵀ is positive definite and decouples into the range and its complement. For a
query with kernel values k and polynomial values u (see `variance`), b = k − K U u and A = L Lᵀ,

    v = k(0) − 2 uᵀUᵀk + uᵀ(UᵀKU + η)u − |L⁻¹b|² + |Uᵀb|² / (s + η),

which is k(0) − gᵀM⁻¹g with one triangular solve. Where rounding leaves A without a Cholesky factor, M is solved instead. A region
keeps one row of numbers, whose address the compiled library gets; L is packed as a triangle.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from random import Random
from threading import Lock
from typing import NamedTuple
from weakref import finalize

import numpy as np
from scipy.linalg.blas import dgemm, dsyr2k, dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from .._types import Array, Index
from .batch import Batch
from .radial import Radial
from .settings import Settings
from .system import PolynomialRange, block_matrix, solve_symmetric

CACHE_BYTES = 1 << 29  # of all models together: the regions of 10⁵ points in the plane
_MANY = 16  # columns of responses from which on each region is solved by itself, in place, and not a stack of them at once
_LEAST_LEFT = 1e-6  # least B_ii / (A⁻¹)_ii: below it a point nearly decides a direction alone, and eigenvectors are used


class Factor(NamedTuple):
    """What is kept of one region of h points, s monomials and r directions of their range.

    Attributes
    ----------
    numbers : L row by row up to its diagonal, which has 1 / L_ii; U and KU (h, r); core (r, r) UᵀKU + η; back (s, r), with which
        polynomial values become u; what kernel values are multiplied by, (h,): the factor of the kernel and the square roots of
        the weights; η, s + η, that factor, and k(0) with it
    h, r : sizes
    address : of the numbers
    whole : M (h + r, h + r), None where L is there
    """

    numbers: Array
    h: int
    r: int
    address: int
    whole: Array | None = None

    @property
    def nbytes(self) -> int:
        """Memory."""
        return int(self.numbers.nbytes + (0 if self.whole is None else self.whole.nbytes))

    @property
    def upper(self) -> Array:
        """Lᵀ (h, h), in Fortran order."""
        index, diagonal = _packed(self.h)
        L = np.zeros(self.h * self.h)
        L[index] = self.numbers[: len(index)]
        L[:: self.h + 1] = 1.0 / self.numbers[diagonal]
        return L.reshape(self.h, self.h).T

    @property
    def U(self) -> Array:
        """(h, r)."""
        return self._matrix(0)

    @property
    def KU(self) -> Array:
        """(h, r)."""
        return self._matrix(1)

    @property
    def core(self) -> Array:
        """(r, r)."""
        return self._after(2)[: self.r**2].reshape(self.r, self.r)

    @property
    def back(self) -> Array:
        """(s, r)."""
        return self._after(2)[self.r**2 : -4 - self.h].reshape(-1, self.r) if self.r else np.zeros((0, 0))

    @property
    def weights(self) -> Array:
        """What kernel values are multiplied by, (h,)."""
        return self.numbers[-4 - self.h : -4]

    @property
    def scale(self) -> float:
        """The factor of the kernel."""
        return float(self.numbers[-2])

    def _after(self, matrices: int) -> Array:
        return self.numbers[self.h * (self.h + 1) // 2 + matrices * self.h * self.r :]

    def _matrix(self, which: int) -> Array:
        return self._after(which)[: self.h * self.r].reshape(self.h, self.r)

    def variance(self, k: Array, p: Array) -> Array:
        """v (c,) for kernel values ``k`` (c, h) and monomials ``p`` (c, s)."""
        k, u, (ridge, range_scale, _, prior) = k * self.weights, self._range(p), self.numbers[-4:]
        if self.whole is not None:
            G = np.concatenate([k, u], axis=1)
            return np.asarray(prior - np.einsum("cg,gc->c", G, solve_symmetric(self.whole[None], G.T[None])[0]))
        Uk, core = k @ self.U, self.core
        b = k - u @ self.KU.T
        Ub = Uk - u @ core + ridge * u
        y = dtrsm(1.0, self.upper, b.T, trans_a=1, overwrite_b=1)  # b is in C order, so that nothing is copied
        known = np.einsum("hc,hc->c", y, y) - np.einsum("cr,cr->c", Ub, Ub) / range_scale
        return np.asarray(prior + np.einsum("cr,cr->c", u @ core - 2.0 * Uk, u) - known)

    def weigh(self, k: Array, p: Array) -> Array:
        """What the members weigh, (c, h), for the same, in a prediction from weighted responses: U u + A⁻¹ Π b."""
        k, u = k * self.weights, self._range(p)
        if self.whole is not None:
            return np.asarray(solve_symmetric(self.whole[None], np.concatenate([k, u], axis=1).T[None])[0, : k.shape[1]].T)
        b = k - u @ self.KU.T
        b -= (b @ self.U) @ self.U.T
        solved, _ = dpotrs(self.upper, b.T)
        return np.asarray(u @ self.U.T + solved.T)

    def solve(self, y: Array, upper: Array | None = None) -> Array:
        """λ (s, t) for weighted responses ``y`` (h, t) in C order; α, times the weights, is written over ``y``.

        ``upper`` is Lᵀ if it is known already. The transposed system is solved, since rows of y are contiguous.
        """
        Ut, Uy = self.U.T, self.U.T @ y
        if self.whole is not None:
            solution = solve_symmetric(self.whole[None], np.concatenate([y, np.zeros((self.r, y.shape[1]))])[None])[0]
            y[:], lam = solution[: self.h], self.back @ solution[self.h :]
            y -= self.U @ (Ut @ y)
        else:
            upper, right = self.upper if upper is None else upper, y.T
            _subtract_product(right, Uy.T, Ut)
            dtrsm(1.0, upper, right, side=1, overwrite_b=1)
            dtrsm(1.0, upper, right, side=1, trans_a=1, overwrite_b=1)
            _subtract_product(right, (Ut @ y).T, Ut)
            lam = self.back @ (Uy - self.KU.T @ y)
        y *= self.weights[:, None]
        return np.asarray(lam)

    def typical_variance(self) -> float:
        """About what the variance is between points: 1 / B_ii − η on average, B_ii the precision of a point given the others."""
        r, (ridge, range_scale) = np.square(self.U).sum(), self.numbers[-4:-2]
        if self.whole is not None:
            trace = np.trace(np.linalg.pinv(self.whole, hermitian=True)[: self.h, : self.h])
        else:
            trace = np.square(dtrtri(self.upper)[0]).sum() - r / range_scale
        return max(float(self.h / trace - ridge), 0.0) if trace > 0.0 else 0.0

    def leave_out(self, y: Array) -> tuple[Array, Array] | None:
        """Leave-one-out residuals (h, t) of weighted responses ``y`` (h, t), and precisions B_ii (h,); None if rounding forbids it.

        A⁻¹ = B + UUᵀ / (s + η), α = B y, and the residual is α_i / B_ii: the same as `system.loo_residuals` has from eigenvectors,
        which cost eight times as much.
        """
        if self.whole is not None:
            return None
        W, failed = dtrtri(self.upper, overwrite_c=1)  # A⁻¹ = W Wᵀ
        inverse = np.einsum("ij,ij->i", W, W)
        precision = inverse - np.square(self.U).sum(axis=1) / self.numbers[-3]
        if failed or (precision < _LEAST_LEFT * inverse).any():  # what is left of a difference would be rounding
            return None
        alpha = W @ (W.T @ (y - self.U @ (self.U.T @ y)))
        return alpha / precision[:, None], precision

    def _range(self, p: Array) -> Array:
        """u (c, r) from monomials (c, s)."""
        return p @ self.back if self.r else np.zeros((len(p), 0))


def _subtract_product(C: Array, A: Array, B: Array) -> None:
    """C − A B in the place of C, in Fortran order."""
    if len(B):
        dgemm(-1.0, A, B, 1.0, C, overwrite_c=1)


@lru_cache(maxsize=8)
def _packed(h: int) -> tuple[Index, Index]:
    """Where the lower triangle of a square is, row by row, and where its diagonal is in that order."""
    rows, columns = np.tril_indices(h)
    return rows * h + columns, np.flatnonzero(rows == columns)


def factorise(K: Array, R: PolynomialRange, ridge: Array, scale: Array, prior: Array, weights: Array) -> list[Factor]:
    """Factors of a stack of regions from K (B, h, h), η, the factor of the kernel, k(0) with it, and weights (B, h).

    In the end K has the Ls on and below its diagonals.
    """
    (B, h, r), diagonal = R.U.shape, np.einsum("bii->bi", K)
    own = diagonal.copy()
    KU, shift = K @ R.U, np.maximum(own.mean(axis=1), 1.0)
    core = R.U.swapaxes(1, 2) @ KU
    half = KU - 0.5 * (R.U @ core + shift[:, None, None] * R.U)  # A = K - U halfᵀ - half Uᵀ + η
    np.einsum("bii->bi", core)[...] += ridge[:, None]
    diagonal += ridge[:, None]
    last = np.stack([ridge, shift + ridge, scale, prior], axis=1)
    parts = np.concatenate([part.reshape(B, -1) for part in (R.U, KU, core, R.back, weights, last)], axis=1)
    index, ends = _packed(h)
    found, failed = [], []
    for i, A in enumerate(K.swapaxes(1, 2)):  # in Fortran order, so that the upper triangle is L row by row
        A = dsyr2k(-1.0, R.U[i].T, half[i].T, 1.0, A, trans=1, overwrite_c=1) if r else A
        Lt, wrong = dpotrf(A, clean=0, overwrite_a=1)
        numbers = np.empty(len(index) + parts.shape[1])
        np.take(Lt.T.ravel(), index, out=numbers[: len(index)], mode="clip")
        numbers[len(index) :] = parts[i]
        numbers[ends] = 1.0 / np.where(numbers[ends] == 0.0, 1.0, numbers[ends])
        found.append(Factor(numbers, h, r, numbers.ctypes.data))
        failed += [i] if wrong else []
    for i in failed:  # the other triangle of K is unchanged
        above = np.triu(K[i], 1)
        whole = (above + above.T + np.diag(own[i]))[None]
        found[i] = found[i]._replace(whole=block_matrix(whole, R.at(slice(i, i + 1)), ridge[i : i + 1])[0])
    return found


def factorise_regions(batch: Batch, kernel: Radial, settings: Settings) -> tuple[list[Factor], Array]:
    """Those of regions of one kernel and degree, and their Ls (B, h, h)."""
    K, R, scale = batch.system(kernel, settings.bandwidth, int(settings.degree[0]), settings.tolerance)
    weights = np.broadcast_to(scale[:, None], K.shape[:2]) if batch.root_v is None else scale[:, None] * batch.root_v
    return factorise(K, R, settings.ridge, scale, scale * float(kernel(np.zeros(1))[0][0]), weights), K


def solve_systems(factors: list[Factor], y: Array, L: Array | None = None) -> tuple[Array, Array]:
    """Coefficients α (B, h, t) of kernels and λ (B, s, t) of monomials for weighted responses ``y`` (B, h, t).

    α = A⁻¹ Π y, times the weights of kernel values, and λ = P⁺ (y − K α); ``L`` (B, h, h) are the Ls if they are at hand.
    α may take the place of y.
    """
    if y.shape[2] >= _MANY:
        alpha, uppers = np.ascontiguousarray(y), [None] * len(y) if L is None else list(L.swapaxes(1, 2))
        return alpha, np.stack([factor.solve(*given) for factor, *given in zip(factors, alpha, uppers, strict=True)])
    U, KU, back, weights = (np.stack([getattr(factor, name) for factor in factors]) for name in ("U", "KU", "back", "weights"))
    Ut, alpha = U.swapaxes(1, 2), np.empty_like(y)
    for i, (factor, right) in enumerate(zip(factors, y - U @ (Ut @ y), strict=True)):
        alpha[i] = right if factor.whole is not None else dpotrs(factor.upper if L is None else L[i].T, right)[0]
    alpha -= U @ (Ut @ alpha)
    lam = back @ (Ut @ y - KU.swapaxes(1, 2) @ alpha)
    alpha *= weights[..., None]
    for i, factor in enumerate(factors):
        if factor.whole is not None:
            alpha[i] = y[i]
            lam[i] = factor.solve(alpha[i])
    return alpha, lam


class Owner:
    """Stands in the cache for a set of regions with their points, weights and hyperparameters."""


class FactorCache:
    """A cache of factors of regions, of all models in this process, limited in bytes and shared by threads.

    Factors are evicted at random. If regions are queried in turn and do not all fit, the least recently used one is always the one
    that is needed next.
    """

    def __init__(self, limit: int = CACHE_BYTES):
        self.limit, self.used = limit, 0
        self._kept: dict[tuple[int, int], Factor] = {}
        self._keys: list[tuple[int, int]] = []
        self._owners: set[int] = set()
        self._gone: deque[int] = deque()
        self._lock, self._random = Lock(), Random(0)

    def find(self, owner: Owner, regions: Index) -> list[Factor | None]:
        """What is kept of ``regions`` (B,) of an owner."""
        with self._lock:
            self._drop()
            return [self._kept.get((id(owner), region)) for region in regions.tolist()]

    def keep(self, owner: Owner, regions: Index, factors: list[Factor]) -> None:
        """Keep factors as long as the owner lives and others do not need the room."""
        with self._lock:
            self._drop()
            if id(owner) not in self._owners:
                self._owners.add(id(owner))
                finalize(owner, self.forget, id(owner))
            for region, one in zip(regions.tolist(), factors, strict=True):
                key = (id(owner), region)
                if key in self._kept or one.nbytes > self.limit:
                    continue
                self._shrink(self.limit - one.nbytes)
                self._kept[key] = one
                self._keys.append(key)
                self.used += one.nbytes

    def resize(self, limit: int) -> None:
        """Set the number of bytes."""
        with self._lock:
            self._drop()
            self.limit = limit
            self._shrink(limit)

    def forget(self, owner: int) -> None:
        """Drop the factors of an owner that no longer exists: now, or at the next call if a thread holds the lock.

        The garbage collector may call this at any time, also in the thread that holds the lock, so it must not wait.
        """
        self._gone.append(owner)
        if self._lock.acquire(blocking=False):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _drop(self) -> None:
        gone = {self._gone.popleft() for _ in range(len(self._gone))}
        if gone:
            self._owners -= gone
            for key in [key for key in self._keys if key[0] in gone]:
                self.used -= self._kept.pop(key).nbytes
            self._keys = list(self._kept)

    def _shrink(self, limit: int) -> None:
        while self.used > limit:
            i = self._random.randrange(len(self._keys))
            self._keys[i], self._keys[-1] = self._keys[-1], self._keys[i]
            self.used -= self._kept.pop(self._keys.pop()).nbytes


CACHE = FactorCache()


def set_cache_bytes(limit: int) -> None:
    """Limit the cache of factors of regions, of all models in this process, to so many bytes; 512 MB unless this is called.

    `fit` makes these factors. Standard deviations and `StitchedRegressor.refit` need them, and recompute missing ones. The cache is
    never saved.

    Examples
    --------
    >>> import stitchwork
    >>> stitchwork.set_cache_bytes(2**30)
    >>> stitchwork.set_cache_bytes(2**29)
    """
    if limit < 0:
        raise ValueError(f"`limit` must be a number of bytes, zero for none, got {limit!r}.")
    CACHE.resize(int(limit))
