"""The error measures of the paper (section 5), root mean squared error and |y - f| / |y|, and a score of deviations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from .._types import Array


class Errors(NamedTuple):
    """RMSE, largest and mean relative error."""

    rmse: float
    max_relative: float
    mean_relative: float


def root_mean_square(values: Array) -> float:
    """√(mean of squares)."""
    return float(np.sqrt(np.mean(np.square(values))))


def crps(value: Array, deviation: Array, truth: Array) -> Array:
    """Continuous ranked probability score of Gaussian predictions, in closed form (Gneiting and Raftery 2007, equation 21)."""
    z = (truth - value) / deviation
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray(deviation * (z * (2.0 * ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi)))


def share_inside(ends: Array, y: Array) -> Array:
    """Share of observations ``y`` (n, t) inside their intervals ``ends`` (n, t, 2), (t,)."""
    return np.asarray(((ends[..., 0] <= y) & (y <= ends[..., 1])).mean(axis=0))


def errors(prediction: Array, truth: Array) -> Errors:
    """Errors of ``prediction`` (n,); a relative error is infinite where ``truth`` is zero and the prediction is not."""
    error = np.abs(prediction - truth)
    with np.errstate(divide="ignore"):
        relative = np.divide(error, np.abs(truth), where=error > 0.0, out=np.zeros_like(error))
    return Errors(root_mean_square(error), float(relative.max()), float(relative.mean()))
