"""The squared errors that regions expect at their questions: the kriging variance, scaled by leave-one-out.

With K the kernel matrix of the points, U the range of their polynomials, k(q) and u(q) the kernel and the polynomials of a query,
let p = U u(q), m = k(q) - K p and c = k(0) - pᵀ(k(q) + m). With B the inverse of K + η on the null space of Uᵀ, the variance is

    v(q) = c - mᵀ B m + η |u|²,

in units of the scale σ², the mean of α_i² / B_ii: with B_ii⁻¹ the variance of a point that is left out, its residual has the mean
square σ² / B_ii. All ridges share one factorisation. The expected error is that of a new observation, and none is larger than the
range of the region's responses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array
from ..local.batch import Batch, apply_metric
from ..local.polynomial import monomials
from ..local.radial import Radial
from ..local.system import PolynomialRange, Spectrum
from .questions import Questions


class Asked(NamedTuple):
    """What the variance needs of the queries of a stack of B regions, J each: m (B, J, h), c (B, J) and |u|² (B, J)."""

    m: Array
    c: Array
    u2: Array

    def variance(self, S: Spectrum, ridges: Array) -> Array:
        """v of a new observation, (B, J, e) for ridges (e,), from the factorised K of the points."""
        rotated = self.m @ S.V
        known = (rotated * rotated) @ S.inverse(ridges)
        return np.asarray(np.maximum(self.c[..., None] - known, 0.0) + ridges * (1.0 + self.u2[..., None]))


def ask(
    batch: Batch, kernel: Radial, bandwidth: Array, degree: int, system: tuple[Array, PolynomialRange, Array], queries: Questions,
    local_metric: Array | None,
) -> Asked:  # fmt: skip
    """The queries of a stack whose points make a ``system`` with this kernel, bandwidth (B,), degree and local_metric."""
    K, R, factor = system
    rows = np.arange(len(K))[:, None]
    Q = batch.Z[:, rows, queries.target] + apply_metric(local_metric, np.moveaxis(queries.shift, 2, 0)) / batch.scale[:, None]
    k = batch.rows(kernel, bandwidth, Q) * factor[:, None, None]
    if batch.root_v is not None:
        k = k * batch.root_v[:, None, :]
    u = monomials(len(Q), degree).values(Q) @ R.back
    p = u @ R.U.swapaxes(1, 2)
    m = k - p @ K
    prior = factor * float(kernel(np.zeros(1))[0][0])
    return Asked(m, prior[:, None] - np.einsum("bjh,bjh->bj", p, k + m), np.einsum("bjr,bjr->bj", u, u))


def expect_errors(batch: Batch, variance: Array, residuals: Array, alpha: Array, share: Array) -> Array:
    """Expected squared errors (B, e), the mean over queries that count by their ``share`` (B, J), from `Asked.variance` (B, J, e).

    ``residuals`` and ``alpha`` (B, h, t, e) are those of `Batch.leave_out`.
    """
    scale = np.maximum(batch.per_equation(residuals * alpha), 0.0)  # (B, t, e)
    most = np.square(np.ptp(batch.responses, axis=1))[:, None, :, None]
    expected = np.minimum(scale[:, None] * variance[:, :, None, :], most).sum(axis=2)
    total = np.maximum(share.sum(axis=1), np.finfo(float).tiny)[:, None]
    return np.asarray(np.einsum("bj,bje->be", share, expected) / total)
