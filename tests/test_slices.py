"""Slices through a model: where balls meet a plane, exactly."""

import numpy as np
import pandas as pd
import pytest

from stitchwork import StitchedRegressor, load
from stitchwork.views.slices import derivative_name, make_slice


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 4)) * [1, 2, 3, 1]
    B = rng.normal(size=(4, 4))
    return StitchedRegressor(selection=None, metric=B @ B.T + np.eye(4)).fit(X, X[:, 0] + X[:, 1] ** 2)


@pytest.mark.parametrize("features", [(2,), (0, 1), (3, 1)])
def test_the_cut_of_a_ball_is_the_ball_on_the_slice(model, features):
    view = make_slice(model.model_, features)
    cut = view.cut(model.centers_, model.radii_, model.metric_)
    angle = np.linspace(0, 2 * np.pi, 50)
    unit = np.stack([np.cos(angle), np.sin(angle)])[: len(features)] if len(features) == 2 else np.array([[-1.0, 1.0]])
    for region, center, axes in zip(*cut, strict=True):
        border = np.tile(view.at, (unit.shape[1], 1))
        border[:, list(features)] = center + (axes @ unit).T
        offset = border - model.centers_[region]
        distance = np.sqrt(np.einsum("qi,ij,qj->q", offset, model.metric_, offset))
        np.testing.assert_allclose(distance, model.radii_[region], rtol=1e-10)
    # Balls that are not in the cut do not contain any point of the slice.
    points = view.points(view.axes(30))
    missed = np.setdiff1d(np.arange(model.n_regions_), cut.region)
    offset = points[:, None] - model.centers_[missed]
    assert (np.einsum("qmi,ij,qmj->qm", offset, model.metric_, offset) >= model.radii_[missed] ** 2).all()


def test_a_slice_goes_through_its_point_along_its_features(model):
    view = make_slice(model.model_, ["x1", 3], at=[0.1, 0.2, 0.3, 0.4])
    points = view.points(view.axes(5))
    assert points.shape == (25, 4)
    assert (points[:, [0, 2]] == [0.1, 0.3]).all()
    assert len(np.unique(points[:, 1])) == len(np.unique(points[:, 3])) == 5
    assert view.labels == ("x1", "x3")


@pytest.mark.parametrize(
    ("features", "at", "message"),
    [
        ((0, 1, 2), None, "one or two"),
        ((1, 1), None, "different"),
        (("z",), None, "no feature 'z'"),
        ((7,), None, "below 4"),
        ((0,), [1.0], "4 values"),
    ],
)
def test_a_wrong_slice_is_an_error(model, features, at, message):
    with pytest.raises(ValueError, match=message):
        make_slice(model.model_, features, at)


def test_a_metric_that_does_not_see_a_feature_keeps_its_bounds(tmp_path):
    X = np.random.default_rng(0).uniform(size=(200, 2)) * [1, 5]
    model = StitchedRegressor(selection=None, metric=np.diag([4.0, 0.0])).fit(X, X[:, 0])
    model.save(tmp_path / "m.stitch")
    for one in (model, load(tmp_path / "m.stitch")):
        np.testing.assert_array_equal(make_slice(one.model_, (0, 1)).bounds, [X.min(axis=0), X.max(axis=0)])
        cut = make_slice(one.model_, (0, 1)).cut(one.centers_, one.radii_, one.metric_)
        assert np.isfinite(cut.axes).all()
        assert np.isfinite(make_slice(one.model_, (1,)).cut(one.centers_, one.radii_, one.metric_).axes).all()


def test_derivatives_have_names():
    assert derivative_name("y", "a") == "dy/da"
    assert derivative_name("y", "a", "b") == "d2y/dadb"


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x"), ("lat", "lon"), ("northing", "easting")])
def test_maps_have_x_across_whatever_the_order_of_the_features(names):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 10, (200, 2)), columns=list(names))
    model = StitchedRegressor(kernel="cubic", selection=None).fit(frame, frame.sum(axis=1)).model_
    across, up = (names[k] for k in make_slice(model).features)
    assert across in ("x", "lon", "easting")
    assert up in ("y", "lat", "northing")
