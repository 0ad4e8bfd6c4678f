"""The noise inside regions: its slope across a region, and its estimate from locations that were observed more than once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gammaln, ndtri

from .._types import Array, Index
from ..local.blocks import BlockModels
from ..local.settings import Settings

_LARGE_REGION, _LOG_VARIANCE = 200, np.pi**2 / 2  # points from which on scales have a slope; variance of log χ² of one degree
_LEAST_LOG, _STEEPEST = 1e-4, 4.0  # least z² relative to its mean, and slope of log c²: a factor of 50 in c from side to side
_PLAUSIBLE = 0.05  # chance, on either side, that the true variance lies outside of what repeated observations allow
_MIXED = 2048  # least number of errors from which quantiles for single observations are taken
_RESIDUAL_FREEDOM = 10.0  # degrees of freedom that c² η counts for, beside those of places that were observed more than once


def find_slopes(e: Array, variance: Array, usable: NDArray[np.bool_], u: Array) -> tuple[Array, Array]:
    """The slope of log c² in large regions of fields, (B, t, d), and what it makes of c² at the members, (B, h, t).

    Least squares on log z², z² = e² / variance, at places ``u`` (B, h, d) in units of the radius, shrunk by a factor 1 − 2 d / χ²:
    without a slope χ² is about d.
    """
    (B, h, t), d = e.shape, u.shape[2]
    if h < _LARGE_REGION or d > 3:  # smaller regions adapt to the noise themselves; in tables a slope has too many directions
        return np.zeros((B, t, d)), np.ones((1, 1, 1))
    some = np.maximum(usable.sum(axis=1), 1)[:, None]
    z2 = np.divide(e**2, variance[..., None], out=np.zeros_like(e), where=usable[..., None])
    mean = z2.sum(axis=1) / some
    logs = np.log(np.maximum(z2, np.maximum(_LEAST_LOG * mean, np.finfo(float).tiny)[:, None])) * usable[..., None]
    U = (u - ((u * usable[..., None]).sum(axis=1) / some)[:, None]) * usable[..., None]
    G = np.einsum("bhd,bhe->bde", U, U) + np.eye(d)
    slope = np.linalg.solve(G, np.einsum("bhd,bht->bdt", U, logs))  # (B, d, t)
    chi2 = np.einsum("bdt,bde,bet->bt", slope, G, slope) / _LOG_VARIANCE
    slope = np.clip(slope.swapaxes(1, 2), -_STEEPEST, _STEEPEST) * np.maximum(1.0 - 2 * d / np.maximum(chi2, 1.0), 0.0)[..., None]
    return slope, np.exp(np.einsum("bhd,btd->bht", u, slope))


def find_noise(scale: Array, models: BlockModels) -> Array:
    """The variance of the noise of one observation, (m, t): c² η, averaged with an estimate from repeated observations.

    The standard deviation at a location estimates the noise whatever the function is, with k = count − 1 degrees of freedom. In a
    region standard deviations are averaged, not their squares, which a few locations would dominate. The average over all locations
    counts for one degree there. c² η counts for some degrees, too, clipped to what the χ² distribution of the sum of squares
    allows. Where no location has two different responses, copies are weights.
    """
    noise, repeats = scale * models.settings.ridge[:, None], models.points.repeats
    if repeats is None or not repeats.spread.any():
        return np.asarray(noise)
    k = np.maximum(repeats.often - 1.0, 0.0)[:, None]
    pooled = k * np.sqrt(repeats.spread / np.maximum(k, 1.0)) / shrinkage(np.maximum(k, 1.0))
    dof = k[models.members].sum(axis=1)
    pure = (pooled[models.members].sum(axis=1) + pooled.sum(axis=0) / k.sum()) / (dof + 1.0)
    least = np.finfo(float).tiny
    allowed = [np.log(np.maximum(pure, least) ** 2 * (dof + 1.0) / chdtri(dof + 1.0, p)) for p in (_PLAUSIBLE, 1.0 - _PLAUSIBLE)]
    logs = _RESIDUAL_FREEDOM * np.clip(np.log(np.maximum(noise, least)), *allowed) + 2.0 * dof * np.log(np.maximum(pure, least))
    return np.asarray(np.exp(logs / (_RESIDUAL_FREEDOM + dof)))


def observation_errors(error: Array, variance: Array, noise: Array, v: Array) -> Array:
    """Standardised errors (k, t) of single observations at n places, from those of the means of all observations there.

    The mean of observations of total weight v has an ``error`` (n, t) of this ``variance``, of which ``noise`` / v is noise. A new
    observation has (1 - 1 / v) ``noise`` more, represented by quantiles of the normal distribution.
    """
    k = max(8, _MIXED // max(len(error), 1))
    g = ndtri((np.arange(k) + 0.5) / k)
    more = noise * np.maximum(1.0 - 1.0 / v, 0.0)[:, None]
    total = np.maximum(variance + more, np.finfo(float).tiny)[..., None]
    z = np.abs(error[..., None] + np.sqrt(more)[..., None] * g) / np.sqrt(total)
    return np.asarray(np.moveaxis(z, 1, 2).reshape(-1, error.shape[1]))


def shrinkage(k: Array) -> Array:
    """The mean sample standard deviation with ``k`` degrees of freedom, relative to the true one: √(2/k) Γ((k+1)/2) / Γ(k/2)."""
    return np.asarray(np.sqrt(2.0 / k) * np.exp(gammaln(0.5 * k + 0.5) - gammaln(0.5 * k)))


def group_alike(settings: Settings) -> list[Index]:
    """Regions with the same kernel, degree, bandwidth and ridge: their scales have the same unit."""
    table = np.stack([settings.local_metric, settings.kernel, settings.degree, settings.bandwidth, settings.ridge], axis=1)
    _, kind = np.unique(table, axis=0, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(kind.ravel()[order])) + 1)
