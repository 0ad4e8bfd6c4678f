"""A model as a function: as a SciPy-style callable, by region, and on a grid."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import wave
from scipy.interpolate import NdBSpline
from scipy.stats import spearmanr
from sklearn import config_context

from stitchwork import StitchedRegressor, load
from stitchwork._parallel import ALONE
from stitchwork.fitting import suggest


@pytest.fixture(scope="module")
def model(plane, fixed):
    return fixed().fit(*plane)


def queries(n=20):
    return np.random.default_rng(5).uniform(-3, 3, (n, 2))


def test_a_call_is_a_prediction_of_any_shape(model):
    x = queries().reshape(4, 5, 2)
    np.testing.assert_array_equal(model(x), model.predict(x.reshape(-1, 2)).reshape(4, 5))
    assert model([0.5, 0.5]).shape == ()
    assert model(np.empty((0, 2))).shape == (0,)


def test_nu_means_what_it_means_for_scipys_splines(model):
    knots = np.array([-3.0] * 4 + [3.0] * 4)
    spline = NdBSpline((knots, knots), np.random.default_rng(0).normal(size=(4, 4)), 3)
    X = np.random.default_rng(1).uniform(-3, 3, (3000, 2))
    fitted = StitchedRegressor(selection=None, degree=6, bandwidth=4.0, ridge=1e-14).fit(X, spline(X))
    x = 0.8 * queries()
    for nu in ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)):
        # A polynomial of degree 6 in all is reproduced, but for rounding that two divisions by a radius enlarge.
        np.testing.assert_allclose(fitted(x, nu=nu), spline(x, nu=nu), atol=1e-10)


def test_partial_derivatives_are_those_of_gradient_and_hessian(model):
    x = queries()
    np.testing.assert_array_equal(model(x, nu=(0, 1)), model.gradient(x)[:, 1])
    np.testing.assert_array_equal(model(x, nu=(1, 1)), model.hessian(x)[:, 0, 1])


def test_a_call_of_several_outputs_has_them_last(plane, fixed):
    X, y = plane
    both = fixed().fit(X, np.stack([y, 2 * y], axis=1))
    assert both(queries().reshape(4, 5, 2), nu=(1, 0)).shape == (4, 5, 2)


@pytest.mark.parametrize("nu", [(1,), (3, 0), (1, 2), (-1, 0), (0.5, 0)])
def test_a_wrong_nu_is_an_error(model, nu):
    with pytest.raises(ValueError, match="`nu` must have 2 orders"):
        model(queries(), nu=nu)


def test_a_wrong_shape_is_an_error(model):
    with pytest.raises(ValueError, match="`x` must have 2 features along its last axis"):
        model(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="one point of 2 features"):
        model.contributions([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="NaN"):
        model([np.nan, 0.0])


@pytest.mark.parametrize("x", [[0.1, 0.2], [3.05, 3.05], [3.6, -3.6], [40.0, 0.0]])
def test_contributions_average_to_the_prediction(model, x):
    contributions = model.contributions(x)
    assert sum(one.share for one in contributions) == pytest.approx(1.0, abs=1e-14)
    assert sum(one.share * one.value for one in contributions) == pytest.approx(float(model(x)), rel=1e-12)
    assert [one.share for one in contributions] == sorted((one.share for one in contributions), reverse=True)


def test_a_contribution_is_that_of_a_region_around_the_point(model):
    contributions = [one for one in model.contributions([0.1, 0.2]) if one.level == 0]
    assert contributions
    for one in contributions:
        np.testing.assert_allclose(one.center, model.centers_[one.region], atol=1e-12)
        assert np.linalg.norm(one.center - [0.1, 0.2]) < one.radius <= model.radii_[one.region] * (1 + 1e-12)
        assert one.settings == {"kernel": "gaussian", "degree": 2, "bandwidth": 1.0, "ridge": 1e-6}


def test_leave_one_out_residuals_make_the_error(model, plane):
    left_out = model.leave_one_out()
    assert np.sqrt(np.mean(left_out.residual**2)) == pytest.approx(model.loo_error_, rel=1e-12)
    order, given = np.lexsort(left_out.X.T), np.lexsort(plane[0].T)
    np.testing.assert_allclose(left_out.X[order], plane[0][given], atol=1e-12)
    np.testing.assert_array_equal(left_out.y[order], plane[1][given])


def test_names_of_features_and_targets_are_kept(plane, fixed, tmp_path):
    X = pd.DataFrame(plane[0], columns=["a", "b"])
    named = fixed().fit(X, pd.Series(plane[1], name="lift"))
    named.save(tmp_path / "m.stitch")
    loaded = load(tmp_path / "m.stitch")
    assert loaded.target_names_ == ["lift"]
    assert list(loaded.feature_names_in_) == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X[["b", "a"]])


def test_frames_are_checked_by_name_in_calls_and_reports(plane, fixed, tmp_path):
    X = pd.DataFrame(plane[0], columns=["a", "b"])
    named = fixed().fit(X, plane[1])
    np.testing.assert_array_equal(named(X), named.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        named(X[["b", "a"]])
    from stitchwork.report import write_report

    with pytest.raises(ValueError, match="feature names"):
        write_report(named, tmp_path / "r.html", X[["b", "a"]], plane[1])
    with pytest.raises(ValueError, match="a row for each"):
        write_report(named, tmp_path / "r.html", X, plane[1][:-1])


def test_coverage_does_not_depend_on_chunks(model):
    Q = np.random.default_rng(6).uniform(-3.5, 3.5, (2000, 2))
    with config_context(working_memory=1):
        np.testing.assert_array_equal(model.coverage(Q), np.concatenate([model.coverage(q[None]) for q in Q]))


def test_polars_frames_are_checked_by_name(plane, fixed):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    X = polars.DataFrame(plane[0], schema=["a", "b"])
    named = fixed().fit(X, polars.Series("lift", plane[1]))
    assert named.target_names_ == ["lift"]
    np.testing.assert_array_equal(named.predict(X), fixed().fit(*plane).predict(plane[0]))
    with pytest.raises(ValueError, match="feature names"):
        named.predict(X.select("b", "a"))


def test_a_grid_has_the_datas_names_and_the_models_values(plane, fixed):
    xarray = pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")
    X = pd.DataFrame(plane[0], columns=["a", "b"])
    named = fixed().fit(X, pd.Series(plane[1], name="lift"))
    grid = named.grid((4, 5), {"a": (0.0, 1.0)}, gradient=True, coverage=True)
    assert isinstance(grid, xarray.Dataset)
    assert set(grid.data_vars) == {"lift", "dlift_da", "dlift_db", "coverage"}
    assert grid["lift"].dims == ("a", "b")
    assert grid["a"].to_numpy().tolist() == [0.0, 1 / 3, 2 / 3, 1.0]
    point = grid.isel(a=2, b=3)
    x = pd.DataFrame([[float(point["a"]), float(point["b"])]], columns=["a", "b"])
    assert float(point["lift"]) == pytest.approx(named.predict(x)[0], rel=1e-12)
    np.testing.assert_allclose([point["dlift_da"], point["dlift_db"]], named.gradient(x)[0], rtol=1e-12)
    assert float(point["coverage"]) == pytest.approx(named.coverage(x)[0], rel=1e-12)


def test_a_grid_goes_to_netcdf_and_back(plane, fixed, tmp_path):
    xarray = pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")
    pytest.importorskip("h5netcdf", reason="NetCDF needs h5netcdf: pip install 'stitchwork[files]'")
    X = pd.DataFrame(plane[0], columns=["a/m", "b"])
    grid = fixed().fit(X, plane[1]).grid(4, gradient=True, coverage=True, std=True)
    grid.to_netcdf(tmp_path / "field.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "field.nc", engine="h5netcdf") as read:
        xarray.testing.assert_identical(read.load(), grid)
    assert list(grid.data_vars) == ["y", "dy_da_m", "dy_db", "y_std", "coverage"]
    assert grid["dy_da_m"].attrs["long_name"] == "dy/da/m"
    with pytest.raises(ValueError, match="one name"):
        fixed().fit(X, pd.Series(plane[1], name="coverage")).grid(4, coverage=True)


def test_units_and_long_names_are_kept(plane, fixed, tmp_path):
    xarray = pytest.importorskip("xarray", reason="units are xarray's: pip install 'stitchwork[files]'")
    a = ("station", plane[0][:, 0], {"units": "degrees_east", "long_name": "longitude", "color": 7})
    stations = xarray.Dataset({"a": a, "b": ("station", plane[0][:, 1], {"units": "m s-1"})})
    lift = xarray.DataArray(plane[1], dims="station", name="lift", attrs={"units": "K"})
    model = fixed().fit(stations, lift)
    frame = stations.to_dataframe()
    np.testing.assert_array_equal(model.predict(stations), fixed().fit(frame, plane[1]).predict(frame))
    model.save(tmp_path / "m.stitch")
    for grid in (model.grid(3, gradient=True, std=True), load(tmp_path / "m.stitch").grid(3, gradient=True, std=True)):
        assert grid["a"].attrs == {"units": "degrees_east", "long_name": "longitude"}
        assert [grid[name].attrs.get("units") for name in grid.data_vars] == ["K", "K/(degrees_east)", "K/(m s-1)", "K"]
    frame.attrs = {"units": {"a": "degrees_east", "b": "m s-1"}, "long_name": {"a": "longitude"}}
    height = pd.Series(plane[1], name="lift")
    height.attrs["units"] = "K"
    assert fixed().fit(frame, height).model_.origin.attributes == model.model_.origin.attributes
    assert "longitude (degrees_east)" in model._repr_mimebundle_()["text/html"]


def test_coordinates_of_stations_are_features_and_grids_are_refused(plane, fixed):
    xarray = pytest.importorskip("xarray", reason="datasets are xarray's: pip install 'stitchwork[files]'")
    table = xarray.Dataset(
        {"y": ("station", plane[1])}, coords={"a": ("station", plane[0][:, 0]), "b": ("station", plane[0][:, 1])}
    )
    model = fixed().fit(table[["a", "b"]], table["y"])
    assert (list(model.feature_names_in_), model.target_names_) == (["a", "b"], ["y"])
    with pytest.raises(ValueError, match=r"along one dimension.*to_dataframe"):
        fixed().fit(xarray.Dataset({"a": (("u", "v"), np.ones((3, 4)))}), np.ones(12))


@pytest.mark.parametrize(
    ("shape", "bounds", "message"),
    [
        ((3,), None, "`shape` must be"),
        ((3, 0), None, "`shape` must be"),
        (10**6, None, "too large"),
        (3, {"z": (0, 1)}, "no feature"),
    ],
)
def test_a_wrong_grid_is_an_error(model, shape, bounds, message):
    pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")
    with pytest.raises(ValueError, match=message):
        model.grid(shape, bounds)


def test_a_notebook_sees_the_summary_and_a_picture(model, plane, fixed):
    shown = model._repr_mimebundle_()["text/html"]
    assert "leave-one-out" in shown
    assert "data:image/png;base64," in shown
    line = fixed().fit(plane[0][:, :1], plane[1])._repr_mimebundle_()["text/html"]
    assert "<polyline" in line
    three = fixed().fit(np.hstack([plane[0], plane[0][:, :1] ** 2]), plane[1])._repr_mimebundle_()["text/html"]
    assert "<image" not in three
    assert "leave-one-out" not in fixed()._repr_mimebundle_()["text/html"]


def test_a_notebooks_picture_has_axes(model, plane, fixed):
    for fitted in (model, fixed().fit(plane[0][:, :1], plane[1])):
        shown = fitted._repr_mimebundle_()["text/html"]
        ticks = {float(text) for text in re.findall(r'<text x="[-0-9.]+" y="216" text-anchor="middle">([^<]+)<', shown)}
        assert {-2.0, 0.0, 2.0} <= ticks  # of data in [-3, 3]
        assert ">x0</text>" in shown


def test_the_notebooks_png_is_the_prediction(model):
    image = pytest.importorskip("PIL.Image", reason="Pillow comes with matplotlib")
    import base64
    import io

    data = re.search(r"image/png;base64,([^\"]+)", model._repr_mimebundle_()["text/html"])[1]
    pixels = np.asarray(image.open(io.BytesIO(base64.b64decode(data)))).astype(float).sum(axis=2)
    assert pixels.shape == (64, 64)
    X = np.stack(np.meshgrid(np.linspace(-3, 3, 64), np.linspace(3, -3, 64)), -1).reshape(-1, 2)
    assert np.corrcoef(pixels.ravel(), wave(X))[0, 1] > 0.95  # brighter where the function is greater; rounded to colours


def test_arrays_are_asked_of_a_model_of_a_data_frame_without_a_warning():
    """Optimisers and solvers ask with arrays, at every step."""
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=["a", "b"])
    model = StitchedRegressor(kernel="cubic", selection=None).fit(frame, frame["a"] * frame["b"])
    x = frame.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (
            model.predict,
            model.predict_with_gradient,
            model.gradient,
            model.hessian,
            model.coverage,
            model.predict_interval,
        ):
            np.testing.assert_array_equal(ask(x[:1])[0], ask(frame[:1])[0])
        np.testing.assert_array_equal(model.predict(x), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])
    with pytest.raises(ValueError, match="2 features"):
        model.predict(x[:, :1])


def test_suggestions_to_a_model_of_a_data_frame_are_one():
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=["a", "b"])
    y = frame["a"] * frame["b"]
    named = StitchedRegressor(kernel="cubic", selection=None, random_state=0).fit(frame, y)
    plain = StitchedRegressor(kernel="cubic", selection=None, random_state=0).fit(frame.to_numpy(), y.to_numpy())
    found = named.suggest(4)
    assert list(found.columns) == ["a", "b"]
    assert isinstance(plain.suggest(4), np.ndarray)
    np.testing.assert_array_equal(found.to_numpy(), plain.suggest(4))
    assert list(named.suggest(2, candidates=frame[:10] + 0.003).columns) == ["a", "b"]
    assert list(named.suggest(2, pending=found).columns) == ["a", "b"]


def test_a_sample_of_the_regions_tells_errors_where_there_are_many(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 2))
    y = np.sin(6 * X[:, 1]) + np.where(X[:, 0] > 0.5, 0.1, 0.01) * rng.normal(size=4000)
    model = StitchedRegressor(kernel="matern52", metric="euclidean", region_size=50).fit(X, y)
    whole = suggest.know_errors(model.model_, ALONE).error
    again = replace(model.model_)
    monkeypatch.setattr(suggest, "SUGGEST_REGIONS", model.n_regions_ // 3)
    sampled, noisy = suggest.know_errors(again, ALONE).error, again.X[:, 0] > 0.5
    assert sampled.shape == whole.shape
    assert np.median(sampled[noisy]) / np.median(sampled[~noisy]) == pytest.approx(10, rel=0.3)
    assert spearmanr(sampled, whole)[0] > 0.6
    monkeypatch.setattr(suggest, "SUGGEST_REGIONS", model.n_regions_ - 1)
    assert np.mean(suggest.know_errors(replace(again), ALONE).error == whole) > 0.9  # all regions but one, which changes its points
