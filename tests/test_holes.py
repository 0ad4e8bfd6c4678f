"""Holes of a field are covered by regions with points on all sides."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from stitchwork import StitchedRegressor
from stitchwork.fitting.cover import greedy_cover
from stitchwork.fitting.holes import cover_holes, is_surrounded, open_places


def ring(n=2500, radius=1.0, seed=0, d=2):
    """Points in a cube with a hole in its middle."""
    X = np.random.default_rng(seed).uniform(-3, 3, (n, d))
    return X[np.linalg.norm(X, axis=1) > radius]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_hole_is_covered_by_balls_with_points_on_all_sides(d):
    X = ring(d=d)
    cover = greedy_cover(X, 40, 0.5)
    whole = cover_holes(X, cover, 0.5)
    added = whole.at(np.arange(len(cover), len(whole)))
    assert len(added) > 0
    inside = np.random.default_rng(1).uniform(-0.4, 0.4, (200, d))
    for balls, expected in ((cover, False), (whole, True)):
        far = np.linalg.norm(inside[:, None] - balls.centers, axis=2)
        assert (far <= 1.1 * balls.radii / 1.5).any(axis=1).all() == expected
    distance, members = cKDTree(X).query(added.centers, k=np.arange(1, 41))
    np.testing.assert_array_equal(np.sort(added.members), np.sort(members))
    np.testing.assert_allclose(added.radii, distance[:, -1])
    assert is_surrounded(X, added.centers, added.members).all()


def test_balls_of_points_stay_first_as_they_were():
    X = ring()
    cover = greedy_cover(X, 40, 0.5)
    whole = cover_holes(X, cover, 0.5)
    for name in ("members", "centers", "radii"):
        np.testing.assert_array_equal(getattr(whole, name)[: len(cover)], getattr(cover, name))


def test_points_without_holes_and_what_lies_outside_get_no_balls():
    X = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(0, 1, 40)), axis=-1).reshape(-1, 2)
    triangle = X[X.sum(axis=1) < 1]  # half of its box is empty, and lies outside
    for points in (X, triangle):
        cover = greedy_cover(points, 30, 0.5)
        assert len(cover_holes(points, cover, 0.5)) == len(cover)


def test_far_outliers_do_not_make_a_grid_without_bounds():
    X = np.concatenate([ring(500), [[1e6, 1e6]]])
    assert len(open_places(X, greedy_cover(X, 20, 0.5), 0.5)) <= 8 * len(X)


def test_errors_fall_in_blocks_of_a_rough_field_that_are_held_out():
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        size, angle, phase = (
            3 * np.minimum(rng.pareto(2.0, 600) + 0.3, 50),
            rng.uniform(0, 2 * np.pi, 600),
            rng.uniform(0, 2 * np.pi, 600),
        )
        waves = size * np.stack([np.cos(angle), np.sin(angle)])
        X, Q = rng.uniform(0, 1, (1500, 2)), rng.uniform(0, 1, (2000, 2))
        held = rng.permutation(49)[:10]
        inside, asked = (np.isin((Z * 7).astype(int) @ [7, 1], held) for Z in (X, Q))
        y, truth = (np.cos(Z @ waves + phase).mean(axis=1) for Z in (X[~inside], Q[asked]))
        models = (
            StitchedRegressor(overlap=overlap, kernel="cubic", region_size=50).fit(X[~inside], y) for overlap in ("auto", 1.0)
        )
        errors = [np.mean((model.predict(Q[asked]) - truth) ** 2) for model in models]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.mean(np.log(ratios))) < 0.95


def test_updates_keep_the_balls_of_holes():
    X = ring(3000)
    y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    settings = {"kernel": "cubic", "ridge": 1e-6, "degree": 1, "metric": "euclidean", "region_size": 40}
    model = StitchedRegressor(**settings).fit(X, y)

    def free():
        regions = model.model_.levels[0].regions
        nearest = model.model_.points.X[regions.models.members[:, 0]]
        return regions.centers[(nearest != regions.centers).any(axis=1)]

    before = free()
    assert len(before) > 0
    inside = np.random.default_rng(1).uniform(-0.5, 0.5, (30, 2))
    model.partial_fit(inside, np.sin(inside[:, 0]) * np.cos(inside[:, 1]))
    np.testing.assert_array_equal(free(), before)
    model.forget(inside[:10])
    np.testing.assert_array_equal(free(), before)
    model.forget(X[np.argsort(np.linalg.norm(X, axis=1))[:20]])  # the rim, and with it nearest members
    np.testing.assert_array_equal(free(), before)
    regions = model.model_.levels[0].regions
    X = model.model_.points.X
    distance = cKDTree(X).query(regions.centers, k=[40])[0][:, 0]
    np.testing.assert_allclose(regions.radii, distance, rtol=1e-12)
