"""The error measures of the paper (section 5): root mean squared error, and |y - f| / |y|, largest and mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array


class Errors(NamedTuple):
    """RMSE, largest and mean relative error."""

    rmse: float
    max_relative: float
    mean_relative: float


def root_mean_square(values: Array) -> float:
    """√(mean of squares)."""
    return float(np.sqrt(np.mean(np.square(values))))


def errors(prediction: Array, truth: Array) -> Errors:
    """Errors of ``prediction`` (n,); a relative error is infinite where ``truth`` is zero and the prediction is not."""
    error = np.abs(prediction - truth)
    with np.errstate(divide="ignore"):
        relative = np.divide(error, np.abs(truth), where=error > 0.0, out=np.zeros_like(error))
    return Errors(root_mean_square(error), float(relative.max()), float(relative.mean()))
