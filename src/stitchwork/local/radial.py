"""Radial functions: the kernels of the local models and the weights that stitch them.

Every function is given by its value and by powers of the operator D f = f'/r, which is all that derivatives in space need:
∇f(|x|) = Df x and ∇²f(|x|) = Df I + D²f x xᵀ (so f'' = Df + r² D²f). In terms of s = r², D = 2 d/ds, so most of these functions
need neither a root nor a special case at r = 0.

A profile is one form of these functions for every array namespace ``xp`` (NumPy, `torch`, `jax.numpy`): only what the three share
is used, and no framework ever differentiates a root. Other languages have a form of their own; `tests/golden/radial.json` is what
all of them are compared with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from math import comb, sqrt
from typing import Any, Protocol

import numpy as np

from .._types import Array

# Below this radius singular powers of D stay constant; for a kernel that is just C² their part there, r² D²f, is of the order of r.
TINY_RADIUS = 1e-8
SOFTNESS = 0.05  # ε of the softened exponential, in units of its scale
HIGHEST_ORDER = 100  # of a Wendland weight: beyond it the weight underflows in the outer part of its ball


class Profile(Protocol):
    """A radial function of s = r², with its powers of D."""

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """(f, Df, D²f, …)[: order + 1] at squared radii ``s``."""


@dataclass(frozen=True)
class Radial:
    """A radial function of unit scale.

    Attributes
    ----------
    name : the public name
    profile : the function and its powers of D
    smoothness : t, where the function of x is t times continuously differentiable (-1: it jumps)
    least_degree : degree of the polynomial that the function must bring along to be positive definite (-1: none)
    scale_free : whether rescaling r changes nothing but a factor, so that a bandwidth has no meaning
    """

    name: str
    profile: Profile
    smoothness: float
    least_degree: int = -1
    scale_free: bool = False

    def __call__(self, s: Array, order: int = 0) -> tuple[Array, ...]:
        """Value and powers of D up to ``order`` at squared radii ``s``."""
        return self.profile.terms(np, s, order)


def power(u: Any, n: int) -> Any:
    """u^n for n ≥ 1 by multiplications, which beat `numpy.power` by far."""
    if n == 1:
        return u
    half = power(u, n // 2)
    return half * half * u if n % 2 else half * half


@dataclass(frozen=True)
class Zero:
    """No kernel at all."""

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """Zeros."""
        return (xp.zeros_like(s),) * (order + 1)


@dataclass(frozen=True)
class Gaussian:
    """exp(-rate s), zero from s = 1 on if ``cut``; D multiplies by -2 rate."""

    rate: float = 1.0
    cut: bool = False

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """f, Df, … at squared radii ``s``."""
        f = xp.exp(-s if self.rate == 1.0 else -self.rate * s)
        if self.cut:
            f = xp.where(s < 1.0, f, xp.zeros_like(f))
        return (f, *(f * (-2.0 * self.rate) ** k for k in range(1, order + 1)))


@dataclass(frozen=True)
class Multiquadric:
    """-√(1 + s), a linear spline that is smooth at its tip; D (1 + s)^p = 2p (1 + s)^(p - 1)."""

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """f, Df, … at squared radii ``s``."""
        root = xp.sqrt(1.0 + xp.clip(s, 0.0, None))
        found, factor = [-root], -1.0
        for k in range(1, order + 1):
            factor *= 3.0 - 2.0 * k  # 2p with p = ½ - (k - 1)
            found.append(factor / power(root, 2 * k - 1))
        return tuple(found)


@dataclass(frozen=True)
class ThinPlate:
    """r² log r = ½ s log s; D gives log s + 1, then 2 / s, and D s^p = 2p s^(p - 1) from there on."""

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """f, Df, … at squared radii ``s``."""
        safe = xp.clip(s, TINY_RADIUS**2, None)
        log = xp.log(safe)
        found, factor = [0.5 * safe * log, log + 1.0], 2.0
        for k in range(2, order + 1):
            found.append(factor / power(safe, k - 1))
            factor *= -2.0 * (k - 1)
        return tuple(found[: order + 1])


@dataclass(frozen=True)
class Polynomial:
    """factor · Σ_i c_i ρ^(lowest + i) · envelope, with ρ = rate · r.

    The envelope is exp(-ρ) if it ``decays``, (1 - ρ)₊^power if there is a ``power``, else one. Coefficients are exact, so that D of
    any order is, too.
    """

    coefficients: tuple[Fraction, ...]
    lowest: int = 0
    rate: float = 1.0
    factor: float = 1.0
    decays: bool = False
    power: int | None = None

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """f, Df, … at squared radii ``s``: the radius and the envelope's base are computed once."""
        r = xp.sqrt(xp.clip(s, 0.0, None))
        r = r if self.rate == 1.0 else self.rate * r
        base = xp.exp(-r) if self.decays else xp.clip(1.0 - r, 0.0, None) if self.power is not None else None
        return tuple(self.derivative(k).values(xp, r, base) for k in range(order + 1))

    def values(self, xp: Any, r: Any, base: Any) -> Any:
        """f at ρ = ``r``, whose envelope has this ``base``."""
        *lower, f = self.numbers
        for c in reversed(lower):
            f = f * r + c
        if self.lowest > 0:
            f = f * power(r, self.lowest)
        elif self.lowest < 0:
            f = f / power(xp.clip(r, TINY_RADIUS, None), -self.lowest)
        if self.power == 0:
            return xp.where(r < 1.0, f, xp.zeros_like(r))
        if self.decays or self.power is not None:
            return f * (base if self.decays else power(base, self.power or 1))
        return f + xp.zeros_like(r) if isinstance(f, float) else f

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """Coefficients with the factor, lowest power first."""
        return tuple(self.factor * float(c) for c in self.coefficients)

    def derivative(self, k: int) -> Polynomial:
        """Dᵏ f."""
        return self if k == 0 else self._derived.derivative(k - 1)

    @cached_property
    def _derived(self) -> Polynomial:
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


@dataclass(frozen=True)
class Softened:
    """A function of √(r² + ε²) in the place of r, one at r = 0: smooth at its tip. D is unchanged, since s is only shifted."""

    inner: Profile
    epsilon: float

    def terms(self, xp: Any, s: Any, order: int) -> tuple[Any, ...]:
        """f, Df, … at squared radii ``s``."""
        found = self.inner.terms(xp, xp.clip(s, 0.0, None) + self.epsilon**2, order)
        return tuple(term / self.tip for term in found)

    @cached_property
    def tip(self) -> float:
        """The inner function at ε."""
        return float(self.inner.terms(np, np.array([self.epsilon**2]), 0)[0][0])


def monomial(coefficient: int, exponent: int) -> Polynomial:
    """coefficient · r^exponent."""
    return Polynomial((Fraction(coefficient),), lowest=exponent)


@cache
def matern(p: int) -> Polynomial:
    """Matérn with ν = p + ½: exp(-ρ) Σ_e c_e ρ^e, ρ = √(2ν) r (Rasmussen and Williams 2006, eq. 4.16).

    c_e = 2^e p! (2p - e)! / ((2p)! e! (p - e)!), so c_0 = 1 and c_(e+1) / c_e = 2 (p - e) / ((e + 1) (2p - e)).
    """
    coefficients = [Fraction(1)]
    for e in range(p):
        coefficients.append(coefficients[-1] * Fraction(2 * (p - e), (e + 1) * (2 * p - e)))
    return Polynomial(tuple(coefficients), rate=sqrt(2 * p + 1), decays=True)


@cache
def wendland(ell: int, k: int) -> Polynomial:
    """The Wendland function Iᵏ (1 - r)₊^ell with value 1 at r = 0, of class C^2k; φ_{d,k} has ell = ⌊d/2⌋ + k + 1.

    (I f)(r) = ∫_r^∞ t f(t) dt turns u^j into u^(j+1)/(j+1) - u^(j+2)/(j+2), u = 1 - r (Wendland 2004, definition 9.11), so that
    Iᵏ u^ell = u^(ell + k) (c_0 + … + c_k uᵏ). In powers of r the coefficients are positive and nothing cancels.
    """
    c = [Fraction(1)]
    for step in range(k):
        first, raised = ell + step, [Fraction(0)] * (step + 2)
        for i, value in enumerate(c):
            raised[i] += value / (first + i + 1)
            raised[i + 1] -= value / (first + i + 2)
        c = raised
    in_r = [sum(((-1) ** j * comb(i, j) * c[i] for i in range(j, k + 1)), Fraction(0)) for j in range(k + 1)]
    return Polynomial(tuple(value / in_r[0] for value in in_r), power=ell + k)


# A local model without a kernel: the polynomial alone.
NO_KERNEL = Radial("none", Zero(), np.inf, scale_free=True)

_KERNELS = {
    kernel.name: kernel
    for kernel in (
        Radial("gaussian", Gaussian(), np.inf),
        Radial("matern32", matern(1), 2),
        Radial("matern52", matern(2), 4),
        Radial("matern72", matern(3), 6),
        Radial("exponential", matern(0), 0),
        Radial("soft-exponential", Softened(matern(0), SOFTNESS), np.inf),
        Radial("multiquadric", Multiquadric(), np.inf, least_degree=0),
        Radial("linear", monomial(-1, 1), 0, least_degree=0, scale_free=True),
        Radial("thin-plate", ThinPlate(), 1, least_degree=1, scale_free=True),
        Radial("cubic", monomial(1, 3), 2, least_degree=1, scale_free=True),
        Radial("quintic", monomial(-1, 5), 4, least_degree=2, scale_free=True),
    )
}
KERNEL_NAMES = (*_KERNELS, "wendland")


def kernel_named(name: str, d: int) -> Radial:
    """The kernel of that public name in ``d`` dimensions, on which only the Wendland kernel (C²) depends.

    Raises
    ------
    ValueError
        If there is no such kernel.
    """
    if name == "wendland":
        return Radial(name, wendland(d // 2 + 2, 1), 2)
    if name == NO_KERNEL.name:
        return NO_KERNEL
    if name not in _KERNELS:
        raise ValueError(f"There is no kernel {name!r}. The kernels: {', '.join(KERNEL_NAMES)}.")
    return _KERNELS[name]


_WEIGHT_PATTERN = re.compile(r"wendland-c(\d{0,9}[02468])(-native)?")


@cache
def weight_named(name: str, d: int) -> Radial:
    """The stitching weight of that public name, supported on the unit ball.

    ``wendland-c{2k}`` takes the polynomial of φ_{3,k} in every dimension: a partition of unity needs smoothness, not positive
    definiteness, and the exponent that the latter asks for in high dimension starves the outer half of the ball, where most
    points lie. ``wendland-c{2k}-native`` is the paper's φ_{d,k}; the two agree for d = 2 and 3.

    Raises
    ------
    ValueError
        If there is no such weight.
    """
    if name == "truncated-gaussian":
        return Radial(name, Gaussian(rate=4.0, cut=True), -1)  # the paper's ablation: it jumps
    match = _WEIGHT_PATTERN.fullmatch(name)
    if match is None or int(match[1]) > HIGHEST_ORDER:
        raise ValueError(
            f"`weight` must be 'wendland-c0', 'wendland-c2', 'wendland-c4', … (an even order up to {HIGHEST_ORDER}, optionally"
            f" followed by '-native'), or 'truncated-gaussian', got {name!r}."
        )
    k = int(match[1]) // 2
    return Radial(name, wendland((d if match[2] else 3) // 2 + k + 1, k), 2 * k)
