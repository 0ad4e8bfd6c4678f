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

from .._types import Array, Index


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
        return count_monomials(self.d, degree)

    def values(self, Z: Array) -> Array:
        """Values at points ``Z`` (d, ...), coordinates first, as (..., s); values of one monomial are contiguous."""
        P = np.empty((len(self), *Z.shape[1:]))
        P[:1] = 1.0
        for monomial in range(1, len(self)):
            np.multiply(P[self.parent[monomial]], Z[self.variable[monomial]], out=P[monomial : monomial + 1])
        return P.transpose(*range(1, P.ndim), 0)

    def differentiate(self, lam: Array) -> Array:
        """Coefficients (B, s, ..., d) of the partial derivatives of polynomials with coefficients ``lam`` (B, s, ...).

        Σ λ_e ∂_k z^e = Σ (e_k + 1) λ_{e + 1_k} z^e
        """
        raised, factor = _derivative_map(self.d, self.degree)
        derived = lam[:, raised] * factor.reshape(*factor.shape, *(1,) * (lam.ndim - 2))  # (B, s, d, ...)
        return derived.transpose(0, 1, *range(3, derived.ndim), 2)


def count_monomials(d: int, degree: int) -> int:
    """Number of monomials of total degree ≤ ``degree`` in ``d`` variables."""
    return comb(degree + d, d) if degree >= 0 else 0


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


@lru_cache(maxsize=64)
def _derivative_map(d: int, degree: int) -> tuple[Index, Array]:
    """For every monomial z^e and axis k the monomial z^(e + 1_k) and e_k + 1, zero where that is beyond the degree: (s, d)."""
    exponents = monomials(d, degree).exponents
    position = {tuple(e): i for i, e in enumerate(exponents.tolist())}
    above = exponents[:, None] + np.eye(d, dtype=np.int64)
    raised = np.array([[position.get(tuple(e), -1) for e in axes] for axes in above.tolist()], dtype=np.intp).reshape(-1, d)
    return np.maximum(raised, 0), np.where(raised < 0, 0.0, exponents + 1.0)
