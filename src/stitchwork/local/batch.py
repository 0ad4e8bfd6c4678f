"""A stack of regions in their own coordinates, and the block systems that they make.

Each region works in coordinates that are shifted and scaled so that its points fill the unit ball. Regions of one kernel and degree
are worked on in stacks that stay in cache: region by region, the interpreter would cost as much as the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._types import Array, Index
from ..native import kernel_matrices, pair_distances
from .groups import Together, find_together, group_residuals
from .hermite import hermite_matrices, hermite_monomials, hermite_rows, location_residuals, mask_equations, place_slopes
from .points import Points, gather
from .polynomial import monomials
from .radial import NO_KERNEL, Radial
from .system import PolynomialRange, Spectrum, loo_residuals, projected_trace, span_range

_STACK_BYTES = 1 << 20  # matrices that are factored at once: they stay in cache


@dataclass(frozen=True)
class Batch:
    """Some regions in their own coordinates.

    Attributes
    ----------
    origin, scale : (B, d), (B,) mean of the members and greatest distance from it: the members alone decide, not the centre
    Z : (d, B, h) members in these coordinates; distances2 : (B, h, h) squared distances; b : (B,) mean distance
    y : (B, h, t); root_v : (B, h) square roots of the weights, None where all are one
    together : which members are left out together, None where each is by itself
    slopes : (B, h, k, d) directions of measured slopes, None where there are none; with them y and root_v have a row for each
        equation, first those of the h responses: see `hermite`
    slope_units : (B, h k) by which measured slopes are multiplied in y
    """

    origin: Array
    scale: Array
    Z: Array
    distances2: Array
    b: Array
    y: Array
    root_v: Array | None
    together: Together | None
    slopes: Array | None = None
    slope_units: Array | None = None

    def at(self, i: Index) -> Batch:
        """Some of the regions, without groups: each point is left out by itself."""
        root_v, *slopes = (None if a is None else a[i] for a in (self.root_v, self.slopes, self.slope_units))
        return Batch(self.origin[i], self.scale[i], self.Z[:, i], self.distances2[i], self.b[i], self.y[i], root_v, None, *slopes)

    @property
    def h(self) -> int:
        """Members of each region."""
        return self.Z.shape[2]

    @property
    def responses(self) -> Array:
        """(B, h, t)."""
        return self.y[:, : self.h]

    def leave_out(self, S: Spectrum, etas: Array) -> tuple[Array, Array]:
        """Leave-one-out residuals of weighted responses, points left out alone or in groups, and α: see `loo_residuals`."""
        residuals, alpha = loo_residuals(S, self.weighted_y, etas)
        if self.together is None and self.slopes is not None:
            residuals = location_residuals(S, etas, alpha, self.unknown_y, self.h)
        return (residuals if self.together is None else self.leave_out_together(S, etas, alpha, self.together)), alpha

    def leave_out_together(self, S: Spectrum, etas: Array, alpha: Array, together: Together) -> Array:
        """Residuals of weighted responses, each point without those that are left ``together`` with it."""
        inverse, residuals = S.inverse(etas), np.empty_like(alpha)
        mask = together.mask if self.slopes is None else mask_equations(together.mask, self.slopes.shape[2])
        for k in range(alpha.shape[3]):
            B = (S.V * inverse[:, None, :, k]) @ S.V.swapaxes(1, 2)
            residuals[..., k] = group_residuals(B, alpha[..., k], self.unknown_y, mask)
        return residuals

    def system(
        self, kernel: Radial, bandwidth: Array, degree: int, tolerance: Array | float
    ) -> tuple[Array, PolynomialRange, Array]:
        """K, the range of P, and the factor that gives K unit mean eigenvalue: one unless K is conditionally positive definite.

        With point weights v, K stands for v^½ K v^½ and P for v^½ P.
        """
        K, P = self._kernel_matrices(kernel, self.sigma(kernel, bandwidth)), self._polynomials(degree)
        if self.root_v is not None:
            K *= self.root_v[:, :, None] * self.root_v[:, None, :]
            P *= self.root_v[:, :, None]
        R = span_range(P, tolerance)
        factor = np.ones(len(K))
        if kernel.least_degree >= 0:
            free = np.maximum(self._measured - R.rank, 1)
            trace = projected_trace(K, R.U)
            np.divide(free, trace, out=factor, where=trace > 0.0)
            K *= factor[:, None, None]
        if self.slopes is not None and self.root_v is not None:  # what was not measured stands by itself, and has no part in B
            np.einsum("bii->bi", K)[self.root_v == 0.0] = 1.0
        return K, R, factor

    @property
    def _measured(self) -> int | Index:
        """Number of measured equations of each region."""
        return self.y.shape[1] if self.slopes is None or self.root_v is None else (self.root_v > 0.0).sum(axis=1)

    def _polynomials(self, degree: int) -> Array:
        basis = monomials(len(self.Z), degree)
        return basis.values(self.Z) if self.slopes is None else hermite_monomials(basis, self.Z, self.slopes)

    def rows(self, kernel: Radial, bandwidth: Array, Q: Array) -> Array:
        """Values of a kernel between queries ``Q`` (d, B, c) in these coordinates and the equations, (B, c, H)."""
        sigma = self.sigma(kernel, bandwidth)
        if self.slopes is not None:
            return hermite_rows(kernel, Q, self.Z, self.slopes, sigma)[0]
        far = squared_distances(Q, self.Z, is_rough([kernel])) / (sigma**2)[:, None, None]
        return kernel(np.maximum(far, 0.0))[0]

    def per_equation(self, values: Array) -> Array:
        """The mean of ``values`` (B, H, …) over those equations that were measured: others have zero there."""
        return np.asarray(values.mean(axis=1) if self.slopes is None else _divide(values.sum(axis=1), self._measured))

    def _kernel_matrices(self, kernel: Radial, sigma: Array) -> Array:
        """Values of a kernel of length scale σ (B,) between the members, (B, h, h), or between all equations."""
        if self.slopes is not None:
            return hermite_matrices(kernel, self.Z, self.slopes, sigma)
        K = None if kernel.name == NO_KERNEL.name else kernel_matrices(kernel.name, len(self.Z), self.distances2, sigma)
        return kernel(self.distances2 / (sigma**2)[:, None, None])[0] if K is None else K

    def sigma(self, kernel: Radial, bandwidth: Array) -> Array:
        """Length scale of the kernel in the region's coordinates: a multiple of b, or one where it has no meaning."""
        return np.ones(len(self.b)) if kernel.scale_free else bandwidth * self.b

    @property
    def weighted_y(self) -> Array:
        """v^½ y."""
        return self.y if self.root_v is None else self.y * self.root_v[..., None]

    @property
    def unknown_y(self) -> Array:
        """v^½ (y - ȳ): the residual where the other points predict only their mean; of slopes, the slopes themselves."""
        away = self.y - self.y.mean(axis=1, keepdims=True) if self.slopes is None else self.y.copy()
        if self.slopes is not None:
            away[:, : self.h] -= self.responses.mean(axis=1, keepdims=True)
        return away if self.root_v is None else away * self.root_v[..., None]


def batch_size(h: int, t: int = 1) -> int:
    """Regions per stack, if there are t right-hand sides."""
    return max(1, _STACK_BYTES // (8 * h * max(h, t)))


def apply_metric(local_metric: Array | None, Z: Array) -> Array:
    """Points ``Z`` (d, …), coordinates first, times a matrix, if there is one."""
    return Z if local_metric is None else np.tensordot(local_metric.T, Z, axes=1)


def make_batch(
    points: Points, members: Index, rough: bool, local_metric: Array | None = None, slopes: Array | float = 1.0
) -> Batch:
    """The regions with these ``members`` (B, h) in their own coordinates; ``rough`` asks for distances that are exact near zero.

    Distances are those after a ``local_metric``, if there is one; ``slopes``, a number or (B,), is the weight of measured slopes.
    """
    Z = gather(points.X, members)
    origin = Z.mean(axis=2)
    Z = Z - origin[..., None]
    radius = None if points.slopes is None else _extent(Z)
    Z = apply_metric(local_metric, Z)
    scale = _extent(Z)
    Z /= scale[:, None]
    distances2, b = pair_distances(Z) or _pair_distances(Z, rough)
    b[b == 0.0] = 1.0
    v, y, C, units = points.v[members], points.y[members], None, None
    if points.slopes is not None and radius is not None:
        C, g, v, units = place_slopes(points.slopes, members, v, local_metric, radius, scale, slopes)
        y = np.concatenate([y, g], axis=1)
    root_v = None if (v == 1.0).all() else np.sqrt(v)
    return Batch(origin.T, scale, Z, distances2, b, y, root_v, find_together(points, members), C, units)


def _extent(Z: Array) -> Array:
    """The greatest distance of points ``Z`` (d, B, h) from the origin, (B,); one where there is none."""
    extent = np.sqrt(np.einsum("dbh,dbh->bh", Z, Z).max(axis=1))
    extent[extent == 0.0] = 1.0
    return np.asarray(extent)


def _divide(total: Array, count: int | Index) -> Array:
    """``total`` (B, …) by numbers (B,)."""
    return np.asarray(total / np.maximum(np.reshape(count, (-1, *(1,) * (total.ndim - 1))), 1))


def _pair_distances(Z: Array, rough: bool) -> tuple[Array, Array]:
    """What `native.pair_distances` says, by NumPy."""
    h = Z.shape[2]
    upper = np.triu(np.maximum(squared_distances(Z, Z, rough), 0.0), 1)  # products are not symmetric to the last bit
    distances2 = upper + upper.swapaxes(1, 2)
    return distances2, np.sqrt(distances2).sum(axis=(1, 2)) / max(h * (h - 1), 1)


def from_center(X: Array, members: Index, centers: Array, radii: Array) -> Array:
    """Squared distances of ``members`` (B, h) from the ``centers`` (B, d) of their balls, in units of the radius: (B, h)."""
    offset = gather(X, members) - centers.T[..., None]
    return np.einsum("dbh,dbh->bh", offset, offset) / (radii**2)[:, None]


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
