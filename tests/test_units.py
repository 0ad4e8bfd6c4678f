"""The same answer in any unit of the features, however many decades apart they are."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork.model.space import Space, invert_root

DECADES = 2.0 ** np.array([-70, 60, -10, 0, 90])  # 48 decades apart; powers of two round nothing


def response(X):
    return np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + X[:, 4]


def test_the_inverse_of_a_root_undoes_it_in_any_unit():
    R = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    inverse = invert_root(DECADES[:, None] * R)
    np.testing.assert_allclose(inverse * DECADES, R.T, atol=1e-14)


def test_a_direction_that_is_ignored_stays_so():
    A = np.diag([2.0, 0.0, 1e-30])
    np.testing.assert_allclose(invert_root(A), np.diag([0.5, 0.0, 1e30]), rtol=1e-15)
    np.testing.assert_array_equal(Space(np.ones(3), A, 1.0).original(np.array([[4.0, 5.0, 0.0]])), [[3.0, 1.0, 1.0]])


@pytest.mark.parametrize("options", [{"region_size": 100}, {"metric": "learned", "region_size": 80}, {}], ids=str)
def test_units_decades_apart_change_no_prediction(options):
    rng = np.random.default_rng(1)
    X, Q = rng.uniform(size=(500, 5)), rng.uniform(size=(50, 5))
    plain = StitchedRegressor(**options).fit(X, response(X))
    scaled = StitchedRegressor(**options).fit(X * DECADES, response(X))
    np.testing.assert_allclose(scaled.predict(Q * DECADES), plain.predict(Q), atol=1e-6)  # of responses of size one
    slopes = scaled.gradient(Q * DECADES) * DECADES, plain.gradient(Q)
    np.testing.assert_allclose(*slopes, atol=1e-5)
