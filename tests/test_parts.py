"""Boxes of space and what each needs of the others, without a cluster."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor, load
from stitchwork._parallel import ALONE
from stitchwork.fitting.box import open_box
from stitchwork.fitting.exchange import find_needs, lend_points, own_points
from stitchwork.fitting.plan import make_plan
from stitchwork.local.points import Points, join_points
from stitchwork.model.boxes import Boxes, cut_boxes
from stitchwork.model.space import make_space


@pytest.mark.parametrize("d", [1, 2, 5])
def test_every_point_lies_in_one_box_and_boxes_are_even(d):
    X = np.random.default_rng(d).normal(size=(4000, d)) ** 3
    boxes = cut_boxes(X[::4], len(X), 500)
    box = boxes.of(X)
    assert len(boxes) == 8
    assert np.bincount(box, minlength=8).min() > 350
    assert np.bincount(box, minlength=8).max() < 650
    for number, (low, high) in enumerate(boxes.cells):
        np.testing.assert_array_equal(((low <= X) & (high > X)).all(axis=1), box == number)


def test_points_that_cannot_be_told_apart_are_not_cut():
    assert cut_boxes(np.ones((100, 2)), 100, 10).tree == 0
    two = cut_boxes(np.repeat([[0.0, 0.0], [0.0, 1.0]], 50, axis=0), 100, 10)
    assert len(two) == 2


def test_poor_boxes_are_merged_with_their_neighbours():
    boxes = Boxes([0, 0.0, [1, 0.0, 0, 1], [1, 0.0, 2, 3]], 2)
    merged, groups = boxes.merged([5, 500, 500, 500], 100)
    assert groups == [[0, 1], [2], [3]]
    assert merged.tree == [0, 0.0, 0, [1, 0.0, 1, 2]]
    assert boxes.merged([1, 1, 1, 1], 100)[1] == [[0, 1, 2, 3]]


@pytest.mark.parametrize("gridded", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_regions_of_a_box_hold_the_nearest_of_all_points(d, gridded):
    """What is borrowed suffices, however uneven the points are."""
    rng = np.random.default_rng(d)
    X = np.concatenate([rng.normal(size=(1500, d)), 0.05 * rng.normal(size=(1500, d)) + 0.7])
    if gridded:
        X = np.unique(np.round(X, 1 if d > 1 else 3), axis=0)
    space = make_space(X, np.eye(d))
    boxes = cut_boxes(space.coordinates(X), len(X), 800)
    box = boxes.of(space.coordinates(X))
    rows = np.arange(len(X))
    all_ = Points(np.asfortranarray(X), X[:, :1], np.ones(len(X)), rows)
    own = [own_points(all_.at(np.flatnonzero(box == b)), space) for b in range(len(boxes))]
    plan = _plan(own[0])
    everything = join_points(*own)
    for b, cell in enumerate(boxes.cells):
        wanted = find_needs(own[b], 40, cell)
        loans = [lend_points(own[other], other, wanted) for other in range(len(boxes)) if other != b]
        opened = open_box(own[b], b, plan, *loans)
        points, cover = opened.points, opened.cover
        for center, radius, members in zip(cover.centers, cover.radii, cover.members, strict=True):
            distance = np.sort(np.linalg.norm(everything.X - center, axis=1))[:40]
            np.testing.assert_allclose(np.linalg.norm(points.X[members] - center, axis=1), distance, atol=1e-14)
            assert radius == pytest.approx(distance[-1])
        assert set(range(opened.own)) <= set(cover.members.ravel().tolist())


def _plan(points):
    parameters = StitchedRegressor(region_size=40, overlap=0.5, selection=None).get_params()
    return make_plan(parameters, points, 3000, True, ALONE)[0]


def test_points_of_a_box_depend_on_nothing_but_their_rows():
    rng = np.random.default_rng(0)
    X, y, row = rng.normal(size=(300, 2)), rng.normal(size=(300, 1)), np.arange(300)
    X[200:] = X[:100]  # repeated
    space = make_space(X, np.eye(2))
    shuffled = rng.permutation(300)
    a = own_points(Points(X, y, np.ones(300), row), space)
    b = own_points(Points(X[shuffled], y[shuffled], np.ones(300), row[shuffled]), space)
    assert isinstance(a, Points)
    assert len(a.X) == 200
    for left, right in zip((*a[:4], *a.repeats), (*b[:4], *b.repeats), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_folder_without_a_manifest_is_said_to_be_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="manifest"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="truncated"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"version": 99}')
    with pytest.raises(ValueError, match="Upgrade"):
        load(tmp_path)
