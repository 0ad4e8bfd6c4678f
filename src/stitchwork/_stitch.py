"""The stitch: local models averaged by a partition of unity, with exact derivatives (paper, section 3.2).

Levels are a chain: the model f_0 of the infinite ball B_0 of one level is the stitched function of the next, and the last level has
one ball that is infinite. A level is asked only where the levels before it are nearly silent: with W the weights of its regions
at q, B_0 has the weight w_0 φ(W / τ), which is w_0 where W = 0, falls smoothly, and is exactly zero from W = τ on. So a query
inside the data costs one level, and data beyond its regions cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._local import Jet, RegionModels
from ._lookup import Pairs, RadiusLevels, covering_pairs
from ._radial import Radial

Array = NDArray[np.float64]

SILENCE = 1e-2  # τ: the sum of weights from which on a level needs no background

# Up to this many queries the trees over the centres are faster than a tree over the queries (measured, d = 2 and 3).
_FEW_QUERIES = 16


@dataclass(frozen=True)
class Level:
    """Regions that speak within ``radii`` of ``centers``, by their local models."""

    centers: Array
    radii: Array
    models: RegionModels

    @cached_property
    def levels(self) -> RadiusLevels:
        """The index for single queries."""
        return RadiusLevels(self.centers, self.radii)

    def pairs(self, Q: Array) -> Pairs:
        """Which regions contain which of ``Q`` (q, d)."""
        if len(Q) <= _FEW_QUERIES and len(self.radii) > 256:
            return self.levels.covering_pairs(Q)
        return covering_pairs(Q, self.centers, self.radii)


@dataclass
class _Sums:
    """Numerator N = Σ w_j f_j and denominator W = Σ w_j with their derivatives."""

    N: Jet
    W: Jet

    @classmethod
    def zeros(cls, q: int, t: int, d: int, order: int) -> _Sums:
        """No weight yet."""

        def jet(t: int) -> Jet:
            return Jet(*(np.zeros((q, t) + (d,) * k) for k in range(order + 1)))

        return cls(jet(t), jet(1))

    def add(self, query: NDArray[np.intp] | slice, w: Jet, f: Jet) -> None:
        """Add w f and w, product rule included, at distinct ``query``; the weight has one output."""
        self.W.value[query] += w.value
        self.N.value[query] += w.value * f.value
        if w.gradient is None or f.gradient is None:
            return
        self.W.gradient[query] += w.gradient
        self.N.gradient[query] += w.value[..., None] * f.gradient + f.value[..., None] * w.gradient
        if w.hessian is None or f.hessian is None:
            return
        cross = f.gradient[..., :, None] * w.gradient[..., None, :]
        self.W.hessian[query] += w.hessian
        self.N.hessian[query] += (
            w.value[..., None, None] * f.hessian + f.value[..., None, None] * w.hessian + cross + cross.swapaxes(-1, -2)
        )

    def quotient(self) -> Jet:
        """F = N / W; from W F = N by the product rule: ∇F = (∇N - F ∇W) / W, and likewise ∇²F."""
        W = self.W.value
        value: Array = self.N.value / W
        gradient: Any = None
        hessian: Any = None
        if self.N.gradient is not None:
            gradient = (self.N.gradient - value[..., None] * self.W.gradient) / W[..., None]
        if self.N.hessian is not None:
            cross = gradient[..., :, None] * self.W.gradient[..., None, :]
            hessian = self.N.hessian - value[..., None, None] * self.W.hessian - cross - cross.swapaxes(-1, -2)
            hessian /= W[..., None, None]
        return Jet(value, gradient, hessian)


def stitched(levels: Sequence[Level], Q: Array, order: int, weight: Radial, w0: float, n_outputs: int) -> Jet:
    """The stitched function at ``Q`` (q, d) with derivatives up to ``order``.

    f̂ = (w_b f_0 + Σ w_j f_j) / (w_b + Σ w_j) with w_b = w_0 φ(W / τ) and f_0 the stitched function of the levels that follow.
    """
    level, *rest = levels
    q, d = Q.shape
    sums = _Sums.zeros(q, n_outputs, d, order)
    pairs = level.pairs(Q)
    w = _ball_weights(level, Q, pairs, weight, order)
    for region, part in pairs.groups():
        query = pairs.query[part]
        sums.add(query, Jet(*(a[part] for a in w[: order + 1])), level.models.evaluate(region, Q[query], order))
    if rest:
        quiet = np.flatnonzero(sums.W.value[:, 0] < SILENCE)
        if len(quiet):
            w_b = _background_weight(sums.W, quiet, weight, w0)
            sums.add(quiet, w_b, stitched(rest, Q[quiet], order, weight, w0, n_outputs))
    return sums.quotient()


def coverage(level: Level, Q: Array, weight: Radial, w0: float) -> Array:
    """Share W / (W + w_b) of the answer that comes from the regions of a level, (q,)."""
    pairs = level.pairs(Q)
    w = _ball_weights(level, Q, pairs, weight, 0).value[:, 0]
    W = np.bincount(pairs.query, weights=w, minlength=len(Q)).astype(float)
    (phi,) = weight((W / SILENCE) ** 2)
    return W / (W + w0 * phi)


def _ball_weights(level: Level, Q: Array, pairs: Pairs, weight: Radial, order: int) -> Jet:
    """w_j(q) = φ(|q - c_j| / r_j) with derivatives, for each pair: (p, 1), (p, 1, d), (p, 1, d, d)."""
    radius = level.radii[pairs.region]
    Z = (Q[pairs.query] - level.centers[pairs.region]) / radius[:, None]
    f = weight(np.einsum("pd,pd->p", Z, Z), order)
    gradient, hessian = None, None
    if order >= 1:
        gradient = (f[1] / radius)[:, None, None] * Z[:, None, :]
    if order >= 2:
        eye = np.eye(Q.shape[1])
        hessian = f[1][:, None, None] * eye + f[2][:, None, None] * (Z[:, :, None] * Z[:, None, :])
        hessian = (hessian / (radius * radius)[:, None, None])[:, None]
    return Jet(f[0][:, None], gradient, hessian)


def _background_weight(W: Jet, quiet: NDArray[np.intp], weight: Radial, w0: float) -> Jet:
    """w_0 φ(W / τ) by the chain rule, where W < τ; φ is the stitching weight itself, so nothing gets less smooth."""
    order = 2 if W.hessian is not None else 1 if W.gradient is not None else 0
    x = W.value[quiet] / SILENCE
    f = weight(x * x, order)
    gradient, hessian = None, None
    if order >= 1:
        slope = x * f[1] * (w0 / SILENCE)
        gradient = slope[..., None] * W.gradient[quiet]
    if order >= 2:
        curvature = (f[1] + x * x * f[2]) * (w0 / SILENCE**2)
        dW = W.gradient[quiet]
        hessian = slope[..., None, None] * W.hessian[quiet]
        hessian = hessian + curvature[..., None, None] * (dW[..., :, None] * dW[..., None, :])
    return Jet(w0 * f[0], gradient, hessian)
