"""Block models: kernel ridge regression, polynomial, or both, fitted and evaluated for stacks of regions (paper, section 4).

POLY is the block system with a kernel that is zero, KRR the one with no polynomial, so one path serves all three. Each region works
in its own coordinates, shifted and scaled so that its points fill the unit ball. Regions of one kernel and degree are worked on in
stacks that stay in cache: region by region, the interpreter would cost as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._cover import Cover
from ._linalg import PolynomialRange, polynomial_range, projected_trace, solve_blocks
from ._local import Jet, Points, empty_jet, gather, groups
from ._parallel import parallel_map, slices
from ._polynomial import Monomials, monomials
from ._radial import NO_KERNEL, Radial

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_STACK_BYTES = 1 << 20  # matrices that are factored at once: they stay in cache
_VALUES_BYTES = 1 << 21  # kernel values that are worked on at once
_FEW_REGIONS = 32  # a query of so few pairs keeps its stack for the next, up to so many stacks
_LONGEST_RUN = 256  # queries of one region that are worked on at once


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of each region, (m,): index into ``kernels``, σ in units of b, η, degree ℓ (-1: none), rank tolerance."""

    kernels: tuple[Radial, ...]
    kernel: Index
    bandwidth: Array
    ridge: Array
    degree: Index
    tolerance: Array

    def at(self, regions: Index) -> Settings:
        """Those of some regions."""
        return Settings(
            self.kernels, *(getattr(self, name)[regions] for name in ("kernel", "bandwidth", "ridge", "degree", "tolerance"))
        )

    def named(self, region: int) -> dict[str, str | int | float]:
        """Those of one region by the names of the constructor's parameters."""
        return {
            "kernel": self.kernels[self.kernel[region]].name,
            "degree": int(self.degree[region]),
            "bandwidth": float(self.bandwidth[region]),
            "ridge": float(self.ridge[region]),
        }


@dataclass(frozen=True)
class Batch:
    """Some regions in their own coordinates.

    Attributes
    ----------
    origin, scale : (B, d), (B,) mean of the members and greatest distance from it: the members alone decide, not the centre
    Z : (d, B, h) members in these coordinates; distances2 : (B, h, h) squared distances; b : (B,) mean distance
    y : (B, h, t); root_v : (B, h) square roots of the weights, None where all are one
    """

    origin: Array
    scale: Array
    Z: Array
    distances2: Array
    b: Array
    y: Array
    root_v: Array | None

    def system(
        self, kernel: Radial, bandwidth: Array, degree: int, tolerance: Array | float
    ) -> tuple[Array, PolynomialRange, Array]:
        """K, the range of P, and the factor by which a kernel without a scale of its own was given unit mean eigenvalue.

        With point weights v, K stands for v^½ K v^½ and P for v^½ P.
        """
        sigma2 = (self.sigma(kernel, bandwidth) ** 2)[:, None, None]
        K = np.empty_like(self.distances2)
        for rows, above in upper_blocks(K.shape[1]):
            (K[:, rows, above],) = kernel(self.distances2[:, rows, above] / sigma2)
            K[:, above, rows] = K[:, rows, above].swapaxes(1, 2)
        P = monomials(len(self.Z), degree).values(self.Z)
        if self.root_v is not None:
            K *= self.root_v[:, :, None] * self.root_v[:, None, :]
            P *= self.root_v[:, :, None]
        R = polynomial_range(P, tolerance)
        factor = np.ones(len(K))
        if kernel.least_degree >= 0:
            free = np.maximum(K.shape[1] - R.rank, 1)
            trace = projected_trace(K, R.U)
            np.divide(free, trace, out=factor, where=trace > 0.0)
            K *= factor[:, None, None]
        return K, R, factor

    def sigma(self, kernel: Radial, bandwidth: Array) -> Array:
        """Length scale of the kernel in the region's coordinates: a multiple of b, or one where it has no meaning."""
        return np.ones(len(self.b)) if kernel.scale_free else bandwidth * self.b

    @property
    def weighted_y(self) -> Array:
        """v^½ y."""
        return self.y if self.root_v is None else self.y * self.root_v[..., None]


def batch_size(h: int) -> int:
    """Regions per stack."""
    return max(1, _STACK_BYTES // (8 * h * h))


def region_batch(points: Points, cover: Cover, regions: Index, rough: bool) -> Batch:
    """Regions ``regions`` in their own coordinates; ``rough`` asks for distances that are exact near zero."""
    members = cover.members[regions]
    Z = gather(points.X, members)
    origin = Z.mean(axis=2)
    Z -= origin[..., None]
    scale = np.sqrt(np.einsum("dbh,dbh->bh", Z, Z).max(axis=1))
    scale[scale == 0.0] = 1.0
    Z /= scale[:, None]
    distances2 = squared_distances(Z, Z, rough)
    np.maximum(distances2, 0.0, out=distances2)
    h = Z.shape[2]
    diagonal = np.arange(h)
    distances2[:, diagonal, diagonal] = 0.0
    b = np.zeros(len(members))
    for rows, above in upper_blocks(h):
        distances = np.sqrt(distances2[:, rows, above])
        b += 2.0 * distances.sum(axis=(1, 2)) - distances[:, :, : rows.stop - rows.start].sum(axis=(1, 2))
    b /= max(h * (h - 1), 1)
    b[b == 0.0] = 1.0
    v = points.v[members]
    return Batch(origin.T, scale, Z, distances2, b, points.y[members], None if (v == 1.0).all() else np.sqrt(v))


def upper_blocks(h: int) -> list[tuple[slice, slice]]:
    """Blocks of a symmetric h × h matrix on and above the diagonal: functions of its entries need no more."""
    return [(rows, slice(rows.start, h)) for rows in slices(h, -(-h // 4))]


def from_center(points: Points, cover: Cover, regions: Index) -> Array:
    """Squared distances of the members of ``regions`` from their centres, in units of the radius, (B, h)."""
    offset = gather(points.X, cover.members[regions]) - gather(points.X, cover.center[regions])[..., None]
    return np.einsum("dbh,dbh->bh", offset, offset) / (cover.radii[regions] ** 2)[:, None]


def squared_distances(A: Array, B: Array, rough: bool) -> Array:
    """|a - b|² for all pairs of points A (d, B, a) and B (d, B, b), coordinates first, as (B, a, b).

    By one product of [-2a, 1, |a|²] and [b, |b|², 1], with an error of rounding relative to |a|² (so it may be just below
    zero); term by term if ``rough``, for kernels that feel the root of that error.
    """
    d, stack = A.shape[:2]
    if rough:
        return sum((np.subtract(a[..., None], b[:, None, :]) ** 2 for a, b in zip(A, B, strict=True)), np.zeros(1))
    left, right = np.empty((stack, d + 2, A.shape[2])), np.empty((stack, d + 2, B.shape[2]))
    np.multiply(A.transpose(1, 0, 2), -2.0, out=left[:, :d])
    right[:, :d] = B.transpose(1, 0, 2)
    left[:, d] = right[:, d + 1] = 1.0
    np.einsum("dba,dba->ba", A, A, out=left[:, d + 1])
    np.einsum("dba,dba->ba", B, B, out=right[:, d])
    return left.swapaxes(1, 2) @ right


def is_rough(kernels: Sequence[Radial]) -> bool:
    """Whether some kernel has a kink at distance zero, so that distances must be exact there."""
    return any(kernel.smoothness < 2 for kernel in kernels)


@dataclass(frozen=True)
class BlockModels:
    """Fitted block systems of m regions over points X (n, d).

    Attributes
    ----------
    members : (m, h); origin, scale : (m, d), (m,) the regions' coordinates; sigma : (m,) kernel scale in them
    alpha : (m, h, t); lam : (m, s, t), zero beyond a region's own degree
    """

    X: Array
    members: Index
    origin: Array
    scale: Array
    settings: Settings
    sigma: Array
    alpha: Array
    lam: Array

    @property
    def smoothness(self) -> float:
        """t, where all of the models are C^t."""
        return min(self.settings.kernels[k].smoothness for k in np.unique(self.settings.kernel))

    @cached_property
    def _kind(self) -> Index:
        return kinds(self.settings)

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """f_j(q) = Σ α_i K(x_i, q) + Σ λ_k p_k(q) and derivatives: each of ``region`` (p,), sorted, at its row of ``Q`` (p, d)."""
        out = empty_jet(len(Q), self.alpha.shape[2], Q.shape[1], order)
        for regions, rows in self._stacks(region):
            stack = self._recent_stack(regions) if len(Q) <= _FEW_REGIONS else self._stack(regions)
            for target, source in zip(out, stack.evaluate(gather(Q, rows), order), strict=False):
                target[rows] = source
        return out

    def _stacks(self, region: Index) -> Iterator[tuple[Index, Index]]:
        """Regions (B,) of one kind with the rows (B, c) that ask them, the last row of a region repeated up to the longest."""
        most = _VALUES_BYTES // (8 * self.members.shape[1])
        if 0 < len(region) <= most and (region[1:] > region[:-1]).all() and (self._kind[region] == self._kind[region[0]]).all():
            yield region, np.arange(len(region))[:, None]  # one query, as a rule
            return
        start, count = groups(region)
        if len(count) and count.max() > _LONGEST_RUN:
            runs = -(-count // _LONGEST_RUN)
            nth = np.arange(runs.sum()) - np.repeat(np.cumsum(runs) - runs, runs)
            start, count = np.repeat(start, runs) + nth * _LONGEST_RUN, np.repeat(count, runs) - nth * _LONGEST_RUN
            count = np.minimum(count, _LONGEST_RUN)
        kind = self._kind[region[start]]
        order = np.lexsort((-count, kind))
        start, count, kind = start[order], count[order], kind[order]
        first, ends = 0, np.flatnonzero(np.diff(kind, append=-1)) + 1
        for end in ends:
            while first < end:
                longest = count[first]
                last = min(first + max(1, most // longest), end)
                rows = start[first:last, None] + np.minimum(np.arange(longest), count[first:last, None] - 1)
                yield region[start[first:last]], rows
                first = last

    def _stack(self, regions: Index) -> _Stack:
        """Regions (B,) of one kind, ready to be evaluated."""
        degree, kernel = int(self.settings.degree[regions[0]]), self.settings.kernels[self.settings.kernel[regions[0]]]
        scale, sigma, origin = self.scale[regions, None], self.sigma[regions, None], self.origin[regions].T[..., None]
        basis = monomials(len(origin), degree)
        X = (gather(self.X, self.members[regions]) - origin) / (scale * sigma)
        return _Stack(kernel, basis, origin, scale, sigma, X, self.alpha[regions], self.lam[regions, : len(basis)])

    def _recent_stack(self, regions: Index) -> _Stack:
        """The same, kept for the next query: a solver asks next where it asked last."""
        key = regions.tobytes()
        stack = self._recent.get(key)
        if stack is None:
            if len(self._recent) >= _FEW_REGIONS:
                self._recent.clear()
            stack = self._recent[key] = self._stack(regions)
        return stack

    @cached_property
    def _recent(self) -> dict[bytes, _Stack]:
        return {}


@dataclass(frozen=True)
class _Stack:
    """Regions of one kind: origin (d, B, 1), scale and sigma (B, 1), members X (d, B, h) in units of both, coefficients."""

    kernel: Radial
    basis: Monomials
    origin: Array
    scale: Array
    sigma: Array
    X: Array
    alpha: Array
    lam: Array

    def evaluate(self, Q: Array, order: int) -> list[Array]:
        """Each region at its own queries ``Q`` (d, B, c): values (B, c, t) and derivatives (B, c, t, d, …)."""
        Z = (Q - self.origin) / self.scale
        terms = _unscaled(self._polynomial(Z, order), self.scale)
        if self.kernel.name == NO_KERNEL.name:
            return terms
        part = _unscaled(self._kernel(Z / self.sigma, order), self.scale * self.sigma)
        return [a + b for a, b in zip(terms, part, strict=True)]

    def _polynomial(self, Z: Array, order: int) -> list[Array]:
        P = self.basis.values(Z)
        (d, B, c), t = Z.shape, self.lam.shape[2]
        return [(P @ self._derived[k]).reshape(B, c, t, *(d,) * k) for k in range(order + 1)]

    @cached_property
    def _derived(self) -> _Derivatives:
        return _Derivatives(self.basis, self.lam)

    @cached_property
    def _alpha_x(self) -> Array:
        """[α, α x] (B, h, t + t d)."""
        X = self.X.transpose(1, 2, 0)
        return np.concatenate([self.alpha, (self.alpha[..., None] * X[:, :, None, :]).reshape(*X.shape[:2], -1)], axis=2)

    def _kernel(self, Z: Array, order: int) -> list[Array]:
        """Σ α_i K(|z - x_i|) with derivatives in z, by expanding z - x_i so that all sums over i are matrix products.

        ∇ = z Σ α_i DK_i - Σ α_i DK_i x_i
        ∇² = I Σ α_i DK_i + Σ α_i D²K_i (z - x_i)(z - x_i)ᵀ
        """
        d, B, c = Z.shape
        h, t = self.alpha.shape[1:]
        K = self.kernel(squared_distances(Z, self.X, is_rough([self.kernel])), order)
        terms = [K[0] @ self.alpha]
        if order >= 1:
            Z = Z.transpose(1, 2, 0)
            sum_1 = K[1] @ self._alpha_x
            terms.append(sum_1[..., :t, None] * Z[:, :, None, :] - sum_1[..., t:].reshape(B, c, t, d))
        if order >= 2:
            X = self.X.transpose(1, 2, 0)
            xx = (X[:, :, None, :, None] * X[:, :, None, None, :]).reshape(B, h, 1, d * d)
            alpha_xx = (self.alpha[..., None] * xx).reshape(B, h, t * d * d)
            sum_2 = K[2] @ np.concatenate([self._alpha_x, alpha_xx], axis=2)
            cross = sum_2[..., t : t + t * d].reshape(B, c, t, d, 1) * Z[:, :, None, None, :]
            hessian = sum_2[..., :t, None, None] * (Z[:, :, None, :, None] * Z[:, :, None, None, :])
            hessian -= cross + cross.swapaxes(3, 4)
            hessian += sum_2[..., t + t * d :].reshape(B, c, t, d, d)
            hessian += sum_1[..., :t, None, None] * np.eye(d)
            terms.append(hessian)
        return terms


class _Derivatives:
    """Coefficients (B, s, t dᵏ) of the k-th derivatives of polynomials, made when first asked for."""

    def __init__(self, basis: Monomials, lam: Array):
        self.basis, self.known = basis, [lam]

    def __getitem__(self, k: int) -> Array:
        while len(self.known) <= k:
            self.known.append(self.basis.differentiate(self.known[-1]))
        lam = self.known[k]
        return lam.reshape(*lam.shape[:2], int(np.prod(lam.shape[2:])))


def _unscaled(terms: list[Array], scale: Array) -> list[Array]:
    """Derivatives with respect to scale · z from those with respect to z."""
    return [term if k == 0 else term / scale.reshape(-1, *(1,) * (k + 2)) ** k for k, term in enumerate(terms)]


def fit_blocks(
    points: Points,
    cover: Cover,
    settings: Settings,
    n_jobs: int | None = None,
    progress: str | None = None,
) -> BlockModels:
    """Fit the block system of every region at its own settings."""
    m, h = cover.members.shape
    d, t = points.X.shape[1], points.y.shape[1]
    origin, scale, sigma, alpha = np.empty((m, d)), np.empty(m), np.empty(m), np.empty((m, h, t))
    lam = np.zeros((m, monomials(d, int(settings.degree.max())).count(int(settings.degree.max())), t))

    def fit_slice(regions: Index) -> None:
        kernel = settings.kernels[settings.kernel[regions[0]]]
        degree = int(settings.degree[regions[0]])
        batch = region_batch(points, cover, regions, is_rough([kernel]))
        K, R, factor = batch.system(kernel, settings.bandwidth[regions], degree, settings.tolerance[regions])
        a, coefficients = solve_blocks(K, R, batch.weighted_y, settings.ridge[regions])
        if batch.root_v is not None:
            a = a * batch.root_v[..., None]
        alpha[regions] = a * factor[:, None, None]
        lam[regions, : coefficients.shape[1]] = coefficients
        sigma[regions] = batch.sigma(kernel, settings.bandwidth[regions])
        origin[regions], scale[regions] = batch.origin, batch.scale

    parallel_map(fit_slice, alike_slices(settings, batch_size(h)), n_jobs, progress)
    return BlockModels(points.X, cover.members, origin, scale, settings, sigma, alpha, lam)


def alike_slices(settings: Settings, size: int) -> list[Index]:
    """Regions with the same kernel and degree, in stacks of at most ``size``."""
    kind = kinds(settings)
    return [
        group[part] for value in np.unique(kind) for group in [np.flatnonzero(kind == value)] for part in slices(len(group), size)
    ]


def kinds(settings: Settings) -> Index:
    """One number for each pair of kernel and degree, (m,)."""
    return settings.kernel * (settings.degree.max() + 2) + settings.degree + 1
