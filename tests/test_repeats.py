"""Places that were observed more than once tell the noise: the likelihood, the standard deviations and the intervals."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor, load
from stitchwork.fitting.likelihood import Rows, negative_log_likelihood, polynomial_basis
from stitchwork.fitting.points import merge_coincident
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named
from stitchwork.model.noise import observation_errors


def held(model, Q, y, level=0.9):
    """Share of ``y`` inside of the intervals at ``Q``."""
    ends = model.predict_interval(Q, level)
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


@pytest.mark.parametrize("degree", [0, 1])
def test_the_likelihood_of_merged_rows_is_that_of_all_rows(degree):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (12, 2))[rng.integers(0, 12, 40)]
    y = np.sin(3 * X[:, :1]) + 0.3 * rng.normal(size=(40, 1))
    kernel, block = kernel_named("matern52", 2), np.arange(2)
    places = merge_coincident(Points(X, y, np.ones(40), np.arange(40)))
    mean = places.v.mean()
    repeats = places.repeats._replace(spread=places.repeats.spread / mean)
    merged = Rows(places.X, places.y, np.sqrt(places.v / mean), block, repeats)
    whole = Rows(X, y, np.ones(40), block)

    def likelihoods(scales, ridge):
        both = (whole, np.log(ridge)), (merged, np.log(ridge / mean))
        found = [
            negative_log_likelihood(np.append(scales, log), rows, polynomial_basis(rows, degree, 1e-10), kernel)
            for rows, log in both
        ]
        return np.array([value for value, _ in found]), np.stack([gradient for _, gradient in found])

    first, slopes = likelihoods([0.3, 0.1], 0.1)
    second, _ = likelihoods([-0.5, 0.7], 0.03)
    np.testing.assert_allclose(*slopes, rtol=1e-8)
    assert second[0] - first[0] == pytest.approx(second[1] - first[1], rel=1e-8)  # constants apart


@pytest.mark.parametrize("d", [1, 5])
def test_rows_at_one_place_have_the_deviation_of_their_responses(d):
    rng = np.random.default_rng(1)
    X, y = np.ones((200, d)), 3.0 + rng.normal(size=200)
    model = StitchedRegressor().fit(X, y)
    assert model.predict(X[:1], return_std=True)[1][0] == pytest.approx(y.std(ddof=1), rel=0.05)
    assert model.predict(X[:1], return_std=True, std_of="function")[1][0] == pytest.approx(y.std() / np.sqrt(200), rel=0.1)
    assert 0.85 <= held(model, np.ones((4000, d)), 3.0 + rng.normal(size=4000)) <= 0.95


@pytest.mark.parametrize(
    ("places", "times", "d", "noise"), [(2, 100, 1, 1.0), (3, 50, 2, 1.0), (20, 10, 2, 0.3), (100, 3, 2, 0.03)]
)
def test_intervals_at_repeated_rows_hold_what_they_say(places, times, d, noise):
    shares = []
    for seed in range(4):
        rng = np.random.default_rng([seed, places])
        P = rng.uniform(size=(places, d))
        X = np.repeat(P, times, axis=0)
        model = StitchedRegressor().fit(X, np.sin(6 * X[:, 0]) + X.sum(axis=1) + noise * rng.normal(size=len(X)))
        Q = np.repeat(P, 2000 // places, axis=0)
        shares.append(held(model, Q, np.sin(6 * Q[:, 0]) + Q.sum(axis=1) + noise * rng.normal(size=len(Q))))
    assert 0.85 <= np.mean(shares) <= 0.95


def test_errors_of_single_observations_have_the_deviation_that_is_told():
    rng = np.random.default_rng(2)
    v = rng.integers(1, 20, 500).astype(float)
    f, noise = rng.uniform(0.1, 2.0, (500, 1)), np.full((500, 1), 0.7)
    variance = f + noise / v[:, None]
    z = observation_errors(np.sqrt(variance) * rng.normal(size=(500, 1)), variance, noise, v)
    np.testing.assert_allclose(np.quantile(z, [0.5, 0.9, 0.95]), [0.674, 1.645, 1.960], rtol=0.05)  # of 500 draws: 1 / √500


def test_regions_that_cannot_leave_a_point_out_can_be_saved(tmp_path):
    """Fewer locations than monomials: nothing is known without a point, and no scale is zero."""
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    for y in (np.arange(6.0), np.zeros(6), np.repeat([0.0, 1.0], 3)):
        model = StitchedRegressor(kernel="cubic", degree=1, metric="euclidean", ridge=1e-30, selection=None).fit(X, y)
        assert np.isfinite(model.predict(X, return_std=True)[1]).all()
        model.save(tmp_path / "m.stitch")
        np.testing.assert_array_equal(load(tmp_path / "m.stitch").predict_interval(X), model.predict_interval(X))


def test_the_leave_one_out_error_is_that_of_single_observations():
    rng = np.random.default_rng(0)
    places = np.linspace(0, 1, 40)[:, None]
    X = np.repeat(places, 10, axis=0)
    y = np.sin(5 * X[:, 0]) + 0.5 * rng.normal(size=400)
    assert StitchedRegressor().fit(X, y).loo_error_ == pytest.approx(0.5, rel=0.1)  # means of ten have 0.16


def test_rows_that_agree_at_their_locations_do_not_hide_errors_elsewhere():
    """Repeated rows differ by 0.2, locations beside each other by 0.7: 90 % intervals of new locations hold the latter."""
    inside = []
    for seed in range(11, 15):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 1, (220, 2))
        y = np.sin(4 * X[:, 0]) + 0.7 * rng.normal(size=220)
        known, new = np.arange(150), np.arange(150, 220)
        rows = np.concatenate([known, known[:40]])
        model = StitchedRegressor().fit(X[rows], y[rows] + 0.2 * rng.normal(size=len(rows)))
        ends = model.predict_interval(X[new], 0.9)
        inside.append((ends[:, 0] <= y[new]) & (y[new] <= ends[:, 1]))
    assert 0.82 <= np.mean(inside) <= 0.97


def test_regions_that_can_judge_no_point_still_have_the_noise_of_repeated_rows():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(24, 2)), 5, axis=0)
    y = X[:, 0] + 0.1 * rng.normal(size=120)
    model = StitchedRegressor(region_size=6, local_model="poly", degree=3, selection=None).fit(X, y)
    assert 0.05 < model.noise_ < 0.2
    assert np.isfinite(model.predict(X[:5], return_std=True)[1]).all()
