"""Fits without gross errors."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor, load
from stitchwork.fitting.robust import most_usual


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


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_good_rows_of_rough_data_are_kept(share):
    """Peaks and steps: residuals have heavy tails, and no row that is right is taken for a gross error."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (900, 2))
    peaks = sum(np.exp(-(((X - c) ** 2).sum(axis=1)) / 2e-3) for c in rng.uniform(0, 1, (8, 2)))
    y = 20.0 * peaks + np.floor(3 * X[:, 0]) + 0.05 * rng.normal(size=900)
    options = {"kernel": "matern32", "metric": "euclidean", "region_size": 50}
    bad = rng.random(900) < share
    y[bad] += 100.0 * StitchedRegressor(**options).fit(X, y).loo_error_
    weights = StitchedRegressor(robust=True, **options).fit(X, y).outlier_weights_
    assert not weights[bad].any()
    assert (weights[~bad] == 0.0).mean() <= 0.01


def test_tails_of_students_distribution_are_no_gross_errors():
    rng = np.random.default_rng(4)
    for freedom in (2, 5, 100):
        ratio = np.abs(rng.standard_t(freedom, (20000, 1)))
        ratio /= np.median(ratio)
        ratio[:1000] = 1e4  # gross errors
        most = most_usual(ratio)[0]
        assert most < 1e3
        assert (ratio[1000:] > most).mean() < 3e-3


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
