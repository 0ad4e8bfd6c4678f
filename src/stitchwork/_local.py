"""Local models: one per region, fitted on its h points and evaluated with derivatives (paper, sections 3.1 and 4).

`BlockModels` holds KRR, POLY and KRR-POLY models of all regions as rectangular arrays: POLY is the block system with a kernel that
is zero, KRR the one with no polynomial. `ForeignModels` holds models of the user's own (`LocalModel`). Both answer
`evaluate(region, Q, order)`. Each region works in its own coordinates, shifted and scaled so that its points fill the unit ball.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ._cover import Cover
from ._linalg import PolynomialRange, polynomial_range, projected_trace, solve_blocks
from ._parallel import parallel_map, slices
from ._polynomial import monomials
from ._radial import NO_KERNEL, Radial

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_BATCH_BYTES = 1 << 19  # a stack of matrices that stays in cache


class Jet(NamedTuple):
    """A function at q points with its derivatives up to some order; those beyond it are None."""

    value: Array  # (q, t)
    gradient: Array | Any = None  # (q, t, d)
    hessian: Array | Any = None  # (q, t, d, d)


class Points(NamedTuple):
    """Distinct locations X (n, d) with responses y (n, t) and weights v (n,)."""

    X: Array
    y: Array
    v: Array


@runtime_checkable
class FittedLocalModel(Protocol):
    """A model of one region; shapes as in `StitchedRegressor`. `hessian` is needed only where a Hessian is asked for."""

    def predict(self, X: Array) -> Array:
        """Values at ``X``."""

    def gradient(self, X: Array) -> Array:
        """Exact gradients of `predict` at ``X``."""

    def hessian(self, X: Array) -> Array:
        """Exact Hessians of `predict` at ``X``."""


@runtime_checkable
class LocalModel(Protocol):
    """A model of the user's own for every region: any smooth regression with its derivatives.

    ``smoothness`` is t where the models are C^t. `fit` gets the region's points in the unit ball around 0 and must return a new
    fitted model, since it is called once per region.
    """

    smoothness: float

    def fit(self, X: Array, y: Array, sample_weight: Array) -> FittedLocalModel:
        """Fit one region."""


class RegionModels(Protocol):
    """What stitching needs to know of the models of all regions."""

    @property
    def smoothness(self) -> float:
        """t, where all of the models are C^t."""

    def evaluate(self, region: int, Q: Array, order: int) -> Jet:
        """The model of ``region`` at ``Q`` (q, d)."""


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


@dataclass(frozen=True)
class Batch:
    """Some regions in their own coordinates.

    Attributes
    ----------
    origin, scale : (B, d), (B,) mean of the members and greatest distance from it: the members alone decide, not the centre
    Z : (B, h, d) members in these coordinates; distances2 : (B, h, h) squared distances; b : (B,) mean distance
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
        sigma = self.sigma(kernel, bandwidth)
        (K,) = kernel(self.distances2 / (sigma * sigma)[:, None, None])
        P = monomials(self.Z.shape[2], degree).values(self.Z)
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
    return max(1, _BATCH_BYTES // (8 * h * h))


def region_batch(points: Points, cover: Cover, regions: Index, rough: bool) -> Batch:
    """Regions ``regions`` in their own coordinates; ``rough`` asks for distances that are exact near zero."""
    members = cover.members[regions]
    X = points.X[members]
    origin = X.mean(axis=1)
    Z = X - origin[:, None]
    scale = np.sqrt(np.einsum("bhd,bhd->bh", Z, Z).max(axis=1))
    scale[scale == 0.0] = 1.0
    Z /= scale[:, None, None]
    distances2 = squared_distances(Z, Z, rough)
    np.maximum(distances2, 0.0, out=distances2)
    h = Z.shape[1]
    diagonal = np.arange(h)
    distances2[:, diagonal, diagonal] = 0.0
    b = np.sqrt(distances2).sum(axis=(1, 2)) / max(h * (h - 1), 1)
    b[b == 0.0] = 1.0
    v = points.v[members]
    return Batch(origin, scale, Z, distances2, b, points.y[members], None if (v == 1.0).all() else np.sqrt(v))


def from_center(points: Points, cover: Cover, regions: Index) -> Array:
    """Squared distances of the members of ``regions`` from their centres, in units of the radius, (B, h)."""
    offset = points.X[cover.members[regions]] - points.X[cover.center[regions], None]
    return np.einsum("bhd,bhd->bh", offset, offset) / (cover.radii[regions] ** 2)[:, None]


def squared_distances(A: Array, B: Array, rough: bool) -> Array:
    """|a - b|² for all pairs of points A (..., a, d) and B (..., b, d), as (..., a, b).

    By one product of [-2a, 1, |a|²] and [b, |b|², 1], with an error of rounding relative to |a|² (so it may be just below
    zero); term by term if ``rough``, for kernels that feel the root of that error.
    """
    if rough:
        if A.ndim == 2:
            return cdist(A, B, "sqeuclidean")
        return np.stack([cdist(a, b, "sqeuclidean") for a, b in zip(A, B, strict=True)])
    d = A.shape[-1]
    left, right = np.ones((*A.shape[:-1], d + 2)), np.ones((*B.shape[:-1], d + 2))
    np.multiply(A, -2.0, out=left[..., :d])
    np.einsum("...d,...d->...", A, A, out=left[..., d + 1])
    right[..., :d] = B
    np.einsum("...d,...d->...", B, B, out=right[..., d])
    return left @ right.swapaxes(-1, -2)


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

    def evaluate(self, region: int, Q: Array, order: int) -> Jet:
        """f_j(q) = Σ α_i K(x_i, q) + Σ λ_k p_k(q) with derivatives at ``Q`` (q, d)."""
        scale = self.scale[region]
        Z = (Q - self.origin[region]) / scale
        jet = self._polynomial(region, Z, order)
        kernel = self.settings.kernels[self.settings.kernel[region]]
        if kernel.name != NO_KERNEL.name:
            points = (self.X[self.members[region]] - self.origin[region]) / scale
            sigma = self.sigma[region]
            part = _kernel_jet(kernel, Z / sigma, points / sigma, self.alpha[region], order)
            jet = _sum_of(jet, part, sigma)
        return _in_units(jet, scale)

    def _polynomial(self, region: int, Z: Array, order: int) -> Jet:
        basis = monomials(Z.shape[1], int(self.settings.degree[region]))
        lam = self.lam[region, : len(basis)]
        P = basis.values(Z)
        value, gradient, hessian = P @ lam, None, None
        s, t = lam.shape
        if order >= 1:
            slopes = np.stack([basis.differentiate(lam, k) for k in range(basis.d)], axis=-1)  # (s, t, d)
            gradient = (P @ slopes.reshape(s, t * basis.d)).reshape(len(Z), t, basis.d)
        if order >= 2:
            curvatures = np.stack([basis.differentiate(slopes, k) for k in range(basis.d)], axis=-1)  # (s, t, d, d)
            hessian = (P @ curvatures.reshape(s, t * basis.d**2)).reshape(len(Z), t, basis.d, basis.d)
        return Jet(value, gradient, hessian)


def _kernel_jet(kernel: Radial, Z: Array, X: Array, alpha: Array, order: int) -> Jet:
    """Σ α_i K(|z - x_i|) with derivatives in z, by expanding z - x_i so that all sums over i are matrix products.

    ∇ = z Σ α_i DK_i - Σ α_i DK_i x_i
    ∇² = I Σ α_i DK_i + Σ α_i D²K_i (z - x_i)(z - x_i)ᵀ
    """
    q, d = Z.shape
    t = alpha.shape[1]
    terms = kernel(squared_distances(Z, X, kernel.smoothness < 2), order)
    value, gradient, hessian = terms[0] @ alpha, None, None
    if order >= 1:
        alpha_x = (alpha[:, :, None] * X[:, None, :]).reshape(len(X), -1)  # (h, t d)
        sum_1 = terms[1] @ np.concatenate([alpha, alpha_x], axis=1)
        gradient = sum_1[:, :t, None] * Z[:, None, :] - sum_1[:, t:].reshape(q, t, d)
    if order >= 2:
        alpha_xx = (alpha[:, :, None, None] * (X[:, None, :, None] * X[:, None, None, :])).reshape(len(X), -1)  # (h, t d d)
        sum_2 = terms[2] @ np.concatenate([alpha, alpha_x, alpha_xx], axis=1)
        cross = sum_2[:, t : t + t * d].reshape(q, t, d, 1) * Z[:, None, None, :]
        hessian = sum_2[:, :t, None, None] * (Z[:, None, :, None] * Z[:, None, None, :])
        hessian -= cross + cross.swapaxes(2, 3)
        hessian += sum_2[:, t + t * d :].reshape(q, t, d, d)
        hessian += sum_1[:, :t, None, None] * np.eye(d)
    return Jet(value, gradient, hessian)


def _in_units(jet: Jet, scale: float) -> Jet:
    """Derivatives with respect to scale · z from those with respect to z."""
    value, gradient, hessian = jet
    return Jet(value, None if gradient is None else gradient / scale, None if hessian is None else hessian / (scale * scale))


def _sum_of(jet: Jet, part: Jet, scale: float) -> Jet:
    part = _in_units(part, scale)
    return Jet(*(a if b is None or a is None else a + b for a, b in zip(jet, part, strict=True)))


@dataclass(frozen=True)
class ForeignModels:
    """Models of the user's own, one per region."""

    models: list[FittedLocalModel]
    origin: Array
    scale: Array
    smoothness: float
    n_outputs: int

    def evaluate(self, region: int, Q: Array, order: int) -> Jet:
        """The user's model of ``region`` at ``Q`` (q, d)."""
        Z = (Q - self.origin[region]) / self.scale[region]
        model = self.models[region]
        q, d, t = *Q.shape, self.n_outputs
        jet = Jet(
            np.reshape(model.predict(Z), (q, t)),
            np.reshape(model.gradient(Z), (q, t, d)) if order >= 1 else None,
            np.reshape(model.hessian(Z), (q, t, d, d)) if order >= 2 else None,
        )
        return _in_units(jet, self.scale[region])


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
    kind = settings.kernel * (settings.degree.max() + 2) + settings.degree + 1
    return [
        group[part] for value in np.unique(kind) for group in [np.flatnonzero(kind == value)] for part in slices(len(group), size)
    ]


def fit_foreign(points: Points, cover: Cover, model: LocalModel, flat: bool, n_jobs: int | None = None) -> ForeignModels:
    """Fit the user's model in every region; ``flat`` hands y over as (h,) instead of (h, t)."""
    origin = points.X[cover.center]

    def fit_region(region: int) -> FittedLocalModel:
        members = cover.members[region]
        Z = (points.X[members] - origin[region]) / cover.radii[region]
        y = points.y[members]
        return model.fit(Z, y[:, 0] if flat else y, points.v[members])

    models = parallel_map(fit_region, range(len(cover)), n_jobs)
    return ForeignModels(models, origin, cover.radii, model.smoothness, points.y.shape[1])
