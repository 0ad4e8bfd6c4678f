"""The posterior variance of block models: how far a region's own points fix its function, in units of its scale.

With M = [K + η, U; Uᵀ, 0] the matrix of the block system and g(q) = [k(q); u(q)] the kernel and polynomial parts of a query,

    v(q) = k(0) − gᵀ M⁻¹ g,      cov ∂_a f, ∂_b f = −∂_a ∂_b k(0) − ∂_a gᵀ M⁻¹ ∂_b g,

for conditionally positive definite kernels, too. A new observation of weight one adds η. The matrices are not stored: a region is
factored again when its queries come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from .batch import apply_metric, is_rough, make_batch, squared_distances
from .groups import free_blocks
from .hermite import hermite_rows, mask_equations, solve_small
from .points import Points, equations_of
from .polynomial import monomials
from .radial import NO_KERNEL, Radial
from .settings import Settings
from .system import block_matrix, solve_symmetric


class Knowledge(NamedTuple):
    """Leave-one-out residuals and variances of a stack of B regions, each point left out by itself or with its group.

    Attributes
    ----------
    residual : (B, h, t) of weighted responses
    variance : (B, h) of a weighted response, zero where nothing is known
    judged : (B, h) whether the region can judge a point
    """

    residual: Array
    variance: Array
    judged: NDArray[np.bool_]


class Stack:
    """Regions of one kernel and degree, with the matrices of their block systems."""

    def __init__(self, points: Points, members: Index, settings: Settings):
        self.kernel: Radial = settings.kernels[settings.kernel[0]]
        self.local_metric = settings.local_metric_of(0)
        self.batch = make_batch(points, members, is_rough([self.kernel]), self.local_metric, settings.slope_weights)
        self.basis = monomials(len(self.batch.Z), int(settings.degree[0]))
        K, R, self.factor = self.batch.system(self.kernel, settings.bandwidth, int(settings.degree[0]), settings.tolerance)
        self.sigma = self.batch.sigma(self.kernel, settings.bandwidth)[:, None]
        self.back, self.rank, self.h = R.back, R.rank, self.batch.y.shape[1]
        self.ridge, self.M = settings.ridge, block_matrix(K, R, settings.ridge)

    def inverse(self) -> Array:
        """B (B, H, H), the inverse of K + η on the null space of Pᵀ."""
        return solve_symmetric(self.M, np.broadcast_to(np.eye(self.M.shape[1]), self.M.shape))[:, : self.h, : self.h]

    def know(self) -> Knowledge:
        """Leave-one-out residuals and their variances, in closed form."""
        inverse = self.inverse()
        alpha = inverse @ self.batch.weighted_y
        if self.batch.slopes is not None:
            return self._know_locations(inverse, alpha)
        if self.batch.together is not None:
            mask, judged = self.batch.together
            M, none = free_blocks(inverse, mask)
            S = solve_symmetric(M, np.broadcast_to(np.eye(self.h), M.shape))  # (B_GG)⁻¹ of all groups
            return Knowledge(S @ (alpha + none * self.batch.unknown_y), np.maximum(np.einsum("bii->bi", S), 0.0), judged)
        precision = np.einsum("bii->bi", inverse)
        finite = np.isfinite(precision) & (precision > 0.0) & np.isfinite(alpha).all(axis=2)
        usable = finite & (precision > 1e-8 * np.where(finite, precision, 0.0).mean(axis=1, keepdims=True))
        residual = np.divide(alpha, precision[..., None], out=np.zeros_like(alpha), where=usable[..., None])
        variance = np.divide(1.0, precision, out=np.zeros_like(precision), where=usable)
        return Knowledge(residual, variance, np.ones(variance.shape, dtype=bool))

    def _know_locations(self, inverse: Array, alpha: Array) -> Knowledge:
        """The same of locations with slopes, which are left out together."""
        batch, h, unknown = self.batch, self.batch.h, self.batch.unknown_y
        judged = np.ones((len(alpha), h), dtype=bool)
        if batch.together is None:
            rows = equations_of(np.arange(h), h, self.h // h - 1)
            own = inverse[:, rows[:, :, None], rows[:, None, :]]
            found, S = solve_small(own, alpha[:, rows], unknown[:, rows])
            residual, variance = found[:, :, 0], S[:, :, 0, 0]
        else:
            M, none = free_blocks(inverse, mask_equations(batch.together.mask, self.h // h - 1))
            full = solve_symmetric(M, np.broadcast_to(np.eye(self.h), M.shape))
            residual, judged = (full @ (alpha + none * unknown))[:, :h], batch.together.judged
            variance = np.einsum("bii->bi", full)[:, :h]
        measured = np.ones_like(judged) if batch.root_v is None else batch.root_v[:, :h] > 0.0
        return Knowledge(residual * measured[..., None], np.where(measured, np.maximum(variance, 0.0), 0.0), judged & measured)

    def variance(self, Q: Array, order: int) -> tuple[Array, Array | None]:
        """v (B, c) of each region at its own queries ``Q`` (d, B, c), and at ``order`` 1 the gradient's covariance (B, c, d, d)."""
        scale, Z = self.batch.scale[:, None], self._place(Q)
        G = self._rows(Z)  # (B, c, h + r)
        prior, slope = self._prior()
        v = prior - np.einsum("bcg,bgc->bc", G, solve_symmetric(self.M, G.swapaxes(1, 2)))
        if order == 0:
            return v, None
        d, B, c = Z.shape
        dG = self._slopes(Z) / scale[..., None, None]  # (B, c, d, h + r)
        flat = dG.reshape(B, c * d, -1)
        solved = solve_symmetric(self.M, flat.swapaxes(1, 2)).swapaxes(1, 2).reshape(dG.shape)
        unit = (scale * self.sigma)[..., None, None]
        covariance = slope[..., None, None] / unit**2 * np.eye(d) - np.einsum("bcig,bcjg->bcij", dG, solved)
        return v, covariance if self.local_metric is None else self.local_metric @ covariance @ self.local_metric.T

    def weights(self, Q: Array, order: int) -> list[Array]:
        """What the members weigh in the prediction at each region's own queries ``Q`` (d, B, c): (B, c, h), with derivatives.

        With slopes (B, c, H), those of responses and then of slopes by features.

        They solve M w = g(q). Unit responses in the place of g would have coefficients as large as 1 / η, which cancel.
        """
        d, B, c = Q.shape
        scale, Z = self.batch.scale[:, None], self._place(Q)
        rows = [self._rows(Z)[:, :, None], *([self._slopes(Z)] if order else []), *([self._bends(Z)] if order == 2 else [])]
        sizes = np.cumsum([row.shape[2] for row in rows])
        G = np.concatenate(rows, axis=2).reshape(B, c * sizes[-1], -1)
        w = self.of_data(solve_symmetric(self.M, G.swapaxes(1, 2))[:, : self.h].swapaxes(1, 2))
        w = w.reshape(B, c, sizes[-1], self.h).swapaxes(2, 3)
        terms = [part.reshape(B, c, self.h, *(d,) * k) for k, part in enumerate(np.split(w, sizes[:-1], axis=3))]
        terms = [term / scale.reshape(-1, *(1,) * (term.ndim - 1)) ** k for k, term in enumerate(terms)]
        T = self.local_metric
        if T is not None:
            terms = [terms[0], *(term @ T.T for term in terms[1:2]), *(T @ term @ T.T for term in terms[2:])]
        return terms

    def of_data(self, w: Array) -> Array:
        """Weights (B, c, H) of responses and slopes as they were measured, from those of the equations."""
        w = w if self.batch.root_v is None else w * self.batch.root_v[:, None]
        if self.batch.slope_units is not None:
            w = np.concatenate([w[..., : self.batch.h], w[..., self.batch.h :] * self.batch.slope_units[:, None]], axis=2)
        return w

    def weigh_equations(self, Q: Array) -> Array:
        """What the equations weigh, (B, c, H), in the prediction at each region's own queries ``Q`` (d, B, c)."""
        return solve_symmetric(self.M, self._rows(self._place(Q)).swapaxes(1, 2))[:, : self.h].swapaxes(1, 2)

    def typical_variance(self) -> Array:
        """About what the variance is between points, (B,): see `factors.Factor.typical_variance`."""
        variance = self.know().variance
        some = variance > 0.0
        precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=some).sum(axis=1)
        return np.maximum(some.sum(axis=1) / np.maximum(precision, np.finfo(float).tiny) - self.ridge, 0.0) * (precision > 0.0)

    def _place(self, Q: Array) -> Array:
        """Queries (d, B, c) in the coordinates of the regions."""
        return apply_metric(self.local_metric, Q - self.batch.origin.T[..., None]) / self.batch.scale[:, None]

    def _prior(self) -> tuple[Array, Array]:
        """k(0) and −Dk(0), (B, 1)."""
        value, slope = (float(term[0]) for term in self.kernel(np.zeros(1), 1))
        return (self.factor * value)[:, None], (-self.factor * slope)[:, None]

    def _offsets(self, Z: Array) -> tuple[Array, Array, Array]:
        """Queries and members in units of σ, coordinates first, and squared distances (B, c, h)."""
        q, x = Z / self.sigma, self.batch.Z / self.sigma
        return q, x, squared_distances(q, x, is_rough([self.kernel]))

    def _rows(self, Z: Array) -> Array:
        if self.batch.slopes is not None:
            k = hermite_rows(self.kernel, Z, self.batch.Z, self.batch.slopes, self.sigma[:, 0])[0]
        else:
            (k,) = self.kernel(self._offsets(Z)[2])
        return np.concatenate([self._weigh(k), self.basis.values(Z) @ self.back], axis=2)

    def _slopes(self, Z: Array) -> Array:
        """∂g / ∂z, (B, c, d, h + r)."""
        q, x, s = self._offsets(Z)
        d = len(Z)
        if self.kernel.name == NO_KERNEL.name:
            kernel = np.zeros((*s.shape[:2], d, self.h))
        elif self.batch.slopes is not None:
            kernel = self._weigh(hermite_rows(self.kernel, Z, self.batch.Z, self.batch.slopes, self.sigma[:, 0], 1)[1])
        else:
            _, D = self.kernel(s, 1)
            kernel = np.stack([self._weigh(D * (q[a][..., None] - x[a][:, None, :])) for a in range(d)], axis=2)
            kernel /= self.sigma[..., None, None]
        derived = self.basis.differentiate(self.back)  # (B, s, r, d)
        polynomial = np.einsum("bcs,bsrd->bcdr", self.basis.values(Z), derived)
        return np.concatenate([kernel, polynomial], axis=3)

    def _bends(self, Z: Array) -> Array:
        """∂²g / ∂z², (B, c, d d, h + r)."""
        q, x, s = self._offsets(Z)
        d, B, c = Z.shape
        kernel = np.zeros((B, c, d, d, self.h))
        if self.kernel.name != NO_KERNEL.name and self.batch.slopes is not None:
            kernel = self._weigh(hermite_rows(self.kernel, Z, self.batch.Z, self.batch.slopes, self.sigma[:, 0], 2)[2])
        elif self.kernel.name != NO_KERNEL.name:
            _, D, D2 = self.kernel(s, 2)
            away = [q[a][..., None] - x[a][:, None, :] for a in range(d)]
            for a in range(d):
                for b in range(d):
                    kernel[:, :, a, b] = self._weigh(D2 * away[a] * away[b] + (D if a == b else 0.0))
            kernel /= (self.sigma**2)[..., None, None, None]
        derived = self.basis.differentiate(self.basis.differentiate(self.back))  # (B, s, r, d, d)
        polynomial = np.einsum("bcs,bsrde->bcder", self.basis.values(Z), derived)
        return np.concatenate([kernel, polynomial], axis=4).reshape(B, c, d * d, -1)

    def _weigh(self, k: Array) -> Array:
        k = k * self.factor.reshape(-1, *(1,) * (k.ndim - 1))
        return k if self.batch.root_v is None else k * self.batch.root_v.reshape(len(k), *(1,) * (k.ndim - 2), -1)
