"""Monomials of bounded total degree, in any dimension.

A derivative of a polynomial is a polynomial again, so only values of monomials are ever computed: `differentiate` maps
coefficients to the coefficients of a partial derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Monomials:
    """All monomials of total degree ≤ ``degree`` in ``d`` variables, those of lower degree first.

    Attributes
    ----------
    exponents : (s, d)
    parent, variable : (s,) each monomial but the first is ``parent`` times ``variable``
    """

    d: int
    degree: int
    exponents: NDArray[np.int64]
    parent: Index
    variable: Index

    def __len__(self) -> int:
        return len(self.exponents)

    def count(self, degree: int) -> int:
        """Number of monomials of total degree ≤ ``degree``: they come first."""
        return comb(degree + self.d, self.d) if degree >= 0 else 0

    def values(self, Z: Array) -> Array:
        """Values at points ``Z`` (..., d), as (..., s); one monomial lies next to the other in memory."""
        P = np.empty((len(self), *Z.shape[:-1]))
        axes = np.ascontiguousarray(np.moveaxis(Z, -1, 0))
        P[:1] = 1.0
        for degree in range(1, self.degree + 1):
            block = slice(self.count(degree - 1), self.count(degree))
            np.multiply(P[self.parent[block]], axes[self.variable[block]], out=P[block])
        return np.moveaxis(P, 0, -1)

    def differentiate(self, lam: Array, axis: int) -> Array:
        """Coefficients (s, ...) of ∂p/∂z_axis for p with coefficients ``lam`` (s, ...): ∂ z^e = e_axis z^(e - 1_axis)."""
        source, target, factor = _derivative_map(self.d, self.degree, axis)
        derived = np.zeros_like(lam)
        derived[target] = lam[source] * factor.reshape(-1, *(1,) * (lam.ndim - 1))
        return derived


@lru_cache(maxsize=64)
def monomials(d: int, degree: int) -> Monomials:
    """The monomial basis of total degree ≤ ``degree`` in ``d`` variables; empty for degree -1."""
    combinations = [c for k in range(degree + 1) for c in combinations_with_replacement(range(d), k)]
    position = {c: i for i, c in enumerate(combinations)}
    exponents = np.zeros((len(combinations), d), dtype=np.int64)
    for i, c in enumerate(combinations):
        for axis in c:
            exponents[i, axis] += 1
    parent = np.array([position[c[:-1]] if c else 0 for c in combinations], dtype=np.intp)
    variable = np.array([c[-1] if c else 0 for c in combinations], dtype=np.intp)
    return Monomials(d, degree, exponents, parent, variable)


@lru_cache(maxsize=1024)
def _derivative_map(d: int, degree: int, axis: int) -> tuple[Index, Index, Array]:
    """Which monomial becomes which under ∂/∂z_axis, and the factor."""
    exponents = monomials(d, degree).exponents
    position = {tuple(e): i for i, e in enumerate(exponents)}
    source = np.flatnonzero(exponents[:, axis])
    lowered = exponents[source].copy()
    lowered[:, axis] -= 1
    target = np.array([position[tuple(e)] for e in lowered], dtype=np.intp)
    return source, target, exponents[source, axis].astype(float)
