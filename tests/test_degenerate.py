"""Degenerate input gets a finite, sane answer: never an exception of linear algebra, never NaN."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stitchwork import StitchedRegressor

MODELS = {
    "default": StitchedRegressor,
    "paper, fixed": lambda **changes: StitchedRegressor.paper(selection=None, **changes),
    "krr": lambda **changes: StitchedRegressor(local_model="krr", selection=None, **changes),
    "poly": lambda **changes: StitchedRegressor(local_model="poly", degree=2, selection=None, **changes),
}
RNG = np.random.default_rng(0)
CLUSTER = RNG.uniform(size=(60, 2))
CASES = {
    "duplicates": np.repeat(RNG.uniform(size=(20, 2)), 5, axis=0),
    "all one point": np.ones((30, 2)),
    "collinear": np.linspace(0, 1, 120)[:, None] * [[1.0, 2.0, -1.0]],
    "a constant feature": np.hstack([RNG.uniform(size=(150, 2)), np.full((150, 1), 7.0)]),
    "a regular grid": np.stack(np.meshgrid(np.arange(15.0), np.arange(15.0)), -1).reshape(-1, 2),
    "fewer points than a region": RNG.uniform(size=(7, 3)),
    "one row": np.array([[1.0, 2.0]]),
    "two rows": np.array([[1.0], [2.0]]),
    "more features than points in a region": RNG.uniform(size=(50, 120)),
    "two clusters 1e8 apart": np.vstack([CLUSTER, CLUSTER + 1e8]),
    "one point far away": np.vstack([CLUSTER, [[1e8, 1e8]]]),
    "scale 1e12": 1e12 * CLUSTER,
    "scale 1e-12": 1e-12 * CLUSTER,
    "features of different scale": CLUSTER * [1e12, 1e-12],
    "one feature": RNG.uniform(size=(200, 1)),
}


def check(model, X, y):
    model.fit(X, y)
    span = np.abs(y).max() + 1.0
    for Q in (X, X + 0.01 * np.ptp(X, axis=0), X * 0.5 + 0.5 * X.mean(axis=0)):
        value = model.predict(Q)
        assert np.isfinite(value).all()
        assert np.isfinite(model.gradient(Q)).all()
        if X.shape[1] < 10:
            assert np.isfinite(model.hessian(Q)).all()
    assert np.abs(model.predict(X)).max() < 10 * span
    assert np.isfinite(model.loo_error_)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_degenerate_inputs_get_sane_answers(case, model):
    X = CASES[case]
    scaled = (X - X.mean(axis=0)) / (np.ptp(X, axis=0) + (np.ptp(X, axis=0) == 0))
    check(MODELS[model](region_size=40), X, np.sin(3 * scaled.sum(axis=1)))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("value", [0.0, 1.0, -3e7, 1e-9])
def test_constant_responses_stay_constant(model, value):
    fitted = MODELS[model](region_size=40).fit(CLUSTER, np.full(60, value))
    inside = 0.1 + 0.8 * CLUSTER
    tolerance = 5e-2 if model == "krr" else 1e-7  # plain kernel ridge shrinks towards zero
    np.testing.assert_allclose(fitted.predict(inside), value, atol=tolerance * abs(value))


def test_duplicates_with_different_responses_average():
    X = np.repeat(CLUSTER, 2, axis=0)
    y = np.sin(X[:, 0])
    y[::2] += 1.0
    y[1::2] -= 1.0
    model = StitchedRegressor(kernel="gaussian", degree=1, selection=None, ridge=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(CLUSTER), np.sin(CLUSTER[:, 0]), atol=1e-4)


def test_both_clusters_keep_their_precision():
    y = np.concatenate([CLUSTER[:, 0], 5 + CLUSTER[:, 1] ** 2])
    model = StitchedRegressor(region_size=40).fit(CASES["two clusters 1e8 apart"], y)
    # A coordinate near 1e8 is rounded to 1.5e-8.
    np.testing.assert_allclose(model.predict(CASES["two clusters 1e8 apart"]), y, atol=1e-5)


numbers = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=st.integers(1, 40), d=st.integers(1, 4))
def test_any_finite_table_is_fitted(data, n, d):
    X = data.draw(arrays(float, (n, d), elements=numbers))
    y = data.draw(arrays(float, n, elements=numbers))
    model = StitchedRegressor(region_size=12).fit(X, y)
    Q = np.vstack([X, X[::-1] * 0.5, X + 1.0])
    value, gradient = model.predict_with_gradient(Q)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(model.hessian(Q)).all()


@pytest.mark.parametrize(
    "parameters",
    [{"local_model": "krr", "kernel": "wendland", "ridge": "response"}, {"kernel": "multiquadric", "ridge": 1e-14, "degree": 0}],
    ids=str,
)
def test_a_singular_region_is_no_linalg_error(parameters):
    """Two points are one for a kernel so wide, and the ridge of a response of zero is nothing."""
    X, y = np.array([[0.0], [1e-9], [1.0]]), np.zeros(3)
    model = StitchedRegressor(**parameters, selection=None, bandwidth=1e6).fit(X, y)
    value, deviation = model.predict([[0.5], [7.0]], return_std=True)
    assert np.isfinite(value).all()
    assert np.isfinite(deviation).all()


def test_a_singular_stack_is_solved_with_least_norm():
    from stitchwork.local.system import solve_symmetric

    singular, regular = np.ones((2, 2)), np.diag([2.0, 4.0])
    found = solve_symmetric(np.stack([singular, regular]), np.ones((2, 2, 1)))
    np.testing.assert_allclose(found[:, :, 0], [[0.5, 0.5], [0.5, 0.25]])


def test_relevance_of_tiny_responses_is_finite():
    X = np.random.default_rng(0).uniform(size=(40, 2))
    model = StitchedRegressor(selection=None, kernel="gaussian", degree=1, ridge=1e-6).fit(X, 1e-158 * np.sin(3.0 * X[:, 0]))
    relevance = model.feature_relevance_
    assert np.isfinite(relevance).all()
    assert relevance[0] > 0.9
