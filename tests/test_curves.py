"""Curves that points lie on are found, and what is said between them counts."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.datasets import DATASETS, data_home, load_dataset
from stitchwork.fitting.candidates import make_candidates
from stitchwork.fitting.cover import Cover, measure_curves
from stitchwork.fitting.defaults import BETWEEN, MANY_CURVES, RIDGE_STEPS
from stitchwork.fitting.scores import Scorer
from stitchwork.local.batch import make_batch
from stitchwork.local.curves import find_curves
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named, weight_named


def tracks():
    """Twenty points along each of five wavy tracks that are one apart, and the number of the track of each."""
    t = 0.1 * (np.arange(20) + np.random.default_rng(0).uniform(0.0, 0.8, (5, 20)))
    k = np.arange(5)[:, None]
    return np.stack([t, k + 0.05 * np.sin(t + k)], axis=2).reshape(-1, 2), np.repeat(np.arange(5), 20)


def wave(X):
    return np.sin(X[:, 0]) * np.cos(X[:, 1])


def as_points(X, y, group=None):
    return Points(np.asfortranarray(X), y[:, None], np.ones(len(X)), np.arange(len(X)), group)


def curves_of(X):
    batch = make_batch(as_points(X, X[:, 0]), np.arange(len(X))[None], rough=False)
    same, on = find_curves(batch.Z, batch.distances2)
    return same[0], on[0]


def test_tracks_are_found():
    X, track = tracks()
    same, on = curves_of(X)
    assert on.all()
    np.testing.assert_array_equal(same, track[:, None] == track[None, :])


@pytest.mark.parametrize("d", [2, 3])
def test_crossing_lines_stay_apart(d):
    t = np.linspace(-1.0, 1.0, 40)
    X = np.zeros((80, d))
    X[:40, 0], X[40:, 1] = t + 0.01, t + 0.013
    same, on = curves_of(X)
    assert on.mean() > 0.8
    assert not same[:40, 40:].any()
    ends = np.r_[0:10, 30:40]
    assert same[np.ix_(ends[:10], ends[:10])].all()


@pytest.mark.parametrize(("d", "share"), [(2, 0.15), (3, 0.05)])
def test_random_points_lie_on_no_curve(d, share):
    X = np.random.default_rng(1).uniform(size=(3000, d))
    assert measure_curves(X, 100) < share < MANY_CURVES


def test_grids_have_no_curves_unless_their_steps_differ_much():
    axis = np.arange(30.0)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert measure_curves(grid, 100) == 0.0
    assert measure_curves(grid * [0.2, 1.0], 100) == 1.0


def test_small_regions_show_no_curves():
    assert measure_curves(tracks()[0], 8) == 0.0


def test_a_score_is_made_of_single_points_and_of_whole_curves():
    """Where curves that are found are the groups that could be given, both scores are known from elsewhere."""
    X, track = tracks()
    y = wave(X) + 0.01 * np.random.default_rng(2).normal(size=len(X))
    cover = Cover(np.arange(len(X))[None], np.full(1, np.linalg.norm(X - X[0], axis=1).max()))
    ridges = 10.0 ** -np.arange(12.0)
    candidates = make_candidates([kernel_named("gaussian", 2), kernel_named("cubic", 2)], [1], [1.0], ridges.tolist())

    def score(group, curves):
        return Scorer(as_points(X, y, group), cover, 1e-10, weight_named("wendland-c2", 2), 1.0, ALONE, curves=curves).score(
            np.zeros(1, dtype=int), candidates
        )[0]

    single, whole, both = score(None, False), score(track, False), score(None, True)
    for shape in range(len(candidates.shapes)):
        best = single[shape].argmin()
        asked = np.abs(np.arange(len(ridges)) - best) <= RIDGE_STEPS
        expected = (1.0 - BETWEEN) * single[shape] + BETWEEN * whole[shape]
        np.testing.assert_allclose(both[shape, asked], expected[asked], rtol=1e-9)
        assert (both[shape] >= both[shape, asked].min()).all()


def test_what_is_said_between_flamelets_is_better_for_it(monkeypatch):
    file = DATASETS["combustion"].file
    if not any((home / file).is_file() for home in data_home()):
        pytest.skip(f"{file} is in no data home")
    data = load_dataset("combustion")
    held = (data.flamelet > 70) & (data.flamelet % 5 == 2)
    kept = (data.flamelet > 70) & ~held

    def error():
        model = StitchedRegressor().fit(data.data[kept], data.target[kept])
        return np.sqrt(np.mean((model.predict(data.data[held]) - data.target[held]) ** 2))

    found = error()
    monkeypatch.setattr("stitchwork.fitting.size.MANY_CURVES", 2.0)
    assert found < 0.5 * error()


def test_regions_hold_several_tracks(monkeypatch):
    t = 0.05 * (np.arange(200) + np.random.default_rng(0).uniform(0.0, 0.8, (10, 200)))
    k = np.arange(10)[:, None]
    X = np.stack([t, k + 0.3 * np.sin(t + k)], axis=2).reshape(-1, 2)
    Q = np.stack(np.meshgrid(np.linspace(0.3, 9.7, 40), np.linspace(0.3, 8.7, 40)), axis=-1).reshape(-1, 2)

    def answer():
        model = StitchedRegressor().fit(X, wave(X))
        return model.model_.region_size, np.sqrt(np.mean((model.predict(Q) - wave(Q)) ** 2))

    h, error = answer()
    assert h == 200
    assert StitchedRegressor(region_size=50).fit(X, wave(X)).model_.region_size == 50
    monkeypatch.setattr("stitchwork.fitting.size.MANY_CURVES", 2.0)
    before, plain = answer()
    assert before == 100
    assert error < 0.2 * plain


def test_scattered_fields_are_as_before(monkeypatch):
    X = np.random.default_rng(3).uniform(0.0, 6.0, (400, 2))
    found = StitchedRegressor().fit(X, wave(X))
    monkeypatch.setattr("stitchwork.fitting.size.MANY_CURVES", 2.0)
    np.testing.assert_array_equal(found.predict(X + 0.01), StitchedRegressor().fit(X, wave(X)).predict(X + 0.01))
