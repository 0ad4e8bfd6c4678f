"""Radial functions: the kernels of the local models and the weights that stitch them.

Every function is given by its value and by powers of the operator D f = f'/r, which is all that derivatives in space need:
∇f(|x|) = Df x and ∇²f(|x|) = Df I + D²f x xᵀ (so f'' = Df + r² D²f). D = 2 d/ds in terms of s = r², D lowers the order of
a Wendland function by one, and most of these functions need neither a root nor a special case at r = 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Below this radius D²f of a kernel that is just C² is frozen; its share there, r² D²f, is of the order of the radius.
_TINY_RADIUS = 1e-8


@dataclass(frozen=True)
class Radial:
    """A radial function of unit scale.

    Attributes
    ----------
    name : the public name
    smoothness : t, where the function of x is t times continuously differentiable (-1: it jumps)
    terms : ``terms(s, order)`` returns (f, Df, D²f)[: order + 1] at squared radii ``s``, which it may overwrite
    least_degree : degree of the polynomial that the function must bring along to be positive definite (-1: none)
    scale_free : whether rescaling r changes nothing but a factor, so that a bandwidth has no meaning
    bandwidths : where a search for the bandwidth starts, in units of the mean distance of points
    """

    name: str
    smoothness: float
    terms: Callable[[Array, int], tuple[Array, ...]]
    least_degree: int = -1
    scale_free: bool = False
    bandwidths: tuple[float, ...] = (0.25, 1.0, 4.0)

    def __call__(self, s: Array, order: int = 0) -> tuple[Array, ...]:
        """Value and powers of D up to ``order`` at squared radii ``s``, which may be overwritten."""
        return self.terms(s, order)


def _radius(s: Array) -> Array:
    """Square root of ``s``, where rounding may have left a negative zero distance."""
    r = np.maximum(s, 0.0)
    return np.sqrt(r, out=r)


def _safe_radius(r: Array) -> Array:
    return np.maximum(r, _TINY_RADIUS)


def gaussian(s: Array, order: int = 0) -> tuple[Array, ...]:
    """exp(-r²); D multiplies by -2."""
    f = np.negative(s, out=s)
    np.exp(f, out=f)
    return (f, *(f * (-2.0) ** k for k in range(1, order + 1)))


def _matern(s: Array, order: int = 0, *, nu: float) -> tuple[Array, ...]:
    """exp(-a r) times a polynomial in a r for each power of D, with a = √(2ν) (Rasmussen and Williams 2006, eq. 4.17)."""
    a2 = 2.0 * nu
    r = _radius(s)
    r *= np.sqrt(a2)
    decay = np.exp(-r)
    return tuple(a2**k * _MATERN[nu][k](r) * decay for k in range(order + 1))


_MATERN: dict[float, tuple[Callable[[Array], Array], ...]] = {
    0.5: (np.ones_like, lambda r: -1.0 / _safe_radius(r), lambda r: (1.0 + r) / _safe_radius(r) ** 3),
    1.5: (lambda r: 1.0 + r, lambda r: -np.ones_like(r), lambda r: 1.0 / _safe_radius(r)),
    2.5: (lambda r: 1.0 + r + r * r / 3.0, lambda r: -(1.0 + r) / 3.0, lambda r: np.full_like(r, 1.0 / 3.0)),
    3.5: (
        lambda r: 1.0 + r + 0.4 * r * r + r**3 / 15.0,
        lambda r: -(3.0 + 3.0 * r + r * r) / 15.0,
        lambda r: (1.0 + r) / 15.0,
    ),
}


def linear(s: Array, order: int = 0) -> tuple[Array, ...]:
    """-r, conditionally positive definite with a constant."""
    r = _radius(s)
    safe = _safe_radius(r)
    return (-r, *(-1.0 / safe, 1.0 / safe**3)[:order])


def multiquadric(s: Array, order: int = 0) -> tuple[Array, ...]:
    """-√(1 + r²), a linear spline that is smooth at its tip; conditionally positive definite with a constant."""
    root = np.sqrt(1.0 + np.maximum(s, 0.0))
    return (-root, *(-1.0 / root, 1.0 / root**3)[:order])


def thin_plate(s: Array, order: int = 0) -> tuple[Array, ...]:
    """r² log r, conditionally positive definite with a linear polynomial."""
    safe = np.maximum(s, _TINY_RADIUS**2)
    log = np.log(safe)
    return (0.5 * safe * log, *(log + 1.0, 2.0 / safe)[:order])


def cubic(s: Array, order: int = 0) -> tuple[Array, ...]:
    """r³, conditionally positive definite with a linear polynomial."""
    r = _radius(s)
    return (r * r * r, *(3.0 * r, 3.0 / _safe_radius(r))[:order])


def quintic(s: Array, order: int = 0) -> tuple[Array, ...]:
    """-r⁵, conditionally positive definite with a quadratic polynomial."""
    r = _radius(s)
    cube = r * r * r
    return (-cube * r * r, *(-5.0 * cube, -15.0 * r)[:order])


@cache
def _wendland_integral(ell: int, k: int) -> tuple[Fraction, ...]:
    """Coefficients c of Iᵏ (1 - r)^ell = u^(ell + k) (c_0 + c_1 u + … + c_k uᵏ), u = 1 - r, exactly.

    (I f)(r) = ∫_r^∞ t f(t) dt turns u^j into u^(j+1)/(j+1) - u^(j+2)/(j+2) (Wendland 2004, definition 9.11).
    """
    if k == 0:
        return (Fraction(1),)
    first = ell + k - 1
    raised = [Fraction(0)] * (k + 1)
    for i, c in enumerate(_wendland_integral(ell, k - 1)):
        raised[i] += c / (first + i + 1)
        raised[i + 1] -= c / (first + i + 2)
    return tuple(raised)


@cache
def _wendland_coefficients(ell: int, k: int) -> tuple[float, ...]:
    """The same polynomial in r, where its coefficients are positive and nothing cancels."""
    integral = _wendland_integral(ell, k)
    return tuple(float(sum((-1) ** j * comb(i, j) * integral[i] for i in range(j, k + 1))) for j in range(k + 1))


@cache
def _scaled_coefficients(ell: int, k: int, j: int) -> tuple[float, ...]:
    """Coefficients in r of D^j Iᵏ u^ell = (-1)^j I^(k - j) u^ell, less the power of u, where Iᵏ u^ell is 1 at r = 0."""
    return tuple((-1.0) ** j * c / _wendland_coefficients(ell, k)[0] for c in _wendland_coefficients(ell, k - j))


def _power(u: Array, n: int) -> Array:
    """u^n for n ≥ 1 by multiplications, which beat `numpy.power` by far."""
    if n == 1:
        return u
    half = _power(u, n // 2)
    return half * half * u if n % 2 else half * half


def wendland(ell: int, k: int, name: str = "wendland") -> Radial:
    """The Wendland function Iᵏ (1 - r)₊^ell with value 1 at r = 0, of class C^2k; φ_{d,k} has ell = ⌊d/2⌋ + k + 1."""
    return Radial(name, 2 * k, partial(_wendland, ell=ell, k=k))


def _wendland(s: Array, order: int = 0, *, ell: int, k: int) -> tuple[Array, ...]:
    """D^j Iᵏ u^ell = (-1)^j I^(k - j) u^ell, and plain differentiation once k is used up."""
    r = _radius(s)
    u = np.maximum(1.0 - r, 0.0)
    terms = []
    for j in range(min(order, k) + 1):
        *lower, top = _scaled_coefficients(ell, k, j)
        f: Array | float = top
        for c in reversed(lower):
            f = f * r + c
        terms.append(f * _power(u, ell + k - j))
    if order > k:
        factor = np.where(r < 1.0, (-1.0) ** k / _wendland_coefficients(ell, k)[0], 0.0)
        terms.append(-factor * ell * u ** (ell - 1) / _safe_radius(r))  # D u^ell
    if order > k + 1:  # D² u^ell
        slope = (ell - 1) * u ** max(ell - 2, 0) + u ** (ell - 1) / _safe_radius(r)
        terms.append(factor * ell * slope / _safe_radius(r) ** 2)
    return tuple(terms)


def wendland_terms(radial: Radial) -> list[dict[str, Any]] | None:
    """f, Df, D²f of a Wendland function as (1 - r)^power Σ coefficients r^i, over r if so said; None for other functions."""
    if not (isinstance(radial.terms, partial) and radial.terms.func is _wendland):
        return None
    ell, k = radial.terms.keywords["ell"], radial.terms.keywords["k"]
    smooth = [_term(_scaled_coefficients(ell, k, j), ell + k - j, False) for j in range(k + 1)]
    last = (-1.0) ** (k + 1) * ell / _wendland_coefficients(ell, k)[0]
    return [*smooth, _term((last,), ell - 1, True)][:3]


def _term(coefficients: tuple[float, ...], power: int, over_radius: bool) -> dict[str, Any]:
    return {"coefficients": list(coefficients), "power": power, "over_radius": over_radius}


def _truncated_gaussian(s: Array, order: int = 0) -> tuple[Array, ...]:
    """exp(-4 r²) cut off at r = 1: the paper's ablation, a weight that jumps."""
    f = np.where(s < 1.0, np.exp(-4.0 * s), 0.0)
    return (f, *(f * (-8.0) ** k for k in range(1, order + 1)))


def _zero(s: Array, order: int = 0) -> tuple[Array, ...]:
    return (np.zeros_like(s),) * (order + 1)


# A local model without a kernel: the polynomial alone.
NO_KERNEL = Radial("none", np.inf, _zero, scale_free=True)

_KERNELS = {
    kernel.name: kernel
    for kernel in (
        Radial("gaussian", np.inf, gaussian),
        Radial("matern32", 2, partial(_matern, nu=1.5)),
        Radial("matern52", 4, partial(_matern, nu=2.5)),
        Radial("matern72", 6, partial(_matern, nu=3.5)),
        Radial("exponential", 0, partial(_matern, nu=0.5)),
        Radial("multiquadric", np.inf, multiquadric, least_degree=0, bandwidths=(0.01, 0.1, 1.0)),
        Radial("linear", 0, linear, least_degree=0, scale_free=True),
        Radial("thin-plate", 1, thin_plate, least_degree=1, scale_free=True),
        Radial("cubic", 2, cubic, least_degree=1, scale_free=True),
        Radial("quintic", 4, quintic, least_degree=2, scale_free=True),
    )
}
KERNEL_NAMES = (*_KERNELS, "wendland")


def kernel_named(name: str, d: int) -> Radial:
    """The kernel of that public name in ``d`` dimensions, on which only the Wendland kernel (C²) depends."""
    if name == "wendland":
        return wendland(d // 2 + 2, 1)
    if name == NO_KERNEL.name:
        return NO_KERNEL
    return _KERNELS[name]


_WEIGHT_PATTERN = re.compile(r"wendland-c(\d*[02468])(-native)?")


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
        return Radial(name, -1, _truncated_gaussian)
    match = _WEIGHT_PATTERN.fullmatch(name)
    if match is None:
        raise ValueError(
            "`weight` must be 'wendland-c0', 'wendland-c2', 'wendland-c4', … (an even order, optionally followed by"
            f" '-native'), or 'truncated-gaussian', got {name!r}."
        )
    k = int(match[1]) // 2
    return wendland((d if match[2] else 3) // 2 + k + 1, k, name)
