"""Bounds that keep predictions near the range of the data, however far away the query is.

Coordinates saturate beyond the box of the data. The prediction of a region saturates where it leaves the range of the responses of
its own points by more than half of that range, and the stitched prediction likewise with the range of all responses. Beyond an
upper bound b with margin m, and likewise below a lower one, x becomes b + m ψ((x - b) / m) with

    ψ(t) = t / (1 + t⁸)^⅛,      ψ'(t) = (1 + t⁸)^(-9/8),      ψ''(t) = -9 t⁷ (1 + t⁸)^(-17/8).

ψ(t) = t - t⁹ / 8 + …, so the trend continues at first, ψ is C⁸ at the bound, and it never exceeds 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._parallel import slices
from .._types import Array, Index
from ..local.points import Jet

MARGIN = 0.5  # of the range: features saturate within it; predictions exceed the range freely by it, then saturate within it
LEAST_MARGIN = 1e-300  # below it a second derivative would overflow, and counts as none
FAR = 100.0  # beyond it ψ(t) is 1 and its derivatives are 0, to rounding
LEAST_RANGE = 1e-6  # least range of a region's responses, relative to the largest: equal responses keep their rounding errors
_RESPONSES = 1 << 16  # that are looked at at once: they stay in cache


@dataclass(frozen=True)
class Bounds:
    """Numbers between ``lower`` and ``upper`` (k,) stay; others saturate within ``margin`` (k,) beyond. (m, k) for m regions."""

    lower: Array
    upper: Array
    margin: Array

    def at(self, index: Index) -> Bounds:
        """Those of some regions."""
        return Bounds(self.lower[index], self.upper[index], self.margin[index])

    def beyond(self, x: Array) -> NDArray[np.bool_]:
        """Which of ``x`` (n, k) lie outside the bounds; NaN never does."""
        return np.asarray((x < self.lower) | (x > self.upper))

    def are_met(self, x: Array) -> bool:
        """Whether all of ``x`` (n, k) lies within the bounds, and all margins are positive."""
        return bool((x >= self.lower).all() and (x <= self.upper).all() and (self.margin > 0.0).all())

    def saturate(self, x: Array) -> tuple[Array, Array, Array]:
        """``x`` (n, k) within bounds, with its first and second derivatives, (n, k) each."""
        above, below = x > self.upper, x < self.lower
        sign, edge = np.where(below, -1.0, 1.0), np.where(below, self.lower, self.upper)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            t = np.minimum(sign * (x - edge) / self.margin, FAR)
        t = np.where(above | below, np.where(self.margin > 0.0, t, FAR), 0.0)
        p = 1.0 + t**8
        first = np.where((t < FAR) & (self.margin > 0.0), p ** (-9 / 8), 0.0)
        second = np.where((t > 0.0) & (t < FAR), -9.0 * sign * t**7 * p ** (-17 / 8), 0.0)
        finite = (second != 0.0) & (self.margin > LEAST_MARGIN)
        second = np.divide(second, self.margin, out=np.zeros_like(second), where=finite)
        return np.where(above | below, edge + sign * self.margin * (t / p ** (1 / 8)), x), first, second

    def hidden_share(self, x: Array) -> Array:
        """How much saturation hides at ``x`` (n, k), between 0 and 1: u / (1 + u), u = Σ ((x - s(x)) / m)², (n,)."""
        with np.errstate(over="ignore"):
            beyond = np.abs(x - self.saturate(x)[0])
            margin = np.where(self.margin > 0.0, self.margin, np.inf)
            u = np.square(np.minimum(beyond / margin, FAR)).sum(axis=1)
        return np.asarray(u / (1.0 + u))


def bound_features(frame: Array) -> Bounds:
    """Bounds of features whose minima and maxima are the first two rows of ``frame``."""
    return Bounds(frame[0], frame[1], MARGIN * frame[1] - MARGIN * frame[0])


def bound_answers(extremes: Array) -> Bounds:
    """Bounds of the stitched prediction, from the ``extremes`` (2, t) of all responses."""
    margin = MARGIN * extremes[1] - MARGIN * extremes[0]
    return Bounds(extremes[0] - margin, extremes[1] + margin, margin)


def bound_regions(extremes: Array) -> Bounds:
    """Bounds of the predictions of m regions, from the ``extremes`` (2, m, t) of their points' responses, as in `bound_answers`."""
    margin = MARGIN * extremes[1] - MARGIN * extremes[0]
    margin = np.maximum(margin, MARGIN * LEAST_RANGE * np.abs(extremes).max(axis=0))
    return Bounds(extremes[0] - margin, extremes[1] + margin, margin)


def chain_inner(jet: Jet, first: Array, second: Array) -> Jet:
    """f(s(x)) from f and its derivatives at s(x), with those (q, d) of s, coordinate by coordinate."""
    value, gradient, hessian = jet
    if hessian is not None:
        hessian = hessian * (first[:, None, :, None] * first[:, None, None, :])
        np.einsum("qtdd->qtd", hessian)[...] += gradient * second[:, None, :]
    return Jet(value, None if gradient is None else gradient * first[:, None, :], hessian)


def chain_outer(jet: Jet, bounds: Bounds) -> Jet:
    """s(f(x)) from f with its derivatives."""
    value, first, second = bounds.saturate(jet.value)
    gradient, hessian = jet.gradient, jet.hessian
    if hessian is not None:
        hessian = first[..., None, None] * hessian
        hessian += second[..., None, None] * (gradient[..., :, None] * gradient[..., None, :])
    return Jet(value, None if gradient is None else first[..., None] * gradient, hessian)


def hold(jet: Jet, bounds: Bounds, region: Index) -> Jet:
    """The predictions of each ``region`` (p,), bounded; ``jet`` is changed in place where a bound applies."""
    own = bounds.at(region)
    rows = np.flatnonzero(own.beyond(jet.value).any(axis=1))
    if len(rows):
        value, *derivatives = jet
        some = Jet(value[rows], *(None if part is None else part[rows] for part in derivatives))
        held = chain_outer(some, own.at(rows))
        for whole, part in zip(jet, held, strict=True):
            if whole is not None:
                whole[rows] = part
    return jet


def frame_of(X: Array) -> Array:
    """Least, greatest and median value of every feature, (3, d)."""
    return np.stack([X.min(axis=0), X.max(axis=0), np.median(X, axis=0)])


def extremes_of(y: Array) -> Array:
    """Least and greatest response of every output, (2, t)."""
    return np.stack([y.min(axis=0), y.max(axis=0)])


def extremes_of_members(y: Array, members: Index) -> Array:
    """Least and greatest of the responses ``y`` (n, t) at the points of each row of ``members`` (m, h): (2, m, t)."""
    found = np.empty((2, len(members), y.shape[1]))
    for part in slices(len(members), max(1, _RESPONSES // (members.shape[1] * y.shape[1]))):
        own = y[members[part]]
        found[0, part], found[1, part] = own.min(axis=1), own.max(axis=1)
    return found
