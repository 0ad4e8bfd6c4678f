"""Relevance of features: mean squared slopes of a fitted function at a sample of its points, whatever the units.

The share of feature k is in proportion to ⟨(∂_k f)²⟩ var x_k: the effect of a small step in units of its standard deviation.
It is computed from the function, so it means the same for every metric.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._types import Array, Index
from ..local.points import Jet

_SAMPLE = 300  # points: shares are means of squares, good to some hundredths
_STEP = 1e-3  # in deviations of a feature, where a function has no gradient


def sample_rows(n: int) -> Index:
    """Up to some hundred of ``n`` rows, always the same ones."""
    return np.sort(np.random.default_rng(0).permutation(n)[:_SAMPLE])


def slopes_at(jet: Callable[[Array, int], Jet], smoothness: float, X: Array, deviation: Array) -> Array:
    """Gradients (q, t, d) at ``X`` (q, d); differences over a small step where the function has none."""
    if smoothness >= 1:
        return np.asarray(jet(X, 1).gradient)
    step = np.diag(np.where(deviation > 0.0, _STEP * deviation, 1.0))
    ends = [[jet(X + sign * along, 0).value for sign in (1.0, -1.0)] for along in step]
    return np.stack([(upper - lower) / (2.0 * h) for (upper, lower), h in zip(ends, np.diagonal(step), strict=True)], axis=-1)


def share_features(slopes: Array, variance: Array, spread: Array) -> Array:
    """Shares (t, d) from ``slopes`` (q, t, d), variances (d,) of the features and (t,) of the responses.

    ⟨(∂_k f_t)²⟩ var x_k, divided by its sum over k; equal shares where an output is constant.
    """
    deviation = np.sqrt(spread)  # the inverse of a variance may overflow
    units = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0.0)
    share = variance * np.square(slopes * units[:, None]).sum(axis=0)
    total = share.sum(axis=1, keepdims=True)
    return np.divide(share, total, out=np.full_like(share, 1.0 / len(variance)), where=total > 0.0)
