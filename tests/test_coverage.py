"""Coverage is one where data are and falls where there are none, whatever regions reach."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork.model.gaps import measure_gaps

KINDS = [{}, {"region_size": 50}]


def smooth(X):
    return np.sin(3 * X[:, 0]) + 0.1 * X[:, 1]


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("d", [2, 3, 5])
def test_a_stray_point_far_away_covers_nothing_on_the_way(d, settings):
    X = np.random.default_rng(d).uniform(size=(300, d))
    X[0] = 100.0
    model = StitchedRegressor(**settings).fit(X, smooth(X))
    way = np.linspace(3.0, 97.0, 50)[:, None] * np.ones(d)
    assert model.coverage(way).max() < 0.1
    assert model.coverage(X[1:]).min() > 0.99
    inside = np.random.default_rng(0).uniform(0.1, 0.9, (500, d))
    assert np.mean(model.coverage(inside) > 0.99) > 0.99


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_on_the_way_to_a_stray_point_answers_and_deviations_stay_near_the_responses(d, settings):
    X = np.random.default_rng(d).uniform(size=(300, d))
    X[0] = 100.0
    y = np.sin(4 * X[:, 0]) + 0.1 * np.random.default_rng(d).normal(size=300)
    model = StitchedRegressor(**settings).fit(X, y)
    answers, deviations = model.predict(np.linspace(1.0, 99.0, 200)[:, None] * np.ones(d), return_std=True, std_of="function")
    assert y.min() - np.ptp(y) < answers.min()
    assert answers.max() < y.max() + np.ptp(y)
    assert deviations.max() < 3.1 * y.std()
    inside = np.random.default_rng(0).uniform(0.1, 0.9, (300, d))
    assert np.abs(model.predict(inside) - np.sin(4 * inside[:, 0])).max() < 0.5


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_nothing_is_covered_beside_features_that_nearly_depend_on_each_other(settings):
    rng = np.random.default_rng(0)
    a = rng.uniform(size=300)
    X = np.c_[a, a + 0.01 * rng.normal(size=300)]
    # Without this noise a learned metric finds, rightly, that the difference of the two does not matter.
    model = StitchedRegressor(**settings).fit(X, np.sin(3 * a) + 0.01 * rng.normal(size=300))
    assert model.coverage([[0.8, 0.2], [0.5, 0.65], [0.2, 0.8]]).max() == 0.0
    along = rng.uniform(0.02, 0.98, 300)
    assert np.mean(model.coverage(np.c_[along, along + 0.01 * rng.normal(size=300)]) > 0.99) > 0.97


def test_a_hole_in_a_single_region_is_not_covered():
    X = np.random.default_rng(0).uniform(-3, 3, (900, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.5]
    model = StitchedRegressor().fit(X, smooth(X))
    assert model.n_regions_ == 1
    assert model.coverage([[0.0, 0.0]])[0] < 0.5


def test_the_space_between_tracks_is_covered():
    rng = np.random.default_rng(0)
    track = np.repeat(np.linspace(0, 1, 15), 200)
    X = np.c_[rng.uniform(size=3000), track + 1e-3 * rng.normal(size=3000)]
    model = StitchedRegressor(kernel="cubic").fit(X, smooth(X))
    assert model.coverage(rng.uniform(size=(1000, 2))).min() > 0.99


def test_the_gap_of_points_on_a_line_is_a_share_of_their_distance():
    X = np.arange(100.0)[:, None]
    gap = measure_gaps(X, np.arange(100)[None])[0]
    assert 0.3 < gap < 0.5  # a place is at most half of a step from a point, and three quarters are within 3/8


def test_models_of_the_users_own_have_coverage():
    class Constant:
        smoothness = np.inf

        def fit(self, X, y, sample_weight):
            return Mean(y.mean())

    class Mean:
        def __init__(self, value):
            self.value = value

        def predict(self, X):
            return np.full(len(X), self.value)

    X = np.random.default_rng(0).uniform(size=(200, 2))
    model = StitchedRegressor(local_model=Constant(), region_size=20).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.coverage([[0.5, 0.5], [9.0, 9.0]]) > 0.9, [True, False])
