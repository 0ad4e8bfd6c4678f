"""Fits without gross errors."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor, load


def make_data(kind, share, seed=0):
    """Rows with a share of gross errors, which of them are, and tests with the truth."""
    rng = np.random.default_rng(seed)
    d = {"curve": 1, "plane": 2, "table": 5}[kind]
    X, T = rng.uniform(0, 6, (500, d)), rng.uniform(0.2, 5.8, (500, d))

    def f(X):
        return np.sin(X[:, 0]) + (0.3 * X[:, 1] if d > 1 else 0.0)

    y = f(X) + 0.05 * rng.normal(size=500)
    bad = rng.random(500) < share
    y[bad] += 5.0 * rng.choice([-1.0, 1.0], bad.sum()) * rng.uniform(0.5, 2.0, bad.sum())
    return X, y, bad, T, f(T)


def rmse(model, T, truth):
    return np.sqrt(np.mean((model.predict(T) - truth) ** 2))


@pytest.mark.parametrize("kind", ["curve", "plane", "table"])
def test_gross_errors_cost_nothing_noticeable(kind):
    X, y, bad, T, truth = make_data(kind, 0.05)
    clean = rmse(StitchedRegressor().fit(X[~bad], y[~bad]), T, truth)
    robust = StitchedRegressor(robust=True).fit(X, y)
    assert rmse(robust, T, truth) < 1.15 * clean
    assert rmse(StitchedRegressor().fit(X, y), T, truth) > 2.0 * clean
    weights = robust.outlier_weights_
    assert not weights[bad].any()
    assert (weights[~bad] == 0.0).mean() < 0.02


@pytest.mark.parametrize("kind", ["curve", "plane"])
def test_without_gross_errors_little_is_lost(kind):
    X, y, _, T, truth = make_data(kind, 0.0)
    plain, robust = (StitchedRegressor(robust=robust).fit(X, y) for robust in (False, True))
    assert rmse(robust, T, truth) < 1.05 * rmse(plain, T, truth)
    assert robust.outlier_weights_.mean() > 0.98
    assert (plain.outlier_weights_ == 1.0).all()


def test_a_good_row_beside_a_gross_error_stays(tmp_path):
    """At one location: the gross error goes, the other row counts alone; also in a file and in the operator."""
    X, y, *_ = make_data("plane", 0.0)
    X, y = np.concatenate([X, X[:1]]), np.concatenate([y, y[:1] + 50.0])
    model = StitchedRegressor(robust=True, region_size=40, kernel="matern52", degree=1).fit(X, y)
    assert model.outlier_weights_[-1] == 0.0
    np.testing.assert_allclose(model.operator(X[:30]) @ y, model.predict(X[:30]), atol=1e-6)
    model.save(tmp_path / "m.stitch")
    again = load(tmp_path / "m.stitch")
    assert again.robust
    np.testing.assert_array_equal(again.outlier_weights_, model.outlier_weights_)


def test_known_errors_and_groups_go_along():
    X, y, bad, T, truth = make_data("plane", 0.03)
    s = np.full(len(y), 0.05)
    model = StitchedRegressor(robust=True).fit(X, y, noise_std=s)
    assert not model.outlier_weights_[bad].any()
    assert model.noise_ < 0.05
    assert rmse(model, T, truth) < 0.02
    with pytest.raises(ValueError, match="True or False"):
        StitchedRegressor(robust="yes").fit(X, y)
