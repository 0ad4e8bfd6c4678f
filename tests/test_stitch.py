"""The stitched sum: an obvious loop as oracle, partition of unity, no seams, locality."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import wave

from stitchwork import StitchedRegressor
from stitchwork.model.stitch import HANDOVER


def saturated(x, lower, upper, margin):
    """A number that is free between bounds and saturates beyond, by the formula alone."""
    if lower <= x <= upper:
        return x
    edge, sign = (upper, 1.0) if x > upper else (lower, -1.0)
    t = abs(x - edge) / margin
    return edge + sign * margin * (t / (1.0 + t**8) ** 0.125 if t < 1e3 else 1.0)


def said(level, j, q):
    """What region j says: its model, bounded by the responses of its own points, but for the infinite ball."""
    value = level.models.evaluate(np.array([j]), q[None], 0).value[0]
    if np.isinf(level.regions.radii[j]):
        return value
    y = level.models.points.y[level.models.members[j]]
    half = 0.5 * np.ptp(y, axis=0)
    ends = zip(value, y.min(axis=0), y.max(axis=0), half, strict=True)
    return np.array([saturated(f, a - r, b + r, r) for f, a, b, r in ends])


def loop(model, X):
    """The stitched value at each query by the formula alone: every region of every level, one query at a time."""
    weight, w0 = model.model_.weight, model.background_weight
    (low, high, _), (least, most) = model.model_.frame, model.model_.extremes
    inside = [[saturated(x, a, b, 0.5 * (b - a)) for x, a, b in zip(row, low, high, strict=True)] for row in X]
    values = []
    for q in model.model_.space.coordinates(np.array(inside)):
        f_0 = None
        for level in reversed(model.model_.levels):
            with np.errstate(invalid="ignore"):
                rho = np.linalg.norm(q - level.balls.centers, axis=1) / level.balls.radii
            w = np.where(rho < 1, weight(rho**2)[0], 0.0)
            f = [said(level, j, q) if w[j] > 0 else 0.0 for j in range(len(w))]
            total, W = sum(a * b for a, b in zip(w, f, strict=True)), w.sum()
            if f_0 is not None and HANDOVER * level.mean_weight > W:
                w_b = w0 * level.mean_weight * weight(np.array([(W / (HANDOVER * level.mean_weight)) ** 2]))[0][0]
                total, W = total + w_b * f_0, W + w_b
            f_0 = total / W if W > 0 else f_0
        half = 0.5 * (most - least)
        values.append([saturated(f, a - r, b + r, r) for f, a, b, r in zip(f_0, least, most, half, strict=True)])
    return np.array(values)


@pytest.fixture(scope="module")
def queries():
    """Inside, in a corner, and far outside."""
    return np.vstack([np.random.default_rng(7).uniform(-3.3, 3.3, (150, 2)), [[4.5, 4.5], [30.0, -9.0], [1e6, 1e6]]])


@pytest.mark.parametrize("weight", ["wendland-c0", "wendland-c2", "wendland-c6", "truncated-gaussian"])
def test_the_stitched_sum_equals_the_loop(plane, fixed, queries, weight):
    X, y = plane
    model = fixed(weight=weight).fit(X, np.stack([y, y**2], axis=1))
    expected = loop(model, queries)
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("background", ["hierarchy", "polynomial"])
def test_weights_sum_to_one_and_their_gradients_to_zero(plane, fixed, queries, background):
    # With y = 1 every local model is 1 everywhere, so the prediction is the sum of the normalised weights.
    model = fixed(background=background).fit(plane[0], np.ones(len(plane[0])))
    if background == "polynomial":  # rounding of a quadratic grows with the square of the distance
        queries = queries[:-1]
    np.testing.assert_allclose(model.predict(queries), 1.0, atol=1e-10)
    np.testing.assert_allclose(model.gradient(queries), 0.0, atol=1e-7)
    np.testing.assert_allclose(model.hessian(queries), 0.0, atol=1e-4)


def not_held(model, Q):
    """Whether bounds of regions change nothing at a query."""
    fitted = model.model_
    freed = tuple(replace(level, regions=replace(level.regions, extremes=None)) for level in fitted.levels)
    with_bounds, without = (one.reference_jet(Q, 2) for one in (fitted, replace(fitted, levels=freed)))
    return np.all([(a == b).reshape(len(Q), -1).all(axis=1) for a, b in zip(with_bounds, without, strict=True)], axis=0)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_polynomials_are_reproduced_with_their_derivatives(fixed, degree, d):
    rng = np.random.default_rng(d)
    X, Q = rng.uniform(-1, 1, (400, d)), rng.uniform(-0.9, 0.9, (100, d))
    slope = rng.normal(size=d)
    model = fixed(degree=degree, ridge=1e-2, region_size=40).fit(X, (X @ slope) ** degree)
    # Where wider regions are asked, too, they may be far from their points and held by the range of their responses.
    np.testing.assert_allclose(model.predict(Q), (Q @ slope) ** degree, atol=1e-7)
    Q = Q[not_held(model, Q)]
    assert len(Q) >= 90
    u = Q @ slope
    first = degree * u ** max(degree - 1, 0)
    second = degree * (degree - 1) * u ** max(degree - 2, 0)
    np.testing.assert_allclose(model.predict(Q), u**degree, atol=1e-9)
    np.testing.assert_allclose(model.gradient(Q), first[:, None] * slope, atol=1e-8)
    np.testing.assert_allclose(model.hessian(Q), second[:, None, None] * np.outer(slope, slope), atol=1e-6)


def finite_differences(function, X, step):
    """Central differences of a vectorised function, the last axis the direction."""
    shifts = step * np.eye(X.shape[1])
    return np.stack([(function(X + e) - function(X - e)) / (2 * step) for e in shifts], axis=-1)


@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "matern52"}, {"weight": "wendland-c4", "kernel": "quintic"}, {"local_model": "krr"}], ids=str
)
@pytest.mark.parametrize("d", [1, 2, 4])
def test_derivatives_converge_to_finite_differences_at_second_order(fixed, settings, d):
    rng = np.random.default_rng(d)
    X = rng.uniform(-2, 2, (500, d))
    model = fixed(ridge=1e-3, **settings).fit(X, np.stack([wave(X), np.cos(X[:, 0])], axis=1))
    Q = rng.uniform(-2, 2, (60, d))
    for exact, below in ((model.gradient(Q), model.predict), (model.hessian(Q), model.gradient)):
        steps = 2e-3 * np.median(model.radii_) * 0.5 ** np.arange(3)
        error = [np.sqrt(np.mean((finite_differences(below, Q, step) - exact) ** 2)) for step in steps]
        rates = np.log2(np.divide(error[:-1], error[1:]))
        size = np.sqrt(np.mean(exact**2))
        assert error[-1] < 1e-3 * size
        # C² models have third derivatives that jump, so Hessians converge at first order only.
        assert rates[-1] > 1.7 if below == model.predict else rates[-1] > 0.8 or error[-1] < 1e-6 * size


def border_crossings(model, count, rng):
    """Points just inside and just outside of the borders of random regions of every level but the last."""
    inside, outside = [], []
    for level in (level.balls for level in model.model_.levels[:-1]):
        region = rng.integers(len(level.radii), size=count)
        direction = rng.normal(size=(count, level.centers.shape[1]))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        for points, factor in ((inside, 1 - 1e-9), (outside, 1 + 1e-9)):
            points.append(level.centers[region] + factor * level.radii[region, None] * direction)
    return (model.model_.space.original(np.vstack(points)) for points in (inside, outside))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_nothing_jumps_at_thousands_of_borders(fixed, d):
    rng = np.random.default_rng(d)
    X = rng.uniform(-2, 2, (800, d))
    model = fixed(ridge=1e-3).fit(X, wave(X))
    inside, outside = border_crossings(model, 1000, rng)
    for function in (model.predict, model.gradient, model.hessian):
        a, b = function(inside), function(outside)
        # Third derivatives times the distance of the two points, far below any jump.
        assert np.abs(a - b).max() < 1e-5 * np.abs(a).max()


def test_the_truncated_gaussian_does_jump(plane, fixed):
    model = fixed(weight="truncated-gaussian", ridge=1e-1).fit(*plane)
    inside, outside = border_crossings(model, 500, np.random.default_rng(0))
    assert np.abs(model.predict(inside) - model.predict(outside)).max() > 1e-4


def test_far_data_does_not_change_a_prediction(fixed):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (4000, 2))
    y = wave(X)
    Q = rng.uniform(1, 3, (200, 2))
    spoiled = np.where(X[:, 0] > 6, 1e6 * rng.normal(size=4000), y)
    a, b = fixed().fit(X, y), fixed().fit(X, spoiled)
    np.testing.assert_array_equal(a.predict(Q), b.predict(Q))
    np.testing.assert_array_equal(a.gradient(Q), b.gradient(Q))


def test_a_hole_and_the_outside_are_answered_smoothly_and_sanely(fixed):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (3000, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.2]
    model = fixed(region_size=60).fit(X, wave(X))
    line = np.linspace(-40, 40, 20001)[:, None] * [[0.8, 0.6]]
    values, slopes = model.predict(line), (model.gradient(line) * [0.8, 0.6]).sum(axis=1)
    step = 80 / 20000
    assert np.isfinite(values).all()
    # The trapezoidal rule on the exact gradient gives back every increment: no jump on the line.
    increments = 0.5 * step * (slopes[1:] + slopes[:-1])
    assert np.abs(np.diff(values) - increments).max() < 1e-3 * np.ptp(values)
    hole = np.linalg.norm(line, axis=1) < 1.2
    assert np.abs(values[hole] - wave(line[hole])).max() < 1.0


def test_queries_of_any_size_are_finite(fixed, plane):
    model = fixed().fit(*plane)
    with np.errstate(over="ignore", invalid="ignore"):
        for size in (1e3, 1e10, 1e100, 1e200):
            Q = size * np.array([[1.0, 0.0], [-1.0, 1.0]])
            for answer in (model.predict(Q), model.gradient(Q), model.hessian(Q)):
                assert np.isfinite(answer).all()


def test_smoothness_is_known():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    expected = {
        ("gaussian", "wendland-c2"): 2,
        ("gaussian", "wendland-c6"): 6,
        ("matern32", "wendland-c4"): 2,
        ("linear", "wendland-c2"): 0,
    }
    expected |= {("thin-plate", "wendland-c2"): 1, ("gaussian", "truncated-gaussian"): -1, ("gaussian", "wendland-c0"): 0}
    for (kernel, weight), smoothness in expected.items():
        model = StitchedRegressor(kernel=kernel, weight=weight, selection=None).fit(X, X[:, 0])
        assert model.smoothness_ == smoothness
        if smoothness < 2:
            with pytest.raises(ValueError, match=r"`hessian` needs .* Fit with"):
                model.hessian(X)
        if smoothness < 1:
            with pytest.raises(ValueError, match=r"`gradient` needs .* Fit with"):
                model.gradient(X)
