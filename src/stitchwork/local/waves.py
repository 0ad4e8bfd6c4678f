"""Plane waves whose random sums have the kernels as their covariances (random Fourier features).

By Bochner's theorem a kernel is k(r) = ∫ p(ω) cos(ω·r) dω, so that with frequencies ω_k drawn from a density q and standard normal
numbers a_k, b_k

    g(x) = Σ_k A_k (a_k cos ω_k·x + b_k sin ω_k·x),      A_k² = p(ω_k) / (F q(ω_k)),

is a random function of covariance k. Conditionally positive definite kernels have densities, too, with a pole at zero. Waves of so
low a frequency are polynomials within a region, so only higher frequencies are drawn. Here q is uniform in log |ω|, so one set
of waves serves kernels of all length scales, and rare high frequencies, which data fix least, are not missed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, jv, kve, ndtri
from scipy.stats import qmc

from .._parallel import slices
from .._types import Array
from .radial import NO_KERNEL, SOFTNESS, Polynomial, Radial

WAVES = 512  # F
_GRID = np.linspace(-14.0, 14.0, 5601)  # log |ω| in units of the kernel's length scale, where densities are tabulated
_LEAST_MASS, _LEAST_DENSITY = 1e-3, 1e-16  # of a kernel's density: the share below the band, and the least, relative, inside of it
_LOWEST, _HIGHEST = 0.1, 8.0  # frequencies times the radius of a region, and in units of the highest that its points resolve
_ROWS = 64  # points whose waves are worked on at once
_SPLINES = {"linear": 1, "thin-plate": 2, "cubic": 3, "quintic": 5}  # exponents of r
_MATERN = {"exponential": 0.5, "matern32": 1.5, "matern52": 2.5, "matern72": 3.5}


def log_density(kernel: Radial, d: int, v: Array) -> Array:
    """log of S ω^d p(ω), the density of v = log |ω| in d dimensions, S the area of the unit sphere, for a kernel of unit scale."""
    omega = np.exp(v)
    log_area = np.log(2.0) + 0.5 * d * np.log(np.pi) - gammaln(0.5 * d)
    return np.asarray(log_area + d * v + _log_spectrum(kernel, d, omega, v))


def _log_spectrum(kernel: Radial, d: int, omega: Array, v: Array) -> Array:
    """log p(ω): Rasmussen and Williams 2006, section 4.2; Wendland 2004, theorems 8.15 to 8.17."""
    half, log_pi, name = 0.5 * d, np.log(np.pi), kernel.name
    order = 0.5 * (d + 1)
    if name == "gaussian":
        return np.asarray(-half * np.log(4.0 * np.pi) - 0.25 * omega**2)
    if name in _MATERN:
        nu = _MATERN[name]
        constant = gammaln(nu + half) - gammaln(nu) - half * log_pi + nu * np.log(2.0 * nu)
        return np.asarray(constant - (nu + half) * np.log(2.0 * nu + omega**2))
    if name in _SPLINES:
        beta = _SPLINES[name]
        gamma = 0.0 if beta == 2 else float(gammaln(-0.5 * beta))
        factor = np.log(2.0) * (1 if beta == 2 else beta)
        return np.asarray(factor + gammaln(half + 0.5 * beta) - gamma - half * log_pi - (d + beta) * v)
    if name == "soft-exponential":
        s = np.sqrt(1.0 + omega**2)
        constant = (1.0 - order) * np.log(2.0) - order * log_pi + order * np.log(SOFTNESS) + SOFTNESS
        return np.asarray(constant - order * np.log(s) + np.log(kve(order, SOFTNESS * s)) - SOFTNESS * s)
    if name == "multiquadric":
        with np.errstate(over="ignore"):
            bessel = np.log(kve(order, omega)) - omega
        far = ~np.isfinite(bessel)  # it overflows near zero, where K_ν(ω) = Γ(ν) / 2 (2 / ω)^ν
        bessel[far] = gammaln(order) - np.log(2.0) + order * (np.log(2.0) - v[far])
        return np.asarray(0.5 * np.log(2.0) - 0.5 * log_pi - half * np.log(2.0 * np.pi) - order * v + bessel)
    return _log_transform(kernel, d, omega)


def _log_transform(kernel: Radial, d: int, omega: Array) -> Array:
    """The same of a kernel that is a polynomial in the unit ball and zero outside, by quadrature."""
    assert isinstance(kernel.profile, Polynomial)
    node, weight = np.polynomial.legendre.leggauss(400)
    r, w = 0.5 * (node + 1.0), 0.5 * weight
    low = omega < 500.0  # beyond it, as ω^-(d + 3)
    values = (jv(0.5 * d - 1.0, omega[low, None] * r) * kernel(r**2)[0] * r ** (0.5 * d)) @ w
    found = np.full(len(omega), np.finfo(float).tiny)
    found[low] = np.maximum(values * omega[low] ** (1.0 - 0.5 * d) / (2.0 * np.pi) ** (0.5 * d), np.finfo(float).tiny)
    return np.asarray(np.log(found))


class Density(NamedTuple):
    """log density of log |ω| on `_GRID`, and the band (2,) that holds nearly all of it; minus infinity where there is no end."""

    log: Array
    band: Array

    def at(self, v: Array) -> Array:
        """exp of it at ``v``."""
        return np.exp(np.interp(v, _GRID, self.log))


@lru_cache(maxsize=64)
def density_of(kernel: Radial, d: int) -> Density:
    """The density of a kernel of unit scale in d dimensions."""
    log = log_density(kernel, d, _GRID)
    if kernel.least_degree >= 0:
        return Density(log, np.array([-np.inf, np.inf if kernel.scale_free else _GRID[log > log.max() - 200.0].max()]))
    mass = np.exp(log - log.max())
    low = _GRID[np.searchsorted(np.cumsum(mass), _LEAST_MASS * mass.sum())]
    high = _GRID[np.flatnonzero(mass > _LEAST_DENSITY)[-1]]
    return Density(log, np.array([low, high]))


class Waves(NamedTuple):
    """Frequencies (d, F), and their log lengths (F,), drawn evenly from a band of ``width``."""

    frequency: Array
    log_length: Array
    width: float

    def values(self, X: Array) -> Array:
        """cos ω·x and sin ω·x at ``X`` (n, d): (n, 2 F).

        With t = tan φ / 2 they are 2 / (1 + t²) − 1 and 2 t / (1 + t²): one function, and the fastest of the three.
        """
        found = np.empty((len(X), 2 * len(self.log_length)))
        cosine, sine = np.split(found, 2, axis=1)
        for rows in slices(len(X), _ROWS):  # they stay in cache
            t = np.tan(X[rows] @ (0.5 * self.frequency))
            u = 2.0 / (1.0 + t * t)
            np.subtract(u, 1.0, out=cosine[rows])
            np.multiply(t, u, out=sine[rows])
        return found

    def slopes(self, X: Array, C: Array) -> Array:
        """Derivatives (n, k, 2 F) of both along ``C`` (n, k, d)."""
        phase, rate = (X @ self.frequency)[:, None], C @ self.frequency
        return np.concatenate([-np.sin(phase) * rate, np.cos(phase) * rate], axis=2)

    def amplitudes(self, kernel: Radial, length: Array) -> Array:
        """A (B, 2 F) that make ``kernel`` of length scales ``length`` (B,)."""
        if kernel.name == NO_KERNEL.name:
            return np.zeros((len(length), 2 * len(self.log_length)))
        v = self.log_length + np.log(length)[:, None]
        A = np.sqrt(density_of(kernel, len(self.frequency)).at(v) * (self.width / len(self.log_length)))
        return np.concatenate([A, A], axis=1)


def make_waves(d: int, band: Array) -> Waves:
    """Waves with log lengths in ``band`` (2,), in all directions: quasi-random, the same every time."""
    unit = qmc.Sobol(d + 1, rng=0).random(WAVES)
    low, high = band
    log_length = low + (high - low) * unit[:, 0]
    normal = ndtri(np.clip(unit[:, 1:], 1e-12, 1.0 - 1e-12))
    direction = normal / np.maximum(np.linalg.norm(normal, axis=1), np.finfo(float).tiny)[:, None]
    return Waves((direction * np.exp(log_length)[:, None]).T, log_length, float(high - low))


def find_band(kernel: Radial, d: int, h: int, length: Array, radius: Array) -> Array:
    """Least and greatest log |ω| (2,) that matter to regions of h points with these length scales and radii, (B,) each."""
    least, most = np.log(_LOWEST / radius), np.log(_HIGHEST * np.pi * h ** (1.0 / d) / radius)
    if kernel.name == NO_KERNEL.name:
        return np.array([least.min(), least.max() + 1.0])
    low, high = density_of(kernel, d).band[:, None] - np.log(length)
    low = np.where(np.isfinite(low), low, least)
    high = np.minimum(high, np.maximum(most, low + 1.0))
    return np.array([low.min(), high.max()])
