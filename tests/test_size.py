"""How many points a region has: more where most of what they could tell is noise."""

import numpy as np
import pytest
from conftest import wave
from test_choice import scorer_of

from stitchwork import StitchedRegressor
from stitchwork.fitting import defaults
from stitchwork.fitting.candidates import make_candidates
from stitchwork.fitting.cover import greedy_cover
from stitchwork.local.radial import kernel_named


def rmse(error):
    return float(np.sqrt(np.mean(np.square(error))))


def smooth_with_noise(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, wave(X) + 0.1 * rng.normal(size=n), rng.uniform(-2.9, 2.9, (2000, 2))


def test_freedom_is_the_trace_of_the_hat_matrix():
    """tr H by its definition: the derivative of each fitted value by its response, from the block system solved in full."""
    X, y, _ = smooth_with_noise(60)
    scorer = scorer_of(X, y, h=60)
    candidates = make_candidates([kernel_named("gaussian", 2)], [1], [0.7], [1e-1, 1e-4])
    _, found = scorer.judge(np.arange(1), candidates)
    Z = X - X.mean(axis=0)
    Z /= np.linalg.norm(Z, axis=1).max()
    distance = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    sigma = 0.7 * distance.sum() / (60 * 59)
    K, P = np.exp(-((distance / sigma) ** 2)), np.hstack([np.ones((60, 1)), Z])
    for k, eta in enumerate(candidates.ridges):
        block = np.block([[K + eta * np.eye(60), P], [P.T, np.zeros((3, 3))]])
        hat = np.hstack([K, P]) @ np.linalg.inv(block)[:, :60]
        assert found[0, k] == pytest.approx(np.trace(hat) / 60, rel=1e-6)


def test_regions_of_smooth_fields_with_noise_grow_and_gain():
    """Four times the points, a function that needs few degrees of freedom: the error of three samples falls by a fifth."""
    errors = {100: 0.0, "auto": 0.0}
    for seed in range(3):
        X, y, Q = smooth_with_noise(seed=seed)
        for size in errors:
            model = StitchedRegressor(region_size=size).fit(X, y)
            assert model.model_.region_size == (100 if size == 100 else defaults.LARGEST_REGION)
            errors[size] += rmse(model.predict(Q) - wave(Q))
    assert errors["auto"] < 0.8 * errors[100]


@pytest.mark.parametrize(
    "response",
    [wave, lambda X: np.sign(X[:, 0] + 0.3 * X[:, 1])],
    ids=["smooth", "a step"],
)
def test_regions_stay_small_without_noise(response):
    X, _, _ = smooth_with_noise()
    assert StitchedRegressor().fit(X, response(X)).model_.region_size == defaults.REGION_SIZE


def test_regions_stay_small_where_a_part_of_their_points_does_not_show_the_function():
    """A chirp: a quarter of 400 points is too thin for its end, though noise leaves much of their dof unused."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 9, (1200, 1))
    y = np.sin(4 * X[:, 0] ** 2) + 0.07 * rng.normal(size=1200)
    assert StitchedRegressor().fit(X, y).model_.region_size == defaults.REGION_SIZE
    slow = np.sin(2 * X[:, 0]) + 0.07 * rng.normal(size=1200)
    assert StitchedRegressor().fit(X, slow).model_.region_size == 400


def test_a_given_size_is_kept():
    X, y, _ = smooth_with_noise(1200)
    assert StitchedRegressor(region_size=60).fit(X, y).model_.region_size == 60
    assert StitchedRegressor(selection=None).fit(X, y).model_.region_size == defaults.REGION_SIZE


def test_large_data_keep_the_work_bounded(monkeypatch):
    X, y, _ = smooth_with_noise()
    monkeypatch.setattr("stitchwork.fitting.defaults.MOST_WORK", 2000 * 150**2)
    assert StitchedRegressor().fit(X, y).model_.region_size == 150


def test_thinned_balls_keep_centre_radius_and_extent():
    X, _, _ = smooth_with_noise(400)
    cover = greedy_cover(X, 91)
    thin = cover.thin(30)
    assert thin.members.shape == (len(cover), 31)
    np.testing.assert_array_equal(thin.members[:, 0], cover.members[:, 0])
    np.testing.assert_array_equal(thin.radii, cover.radii)
    reach = np.linalg.norm(X[thin.members] - thin.centers[:, None], axis=2).max(axis=1)
    assert (reach > 0.9 * cover.radii).all()
    assert cover.thin(100).members.shape == cover.members.shape


def test_parts_of_a_ball_share_nothing_but_its_centre():
    X, _, _ = smooth_with_noise(400)
    cover = greedy_cover(X, 91)
    parts = cover.thin(30, most=3)
    assert parts.members.shape == (3 * len(cover), 31)
    for ball in range(len(cover)):
        mine = parts.members[3 * ball : 3 * ball + 3]
        assert (mine[:, 0] == cover.members[ball, 0]).all()
        assert set(mine.ravel()) == set(cover.members[ball])
        assert len(set(mine.ravel())) == 91


def test_a_wrong_word_is_told_the_right_one():
    X, y, _ = smooth_with_noise(50)
    for name in ("region_size", "degree", "overlap"):
        with pytest.raises(ValueError, match=f"`{name}` must be 'auto' or a number, got 'large'"):
            StitchedRegressor(**{name: "large"}).fit(X, y)
