"""How distance is measured: a linear map into the space where balls are balls.

Regions, kernels and weights live in U = (X - shift) A, A (d, d), where distance is Euclidean; |u|² = (x - x')ᵀ M (x - x') with the
metric M = A Aᵀ. Derivatives come back by the chain rule. X here are embedded points: with a chart, its
coordinates, else the features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._types import Array
from ..local.points import Jet, Points


@dataclass(frozen=True)
class Space:
    """The map U = (X - shift) A; ``unit`` is the length of one metric unit in U, which only keeps numbers near one."""

    shift: Array
    A: Array
    unit: float

    def coordinates(self, X: Array) -> Array:
        """Points ``X`` (n, d) in the space of the regions, in Fortran order."""
        shifted = np.subtract(X, self.shift, out=np.empty(X.shape, order="F"))
        if self._is_diagonal:
            shifted *= np.diagonal(self.A)
            return shifted
        return (self.A.T @ shifted.T).T

    def place(self, points: Points) -> Points:
        """Points in the space of the regions, with their slopes along the same directions."""
        slopes = None if points.slopes is None else points.slopes.map_by(self.A)
        return points._replace(X=self.coordinates(points.X), slopes=slopes)

    @cached_property
    def _is_diagonal(self) -> bool:
        return np.count_nonzero(self.A) == np.count_nonzero(np.diagonal(self.A))

    def original(self, U: Array) -> Array:
        """The points whose coordinates are ``U``; directions that the metric ignores stay at the shift."""
        return U @ self.inverse + self.shift

    @cached_property
    def inverse(self) -> Array:
        """The inverse (d, d) of A, in the directions that the metric does not ignore."""
        return invert_root(self.A)

    def pull_back(self, jet: Jet) -> Jet:
        """Derivatives with respect to X from those with respect to U: ∇_x = A ∇_u."""
        value, gradient, hessian = jet
        gradient = None if gradient is None else gradient @ self.A.T
        hessian = None if hessian is None else self.A @ hessian @ self.A.T
        return Jet(value, gradient, hessian)

    @property
    def metric(self) -> Array:
        """M = A Aᵀ, the metric that was asked for, (d, d)."""
        root = self.A / self.unit
        return root @ root.T


def invert_root(A: Array) -> Array:
    """A generalised inverse of the root ``A`` (d, d) of a metric, whatever the units of the features.

    Each row of A has the unit of its feature. Rows are scaled to one size first, so that small units are not taken for zero.
    """
    size = np.abs(A).max(axis=1)
    unit = np.where(size > 0.0, size, 1.0)
    return np.asarray(np.linalg.pinv(A / unit[:, None]) / unit)


def make_space(X: Array, A: Array) -> Space:
    """The space of metric root ``A``, shifted and scaled so that the points ``X`` fill the unit cube."""
    shift = 0.5 * X.min(axis=0) + 0.5 * X.max(axis=0)
    extent = np.abs((X - shift) @ A).max()
    unit = 1.0 / extent if extent > 0.0 else 1.0
    return Space(shift, A * unit, unit)
