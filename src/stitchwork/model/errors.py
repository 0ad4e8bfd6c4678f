"""Known errors of observations: weights for a fit, the further noise that the data call for, and the factor of the variances.

With s_i² the variance of the error of observation i and τ² that of further noise, its weight is v_i = s₀² / (s_i² + τ²). s₀² is the
median of these variances, that of an observation of weight one. So a fit with known errors is a fit with weights whose noise is
known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .._types import Array, Index

_JUDGED = np.linspace(0.5, 0.95, 10)  # shares of the residuals whose quantiles tell the factor of the variances
_FACTORS = np.logspace(-3, 3, 61)  # of the variances that regions say
_FURTHER = np.concatenate([[0.0], np.logspace(-2, 4, 73)])  # τ² in units of the median error's variance
GAIN = 4.0  # log likelihood that further noise must gain
_MOST = 9.0  # cap of a squared standardised residual in the likelihood, so that gross errors do not pass for noise


class KnownErrors(NamedTuple):
    """The variance of the error of an observation of weight one, s₀² (t,), and that of further noise in it, τ² (t,)."""

    unit: Array
    further: Array

    def variance(self, s2: Any) -> Any:
        """Of observations whose errors have the variances ``s2`` (n, t)."""
        return s2 + self.further

    def weights(self, s2: Array) -> Array:
        """Weights (n,) of observations: outputs have one in common, by the mean of the logs."""
        return np.asarray(np.exp(-np.log(self.variance(s2) / self.unit).mean(axis=1)))

    def add_further(self, variance: Array) -> KnownErrors:
        """The same with further noise of this ``variance`` (t,)."""
        return KnownErrors(self.unit + variance, self.further + variance)


def know_errors(s2: Array) -> KnownErrors:
    """`KnownErrors` of observations with error variances ``s2`` (n, t), without further noise."""
    return KnownErrors(np.median(s2, axis=0), np.zeros(s2.shape[1]))


class LeftOutParts(NamedTuple):
    """Of n left-out points: errors, the regions' variances of the function, and the variances of the noise, (n, t) each."""

    error: Array
    function: Array
    noise: Array

    def standardised(self, factor: Array) -> Array:
        """|error| / standard deviation, with the regions' variances of the function times ``factor`` (t,)."""
        return np.asarray(np.abs(self.error) / np.sqrt(np.maximum(factor * self.function + self.noise, np.finfo(float).tiny)))

    def at(self, index: Index) -> LeftOutParts:
        """Of some points."""
        return LeftOutParts(*(column[index] for column in self))


def join_left_out(parts: Sequence[LeftOutParts]) -> LeftOutParts:
    """Of all parts, one after the other."""
    return LeftOutParts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def find_scale(parts: LeftOutParts, usual: Array) -> Array:
    """The most probable factor (t,) of the variances of the function, if it is ``usual`` (t,) but for a factor e.

    With the usual one, regions have the noise that is known. A residual counts by the share that the function then has in its
    variance: where it is mostly noise, it tells whether errors are as large as they were said to be, and little of the function.
    """
    e2 = np.square(parts.error)
    found = np.empty(len(usual))
    for k, log in enumerate(np.log(usual)):
        tried = np.exp(np.union1d(np.log(_FACTORS), log + np.linspace(-3.0, 3.0, 61)))
        total = tried[:, None] * parts.function[:, k] + parts.noise[:, k]
        share = 1.0 / (1.0 + parts.noise[:, k] / np.maximum(usual[k] * parts.function[:, k], np.finfo(float).tiny))
        fit = -0.5 * (np.log(total) + np.minimum(e2[:, k] / total, _MOST)) @ share
        found[k] = tried[(fit - 0.5 * (np.log(tried) - log) ** 2).argmax()]
    return found


def find_factor(parts: LeftOutParts) -> Array:
    """The factor (t,) of the variances of the function with which the residuals are as large as expected.

    Quantiles of the standardised residuals are compared with Gaussian ones. Where the known errors alone explain the residuals, the
    result is the smallest factor that is tried.
    """
    gaussian = np.log(ndtri(0.5 + 0.5 * _JUDGED))[:, None]
    tiny = np.finfo(float).tiny
    excess = [np.log(np.maximum(np.quantile(parts.standardised(f), _JUDGED, axis=0), tiny)) - gaussian for f in _FACTORS[:, None]]
    return np.asarray(_FACTORS[np.abs(np.mean(excess, axis=1)).argmin(axis=0)])


def find_further(parts: LeftOutParts, usual: Array) -> Array:
    """τ² (t,) of greatest likelihood; zero unless it is clearly better.

    The factor of the variances of the function is ``usual`` (t,) without further noise, and grows in proportion to the noise.
    """
    s2, found = parts.noise, np.zeros(parts.noise.shape[1])
    if not len(s2):
        return found
    for k in range(s2.shape[1]):
        e2, middle = parts.error[:, k] ** 2, np.median(s2[:, k])
        tried = _FURTHER * middle
        total = usual[k] * (1.0 + _FURTHER[:, None]) * parts.function[:, k] + s2[:, k] + tried[:, None]
        likelihood = -0.5 * (np.log(total) + np.minimum(e2 / total, _MOST)).sum(axis=1)
        best = int(likelihood.argmax())
        found[k] = tried[best] if likelihood[best] > likelihood[0] + GAIN else 0.0
    return found
