"""Fields of xarray: gaps are filled, grids change, and names, units and coordinates stay."""

import numpy as np
import pandas as pd
import pytest

from stitchwork import StitchedRegressor

xarray = pytest.importorskip("xarray", reason="fields are xarray's: pip install 'stitchwork[files]'")

from stitchwork.xarray import evaluate, fill, regrid  # noqa: E402

FAST = StitchedRegressor(kernel="cubic", selection=None)


@pytest.fixture
def field():
    """Three times of a smooth field on a map, in 32 bits."""
    lat, lon = np.arange(40.0, 51.0), np.arange(0.0, 14.0)
    values = np.sin(lon / 5)[None, :] + np.cos(lat / 9)[:, None]
    return xarray.DataArray(
        np.stack([values, 2 * values, values - 1]).astype(np.float32),
        coords={
            "time": pd.date_range("2020-01-01", periods=3),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
        dims=("time", "lat", "lon"),
        name="t",
        attrs={"units": "K", "long_name": "temperature"},
    )


def test_gaps_are_filled_and_all_else_stays(field):
    holes = field.where(~((field.lat > 43) & (field.lat < 46) & (field.lon > 4) & (field.lon < 8)))
    holes[2] = np.nan  # nothing is known
    filled = fill(holes, ["lat", "lon"])
    known = holes.notnull()
    assert (filled.where(known) == field.where(known)).values[known.values].all()
    assert np.isnan(filled[2]).all()
    assert abs(filled[:2] - field[:2]).max() < 0.01
    assert (filled.attrs, filled.name, filled.dims, filled.dtype) == (field.attrs, "t", field.dims, field.dtype)
    assert filled.coords.identical(field.coords)
    assert int(holes.isnull().sum()) > int(field.isnull().sum())  # the argument is not changed


def test_filling_is_the_prediction_of_a_model_of_what_is_known(field):
    holes = field.astype(float).where(field.lon != 5)
    filled = fill(holes, ("lat", "lon"), FAST)
    lat, lon = np.meshgrid(field.lat, field.lon, indexing="ij")
    X, known = np.stack([lat.ravel(), lon.ravel()], axis=1), lon.ravel() != 5
    for k in range(3):
        y = holes.values[k].ravel()
        expected = StitchedRegressor(kernel="cubic", selection=None).fit(X[known], y[known]).predict(X[~known])
        np.testing.assert_allclose(filled.values[k].ravel()[~known], expected, rtol=1e-12)


def test_maps_are_on_the_globe_by_their_attributes():
    """A gap at the date line is filled from both sides."""
    lon, lat = np.arange(-180.0, 180.0, 10), np.arange(-80.0, 81.0, 10)
    values = np.cos(np.radians(lat))[:, None] * np.sin(np.radians(lon))[None, :]
    axes = {"lat": ("lat", lat, {"units": "degrees_north"}), "lon": ("lon", lon, {"standard_name": "longitude"})}
    field = xarray.DataArray(values, coords=axes, dims=("lat", "lon"))
    gap = field.where(abs(field.lon) < 165)
    assert abs(fill(gap, estimator=StitchedRegressor(geographic=(1, 0))) - fill(gap)).max() == 0.0
    assert abs(fill(gap) - field).max() < 0.01


def test_times_and_bare_dimensions_are_features():
    wave = np.sin(np.arange(40) / 4)
    field = xarray.DataArray(wave, coords={"time": pd.date_range("2020-01-01", periods=40)})
    bare = xarray.DataArray(wave, dims="k")
    for one in (field, bare):
        gap = one.copy()
        gap[17] = np.nan
        assert abs(float(fill(gap)[17]) - wave[17]) < 1e-3


def test_regridding_keeps_the_field_and_takes_the_grid(field):
    like = xarray.Dataset(coords={"lat": ("lat", [44.5, 42.25], {"note": "theirs"}), "lon": [3.3, 5.5, 7.1], "height": 2.0})
    found = regrid(field, like)
    assert found.dims == ("time", "lat", "lon")
    assert (found.attrs, found.name, found.dtype) == (field.attrs, "t", field.dtype)
    assert found["lat"].attrs == {"note": "theirs"}
    np.testing.assert_array_equal(found["time"], field["time"])
    truth = np.sin(like.lon / 5) + np.cos(like.lat / 9)
    assert abs(found[0] - truth).max() < 1e-3
    assert abs(found[1] - 2 * truth).max() < 2e-3


def test_regridding_is_the_prediction_of_a_model_of_what_is_known(field):
    one = field.astype(float).isel(time=0, drop=True)
    lat, lon = np.meshgrid(field.lat, field.lon, indexing="ij")
    X = np.stack([lat.ravel(), lon.ravel()], axis=1)
    model = StitchedRegressor(kernel="cubic", selection=None).fit(X, one.values.ravel())
    found = regrid(one, xarray.Dataset(coords={"lat": [41.5, 44.0], "lon": [3.25]}), FAST)
    np.testing.assert_allclose(found.values.ravel(), model.predict([[41.5, 3.25], [44.0, 3.25]]), rtol=1e-12)


def test_other_names_of_longitude_and_latitude_and_curved_grids(field):
    lat, lon = np.meshgrid([41.0, 44.5], [3.0, 6.0, 9.5], indexing="ij")
    like = xarray.Dataset(
        coords={
            "yc": (("j", "i"), lat + 0.1 * lon, {"standard_name": "latitude"}),
            "xc": (("j", "i"), lon, {"standard_name": "longitude"}),
        }
    )
    found = regrid(field.isel(time=0), like)
    assert found.dims == ("j", "i")
    np.testing.assert_allclose(found, np.sin(lon / 5) + np.cos((lat + 0.1 * lon) / 9), atol=1e-3)
    assert "xc" in found.coords


def test_a_model_is_evaluated_where_a_field_lies(field):
    frame = field.isel(time=0).to_dataframe().reset_index()
    model = StitchedRegressor(geographic=("lon", "lat"), kernel="cubic", selection=None).fit(frame[["lon", "lat"]], frame["t"])
    found = evaluate(model, field, gradient=True, unit="metres", function_std=True)
    assert found["t"].dims == ("lat", "lon")
    at = np.array([[3.0, 44.0]])
    assert float(found["t"].sel(lon=3.0, lat=44.0)) == pytest.approx(model.predict(at)[0], rel=1e-9)
    assert float(found["dt_dnorth"].sel(lon=3.0, lat=44.0)) == pytest.approx(model.gradient(at, unit="metres")[0, 1], rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda field: fill(field.to_dataset()), "must be an `xarray.DataArray`"),
        (lambda field: fill(field, ["depth"]), "`dims` must be some of time, lat, lon"),
        (lambda field: fill(field, []), "`dims` must be some of"),
        (lambda field: fill(field.astype(str)), "must hold numbers"),
        (lambda field: fill(field.assign_coords(time=["a", "b", "c"])), "must hold numbers or times"),
        (lambda field: fill(field.assign_coords(lat=np.zeros(11))), "must be different finite numbers"),
        (lambda field: regrid(field, xarray.Dataset(coords={"q": [1.0]})), "none of the dimensions"),
    ],
)
def test_what_is_wrong_is_refused(field, call, message):
    with pytest.raises(ValueError, match=message):
        call(field)


def test_a_value_that_stands_for_nothing_is_noticed():
    x = np.arange(40.0)
    field = xarray.DataArray(np.sin(0.3 * x), coords={"x": x})
    field[[3, 4, 20]] = -32768.0
    field[30] = np.nan
    with pytest.warns(UserWarning, match=r"-32768 stands 3 times [\s\S]* `field.where\(field != -32768\)`"):
        fill(field)
    with pytest.warns(UserWarning, match="-32768"):
        regrid(field, xarray.Dataset(coords={"x": [2.5]}))


def test_a_grid_to_go_to_must_have_coordinates():
    field = xarray.DataArray(np.arange(8.0) ** 2, coords={"x": np.arange(8.0)})
    with pytest.raises(ValueError, match=r"`like` must be an `xarray\.DataArray`"):
        regrid(field, np.zeros((3, 2)))
