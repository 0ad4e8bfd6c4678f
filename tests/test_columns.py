"""Columns that tell nothing change nothing: constant ones, copies of others in any unit, and the order of the rows."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor

CHANGES = {
    "a constant column": lambda X: np.column_stack([X, np.full(len(X), 7.0)]),
    "a column twice": lambda X: np.column_stack([X, X[:, 0]]),
    "a column in another unit": lambda X: np.column_stack([1024.0 - 8.0 * X[:, 1], X]),
    "units": lambda X: X * 2.0 ** np.array([-30, 12, 3, 40])[: X.shape[1]],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("n", "d"), [(40, 2), (60, 4)])
def test_columns_that_tell_nothing_change_nothing(n, d, change):
    rng = np.random.default_rng(n)
    X, Q = rng.standard_t(3, (n, d)), rng.standard_t(3, (30, d))
    Q = np.clip(Q, X.min(axis=0), X.max(axis=0))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(2, n)
    plain = StitchedRegressor().fit(X, y).predict(Q)
    other = StitchedRegressor().fit(CHANGES[change](X), y).predict(CHANGES[change](Q))
    np.testing.assert_allclose(other, plain, atol=0.01 * np.ptp(y))


@pytest.mark.parametrize("change", ["a constant column", "a column twice", "a column in another unit"])
def test_they_change_no_model_whose_length_scales_are_along_other_directions(change):
    rng = np.random.default_rng(0)
    w = np.array([0.6, -0.3, 0.5, 0.4, -0.4])
    X, Q = rng.uniform(size=(2, 90, 5))
    y = np.tanh(12 * (X @ w - 0.4))
    plain, other = StitchedRegressor().fit(X, y), StitchedRegressor().fit(CHANGES[change](X), y)
    metrics = plain.model_.levels[0].models.settings.local_metrics
    assert any(np.count_nonzero(metric) > 5 for metric in metrics)  # not of the features alone
    np.testing.assert_allclose(other.predict(CHANGES[change](Q)), plain.predict(Q), atol=0.001)
    found, expected = (model.predict(each, return_std=True)[1] for model, each in ((other, CHANGES[change](Q)), (plain, Q)))
    np.testing.assert_allclose(found, expected, rtol=0.02)


def test_the_order_of_rows_and_a_constant_in_the_responses_change_nothing():
    rng = np.random.default_rng(0)
    X, Q, order = rng.uniform(size=(60, 3)), rng.uniform(size=(30, 3)), rng.permutation(60)
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=60)
    plain = StitchedRegressor().fit(X, y).predict(Q)
    np.testing.assert_allclose(StitchedRegressor().fit(X[order], y[order]).predict(Q), plain, atol=0.01)
    np.testing.assert_allclose(StitchedRegressor().fit(X, y + 100.0).predict(Q) - 100.0, plain, atol=0.01)
