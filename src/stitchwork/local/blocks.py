"""Block models, fitted: kernel expansion plus polynomial of every region, evaluated for stacks of regions (paper, section 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._parallel import Threads, slices
from .._types import Array, Index
from ..native import evaluate_posterior
from .batch import apply_metric, batch_size, is_rough, make_batch, squared_distances
from .factors import CACHE, Factor, Owner, factorise_regions, solve_systems
from .hermite import evaluate_slopes
from .points import Jet, Points, empty_jet, find_runs, gather
from .polynomial import Monomials, monomials
from .radial import NO_KERNEL, Radial
from .settings import Settings
from .variance import Stack
from .waves import Waves, find_band, make_waves

COEFFICIENTS = ("members", "origin", "scale", "sigma", "alpha", "lam")  # the fields that hold a row for each region

_VALUES_BYTES = 1 << 21  # kernel values that are worked on at once
_LONGEST_RUN = 256  # queries of one region that are worked on at once


class Posterior(NamedTuple):
    """Of a stack of B regions at c queries each.

    Attributes
    ----------
    weights : (B, c, h) of the members' responses; with slopes (B, c, H) of these, too
    noise : (B, c, h) weights of the errors of the members' responses, of variance η each whatever the weights of the points
    scale, length : (B,) factor of the kernel, and its length scale in the space of the regions
    usual : (B,) typical variance between points, in units of the region's scale
    """

    weights: Array
    noise: Array
    scale: Array
    length: Array
    typical_variance: Array


@dataclass(frozen=True)
class BlockModels:
    """Fitted block systems of m regions over their points.

    Attributes
    ----------
    members : (m, h); origin, scale : (m, d), (m,) the regions' coordinates; sigma : (m,) kernel scale in them
    alpha : (m, h, t); lam : (m, s, t), zero beyond a region's own degree
    beta : (m, h, t, d) vectors of measured slopes, in units of scale and sigma, None where there are none: see `hermite`
    """

    points: Points
    members: Index
    origin: Array
    scale: Array
    settings: Settings
    sigma: Array
    alpha: Array
    lam: Array
    beta: Array | None = None

    @property
    def X(self) -> Array:
        """The points (n, d)."""
        return self.points.X

    @property
    def smoothness(self) -> float:
        """t, where all of the models are C^t: one less with slopes, whose models contain derivatives of kernels."""
        return min(kernel.smoothness for kernel in self.settings.used) - (self.beta is not None)

    @cached_property
    def waves(self) -> tuple[Waves, ...]:
        """The waves that all regions have in common, for each local metric, in the space that it makes."""
        (d, h), settings = (self.X.shape[1], self.members.shape[1]), self.settings
        found = []
        for metric in range(1 if settings.local_metrics is None else len(settings.local_metrics)):
            bands = [np.array([[0.0, 1.0]])]  # a metric that no region uses
            alike = (settings.local_metric == metric) | (settings.local_metrics is None)
            for k, kernel in enumerate(settings.kernels):
                own = np.flatnonzero((settings.kernel == k) & alike)
                if len(own):
                    bands.append(find_band(kernel, d, h, self.sigma[own] * self.scale[own], self.scale[own])[None])
            known = np.concatenate(bands[min(1, len(bands) - 1) :])
            found.append(make_waves(d, np.array([known[:, 0].min(), known[:, 1].max()])))
        return tuple(found)

    @cached_property
    def _kind(self) -> Index:
        return self.settings.kind

    def evaluate(self, region: Index, Q: Array, order: int) -> Jet:
        """f_j(q) = Σ α_i K(x_i, q) + Σ λ_k p_k(q) and derivatives: each of ``region`` (p,), sorted, at its row of ``Q`` (p, d)."""
        out = empty_jet(len(Q), self.alpha.shape[2], Q.shape[1], order)
        for regions, rows in self._stacks(region):
            for target, source in zip(out, self._stack(regions).evaluate(gather(Q, rows), order), strict=False):
                target[rows] = source
        return out

    def variance(self, region: Index, Q: Array, order: int = 0) -> tuple[Array, Array | None]:
        """Posterior variance (p,) in units of each region's scale, and at ``order`` 1 the covariance of the gradient (p, d, d)."""
        p, d = Q.shape
        v, slopes = np.empty(p), np.empty((p, d, d)) if order else None
        for regions, rows in self._stacks(region):
            for part in slices(len(regions), batch_size(self.members.shape[1] * self.points.equations)):
                stack = Stack(self.points, self.members[regions[part]], self.settings.at(regions[part]))
                found, covariance = stack.variance(gather(Q, rows[part]), order)
                v[rows[part]] = found
                if slopes is not None:
                    slopes[rows[part]] = covariance
        return v, slopes

    def estimate(self, region: Index, Q: Array) -> tuple[Array, Array]:
        """Values (p, t) and posterior variances (p,), in units of each region's scale, as `evaluate` and `variance` have them.

        Factors of regions are kept for the next call, see `factors`; those of regions with slopes are not.
        """
        if self.beta is not None:
            return self.evaluate(region, Q, 0).value, self.variance(region, Q)[0]
        values, v = np.empty((len(Q), self.alpha.shape[2])), np.empty(len(Q))
        for regions, rows in self._stacks(region):
            for part in slices(len(regions), batch_size(self.members.shape[1])):
                own, at = regions[part], rows[part]
                values[at], v[at] = self._stack(own).posterior(gather(Q, at), self.factors(own))
        return values, v

    def leave_out(self, regions: Index, keep: bool = False) -> tuple[Array, Array] | None:
        """Leave-one-out residuals (B, h, t) of weighted responses in ``regions`` (B,) of one kind, with precisions (B, h).

        None where groups or slopes are left out together, or where rounding does not allow it. Factors may be kept.
        """
        if self.points.group is not None or self.points.slopes is not None:
            return None
        y, root_v = self.points.y[self.members[regions]], self._root_v(regions)
        y = y if root_v is None else y * root_v[..., None]
        found = [factor.leave_out(own) for factor, own in zip(self.factors(regions, keep), y, strict=True)]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        residuals, precision = zip(*known, strict=True)
        return np.stack(residuals), np.stack(precision)

    def _root_v(self, regions: Index) -> Array | None:
        """Square roots (B, h) of the weights of the members, None where all are one."""
        weights = self.points.v[self.members[regions]]
        return None if (weights == 1.0).all() else np.sqrt(weights)

    def solve(self, points: Points, threads: Threads) -> BlockModels:
        """The same regions for other responses, those of ``points`` at the same locations: solved from factors."""
        alpha = np.empty((*self.members.shape, points.y.shape[1]))
        lam = np.zeros((*self.lam.shape[:2], points.y.shape[1]))

        def solve_stack(regions: Index) -> None:
            y, root_v = points.y[self.members[regions]], self._root_v(regions)
            if root_v is not None:
                y *= root_v[..., None]
            alpha[regions], own = solve_systems(self.factors(regions), y)
            lam[regions, : own.shape[1]] = own

        threads.map(solve_stack, self.settings.stacks(batch_size(self.members.shape[1], points.y.shape[1])), "fit")
        solved = BlockModels(points, self.members, self.origin, self.scale, self.settings, self.sigma, alpha, lam)
        vars(solved)["owner"] = self.owner
        return solved

    @cached_property
    def owner(self) -> Owner:
        """The key of the factors in the cache; models that differ only in their responses share it."""
        return Owner()

    def factors(self, regions: Index, keep: bool = True) -> list[Factor]:
        """Factors of regions (B,) of one kind, from the cache, or computed now and cached if ``keep``."""
        known = CACHE.find(self.owner, regions)
        missing = np.flatnonzero([one is None for one in known])
        if len(missing):
            own, settings = regions[missing], self.settings.at(regions[missing])
            kernel = settings.kernels[settings.kernel[0]]
            batch = make_batch(self.points, self.members[own], is_rough([kernel]), settings.local_metric_of(0))
            made, _ = factorise_regions(batch, kernel, settings)
            if keep:
                CACHE.keep(self.owner, own, made)
            for i, one in zip(missing, made, strict=True):
                known[i] = one
        return [one for one in known if one is not None]

    def weights(self, region: Index, Q: Array, order: int) -> Jet:
        """Weights (p, h) of responses in each of ``region`` (p,), sorted, at its row of ``Q`` (p, d), with derivatives.

        With slopes (p, H): those of responses, then those of slopes member by member.
        """
        out = empty_jet(len(Q), self.members.shape[1] * self.points.equations, Q.shape[1], order)
        for regions, rows in self._stacks(region):
            for part in slices(len(regions), batch_size(self.members.shape[1] * self.points.equations)):
                stack = Stack(self.points, self.members[regions[part]], self.settings.at(regions[part]))
                for target, source in zip(out, stack.weights(gather(Q, rows[part]), order), strict=False):
                    target[rows[part]] = source
        return out

    def posteriors(self, region: Index, Q: Array) -> Iterator[tuple[Index, Posterior, Radial]]:
        """The posterior of each of ``region`` (p,), sorted, at its row of ``Q`` (p, d): rows (B, c), some repeated, and kernels."""
        if self.beta is not None:
            yield from self._slope_posteriors(region, Q)
            return
        for regions, rows in self._stacks(region):
            for part in slices(len(regions), batch_size(self.members.shape[1])):
                own, at = regions[part], rows[part]
                stack, root_v = self._stack(own), np.sqrt(self.points.v[self.members[own]])[:, None]
                _, K, P = stack.terms(gather(Q, at))
                factors = self.factors(own)
                scale = np.array([factor.scale for factor in factors])
                w = np.stack([factor.weigh(k, p) for factor, k, p in zip(factors, K, P, strict=True)])
                typical_variance = np.array([factor.typical_variance() for factor in factors])
                yield at, Posterior(w * root_v, w, scale, self.sigma[own] * self.scale[own], typical_variance), stack.kernel

    def _slope_posteriors(self, region: Index, Q: Array) -> Iterator[tuple[Index, Posterior, Radial]]:
        """The same with slopes, whose factors are not kept."""
        for regions, rows in self._stacks(region):
            for part in slices(len(regions), batch_size(self.members.shape[1] * self.points.equations)):
                own, at = regions[part], rows[part]
                stack = Stack(self.points, self.members[own], self.settings.at(own))
                w = stack.weigh_equations(gather(Q, at))
                yield (
                    at,
                    Posterior(stack.of_data(w), w, stack.factor, self.sigma[own] * self.scale[own], stack.typical_variance()),
                    stack.kernel,
                )

    def _stacks(self, region: Index) -> Iterator[tuple[Index, Index]]:
        """Regions (B,) of one kind with the rows (B, c) of their queries, each padded to the longest with its last row."""
        most = _VALUES_BYTES // (8 * self.members.shape[1])
        if 0 < len(region) <= most and (region[1:] > region[:-1]).all() and (self._kind[region] == self._kind[region[0]]).all():
            yield region, np.arange(len(region))[:, None]  # one query, as a rule
            return
        start, count = find_runs(region)
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
        basis, local_metric = monomials(len(origin), degree), self.settings.local_metric_of(regions[0])
        X = apply_metric(local_metric, gather(self.X, self.members[regions]) - origin) / (scale * sigma)
        beta = None if self.beta is None else self.beta[regions]
        lam = self.lam[regions, : len(basis)]
        return _Stack(kernel, basis, local_metric, origin, scale, sigma, X, self.alpha[regions], lam, beta)


@dataclass(frozen=True)
class _Stack:
    """Regions of one kind: origin (d, B, 1), scale and sigma (B, 1), members X (d, B, h) in units of both, coefficients."""

    kernel: Radial
    basis: Monomials
    local_metric: Array | None
    origin: Array
    scale: Array
    sigma: Array
    X: Array
    alpha: Array
    lam: Array
    beta: Array | None

    def evaluate(self, Q: Array, order: int) -> list[Array]:
        """Each region at its own queries ``Q`` (d, B, c): values (B, c, t) and derivatives (B, c, t, d, …)."""
        Z = apply_metric(self.local_metric, Q - self.origin) / self.scale
        terms = _unscaled(self._polynomial(Z, order), self.scale)
        if self.kernel.name != NO_KERNEL.name:
            part = _unscaled(self._kernel(Z / self.sigma, order), self.scale * self.sigma)
            terms = [a + b for a, b in zip(terms, part, strict=True)]
        return terms if self.local_metric is None else _derive_back(terms, self.local_metric)

    def terms(self, Q: Array) -> tuple[Array, Array, Array]:
        """Values (B, c, t) at each region's own queries ``Q`` (d, B, c), and kernels (B, c, h) and monomials (B, c, s) there."""
        Z = apply_metric(self.local_metric, Q - self.origin) / self.scale
        P = self.basis.values(Z)
        (K,) = self.kernel(squared_distances(Z / self.sigma, self.X, is_rough([self.kernel])))
        return K @ self.alpha + P @ self.lam, K, P

    def posterior(self, Q: Array, factors: list[Factor]) -> tuple[Array, Array]:
        """Values (B, c, t) and variances (B, c) at each region's own queries ``Q`` (d, B, c), from the regions' factors."""
        if all(factor.whole is None for factor in factors):
            Z = apply_metric(self.local_metric, Q - self.origin) / self.scale
            terms = (self.X, Z / self.sigma, self.basis.values(Z), self.alpha, self.lam)
            found = evaluate_posterior(self.kernel.name, *terms, [factor.address for factor in factors], factors[0].r)
            if found is not None:
                return found
        values, K, P = self.terms(Q)
        return values, np.stack([factor.variance(k, p) for factor, k, p in zip(factors, K, P, strict=True)])

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
        (d, B, c), at = Z.shape, Z
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
        if self.beta is None:
            return terms
        return [a + b for a, b in zip(terms, evaluate_slopes(self.kernel, at, self.X, self.beta, order), strict=True)]


class _Derivatives:
    """Coefficients (B, s, t dᵏ) of the k-th derivatives of polynomials, made at first use."""

    def __init__(self, basis: Monomials, lam: Array):
        self.basis, self.known = basis, [lam]

    def __getitem__(self, k: int) -> Array:
        while len(self.known) <= k:
            self.known.append(self.basis.differentiate(self.known[-1]))
        lam = self.known[k]
        return lam.reshape(*lam.shape[:2], int(np.prod(lam.shape[2:])))


def _derive_back(terms: list[Array], T: Array) -> list[Array]:
    """Derivatives with respect to x from those with respect to x T."""
    return [terms[0], *(term @ T.T for term in terms[1:2]), *(T @ term @ T.T for term in terms[2:])]


def _unscaled(terms: list[Array], scale: Array) -> list[Array]:
    """Derivatives with respect to scale · z from those with respect to z."""
    return [term if k == 0 else term / scale.reshape(-1, *(1,) * (k + 2)) ** k for k, term in enumerate(terms)]
