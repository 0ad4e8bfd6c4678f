"""The error measures of the paper (section 5), root mean squared error and |y - f| / |y|, a score of standard deviations, and
baselines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import ndtr

from .._types import Array
from ..model.link import IDENTITY
from ..model.loo import LeftOut
from ..model.stitched import StitchedModel

_SAME_PLACE = 1e-9  # in the unit cube of the regions, above rounding and below any data's resolution


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


class Skill(NamedTuple):
    """Errors of one output, R², and skill against two baselines: one minus the ratio of mean squared errors, 1 at best."""

    rmse: float
    mae: float
    median: float
    r2: float
    mean: float
    nearest: float


def skill(prediction: Array, truth: Array, mean: float, nearest: Array) -> Skill:
    """Errors of ``prediction`` (n,) against ``truth`` (n,), the ``mean`` of the data and their ``nearest`` responses (n,)."""
    error = np.abs(prediction - truth)
    square = float(np.mean(error**2))

    def spared(baseline: Array | float) -> float:
        other = float(np.mean((truth - baseline) ** 2))
        return 1.0 - square / other if other > 0.0 else float("nan")

    return Skill(np.sqrt(square), error.mean(), float(np.median(error)), spared(truth.mean()), spared(mean), spared(nearest))


def nearest_responses(model: StitchedModel, X: Array) -> Array:
    """Responses (q, t) of the known points that are nearest to ``X`` (q, d), but not the same."""
    known = cKDTree(model.points.X)
    distance, nearest = known.query(model.space.coordinates(model.embed(X)), k=min(2, model.n_points))
    if model.n_points == 1:
        return model.responses[np.zeros(len(X), dtype=int)]
    other = np.where(distance[:, 0] < _SAME_PLACE, nearest[:, 1], nearest[:, 0])
    return np.asarray(model.responses[other])


def on_own_scale(model: StitchedModel, left_out: LeftOut) -> LeftOut:
    """Responses and residuals on the scale that the regions model: of log y for a model of it."""
    if model.origin.link == IDENTITY:
        return left_out
    z = np.log(left_out.y)
    return left_out._replace(y=z, residual=z - np.log(left_out.y - left_out.residual))
