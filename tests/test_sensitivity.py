"""Sobol' indices and main effects: those of formulas, for each output, uniform or not."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, sobol_indices, uniform

from stitchwork import StitchedRegressor
from stitchwork.sensitivity import main_effects, sobol

A, B = 7.0, 0.1
BOX = [(-np.pi, np.pi)] * 3


def ishigami(X):
    return np.sin(X[:, 0]) + A * np.sin(X[:, 1]) ** 2 + B * X[:, 2] ** 4 * np.sin(X[:, 0])


@pytest.fixture(scope="module")
def model():
    """A model of the Ishigami function whose error is known, 0.1 % of the deviation or less."""
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, (2000, 3))
    fitted = StitchedRegressor(kernel="gaussian", metric="euclidean").fit(X, ishigami(X))
    Q = np.random.default_rng(1).uniform(-np.pi, np.pi, (2000, 3))
    assert np.sqrt(np.mean((fitted.predict(Q) - ishigami(Q)) ** 2)) < 0.01 * ishigami(Q).std()
    return fitted


def test_indices_are_those_of_the_ishigami_function(model):
    """Closed form: Ishigami and Homma 1990. 4,096 points of a Sobol' sequence leave an error below 0.01, and so does the model."""
    variance = A**2 / 8 + B * np.pi**4 / 5 + B**2 * np.pi**8 / 18 + 0.5
    first = np.array([0.5 * (1 + B * np.pi**4 / 5) ** 2, A**2 / 8, 0.0]) / variance
    joint = B**2 * np.pi**8 * (1 / 18 - 1 / 50) / variance
    found = sobol(model, bounds=BOX)
    np.testing.assert_allclose(found.first_order, first, atol=0.015)
    np.testing.assert_allclose(found.total_order, first + np.array([joint, 0.0, joint]), atol=0.015)
    assert found.features == ["x0", "x1", "x2"]


def test_indices_of_the_model_are_those_that_scipy_has_for_it(model):
    theirs = sobol_indices(
        func=lambda x: model.predict(x.T), n=1024, dists=[uniform(-np.pi, 2 * np.pi)] * 3, rng=np.random.default_rng(0)
    )
    ours = sobol(model, n=1024, bounds=BOX)
    np.testing.assert_allclose(
        ours.first_order, theirs.first_order, atol=0.02
    )  # the mean is taken off first, which changes the sampling
    np.testing.assert_allclose(ours.total_order, theirs.total_order, atol=1e-6)


def test_main_effects_are_those_of_the_ishigami_function(model):
    found = main_effects(model, size=21, bounds=BOX)
    v = np.linspace(-np.pi, np.pi, 21)
    np.testing.assert_allclose(found.values, np.tile(v, (3, 1)))
    formulas = [np.sin(v) * (1 + B * np.pi**4 / 5) + A / 2, A * np.sin(v) ** 2, np.full(21, A / 2)]
    deviation = np.sqrt(A**2 / 8 + B * np.pi**4 / 5 + B**2 * np.pi**8 / 18 + 0.5)
    np.testing.assert_allclose(found.effects, formulas, atol=0.03 * deviation)  # the model is worst at the rim
    assert found.mean == pytest.approx(A / 2, abs=0.01 * deviation)


def test_outputs_have_indices_of_their_own():
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=["a", "b"])
    y = np.stack([1000.0 + X["a"], X["a"] + 2 * X["b"]], axis=1)
    model = StitchedRegressor(local_model="poly", degree=1).fit(X, y)
    found = sobol(model, bounds={"a": (0, 1), "b": (0, 1)})
    np.testing.assert_allclose(found.first_order, [[1.0, 0.0], [0.2, 0.8]], atol=0.01)
    np.testing.assert_allclose(found.total_order, [[1.0, 0.0], [0.2, 0.8]], atol=0.01)
    assert found.features == ["a", "b"]
    effects = main_effects(model, size=3, bounds=[(0, 1), (0, 1)])
    assert effects.effects.shape == (2, 2, 3)
    np.testing.assert_allclose(effects.effects[1], [[1.0, 1.5, 2.0], [0.5, 1.5, 2.5]], atol=0.01)
    np.testing.assert_allclose(effects.mean, [1000.5, 1.5], atol=0.01)


def test_features_may_have_other_distributions():
    X = np.random.default_rng(0).normal(size=(300, 2)) * [1.0, 3.0]
    model = StitchedRegressor(local_model="poly", degree=1).fit(X, X.sum(axis=1))
    found = sobol(model, n=1024, distributions=[norm(0, 0.5), norm(0, 1.0)])
    np.testing.assert_allclose(found.first_order, [0.2, 0.8], atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1000}, "power of two"),
        ({"bounds": [(0, 1), (0, 1)], "distributions": [norm(), norm()]}, "not both"),
        ({"distributions": [norm()]}, "must be 2 distributions"),
        ({"bounds": [(0, 1), (1, 1)]}, "two different numbers"),
        ({"bounds": {"q": (0, 1)}}, "no feature"),
    ],
)
def test_what_is_wrong_is_refused(arguments, message):
    X = np.random.default_rng(0).uniform(size=(50, 2))
    model = StitchedRegressor(local_model="poly", degree=1).fit(X, X.sum(axis=1))
    with pytest.raises(ValueError, match=message):
        sobol(model, **arguments)
