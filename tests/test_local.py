"""Local models: derivatives of every kernel, weights, models of the user's own."""

import numpy as np
import pytest

from stitchwork.fitting.cover import greedy_cover
from stitchwork.local.fit import fit_blocks
from stitchwork.local.points import Points
from stitchwork.local.radial import KERNEL_NAMES, NO_KERNEL, kernel_named
from stitchwork.local.settings import Settings


def models(kernel, degree=1, d=2, eta=1e-3, v=None, y=None):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, d))
    y = np.stack([np.sin(X.sum(axis=1)), np.cos(2 * X[:, 0])], axis=1) if y is None else y
    cover = greedy_cover(X, 60)
    one = np.zeros(1, dtype=int)
    settings = Settings((kernel,), one, np.ones(1), np.full(1, eta), one + max(degree, kernel.least_degree), np.full(1, 1e-10), one)
    return X, fit_blocks(Points(X, y, np.ones(60) if v is None else v, np.arange(60)), cover.members, settings)


def at(fitted, Q, order):
    """The only region at ``Q``."""
    return fitted.evaluate(np.zeros(len(Q), dtype=int), Q, order)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kernel", [*(kernel_named(name, 3) for name in KERNEL_NAMES), NO_KERNEL], ids=lambda k: k.name)
def test_derivatives_are_those_of_the_value(kernel, d):
    _, fitted = models(kernel, d=d)
    Q, step = np.random.default_rng(5).uniform(-0.9, 0.9, (20, d)), 1e-5
    jet = at(fitted, Q, 2)
    scale = np.abs(fitted.alpha).sum() + 1.0
    for axis in range(d):
        shift = step * np.eye(d)[axis]
        forward, backward = (at(fitted, Q + sign * shift, 1) for sign in (1, -1))
        slope = (forward.value - backward.value) / (2 * step)
        bend = (forward.gradient - backward.gradient) / (2 * step)
        np.testing.assert_allclose(jet.gradient[..., axis], slope, atol=1e-7 * scale)
        if kernel.smoothness >= 2:
            np.testing.assert_allclose(jet.hessian[..., axis], bend, atol=1e-6 * scale)


@pytest.mark.parametrize("name", [name for name in KERNEL_NAMES if kernel_named(name, 2).smoothness >= 2])
def test_hessians_are_right_on_data_points(name):
    X, fitted = models(kernel_named(name, 2))
    on, beside = at(fitted, X, 2), at(fitted, X + 1e-6, 2)
    np.testing.assert_allclose(on.hessian, beside.hessian, atol=1e-4 * (np.abs(fitted.alpha).sum() + 1))


def test_small_ridge_interpolates_and_large_ridge_leaves_the_polynomial():
    X, fitted = models(kernel_named("gaussian", 2), eta=1e-12)
    y = np.stack([np.sin(X.sum(axis=1)), np.cos(2 * X[:, 0])], axis=1)
    np.testing.assert_allclose(at(fitted, X, 0).value, y, atol=1e-6)
    _, stiff = models(kernel_named("gaussian", 2), eta=1e12)
    _, polynomial = models(NO_KERNEL)
    np.testing.assert_allclose(at(stiff, X, 0).value, at(polynomial, X, 0).value, atol=1e-9)


def test_weights_pull_the_fit_towards_their_points():
    y = np.random.default_rng(1).normal(size=(60, 1))
    v = np.ones(60)
    v[7] = 1e6
    X, even = models(kernel_named("gaussian", 2), eta=1.0, y=y)
    _, pulled = models(kernel_named("gaussian", 2), eta=1.0, y=y, v=v)
    error = [abs(at(fitted, X[7:8], 0).value[0, 0] - y[7, 0]) for fitted in (even, pulled)]
    assert error[1] < 1e-4 * error[0]
