"""Maps: round grids with latitude first, the grid of another file back, slopes by the metre, GeoTIFF, GeoPackage and Shapefile."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stitchwork import StitchedRegressor, load
from stitchwork.cli import app
from stitchwork.cli.tables import open_table

xarray = pytest.importorskip("xarray", reason="grids are xarray's: pip install 'stitchwork[files]'")

FAST = {"kernel": "cubic", "selection": None}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def field(lon, lat):
    return 10 * np.cos(np.radians(lat)) ** 2 + np.sin(np.radians(2 * lon))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """m.stitch, a model of longitude and latitude that the command line fitted to map.csv."""
    folder = tmp_path_factory.mktemp("maps")
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(5.03, 14.96, 300), rng.uniform(45.1, 51.9, 300)
    pd.DataFrame({"lon": lon, "lat": lat, "t": field(lon, lat)}).to_csv(folder / "map.csv", index=False)
    settings = ["--set", "kernel=cubic", "--set", "selection=null"]
    run("fit", folder / "map.csv", "-t", "t", "--geographic", "lon,lat", "-o", folder / "m.stitch", *settings)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return load(folder / "m.stitch")


def test_maps_have_latitude_first_and_round_coordinates(folder, tmp_path, model):
    run("grid", folder / "m.stitch", "-o", tmp_path / "g.nc")
    with xarray.open_dataset(tmp_path / "g.nc") as grid:
        assert grid["t"].dims == ("lat", "lon")
        for name, low, high in (("lat", 45.1, 51.9), ("lon", 5.03, 14.96)):
            axis = grid[name].values
            np.testing.assert_array_equal(axis, np.round(0.05 * np.round(axis / 0.05), 12))  # multiples of 0.05, the same for both
            np.testing.assert_allclose(np.diff(axis), 0.05)
            assert low - 0.05 < axis[0] <= low + 0.05
            assert high - 0.05 <= axis[-1] < high + 0.05
        lon, lat = np.meshgrid(grid["lon"], grid["lat"])
        expected = model(np.stack([lon.ravel(), lat.ravel()], axis=1)).reshape(lon.shape)
        np.testing.assert_allclose(grid["t"].values, expected, rtol=1e-9)
        assert grid["t"].attrs["grid_mapping"] == "spatial_ref"
        assert grid["lat"].attrs["units"] == "degrees_north"


def test_spacings_make_multiples_and_bounds_are_kept(model):
    grid = model.grid(spacing=0.25)
    np.testing.assert_array_equal(grid["lon"], np.arange(5.0, 15.01, 0.25))
    grid = model.grid(spacing={"lon": 2.0, "lat": 1.0}, bounds={"lon": (5.5, 12.0)})
    np.testing.assert_array_equal(grid["lon"], [5.5, 7.5, 9.5, 11.5])
    assert grid.sizes["lat"] == 8
    np.testing.assert_array_equal(model.grid(spacing={"lat": 0.1})["lat"][:3], [45.1, 45.2, 45.3])  # no 45.300000000000004
    for wrong in (0.0, -1.0, np.nan, {}):
        with pytest.raises(ValueError, match="`spacing` must be a positive number"):
            model.grid(spacing=wrong)
    with pytest.raises(ValueError, match=r"too large\. Raise `spacing`"):
        model.grid(spacing=1e-9)
    with pytest.raises(ValueError, match="not both"):
        model.grid(4, spacing=1.0)
    with pytest.raises(ValueError, match="no feature"):
        model.grid(spacing={"z": 1.0})


def test_a_grid_of_the_whole_globe_has_every_meridian_once_and_no_place_beyond_the_poles():
    X = np.random.default_rng(0).uniform((-180, -90), (180, 90), (400, 2))
    globe = StitchedRegressor(geographic=(0, 1), **FAST).fit(X, field(*X.T))
    grid = globe.grid(spacing=30.0)
    np.testing.assert_array_equal(grid["x0"], np.arange(-180, 180, 30))
    np.testing.assert_array_equal(grid["x1"], np.arange(-90, 91, 30))
    assert grid["y"].dims == ("x1", "x0")


def test_many_features_ask_for_a_shape():
    X = np.random.default_rng(0).uniform(size=(60, 3))
    with pytest.raises(ValueError, match="Say which of x0, x1, x2 to vary"):
        StitchedRegressor(**FAST).fit(X, X.sum(axis=1)).grid()


def test_slopes_by_the_metre_are_columns(folder, tmp_path, model):
    X = open_table(folder / "map.csv").read(["lon", "lat"])
    east, north = model.gradient(X, unit="metres").T
    run("predict", folder / "m.stitch", folder / "map.csv", "--gradient", "--unit", "metres", "--only", "-o", tmp_path / "p.csv")
    table = open_table(tmp_path / "p.csv")
    assert table.names == ["t", "dt/deast", "dt/dnorth"]
    np.testing.assert_allclose(table.read(table.names[1:]), np.stack([east, north], axis=1), rtol=1e-6, atol=1e-15)
    run("grid", folder / "m.stitch", "--shape", "3", "--gradient", "--unit", "metres", "-o", tmp_path / "g.nc")
    with xarray.open_dataset(tmp_path / "g.nc") as grid:
        at = np.array([[float(grid["lon"][1]), float(grid["lat"][2])]])
        np.testing.assert_allclose(float(grid["dt_dnorth"][2, 1]), model.gradient(at, unit="metres")[0, 1], rtol=1e-6)
    assert "`unit` must be None" in run("grid", folder / "m.stitch", "--unit", "miles", "-o", tmp_path / "g.nc", code=2).stderr


def test_units_of_slopes_are_those_of_the_response_by_metre():
    X = pd.DataFrame(np.random.default_rng(0).uniform(0, 40, (60, 2)), columns=["lon", "lat"])
    y = pd.Series(field(X["lon"], X["lat"]).to_numpy(), name="t")
    y.attrs["units"] = "K"
    grid = StitchedRegressor(geographic=("lon", "lat"), **FAST).fit(X, y).grid(3, gradient=True, unit="metres", function_std=True)
    assert grid["dt_deast"].attrs["units"] == "K/m"
    assert grid["t_function_std"].attrs["units"] == "K"
    assert list(grid.data_vars) == ["t", "dt_deast", "dt_dnorth", "t_function_std", "dt_deast_std", "dt_dnorth_std"]


def test_deviations_of_the_function_and_of_slopes_are_those_of_the_model(model):
    grid = model.grid(4, gradient=True, std=True, function_std=True)
    lat, lon = np.meshgrid(grid["lat"], grid["lon"], indexing="ij")
    X = np.stack([lon.ravel(), lat.ravel()], axis=1)
    np.testing.assert_allclose(grid["t_function_std"].values.ravel(), model.predict(X, return_std=True, std_of="function")[1])
    np.testing.assert_allclose(grid["t_std"].values.ravel(), model.predict(X, return_std=True)[1])
    deviation = model.gradient(X, return_std=True)[1]
    np.testing.assert_allclose(grid["dt_dlat_std"].values.ravel(), deviation[:, 1])


@pytest.fixture
def other(tmp_path):
    """A grid of somebody else: other names, latitudes from north to south, 32-bit, a reference system, one more dimension."""
    lat, lon = np.arange(51.5, 46.0, -0.5, dtype=np.float32), np.arange(6.0, 14.0, 0.5, dtype=np.float32)
    rng = np.random.default_rng(0)
    dataset = xarray.Dataset(
        {
            "rain": (("y", "x"), rng.uniform(size=(len(lat), len(lon))), {"units": "mm", "grid_mapping": "crs"}),
            "crs": ((), 0, {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6371229.0}),
        },
        coords={
            "y": ("y", lat, {"standard_name": "latitude", "units": "degrees_north"}),
            "x": ("x", lon, {"standard_name": "longitude", "units": "degrees_east", "note": "as it was"}),
        },
        attrs={"history": "made by hand"},
    )
    dataset.to_netcdf(tmp_path / "other.nc")
    return tmp_path / "other.nc"


@pytest.mark.parametrize("way", ["grid", "predict"])
def test_the_grid_of_another_file_comes_back(folder, tmp_path, model, other, way):
    output = tmp_path / "out.nc"
    if way == "grid":
        run("grid", folder / "m.stitch", "--like", other, "--gradient", "-o", output)
    else:
        run("predict", folder / "m.stitch", other, "--gradient", "-o", output)
    with xarray.open_dataset(output) as found, xarray.open_dataset(other) as given:
        assert found["t"].dims == ("y", "x")
        assert found["t"].attrs["grid_mapping"] == "crs"
        assert found["crs"].attrs["semi_major_axis"] == 6371229.0
        for name in ("y", "x"):
            np.testing.assert_array_equal(found[name], given[name])
            assert dict(given[name].attrs).items() <= dict(found[name].attrs).items()
        assert found.attrs["history"] == "made by hand"
        lat, lon = np.meshgrid(given["y"].values.astype(float), given["x"].values.astype(float), indexing="ij")
        expected = model(np.stack([lon.ravel(), lat.ravel()], axis=1)).reshape(lat.shape)
        np.testing.assert_allclose(found["t"].values, expected, rtol=1e-9)
        assert "dt_dlon" in found
        assert ("rain" in found) == (way == "predict")
        if way == "predict":
            np.testing.assert_array_equal(found["rain"], given["rain"])


def test_a_grid_with_dates_holes_and_a_dimension_of_its_own(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"time": pd.to_datetime(rng.integers(18000, 18100, 200), unit="D"), "z": rng.uniform(size=200)})
    day = (frame["time"] - pd.Timestamp("1970-01-01")).dt.days.to_numpy()
    frame.assign(y=day / 100 + frame["z"]).to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.stitch", "--quick", "--set", "kernel=cubic", "--set", "degree=1")
    times = pd.date_range("2019-05-01", periods=3)
    height = np.array([[0.1, np.nan], [0.5, 0.9], [0.2, 0.3]])
    like = xarray.Dataset({"z": (("time", "site"), height)}, coords={"time": times, "site": ["a", "b"]})
    like.to_netcdf(tmp_path / "g.nc")
    run("predict", tmp_path / "m.stitch", tmp_path / "g.nc", "-o", tmp_path / "p.nc", "--only")
    with xarray.open_dataset(tmp_path / "p.nc") as found:
        assert found["y"].dims == ("time", "site")
        days = (times - pd.Timestamp("1970-01-01")).days.to_numpy()
        np.testing.assert_allclose(found["y"], days[:, None] / 100 + height, atol=1e-6)  # a plane is reproduced; NaN where z is
        assert found["site"].values.tolist() == ["a", "b"]
    run("predict", tmp_path / "m.stitch", tmp_path / "g.nc", "-o", tmp_path / "p.csv", "--drop-missing")
    assert len(open_table(tmp_path / "p.csv").read(["y"])) == 6
    like.drop_vars("z").to_netcdf(tmp_path / "g.nc")
    assert "has no variable 'z'" in run("predict", tmp_path / "m.stitch", tmp_path / "g.nc", "-o", tmp_path / "p.nc", code=2).stderr
    said = run("grid", tmp_path / "m.stitch", "--like", tmp_path / "g.nc", "-o", tmp_path / "p.nc").stderr
    assert "has no coordinate 'z', which stands at its median" in said


def test_words_of_a_grid_are_categories(tmp_path):
    frame = pd.DataFrame({"soil": ["clay", "sand"] * 40, "x": np.linspace(0, 1, 80)})
    frame.assign(y=frame["x"] + (frame["soil"] == "sand")).to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.stitch", "--quick", "--set", "kernel=cubic", "--set", "degree=1")
    xarray.Dataset({"soil": ("x", ["sand", "clay"])}, coords={"x": [0.25, 0.75]}).to_netcdf(tmp_path / "g.nc")
    run("predict", tmp_path / "m.stitch", tmp_path / "g.nc", "-o", tmp_path / "p.nc")
    with xarray.open_dataset(tmp_path / "p.nc") as found:
        np.testing.assert_allclose(found["y"], [1.25, 0.75], atol=1e-6)


def test_what_like_does_not_go_with_is_refused(folder, tmp_path, other):
    arguments = ["grid", folder / "m.stitch", "--like", other]
    assert "leave out `--shape`" in run(*arguments, "--shape", "4", "-o", tmp_path / "o.nc", code=2).stderr
    assert "must end in one of .nc" in run(*arguments, "-o", tmp_path / "o.csv", code=2).stderr
    assert "would overwrite" in run(*arguments, "-o", other, code=2).stderr
    xarray.Dataset(coords={"q": [1.0]}).to_netcdf(tmp_path / "q.nc")
    said = run("grid", folder / "m.stitch", "--like", tmp_path / "q.nc", "-o", tmp_path / "o.nc", code=2).stderr
    assert "has none of the features lon, lat. Its coordinates: q" in said
    assert not (tmp_path / "o.nc").exists()


def test_a_geotiff_is_a_map_with_its_reference_system(folder, tmp_path, model):
    rioxarray = pytest.importorskip("rioxarray", reason="GeoTIFF needs rioxarray: pip install 'stitchwork[geo]'")
    run("grid", folder / "m.stitch", "--spacing", "0.5", "--gradient", "-o", tmp_path / "map.tif")
    with rioxarray.open_rasterio(tmp_path / "map.tif") as raster:
        assert raster.rio.crs.to_epsg() == 4326
        assert raster.rio.resolution() == (0.5, -0.5)  # north up
        assert raster.rio.bounds() == (4.75, 44.75, 15.25, 52.25)
        assert raster.attrs["long_name"] == ("t", "dt/dlon", "dt/dlat")
        at = [float(raster["x"][3]), float(raster["y"][2])]
        assert float(raster[0, 2, 3]) == pytest.approx(float(model(at)), rel=1e-9)
    run("grid", folder / "m.stitch", "--like", tmp_path / "map.tif", "-o", tmp_path / "again.tif")
    with rioxarray.open_rasterio(tmp_path / "again.tif") as again, rioxarray.open_rasterio(tmp_path / "map.tif") as raster:
        assert again.rio.crs == raster.rio.crs
        np.testing.assert_allclose(again[0], raster[0], rtol=1e-12)  # in another order of rows
    said = run("grid", folder / "m.stitch", "--shape", "lon=4", "-o", tmp_path / "line.tif", code=2).stderr
    assert "A GeoTIFF has two dimensions" in said
    with xarray.open_dataset(_netcdf(folder, tmp_path)) as grid:
        assert grid.rio.crs.to_epsg() == 4326
        assert (grid.rio.x_dim, grid.rio.y_dim) == ("lon", "lat")


def test_a_map_in_metres_is_projected_for_a_model_in_degrees(folder, tmp_path, model):
    rioxarray = pytest.importorskip("rioxarray", reason="GeoTIFF needs rioxarray: pip install 'stitchwork[geo]'")
    pyproj = pytest.importorskip("pyproj", reason="projections need pyproj: pip install 'stitchwork[geo]'")
    run("grid", folder / "m.stitch", "--spacing", "0.5", "-o", tmp_path / "map.tif")
    with rioxarray.open_rasterio(tmp_path / "map.tif") as raster:
        raster.rio.reproject("EPSG:32632", resolution=50_000).rio.to_raster(tmp_path / "utm.tif")
    run("grid", folder / "m.stitch", "--like", tmp_path / "utm.tif", "-o", tmp_path / "out.tif")
    run("grid", folder / "m.stitch", "--like", tmp_path / "utm.tif", "-o", tmp_path / "out.nc")
    with rioxarray.open_rasterio(tmp_path / "out.tif") as found, rioxarray.open_rasterio(tmp_path / "utm.tif") as like:
        assert found.rio.crs == like.rio.crs
        assert found.rio.bounds() == like.rio.bounds()
        x, y = np.meshgrid(found["x"], found["y"])
        lon, lat = pyproj.Transformer.from_crs("EPSG:32632", "EPSG:4326", always_xy=True).transform(x, y)
        expected = model.predict(np.stack([lon.ravel(), lat.ravel()], axis=1)).reshape(x.shape)
        np.testing.assert_allclose(found[0], expected, rtol=1e-9)
        with xarray.open_dataset(tmp_path / "out.nc") as field:
            np.testing.assert_allclose(field["t"].sel(x=found["x"], y=found["y"]), expected, rtol=1e-9)


def _netcdf(folder, tmp_path):
    run("grid", folder / "m.stitch", "-o", tmp_path / "g.nc")
    return tmp_path / "g.nc"


@pytest.mark.parametrize("suffix", ["gpkg", "shp", "geojson"])
def test_points_of_a_geopackage_or_shapefile_are_a_table(tmp_path, suffix):
    geopandas = pytest.importorskip("geopandas", reason="geometries need geopandas: pip install 'stitchwork[geo]'")
    rng = np.random.default_rng(0)
    x, y = rng.uniform(4e5, 5e5, 80), rng.uniform(5e6, 5.1e6, 80)
    crs = "EPSG:4326" if suffix == "geojson" else "EPSG:32632"
    x, y = (x / 1e5, y / 1e5) if suffix == "geojson" else (x, y)
    frame = geopandas.GeoDataFrame({"v": x + y, "soil": ["clay", "sand"] * 40}, geometry=geopandas.points_from_xy(x, y), crs=crs)
    frame.to_file(tmp_path / f"p.{suffix}")
    table = open_table(tmp_path / f"p.{suffix}")
    names = ["longitude", "latitude"] if suffix == "geojson" else ["x", "y"]
    assert table.names == [*names, "v", "soil"]
    assert crs in table.note
    np.testing.assert_allclose(table.read(names), np.stack([x, y], axis=1), rtol=1e-12)
    if suffix == "gpkg":
        rioxarray = pytest.importorskip("rioxarray", reason="GeoTIFF needs rioxarray: pip install 'stitchwork[geo]'")
        fast = ["--set", "kernel=cubic", "--set", "selection=null", "--quick"]
        run("fit", tmp_path / "p.gpkg", "-t", "v", "-f", "x,y", "-o", tmp_path / "m.stitch", *fast)
        run("grid", tmp_path / "m.stitch", "--spacing", "10000", "-o", tmp_path / "p.tif")
        with rioxarray.open_rasterio(tmp_path / "p.tif") as raster:
            assert raster.rio.crs.to_epsg() == 32632
            assert raster.rio.resolution() == (10000.0, -10000.0)
            x, y = np.meshgrid(raster["x"], raster["y"])
            np.testing.assert_allclose(raster[0].values[2:-2, 2:-2], (x + y)[2:-2, 2:-2], rtol=1e-6)  # a plane


def test_other_geometries_are_refused(tmp_path):
    geopandas = pytest.importorskip("geopandas", reason="geometries need geopandas: pip install 'stitchwork[geo]'")
    points = geopandas.GeoSeries.from_xy([0.0, 1.0], [0.0, 1.0])
    geopandas.GeoDataFrame({"v": [1, 2]}, geometry=points.buffer(1.0)).to_file(tmp_path / "p.gpkg")
    with pytest.raises(ValueError, match="of type Polygon, and points are needed"):
        open_table(tmp_path / "p.gpkg")
    geopandas.GeoDataFrame({"x": [1, 2]}, geometry=points).to_file(tmp_path / "q.gpkg")
    with pytest.raises(ValueError, match="attribute 'x', which is the name of a coordinate"):
        open_table(tmp_path / "q.gpkg")


def test_geodataframes_are_features(tmp_path):
    geopandas = pytest.importorskip("geopandas", reason="geometries need geopandas: pip install 'stitchwork[geo]'")
    rng = np.random.default_rng(0)
    lon, lat = rng.uniform(5, 15, 100), rng.uniform(45, 52, 100)
    frame = geopandas.GeoDataFrame({"h": lat}, geometry=geopandas.points_from_xy(lon, lat), crs="EPSG:4326")
    model = StitchedRegressor(geographic=("longitude", "latitude"), **FAST).fit(frame[["geometry"]], field(lon, lat))
    assert list(model.feature_names_in_) == ["longitude", "latitude"]
    np.testing.assert_array_equal(model.predict(frame[["geometry"]]), model.predict(np.stack([lon, lat], axis=1)))
    assert list(StitchedRegressor(**FAST).fit(frame, lon).feature_names_in_) == ["h", "longitude", "latitude"]
    lines = frame.set_geometry(frame.to_crs(32632).buffer(1.0))
    with pytest.raises(ValueError, match="must be points"):
        StitchedRegressor().fit(lines, lon)


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x"), ("easting", "northing"), ("northing", "easting")])
def test_a_geotiff_has_x_across_whatever_the_order_of_the_features(tmp_path, names):
    rasterio = pytest.importorskip("rasterio", reason="GeoTIFF is rasterio's: pip install 'stitchwork[geo]'")
    rng = np.random.default_rng(0)
    across, up = rng.uniform(0, 30, 200), rng.uniform(100, 110, 200)
    columns = {name: across if name in ("x", "easting") else up for name in names}
    pd.DataFrame(columns | {"z": across + 10 * up}).to_csv(tmp_path / "map.csv", index=False)
    fast = ["--set", "kernel=cubic", "--set", "selection=null", "--quick"]
    run("fit", tmp_path / "map.csv", "-t", "z", "-o", tmp_path / "m.stitch", *fast)
    run("grid", tmp_path / "m.stitch", "--spacing", "1", "-o", tmp_path / "m.tif")
    with rasterio.open(tmp_path / "m.tif") as raster:
        left, bottom, right, top = raster.bounds
        assert (left, right) == (pytest.approx(0, abs=1.1), pytest.approx(30, abs=1.1))
        assert (bottom, top) == (pytest.approx(100, abs=1.1), pytest.approx(110, abs=1.1))
        (value,) = next(raster.sample([(20.0, 105.0)]))
        assert value == pytest.approx(20 + 1050, abs=0.1)
