"""Slopes as data: the block system of values and directional derivatives, and functions that such a system gives.

With c·∇ a derivative along c at a location x, and D the operator of `radial`, δ = (z - x) / σ:

    K(z, x) = φ(|δ|²),      c·∇_x K = -Dφ c·δ / σ,      c·∇_z c'·∇_x K = -(Dφ c·c' + D²φ (c·δ)(c'·δ)) / σ².

Equations are those of the h responses, then those of the slopes, location by location: H = h (1 + k) in all. One that was not
measured has the weight zero. A fitted function is Σ α_i φ + Σ b_i·∇_x φ with one vector b_i = Σ β_ik c_ik for each location, so
that evaluating it knows nothing of directions.

Shapes: B regions of h locations Z (d, B, h), coordinates first, with k slopes each along C (B, h, k, d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Index
from .points import Slopes, equations_of
from .polynomial import Monomials
from .radial import Radial
from .system import Spectrum, solve_symmetric

NO_PRECISION = 1e-13  # as in `groups`: this share of the mean of B is added to its blocks


class Placed(NamedTuple):
    """Slopes in the coordinates of B regions.

    Attributes
    ----------
    direction : (B, h, k, d)
    value : (B, h k, t) times ``unit`` (B, h k)
    weight : (B, H) of all equations
    """

    direction: Array
    value: Array
    weight: Array
    unit: Array


def place_slopes(
    slopes: Slopes, members: Index, v: Array, local_metric: Array | None, radius: Array, scale: Array, weight: Array | float
) -> Placed:
    """Slopes in the coordinates of regions with these ``members`` (B, h).

    Slopes are per ``radius`` (B,), that of the region before its local metric; ``scale`` (B,) is that of its coordinates, ``v``
    (B, h) the weights of locations, and ``weight``, a number or (B,), that of slopes.
    """
    direction, value, own = slopes.direction[members], slopes.value[members], slopes.weight[members]
    own[~own[:, :, 0].any(axis=1), 0, 0] = 1.0  # without any response, the one filled in at the centre sets the constant
    (B, h, k, _), t = direction.shape, value.shape[3]
    length = np.sqrt(np.einsum("bhkd,bhkd->bhk", direction, direction))
    unit = np.divide(radius[:, None, None], length, out=np.zeros_like(length), where=length > 0.0)
    turned = direction if local_metric is None else direction @ local_metric
    C = turned * (unit / scale[:, None, None])[..., None]
    weights = own[:, :, 1:] * np.broadcast_to(weight, B)[:, None, None] * (unit > 0.0)
    if slopes.told:
        weights = np.divide(weights, unit**2, out=np.zeros_like(unit), where=unit > 0.0)
    weights = np.concatenate([own[:, :, 0] * v, (weights * v[..., None]).reshape(B, h * k)], axis=1)
    return Placed(C, (value * unit[..., None]).reshape(B, h * k, t), weights, unit.reshape(B, h * k))


def hermite_matrices(kernel: Radial, Z: Array, C: Array, sigma: Array) -> Array:
    """K (B, H, H) between all equations of regions, with a kernel of length scale ``sigma`` (B,)."""
    B, h, k, _ = C.shape
    X, unit = np.moveaxis(Z, 0, 2) / sigma[:, None, None], sigma[:, None, None, None]
    offset = X[:, :, None] - X[:, None]  # (B, h, h, d), exactly antisymmetric, as all is symmetric then
    f, f1, f2 = kernel(np.einsum("bije,bije->bij", offset, offset), 2)
    along = np.einsum("bije,bjle->bijl", offset, C)  # of x_i - x_j along the slopes at x_j
    K = np.empty((B, h * (1 + k), h * (1 + k)))
    K[:, :h, :h] = f
    K[:, :h, h:] = (-f1[..., None] * along / unit).reshape(B, h, h * k)
    K[:, h:, :h] = K[:, :h, h:].swapaxes(1, 2)
    back = -along.swapaxes(1, 2)  # and along the slopes at x_i
    both = f1[:, :, None, :, None] * np.einsum("bike,bjle->bikjl", C, C)
    both += (f2[..., None] * back).swapaxes(2, 3)[..., None] * along[:, :, None]
    K[:, h:, h:] = -(both / unit[..., None] ** 2).reshape(B, h * k, h * k)
    return K


def hermite_monomials(basis: Monomials, Z: Array, C: Array) -> Array:
    """P (B, H, s): monomials at the locations, and their derivatives along the slopes."""
    B, h, k, _ = C.shape
    P = basis.values(Z)
    derived = basis.differentiate(np.eye(len(basis))[None])[0]  # (s, s, d)
    return np.concatenate([P, np.einsum("bhe,esd,bhkd->bhks", P, derived, C, optimize=True).reshape(B, h * k, -1)], axis=1)


def hermite_rows(kernel: Radial, Q: Array, Z: Array, C: Array, sigma: Array, order: int = 0) -> list[Array]:
    """g (B, c, H), the kernel's part of the equations at queries ``Q`` (d, B, c), with derivatives (B, c, d, …, H)."""
    B, h, k, d = C.shape
    offset = (np.moveaxis(Q, 0, 2)[:, :, None] - np.moveaxis(Z, 0, 2)[:, None]) / sigma[:, None, None, None]
    f = kernel(np.einsum("bche,bche->bch", offset, offset), order + 1)
    along = np.einsum("bche,bhke->bchk", offset, C)
    c, unit = Q.shape[2], sigma[:, None, None]
    rows = [np.concatenate([f[0], (-f[1][..., None] * along).reshape(B, c, h * k) / unit], axis=2)]
    if order >= 1:
        values = np.moveaxis(f[1][..., None] * offset, 3, 2) / unit[..., None]
        bent = f[1][..., None, None] * C[:, None] + (f[2][..., None] * along)[..., None] * offset[:, :, :, None]  # (B, c, h, k, d)
        slopes = np.moveaxis(bent.reshape(B, c, h * k, d), 3, 2) / -(unit[..., None] ** 2)
        rows.append(np.concatenate([values, slopes], axis=3))
    if order >= 2:
        rows.append(_hermite_bends(f, offset, along, C) / (sigma**2).reshape(-1, 1, 1, 1, 1))
        rows[2][..., h:] /= sigma.reshape(-1, 1, 1, 1, 1)
    return rows


def _hermite_bends(f: tuple[Array, ...], offset: Array, along: Array, C: Array) -> Array:
    """∂²g (B, c, d, d, H) in units of σ, from the kernel's ``f``, offsets (B, c, h, d) and those along the slopes (B, c, h, k).

    Of responses D²φ δ δᵀ + Dφ I, of slopes -(D²φ (c δᵀ + δ cᵀ + c·δ I) + D³φ (c·δ) δ δᵀ).
    """
    B, c, h, k = along.shape
    d = offset.shape[3]
    outer, eye = offset[..., :, None] * offset[..., None, :], np.eye(d)
    values = f[2][..., None, None] * outer + f[1][..., None, None] * eye
    cross = C[:, None, :, :, :, None] * offset[:, :, :, None, None, :]  # (B, c, h, k, d, d)
    slopes = f[2][..., None, None, None] * (cross + cross.swapaxes(4, 5) + along[..., None, None] * eye)
    slopes += (f[3][..., None] * along)[..., None, None] * outer[:, :, :, None]
    every = np.concatenate([values, -slopes.reshape(B, c, h * k, d, d)], axis=2)
    return np.moveaxis(every, 2, 4)


def evaluate_slopes(kernel: Radial, Z: Array, X: Array, b: Array, order: int) -> list[Array]:
    """Σ b_i·∇_x φ and derivatives at queries ``Z`` (d, B, c), for vectors ``b`` (B, h, t, d) at ``X`` (d, B, h), in units of σ.

    f = -Σ Dφ b·δ,   ∇f = -Σ (Dφ b + D²φ (b·δ) δ),   ∇²f = -Σ (D²φ (b δᵀ + δ bᵀ + (b·δ) I) + D³φ (b·δ) δ δᵀ).
    """
    offset = np.moveaxis(Z, 0, 2)[:, :, None] - np.moveaxis(X, 0, 2)[:, None]  # (B, c, h, d)
    f = kernel(np.einsum("bche,bche->bch", offset, offset), order + 1)
    along = np.einsum("bche,bhte->bcht", offset, b)
    terms = [-np.einsum("bch,bcht->bct", f[1], along)]
    if order >= 1:
        second = f[2][..., None] * along  # (B, c, h, t)
        terms.append(-np.einsum("bch,bhte->bcte", f[1], b) - np.swapaxes(second, 2, 3) @ offset)
    if order >= 2:
        d = len(Z)
        cross = np.einsum("bche,bhtf->bctef", f[2][..., None] * offset, b, optimize=True)
        third = (f[3][..., None] * along)[..., None] * offset[:, :, :, None]  # (B, c, h, t, d)
        bent = np.einsum("bchte,bchf->bctef", third, offset, optimize=True)
        terms.append(-(cross + cross.swapaxes(3, 4) + bent + second.sum(axis=2)[..., None, None] * np.eye(d)))
    return terms


def locations_of(h: int, k: int) -> Index:
    """The location of each equation, (H,)."""
    return np.concatenate([np.arange(h), np.repeat(np.arange(h), k)])


def mask_equations(mask: NDArray[np.bool_], k: int) -> NDArray[np.bool_]:
    """Which equations (B, H, H) are left out together, from those of locations (B, h, h)."""
    at = locations_of(mask.shape[1], k)
    return mask[:, at[:, None], at]


def location_residuals(S: Spectrum, etas: Array, alpha: Array, unknown: Array, h: int) -> Array:
    """Residuals (B, H, t, e) of all equations, each without all of its location, for ridges ``etas``, from α of that shape.

    (B_GG)⁻¹ α_G as of groups, but these are small and of one size. ``unknown`` (B, H, t) counts where nothing is known.
    """
    H, e = alpha.shape[1], alpha.shape[3]
    rows = equations_of(np.arange(h), h, H // h - 1)  # (h, 1 + k)
    V, inverse = S.V[:, rows], S.inverse(etas)  # (B, h, 1 + k, H), (B, H, e)
    residuals = np.empty_like(alpha)
    for ridge in range(e):
        own = (V * inverse[:, None, None, :, ridge]) @ V.swapaxes(2, 3)
        residuals[..., ridge][:, rows] = solve_small(own, alpha[..., ridge][:, rows], unknown[:, rows])[0]
    return residuals


def solve_small(own: Array, alpha: Array, unknown: Array) -> tuple[Array, Array]:
    """(B_GG)⁻¹ α_G (B, h, g, t) and (B_GG)⁻¹ (B, h, g, g) from blocks ``own`` of that shape."""
    none = NO_PRECISION * np.einsum("bhgg->b", own)[:, None, None, None] / (own.shape[1] * own.shape[2])
    M = own + none * np.eye(own.shape[2])
    inverse = solve_symmetric(M, np.broadcast_to(np.eye(own.shape[2]), M.shape))
    return inverse @ (alpha + none * unknown), inverse
