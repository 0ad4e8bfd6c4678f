"""Functions with a known truth."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.utils import Bunch

from .._types import Array

_DESCR_2D = """The two-dimensional test of "Locally Adaptive and Differentiable Regression", section 5.1.

y = s(x1) (1 + 9 s(x1 - 12)) (1 + 10 s(x1 - 24)) (sin x2 + cos x1) with s(u) = 1 / (1 + exp(-u)), on [-6, 30]². Its size
grows from near 0 on the left to about 200 on the right. Training points are uniform; test points lie on a grid of
step 0.2 (181 × 181).
"""


def make_2d(n: int = 20_000, seed: int = 0) -> Bunch:
    """The paper's test in two dimensions: ``n`` random training points, and the test grid.

    Returns
    -------
    Bunch
        ``data``, ``target``; ``test_data``, ``test_target``, ``test_gradient`` on the grid of ``grid_shape``, the first coordinate
        varying slowest; ``function`` and ``gradient`` of the truth.

    Examples
    --------
    >>> from stitchwork.datasets import make_2d
    >>> data = make_2d(n=500)
    >>> data.data.shape, data.test_data.shape, data.test_gradient.shape
    ((500, 2), (32761, 2), (32761, 2))
    """
    X = np.random.default_rng(seed).uniform(-6.0, 30.0, (n, 2))
    axis = np.linspace(-6.0, 30.0, 181)
    T = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return Bunch(
        data=X,
        target=function_2d(X),
        test_data=T,
        test_target=function_2d(T),
        test_gradient=gradient_2d(T),
        grid_shape=(181, 181),
        feature_names=["x1", "x2"],
        function=function_2d,
        gradient=gradient_2d,
        DESCR=_DESCR_2D,
    )


def function_2d(X: Array) -> Array:
    """y = z1(x1) (sin x2 + cos x1) at ``X`` (n, 2)."""
    z1, _ = _envelope(X[:, 0])
    return z1 * (np.sin(X[:, 1]) + np.cos(X[:, 0]))


def gradient_2d(X: Array) -> Array:
    """Gradient of `function_2d`, (n, 2)."""
    z1, slope = _envelope(X[:, 0])
    z2 = np.sin(X[:, 1]) + np.cos(X[:, 0])
    return np.stack([slope * z2 - z1 * np.sin(X[:, 0]), z1 * np.cos(X[:, 1])], axis=1)


def _envelope(x: Array) -> tuple[Array, Array]:
    """z1 = s(x) (1 + 9 s(x - 12)) (1 + 10 s(x - 24)) and its derivative; s' = s (1 - s)."""
    a, b, c = expit(x), expit(x - 12.0), expit(x - 24.0)
    A, B, C = a, 1.0 + 9.0 * b, 1.0 + 10.0 * c
    da, db, dc = a * (1.0 - a), 9.0 * b * (1.0 - b), 10.0 * c * (1.0 - c)
    return A * B * C, da * B * C + A * db * C + A * B * dc
