"""Never wild: answers stay near the range of the responses, smoothly, at any distance from the data."""

import numpy as np
import pytest
from conftest import wave

from stitchwork import StitchedRegressor
from stitchwork.model.bounds import bound_answers, bound_features


@pytest.fixture(scope="module")
def scattered():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    return X, wave(X) + 0.05 * rng.normal(size=400)


def within(model, Q, y):
    """Whether the answers keep to [min - range, max + range], and all derivatives are finite."""
    values, reach = model.predict(Q), np.ptp(y)
    assert np.isfinite(model.gradient(Q)).all()
    assert np.isfinite(model.hessian(Q)).all()
    return (values >= y.min() - reach).all() and (values <= y.max() + reach).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "gaussian", "degree": 2, "bandwidth": 2.0, "ridge": 1e-8, "selection": None},
        {"background": "polynomial", "degree": 2, "kernel": "cubic"},
        {"local_model": "poly", "degree": 3},
    ],
    ids=str,
)
def test_answers_are_bounded_at_any_distance(scattered, settings):
    X, y = scattered
    model = StitchedRegressor(**settings).fit(X, y)
    turns = 0.1 + np.linspace(0, 2 * np.pi, 16, endpoint=False)
    around = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    Q = np.concatenate([r * around for r in (1.5, 3.0, 10.0, 1e3, 1e8, 1e100, 1e308)])
    assert within(model, Q, y)
    far = model.predict(1e308 * around)
    np.testing.assert_allclose(model.predict(1e10 * around), far, rtol=1e-12)  # it levels off


def test_a_feature_far_beyond_what_was_seen_is_not_followed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(156, 7))
    y = X @ rng.normal(size=7) + 0.5 * rng.normal(size=156)
    Q = rng.normal(size=(50, 7))
    Q[:, 0] += 100.0
    assert within(StitchedRegressor().fit(X, y), Q, y)


def test_isolated_points_and_clusters_far_apart_make_nothing_wild():
    rng = np.random.default_rng(0)
    Q = np.linspace(-2, 14, 800)[:, None]
    for X in (np.append(rng.uniform(0, 1, 30), 10.0), np.concatenate([rng.uniform(0, 1, 40), rng.uniform(9, 10, 40)])):
        y = rng.uniform(0, 1, len(X))
        assert within(StitchedRegressor().fit(X[:, None], y), Q, y)


@pytest.mark.parametrize("settings", [{}, {"selection": None, "kernel": "gaussian", "degree": 2, "weight": "wendland-c4"}], ids=str)
def test_derivatives_outside_are_those_of_the_prediction(scattered, settings):
    X, y = scattered
    model = StitchedRegressor(**settings).fit(X, y)
    low, high = X.min(axis=0), X.max(axis=0)
    # Across the faces of the box, where coordinates begin to saturate, and beyond the margin.
    edges = np.array([[high[0], 0.3], [low[0], -0.2], [0.4, high[1]], high, low])
    Q = np.concatenate([edges + shift for shift in ((1e-3, 0.0), (0.0, -1e-3), (0.3, 0.2), (-0.4, 0.9), (2.5, 1.0))])
    step = 1e-4  # rounding may move answers by 1e-10: a wide kernel on 400 points whose coefficients cancel
    for axis in np.eye(2):
        ahead, behind = model.predict_with_gradient(Q + step * axis), model.predict_with_gradient(Q - step * axis)
        size = 1.0 + np.abs(model.gradient(Q)).max()
        np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * step), model.gradient(Q) @ axis, atol=1e-6 * size)
        curvature = model.hessian(Q) @ axis
        np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * step), curvature, atol=2e-4 * (1.0 + np.abs(curvature).max()))


def test_bounds_leave_what_is_inside_alone_and_are_smooth():
    frame = np.array([[0.0, -2.0], [1.0, 5.0], [0.5, 0.0]])
    bounds = bound_features(frame)
    x = np.linspace(-3, 4, 1401)[:, None] * [1.0, 3.0]
    s, first, second = bounds.saturate(x)
    inside = (x >= frame[0]) & (x <= frame[1])
    np.testing.assert_array_equal(s[inside], x[inside])
    assert (np.abs(s - np.clip(x, frame[0], frame[1])) <= bounds.margin).all()
    steps = np.diff(x, axis=0)
    np.testing.assert_allclose(np.diff(s, axis=0) / steps, 0.5 * (first[1:] + first[:-1]), atol=2e-3)
    np.testing.assert_allclose(np.diff(first, axis=0) / steps, 0.5 * (second[1:] + second[:-1]), atol=0.1)
    assert bounds.saturate(np.array([[1e308, -1e308]]))[0].tolist() == [[1.5, -5.5]]


@pytest.mark.parametrize("value", [0.0, 1e-200, 1e-9, -3.0, 1e200])
def test_a_constant_response_comes_back(value):
    X = np.random.default_rng(0).uniform(size=(60, 2))
    model = StitchedRegressor().fit(X, np.full(60, value))
    np.testing.assert_allclose(model.predict(np.array([[0.5, 0.5], [7.0, -9.0]])), value, rtol=1e-12)
    np.testing.assert_allclose(model.gradient(np.array([[7.0, -9.0]])), 0.0, atol=1e-20 * abs(value))  # rounding, far outside
    assert bound_answers(np.array([[value], [value]])).margin[0] == 0.0


@pytest.mark.parametrize("factor", [1e-150, 1e-9, 1e9, 1e150])
def test_the_unit_of_the_response_does_not_matter(scattered, factor):
    X, y = scattered
    Q = np.random.default_rng(1).uniform(-1.5, 1.5, (50, 2))
    expected = StitchedRegressor().fit(X, y).predict(Q)
    np.testing.assert_allclose(StitchedRegressor().fit(X, factor * y).predict(Q) / factor, expected, atol=1e-7)


def test_a_feature_that_varies_by_rounding_alone_has_no_weight():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    X[:, 2] = 0.1 + 1e-17 * rng.integers(-3, 4, 300)
    y = wave(X[:, :2])
    model = StitchedRegressor(metric="standardized").fit(X, y)
    assert model.metric_[2, 2] == 0.0
    assert np.abs(model.metric_).max() < 100.0
    np.testing.assert_allclose(model.predict(X[:50]), y[:50], atol=1e-3)


def test_a_hole_in_a_noisy_field_has_no_cliff():
    """Largest gradient error in a hole, and the error there beside thin plates on 100 neighbours."""
    from scipy.interpolate import RBFInterpolator

    def f(X):
        return np.sin(X[:, 0] / 3) * np.cos(X[:, 1] / 4) + 0.15 * np.sin(X[:, 0] / 1.5 + X[:, 1] / 2)

    def slope(X):
        return np.stack([(f(X + 1e-5 * e) - f(X - 1e-5 * e)) / 2e-5 for e in np.eye(2)], axis=1)

    axes, errors = np.array([3.0, 2.2]), []
    turns, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 90), np.linspace(0, 1.15, 40))
    ellipse = axes * np.stack([radii * np.cos(turns), radii * np.sin(turns)], axis=-1).reshape(-1, 2)
    for seed, centre in enumerate([(8.0, 7.0), (16.0, 12.0), (10.0, 13.0)]):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 1, (8000, 2)) * [25, 20]
        X = X[(((X - centre) / axes) ** 2).sum(axis=1) >= 1][:4000]
        y, Q = f(X) + 0.02 * rng.normal(size=len(X)), centre + ellipse
        model = StitchedRegressor().fit(X, y)
        assert np.linalg.norm(model.gradient(Q) - slope(Q), axis=1).max() < 0.5
        plates = RBFInterpolator(X, y, neighbors=100, kernel="thin_plate_spline")(Q)
        errors.append([np.mean((model.predict(Q) - f(Q)) ** 2), np.mean((plates - f(Q)) ** 2)])
    ours, theirs = np.sqrt(np.mean(errors, axis=0))
    assert ours < 1.1 * theirs
    # Coverage falls step by step into a hole that is wider than regions.
    model = StitchedRegressor(region_size=100).fit(X, y)
    line = centre + np.linspace(1.6, 0, 200)[:, None] * [[axes[0], 0.0]]
    coverage = model.coverage(line)
    assert coverage[0] == 1.0
    assert 0.0 < coverage[-1] < 0.9
    assert np.abs(np.diff(coverage)).max() < 0.1


METRIC = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.5]])


@pytest.mark.parametrize("metric", ["euclidean", METRIC], ids=["euclidean", "matrix"])
def test_the_gradient_along_a_constant_feature_is_zero(metric):
    """The prediction does not depend on it: whatever a query has there saturates at once."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 3))
    X[:, 0] = 7.0
    model = StitchedRegressor(metric=metric, kernel="matern52", degree=1).fit(X, wave(X[:, 1:]))
    Q = X[:5]
    step = np.array([1e-4, 0.0, 0.0])
    np.testing.assert_array_equal(model.predict(Q + step), model.predict(Q))
    for jet in (model.model_.jet(Q, 2), model.model_.reference_jet(Q, 2)):
        np.testing.assert_array_equal(jet.gradient[..., 0], 0.0)
        np.testing.assert_array_equal(jet.hessian[..., 0, :], 0.0)


def test_constant_responses_have_no_gradient_whatever_the_polynomial():
    X = np.random.default_rng(0).normal(size=(3, 12))  # fewer points than monomials
    settings = {"kernel": "matern52", "degree": 2, "bandwidth": 1.2, "ridge": 3e-11, "selection": None}
    model = StitchedRegressor(**settings).fit(X, np.full(3, -3e7))
    Q = np.concatenate([X, 3.0 * X])
    assert (model.predict(Q) == -3e7).all()
    for jet in (model.model_.jet(Q, 2), model.model_.reference_jet(Q, 2)):
        assert not jet.gradient.any()
        assert not jet.hessian.any()
