"""Links: the levels model z, and users get y = exp(z).

With the link "log" the median of y is exp of that of z, intervals are mapped end by end, and by the chain rule

    ∇y = y ∇z,      ∇²y = y (∇²z + ∇z ∇zᵀ).

The deviation of y is that of a log-normal variable, y e^(s²/2) √(e^(s²) − 1) with s the deviation of z.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from .._types import Array
from ..local.points import Jet
from .deviation import Moments

IDENTITY, LOG = "identity", "log"
LINKS = (IDENTITY, LOG)


def link_jet(link: str, jet: Jet) -> Jet:
    """The jet of y from that of z."""
    if link == IDENTITY:
        return jet
    value, gradient, hessian = np.exp(jet.value), jet.gradient, jet.hessian
    if hessian is not None:
        hessian = value[..., None, None] * (hessian + gradient[..., :, None] * gradient[..., None, :])
    return Jet(value, None if gradient is None else value[..., None] * gradient, hessian)


def link_values(link: str, z: Array) -> Array:
    """y of z."""
    return z if link == IDENTITY else np.exp(z)


def unlink_values(link: str, y: Array) -> Array:
    """z of y."""
    return y if link == IDENTITY else np.log(y)


class LogMoments(Moments):
    """Median of y, and the variances of z = log y."""

    def deviation(self, of_function: bool = False) -> Any:
        """Deviation of y, that of a log-normal variable."""
        s2 = super().deviation(of_function) ** 2
        return np.maximum(self.value * np.exp(0.5 * s2) * np.sqrt(np.expm1(s2)), np.finfo(float).tiny)

    def beyond(self, threshold: float) -> Any:
        """The probability that y exceeds a threshold, (q, t)."""
        if threshold <= 0.0:
            return np.ones_like(self.value)
        return ndtr(np.log(self.value / threshold) / super().deviation(of_function=True))

    def around(self, half: Any) -> Any:
        """Lower and upper end of y, (q, t, 2): ``half`` is a number of deviations of z on each side."""
        factor = np.exp(half * super().deviation())
        return np.stack([self.value / factor, self.value * factor], axis=-1)
