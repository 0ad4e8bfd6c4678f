"""Radial functions for any array framework, with their derivatives of every order.

A profile is f as a function of s = r², and `derived` is the profile of D f = 2 df/ds, D as in `_radial`. Differentiation is done on
exact coefficients, once, when the code is traced; frameworks are only ever asked for values, so none differentiates a root at
r = 0. Namespaces ``xp`` are NumPy, `jax.numpy` and `torch`; only what the three have in common is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import comb, sqrt
from typing import Any, Protocol

from .._radial import _TINY_RADIUS, NO_KERNEL, Radial, _power, _wendland_integral


class Profile(Protocol):
    """A radial function of s = r²."""

    def values(self, xp: Any, s: Any) -> Any:
        """f at squared radii ``s``."""

    @property
    def derived(self) -> Profile:
        """D f = 2 df/ds."""


@dataclass(frozen=True)
class Exponential:
    """factor · exp(-rate s), zero from s = 1 on if ``cut``; D multiplies by -2 rate."""

    factor: float
    rate: float
    cut: bool = False

    def values(self, xp: Any, s: Any) -> Any:
        """f at squared radii ``s``."""
        f = self.factor * xp.exp(-self.rate * s)
        return xp.where(s < 1.0, f, xp.zeros_like(f)) if self.cut else f

    @property
    def derived(self) -> Exponential:
        """D f."""
        return replace(self, factor=-2.0 * self.rate * self.factor)


@dataclass(frozen=True)
class Root:
    """factor · (1 + s)^(½ - order), a multiquadric; D (1 + s)^p = 2p (1 + s)^(p - 1)."""

    factor: float
    order: int = 0

    def values(self, xp: Any, s: Any) -> Any:
        """f at squared radii ``s``."""
        root = xp.sqrt(1.0 + s)
        return self.factor * root if self.order == 0 else self.factor / _power(root, 2 * self.order - 1)

    @property
    def derived(self) -> Root:
        """D f."""
        return Root(self.factor * (1.0 - 2.0 * self.order), self.order + 1)


@dataclass(frozen=True)
class Logarithm:
    """D^order of ½ s log s: log s + 1, then 2 / s, and D s^p = 2p s^(p - 1) from there on."""

    order: int = 0
    factor: float = 2.0

    def values(self, xp: Any, s: Any) -> Any:
        """f at squared radii ``s``."""
        safe = xp.clip(s, _TINY_RADIUS**2, None)
        if self.order < 2:
            return 0.5 * safe * xp.log(safe) if self.order == 0 else xp.log(safe) + 1.0
        return self.factor / _power(safe, self.order - 1)

    @property
    def derived(self) -> Logarithm:
        """D f."""
        return Logarithm(self.order + 1, self.factor * (-2.0 * (self.order - 1) if self.order >= 2 else 1.0))


@dataclass(frozen=True)
class Polynomial:
    """factor · Σ_i c_i ρ^(lowest + i) · envelope, with ρ = rate · r.

    The envelope is exp(-ρ) if ``decays``, (1 - ρ)₊^power if there is a ``power``, else one.
    """

    coefficients: tuple[Fraction, ...]
    lowest: int = 0
    rate: float = 1.0
    factor: float = 1.0
    decays: bool = False
    power: int | None = None

    def values(self, xp: Any, s: Any) -> Any:
        """f at squared radii ``s``."""
        r = self.rate * xp.sqrt(xp.clip(s, 0.0, None))
        f = xp.zeros_like(r)
        for c in reversed(self.coefficients):
            f = f * r + self.factor * float(c)
        if self.lowest > 0:
            f = f * _power(r, self.lowest)
        elif self.lowest < 0:
            f = f / _power(xp.clip(r, _TINY_RADIUS, None), -self.lowest)
        if self.decays:
            f = f * xp.exp(-r)
        if self.power == 0:
            f = xp.where(r < 1.0, f, xp.zeros_like(f))
        elif self.power is not None:
            f = f * _power(xp.clip(1.0 - r, 0.0, None), self.power)
        return f

    @property
    def derived(self) -> Polynomial:
        """D f: ρ^e becomes e ρ^(e-2), less ρ^(e-1) beside exp(-ρ), less (e + n) ρ^(e-1) beside (1 - ρ)^n, which loses a power."""
        lowered: dict[int, Fraction] = {}
        for e, c in enumerate(self.coefficients, self.lowest):
            lowered[e - 2] = lowered.get(e - 2, Fraction(0)) + e * c
            drop = 1 if self.decays else e + self.power if self.power else 0
            lowered[e - 1] = lowered.get(e - 1, Fraction(0)) - drop * c
        exponents = [e for e, c in lowered.items() if c] or [0]
        low, high = min(exponents), max(exponents)
        return replace(
            self,
            coefficients=tuple(lowered.get(e, Fraction(0)) for e in range(low, high + 1)),
            lowest=low,
            factor=self.factor * self.rate**2,
            power=self.power - 1 if self.power else self.power,
        )


def wendland_profile(ell: int, k: int) -> Polynomial:
    """Iᵏ (1 - r)₊^ell with value 1 at r = 0: (1 - r)^(ell + k) times a polynomial in r."""
    integral = _wendland_integral(ell, k)
    in_r = [sum(((-1) ** j * comb(i, j) * integral[i] for i in range(j, k + 1)), Fraction(0)) for j in range(k + 1)]
    return Polynomial(tuple(c / in_r[0] for c in in_r), power=ell + k)


def matern_profile(nu: float) -> Polynomial:
    """Matérn with ν = p + ½: exp(-ρ) Σ_e c_e ρ^e, ρ = √(2ν) r (Rasmussen and Williams 2006, eq. 4.16).

    c_e = 2^e p! (2p - e)! / ((2p)! e! (p - e)!), so c_0 = 1 and c_(e+1) / c_e = 2 (p - e) / ((e + 1) (2p - e)).
    """
    p = round(nu - 0.5)
    coefficients = [Fraction(1)]
    for e in range(p):
        coefficients.append(coefficients[-1] * Fraction(2 * (p - e), (e + 1) * (2 * p - e)))
    return Polynomial(tuple(coefficients), rate=sqrt(2.0 * nu), decays=True)


_OTHERS: dict[str, Profile] = {
    "gaussian": Exponential(1.0, 1.0),
    "truncated-gaussian": Exponential(1.0, 4.0, cut=True),
    "multiquadric": Root(-1.0),
    "thin-plate": Logarithm(),
    "linear": Polynomial((Fraction(-1),), lowest=1),
    "cubic": Polynomial((Fraction(1),), lowest=3),
    "quintic": Polynomial((Fraction(-1),), lowest=5),
    NO_KERNEL.name: Polynomial((Fraction(0),)),
}


def derivatives(radial: Radial, order: int) -> tuple[Profile, ...]:
    """f, Df, D²f, … of a kernel or weight, up to the power ``order`` of D."""
    profiles = [profile_of(radial)]
    for _ in range(order):
        profiles.append(profiles[-1].derived)
    return tuple(profiles)


def profile_of(radial: Radial) -> Profile:
    """The profile of a kernel or weight of this library."""
    parameters = radial.terms.keywords if isinstance(radial.terms, partial) else {}
    if "ell" in parameters:
        return wendland_profile(**parameters)
    return matern_profile(**parameters) if "nu" in parameters else _OTHERS[radial.name]
