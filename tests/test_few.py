"""Intervals of few rows: Student's quantiles, and what one knows who knows the responses alone."""

import numpy as np
import pytest
from scipy.special import stdtrit

from stitchwork import StitchedRegressor
from stitchwork.model.few import LEVELS, quantiles_of, residual_dof, student_quantiles


def shares_held(n, d, seeds, response):
    """Share of new responses inside of 90 % intervals of models of ``n`` rows, for each seed."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, n, d])
        X, Q = rng.uniform(size=(n, d)), rng.uniform(size=(400, d))
        ends = StitchedRegressor().fit(X, response(X, rng)).predict_interval(Q, 0.9)
        y = response(Q, rng)
        found.append(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
    return np.array(found)


@pytest.mark.parametrize(("n", "d"), [(15, 3), (40, 5)])
def test_intervals_of_few_noisy_rows_hold_what_they_say(n, d):
    shares = shares_held(n, d, range(25), lambda X, rng: X @ np.ones(X.shape[1]) + 0.5 * rng.normal(size=len(X)))
    assert 0.85 <= shares.mean() <= 0.97  # of 25 sets the mean is known to 0.03


def test_intervals_of_four_rows_are_no_wider_than_those_of_who_knows_the_responses_alone():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(4, 10)), rng.normal(size=4)
    ends = StitchedRegressor().fit(X, y).predict_interval(rng.uniform(size=(50, 10)), 0.9)
    alone = 2.0 * stdtrit(3, 0.95) * y.std(ddof=1) * np.sqrt(1.25)
    assert np.median(np.diff(ends)) < 1.5 * alone


@pytest.mark.parametrize("n", [3, 4, 6, 20])
def test_deviations_never_exceed_a_few_times_that_of_the_responses(n):
    for seed in range(10):
        rng = np.random.default_rng([seed, n])
        X, y = rng.standard_t(2, (n, 3)), 5.0 + rng.standard_t(2, n)
        far = np.concatenate([X, 10.0 * rng.standard_t(2, (50, 3))])
        assert StitchedRegressor().fit(X, y).predict(far, return_std=True, std_of="function")[1].max() < 3.1 * y.std()


def test_many_regions_keep_the_quantiles_of_their_residuals():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(1500, 2))
    model = StitchedRegressor(metric="euclidean", kernel="matern32").fit(X, np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=1500))
    z = np.abs(rng.normal(size=(1500, 1)))
    np.testing.assert_array_equal(
        student_quantiles(z, np.ones_like(z), residual_dof(model.model_.levels[0].regions)), quantiles_of(z)
    )
    assert len(quantiles_of(z)) == len(LEVELS)
