"""Coordinates as they come: no seam at the end of a period, at the dateline or a pole, and derivatives by the features."""

import ctypes

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.transform import Rotation
from sklearn.base import clone

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork.model.chart import EARTH_RADIUS, Chart, angles
from stitchwork.model.description import Description, describe, restore
from stitchwork.native import make_evaluator
from stitchwork.transform import LogStitchedRegressor

FIXED = {"kernel": "gaussian", "degree": 1, "bandwidth": 1.0, "ridge": 1e-6, "metric": "euclidean"}
# Rounding of a prediction is ε Σ|α| (ARCHITECTURE.md, Invariants): below 1e-11 of the response for this ridge; every derivative
# divides it by the distance of neighbours, 0.1 at least.
ROUNDING, ROUNDING_1, ROUNDING_2 = 1e-11, 1e-10, 1e-9


def on_sphere(lon, lat):
    lon, lat = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def everywhere(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))])


def harmonic(X):
    """A sum of spherical harmonics of degrees 1 and 2."""
    x, y, z = on_sphere(X[:, 0], X[:, 1]).T
    return x * z + 0.5 * y + z


def harmonic_gradient(X):
    """Of it by a step of one radian to the east and to the north, (q, 2)."""
    lon, lat = np.radians(X).T
    x, _, z = on_sphere(X[:, 0], X[:, 1]).T
    outer = np.stack([z, np.full_like(z, 0.5), x + 1.0], axis=1)
    east = np.stack([-np.sin(lon), np.cos(lon), 0 * lon], axis=1)
    north = np.stack([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)], axis=1)
    return np.stack([(outer * east).sum(axis=1), (outer * north).sum(axis=1)], axis=1)


def mixed_data(n=1500, seed=0):
    """A phase in degrees, a plain feature, longitude and latitude, and a function of all four with two outputs."""
    rng = np.random.default_rng(seed)
    globe = everywhere(n, seed)
    X = np.column_stack([rng.uniform(0, 360, n), globe[:, 0], rng.uniform(-1, 1, n), globe[:, 1]])
    phase = np.radians(X[:, 0])
    y = np.cos(phase) + X[:, 2] * harmonic(globe) + 0.3 * np.sin(phase) * X[:, 2]
    return X, np.stack([y, y**2], axis=1)


def by_hand(X):
    """The places of `mixed_data`, column by column."""
    phase = np.radians(X[:, 0])
    circle = 180 / np.pi * np.stack([np.cos(phase), np.sin(phase)], axis=1)
    return np.column_stack([circle, 180 / np.pi * on_sphere(X[:, 1], X[:, 3]), X[:, 2]])


@pytest.fixture(scope="module")
def mixed():
    X, y = mixed_data()
    settings = {**FIXED, "metric": np.diag([1e-4] * 2 + [1e-4] * 3 + [1.0])}
    chart = StitchedRegressor(periodic={0: 360}, geographic=(1, 3), region_size=60, **settings).fit(X, y)
    plain = StitchedRegressor(region_size=60, **settings).fit(by_hand(X), y)
    return chart, plain, np.random.default_rng(1).permutation(X)[:50] + np.array([3.0, 2.0, 0.1, 0.0])


@pytest.fixture(scope="module")
def globe():
    X = everywhere(2000)
    return StitchedRegressor(geographic=(0, 1), **FIXED).fit(X, harmonic(X))


@pytest.fixture(params=["compiled", "numpy"])
def engine(request, monkeypatch):
    if request.param == "compiled" and not stitchwork.native.available():
        pytest.skip("the library was not compiled")
    return request.param


def ask(model, X, order, engine):
    return (model.model_.jet if engine == "compiled" else model.model_.reference_jet)(np.asarray(X, float), order)


def test_a_model_behind_a_chart_is_the_model_of_the_places(mixed, engine):
    chart, plain, Q = mixed
    outer, inner = ask(chart, Q, 2, engine), plain.model_.reference_jet(by_hand(Q), 2)
    np.testing.assert_allclose(outer.value, inner.value, rtol=0, atol=ROUNDING)
    J = chart.model_.chart.jacobian(Q)
    np.testing.assert_allclose(outer.gradient, np.einsum("qte,qed->qtd", inner.gradient, J), rtol=0, atol=ROUNDING_1)
    assert chart.model_.dimension == 6
    assert chart.n_features_in_ == 4
    np.testing.assert_allclose(chart.radii_, plain.radii_)
    np.testing.assert_allclose(chart.metric_, plain.metric_)


def test_the_same_holds_far_beyond_the_data(engine):
    X = np.column_stack([np.random.default_rng(0).uniform(0, 90, 300), np.linspace(0, 1, 300)])
    y, theta = X[:, 1] + np.sin(np.radians(X[:, 0])), np.radians
    chart = StitchedRegressor(periodic={0: 360}, **FIXED).fit(X, y)
    places = lambda X: np.column_stack([180 / np.pi * np.cos(theta(X[:, 0])), 180 / np.pi * np.sin(theta(X[:, 0])), X[:, 1]])  # noqa: E731
    plain = StitchedRegressor(**FIXED).fit(places(X), y)
    Q = np.array([[180.0, 0.5], [270.0, 3.0], [45.0, -100.0]])
    np.testing.assert_allclose(ask(chart, Q, 0, engine).value[:, 0], plain.predict(places(Q)), rtol=0, atol=ROUNDING)


def test_derivatives_are_those_of_the_prediction(mixed, engine):
    chart, _, Q = mixed
    h = np.array([1e-3, 1e-3, 1e-5, 1e-3])  # central differences: error h² f''' / 6 and rounding ε / h, both below 1e-8
    jet = ask(chart, Q, 2, engine)
    for k in range(4):
        step = h[k] * np.eye(4)[k]
        ahead, behind = (ask(chart, Q + sign * step, 1, engine) for sign in (1, -1))
        np.testing.assert_allclose((ahead.value - behind.value) / (2 * h[k]), jet.gradient[:, :, k], rtol=1e-6, atol=1e-6)
        slopes = (ahead.gradient - behind.gradient) / (2 * h[k])
        np.testing.assert_allclose(slopes, jet.hessian[:, :, :, k], rtol=1e-5, atol=1e-5)


def test_the_hessian_is_symmetric_and_both_engines_agree(mixed):
    chart, _, Q = mixed
    jets = [ask(chart, Q, 2, name) for name in ("compiled", "numpy")]
    np.testing.assert_allclose(jets[0].hessian, jets[0].hessian.swapaxes(2, 3), rtol=0, atol=ROUNDING_2)
    for ours, reference in zip(*jets, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=0, atol=ROUNDING_2 * max(1.0, np.abs(reference).max()))
    coverage = chart.model_.reference_coverage(Q)
    np.testing.assert_allclose(chart.coverage(Q), coverage, rtol=0, atol=1e-12)


@pytest.mark.parametrize("turns", [-2, 1, 5])
def test_whole_turns_change_nothing(mixed, turns):
    chart, _, Q = mixed
    moved = Q + np.array([360.0, 360.0, 0.0, 0.0]) * turns
    # x + 360 k is rounded: to 2e-13 of a degree here, which slopes below 1 per degree make of values.
    np.testing.assert_allclose(chart.predict(moved), chart.predict(Q), rtol=0, atol=1e-12)
    np.testing.assert_allclose(chart.gradient(moved), chart.gradient(Q), rtol=0, atol=ROUNDING_1)


@pytest.mark.parametrize("edge", [180.0, 0.0, 90.0])
def test_there_is_no_seam(globe, edge, engine):
    lat = np.linspace(-89, 89, 50)
    one, other = (np.column_stack([np.full(50, lon), lat]) for lon in (edge, edge - 360.0))
    near = one + np.array([1e-9, 0.0])
    for order in range(3):
        here, there, close = (ask(globe, Q, order, engine)[order] for Q in (one, other, near))
        np.testing.assert_array_equal(here, there)
        np.testing.assert_allclose(here, close, rtol=0, atol=1e-8)


def test_the_end_of_a_period_is_its_start():
    X = np.random.default_rng(0).uniform(0, 24, (400, 1))
    model = StitchedRegressor(periodic={0: 24}).fit(X, np.sin(X[:, 0] * np.pi / 12))
    before, start = np.nextafter(24.0, 0.0), 0.0
    np.testing.assert_allclose(model.predict([[before]]), model.predict([[start]]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(model.gradient([[start]]), [[np.pi / 12]], rtol=1e-5)
    np.testing.assert_allclose(model.hessian([[6.0]]), [[[-((np.pi / 12) ** 2)]]], rtol=1e-3)


def test_gradients_on_the_globe_by_degrees_and_by_metres():
    X = everywhere(4000)
    model = StitchedRegressor(geographic=(0, 1)).fit(X, harmonic(X))
    Q = everywhere(200, seed=1)
    radians = harmonic_gradient(Q)
    degrees = np.radians(radians * np.column_stack([np.cos(np.radians(Q[:, 1])), np.ones(200)]))
    np.testing.assert_allclose(model.gradient(Q), degrees, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.gradient(Q, unit="metres"), radians / EARTH_RADIUS, rtol=0, atol=1e-13)
    gradient, deviation = model.gradient(Q, return_std=True)
    per_metre, small = model.gradient(Q, return_std=True, unit="metres")
    np.testing.assert_allclose(per_metre / gradient, small / deviation)
    value, slope = model.predict_with_gradient(Q, unit="metres")
    np.testing.assert_array_equal(slope, per_metre)
    np.testing.assert_allclose(value, model.predict(Q), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("pole", [90.0, -90.0])
def test_a_pole_is_a_point_like_any_other(globe, pole, engine):
    lon = np.linspace(-180, 170, 36)
    lon_rad, sign = np.radians(lon), np.sign(pole)
    for away in (0.0, 1e-9):  # degrees, which slopes of at most 0.03 make of values
        Q = np.column_stack([lon, np.full(36, pole - sign * away)])
        jet = ask(globe, Q, 1, engine)
        np.testing.assert_allclose(jet.value[:, 0], jet.value[0, 0], rtol=0, atol=ROUNDING + 0.06 * away)
        east, north = (jet.gradient[:, 0] * globe.model_.per_metre(Q)).T
        # Tangent vectors in space, which are the same whichever meridian names them.
        c, s = np.cos(lon_rad), np.sin(lon_rad)
        tangent = np.stack([-east * s - sign * north * c, east * c - sign * north * s])
        np.testing.assert_allclose(tangent - tangent[:, :1], 0.0, rtol=0, atol=1e-9 * np.abs(tangent).max())


def test_data_at_poles_and_after_whole_turns_are_one_place():
    rng = np.random.default_rng(0)
    X = np.concatenate([everywhere(300), [[0.0, 90.0], [77.0, 90.0], [-180.0, 10.0], [180.0, 10.0], [540.0, 10.0]]])
    y = np.concatenate([harmonic(X[:300]), [1.0, 3.0, 0.0, 1.0, 2.0]])
    model = StitchedRegressor(geographic=(0, 1), **FIXED).fit(X, y)
    assert model.model_.n_points == 302
    assert {2.0, 1.0} <= set(model.leave_one_out().y)
    merged = StitchedRegressor(geographic=(0, 1), **FIXED).fit(
        np.concatenate([X[:300], [[5.0, 90.0], [180.0, 10.0]]]),
        np.concatenate([y[:300], [2.0, 1.0]]),
        sample_weight=np.concatenate([np.ones(300), [2.0, 3.0]]),
    )
    Q = np.column_stack([rng.uniform(-180, 180, 40), rng.uniform(-90, 90, 40)])
    np.testing.assert_allclose(model.predict(Q), merged.predict(Q), rtol=0, atol=1e-9)


def test_turning_all_longitudes_turns_the_model():
    X = everywhere(1500)
    Q, quarter = everywhere(100, seed=1), np.array([90.0, 0.0])
    models = [StitchedRegressor(geographic=(0, 1), kernel="matern52").fit(X + shift, harmonic(X)) for shift in (0.0, quarter)]
    assert models[0].n_regions_ == models[1].n_regions_
    np.testing.assert_allclose(models[0].predict(Q), models[1].predict(Q + quarter), rtol=0, atol=1e-7)


def test_turning_the_globe_turns_the_model_even_over_the_poles():
    X, Q, turn = everywhere(1500), everywhere(100, seed=1), Rotation.from_euler("xyz", [1.0, 0.5, 2.0])

    def turned(X):
        x, y, z = turn.apply(on_sphere(X[:, 0], X[:, 1])).T
        return np.degrees(np.column_stack([np.arctan2(y, x), np.arcsin(z)]))

    models = [StitchedRegressor(geographic=(0, 1), **FIXED).fit(places, harmonic(X)) for places in (X, turned(X))]
    np.testing.assert_allclose(models[0].predict(Q), models[1].predict(turned(Q)), rtol=0, atol=1e-8)


def test_features_come_back_in_the_range_they_came_in():
    X = everywhere(500)
    for shift in (0.0, 180.0):
        moved = X + np.array([shift, 0.0])
        model = StitchedRegressor(geographic=(0, 1), **FIXED).fit(moved, harmonic(X))
        assert np.abs(model.centers_[:, None] - moved).max(axis=2).min(axis=1).max() < 1e-9
        assert model.leave_one_out().X[:, 0].min() >= -180.0 + shift
        frame = model.model_.frame
        np.testing.assert_allclose(frame[:2, 0], [X[:, 0].min() + shift, X[:, 0].max() + shift], atol=1e-9)


def test_angles_are_exact_after_whole_periods():
    np.testing.assert_array_equal(angles(np.array([180.0, -180.0, 540.0, 0.0, -720.0]), 360.0), [np.pi, np.pi, np.pi, 0.0, -0.0])
    assert angles(np.array([1e6 * 24.0 + 6.0]), 24.0)[0] == np.pi / 2


def test_a_chart_gives_back_what_it_was_given():
    chart = Chart((360.0, 0.0, 0.0, 24.0), (0, 2), (0.0, 0.0, 0.0, -12.0))
    X = np.array([[0.0, 5.0, -89.0, -11.5], [359.0, -7.0, 89.0, 11.5], [180.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(chart.original(chart.embed(X)), X, atol=1e-12)
    assert chart.dimension == 6
    assert chart.blocks.tolist() == [0, 0, 0, 1, 3, 3]


def test_names_and_indices_say_the_same():
    X, y = mixed_data(400)
    frame = pd.DataFrame(X, columns=["phase", "lon", "height", "lat"])
    named = StitchedRegressor(periodic={"phase": 360}, geographic=("lon", "lat"), **FIXED).fit(frame, y)
    counted = StitchedRegressor(periodic={0: 360.0}, geographic=(1, 3), **FIXED).fit(X, y)
    np.testing.assert_array_equal(named.predict(frame), counted.predict(X))
    assert clone(named).get_params()["periodic"] == {"phase": 360}


def test_nothing_periodic_is_no_chart():
    X, y = mixed_data(200)
    empty = StitchedRegressor(periodic={}, **FIXED).fit(X, y)
    assert empty.model_.chart is None
    np.testing.assert_array_equal(empty.predict(X), StitchedRegressor(**FIXED).fit(X, y).predict(X))


def test_deviations_and_contributions_are_those_of_the_places(mixed):
    chart, plain, Q = mixed
    for ours, by_places in zip(chart.predict(Q, return_std=True), plain.predict(by_hand(Q), return_std=True), strict=True):
        np.testing.assert_allclose(ours, by_places, rtol=1e-6)
    ours, theirs = chart.contributions(Q[0]), plain.contributions(by_hand(Q)[0])
    assert [one.region for one in ours] == [one.region for one in theirs]
    np.testing.assert_allclose(by_hand(ours[0].center[None])[0], theirs[0].center, atol=1e-9)
    assert chart.loo_error_ == pytest.approx(plain.loo_error_, rel=1e-6)


def test_deviations_of_gradients_come_through_the_chart(globe):
    X = everywhere(800)
    y = harmonic(X) + 0.1 * np.random.default_rng(0).normal(size=800)
    model = StitchedRegressor(geographic=(0, 1), kernel="matern52", metric="euclidean").fit(X, y)
    Q = np.array([[10.0, 0.0], [10.0, 80.0]])
    deviation = model.gradient(Q, return_std=True, unit="metres")[1]
    # On a sphere with noise everywhere, no direction is surer than another by much.
    assert (deviation.max() / deviation.min()) < 3.0


def test_a_loaded_model_is_the_same(mixed, tmp_path):
    chart, _, Q = mixed
    chart.save(tmp_path / "model.stitch")
    again = load(tmp_path / "model.stitch")
    assert again.model_.chart == chart.model_.chart
    assert again.get_params()["periodic"] == {0: 360}
    assert again.get_params()["geographic"] == (1, 3)
    for ours, theirs in zip(again.model_.jet(Q, 2), chart.model_.jet(Q, 2), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again.centers_, chart.centers_)


@pytest.mark.skipif(not stitchwork.native.available(), reason="the library was not compiled")
def test_a_file_is_read_in_c(mixed, tmp_path):
    chart, _, Q = mixed
    chart.save(tmp_path / "model.stitch")
    library, handle = ctypes.CDLL(stitchwork.native.library()), ctypes.c_void_p()
    library.st_message.restype = ctypes.c_char_p
    assert library.st_open(str(tmp_path / "model.stitch").encode(), ctypes.byref(handle)) == 0
    assert (library.st_features(handle), library.st_outputs(handle)) == (4, 2)
    assert library.st_expect(handle, 4, 2) == 0
    f, g, H = (np.empty(shape) for shape in (2, (2, 4), (2, 4, 4)))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (Q[:1], f, g, H)]
    assert library.st_hessian(handle, *pointers) == 0
    for found, expected in zip((f, g, H), chart.model_.jet(Q[:1], 2), strict=True):
        np.testing.assert_array_equal(found, expected[0])
    beyond = (ctypes.c_double * 4)(0.0, 0.0, 0.0, 90.5)
    assert b"beyond a pole" in library.st_message(library.st_value(handle, beyond, pointers[1]))
    library.st_close(handle)


DAMAGED_CHARTS = {
    "period": [0.0, 360.0, 0.0, 0.0],
    "globe": [1, 1],
    "limits": np.zeros((2, 5)),
    "start": [0.0, 1.0, 2.0],
}


@pytest.mark.parametrize("name", DAMAGED_CHARTS)
def test_a_damaged_chart_is_refused(mixed, name):
    header, arrays = describe(mixed[0].model_)
    wrong = np.array(DAMAGED_CHARTS[name])
    with pytest.raises(ValueError, match=f"chart/{name}"):
        restore(Description(header, arrays | {f"chart/{name}": wrong}))
    if name != "start" and stitchwork.native.available():
        with pytest.raises(RuntimeError, match="makes no sense"):
            make_evaluator(arrays | {f"chart/{name}": wrong}, header["weight"], header["kernels"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"periodic": {"phase": 360}}, "`periodic` has the feature 'phase', but `X` has no names. Give its index, from 0 to 1"),
        ({"periodic": {2: 360}}, "indices from 0 to 1, got 2"),
        ({"periodic": {True: 360}}, "got True"),
        ({"periodic": {0: 0.0}}, "`periodic` must have positive finite periods, got 0.0 for 0"),
        ({"periodic": {0: -1}}, "positive finite periods"),
        ({"periodic": {0: "day"}}, "positive finite periods"),
        ({"periodic": {0: np.nan}}, "positive finite periods"),
        ({"periodic": [0]}, "`periodic` must be a mapping"),
        ({"periodic": {0: 360}, "geographic": (0, 1)}, "none of `geographic`"),
        ({"geographic": (0, 0)}, "two different features"),
        ({"geographic": (0,)}, "`geographic` must be a pair"),
        ({"geographic": "01"}, "`geographic` must be a pair"),
        ({"geographic": ("lon", "lat")}, "`X` has no names"),
        ({"geographic": (0, 1), "metric": np.eye(2)}, r"\(3, 3\)"),
    ],
)
def test_what_cannot_be_a_chart_is_refused(parameters, message):
    X = everywhere(50)
    with pytest.raises(ValueError, match=message):
        StitchedRegressor(**parameters).fit(X, X[:, 0])


def test_an_unknown_name_is_refused():
    X = pd.DataFrame(everywhere(50), columns=["lon", "lat"])
    with pytest.raises(ValueError, match=r"'phase', which is no feature of `X`. The features: lon, lat"):
        StitchedRegressor(periodic={"phase": 1.0}).fit(X, X["lon"])
    with pytest.raises(ValueError, match="there already"):
        StitchedRegressor(periodic={"lon": 1.0, 0: 1.0}).fit(X, X["lon"])


def test_latitudes_beyond_the_poles_are_refused(globe):
    with pytest.raises(ValueError, match=r"row 1 of `X` has 95 in column 1"):
        StitchedRegressor(geographic=(0, 1)).fit([[0.0, 0.0], [1.0, 95.0], [2.0, 3.0]], [0.0, 1.0, 2.0])
    bad = [[0.0, 90.0], [0.0, -90.5]]
    for question in (globe.predict, globe.gradient, globe.hessian, globe.coverage, globe.predict_interval, globe):
        with pytest.raises(ValueError, match="Latitudes must be from -90 to 90 degrees, but row 1"):
            question(bad)
    with pytest.raises(ValueError, match="Latitudes must be"):
        globe.contributions(bad[1])
    assert np.isfinite(globe.predict([[1e9, 90.0], [-1e9, -90.0]])).all()


def test_units_are_named(globe):
    with pytest.raises(ValueError, match="`unit` must be None"):
        globe.gradient([[0.0, 0.0]], unit="miles")
    plain = StitchedRegressor(**FIXED).fit(everywhere(50), np.arange(50.0))
    with pytest.raises(ValueError, match="for models of the globe"):
        plain.gradient([[0.0, 0.0]], unit="metres")


def test_summaries_and_grids_tell_of_it(mixed):
    pytest.importorskip("xarray", reason="grids need xarray: pip install 'stitchwork[files]'")
    chart, _, _ = mixed
    assert "x0 has period 360, x1 and x3 are on the globe" in chart.summary()
    field = chart.grid((2, 3, 2, 2), bounds={"x1": (-180, 180), "x3": (-90, 90)}, gradient=True)
    assert field["x0"].attrs == {"long_name": "x0", "period": 360.0}
    assert field["x1"].attrs == {"long_name": "x1", "period": 360.0, "standard_name": "longitude", "units": "degrees_east"}
    assert field["x3"].attrs["units"] == "degrees_north"
    np.testing.assert_allclose(field["y0"].sel(x1=-180), field["y0"].sel(x1=180), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(chart.feature_relevance_.sum(axis=-1), 1.0)


def test_pictures_of_regions_are_those_of_small_steps(globe):
    # Half axes of a region at the equator and on the metric's unit: degrees of arc, shorter in longitude by cos φ.
    at = np.array([0.0, 60.0])
    np.testing.assert_allclose(globe.model_.metric_at(at), np.diag([0.25, 1.0]), atol=1e-12)


def test_a_model_behind_a_chart_grows_and_forgets(globe):
    X = everywhere(2000)
    new = np.concatenate([everywhere(20, seed=3), [[0.0, 90.0], [90.0, 90.0]]])
    grown = StitchedRegressor(geographic=(0, 1), **FIXED).fit(X, harmonic(X)).partial_fit(new, harmonic(new))
    assert grown.model_.n_points == 2021
    assert grown.model_.frame[1, 1] == 90.0
    back = grown.forget(np.concatenate([new[:20], [[-77.0, 90.0]]]))
    assert back.model_.n_points == 2000
    Q = everywhere(100, seed=4)
    # Regions are the same but for those that the points had made: what is left differs as models of one field do.
    np.testing.assert_allclose(back.predict(Q), globe.predict(Q), rtol=0, atol=1e-4)
    suggested = globe.suggest(5)
    assert np.abs(suggested[:, 1]).max() <= 90.0
    with pytest.raises(ValueError, match="row 0"):
        globe.forget([[12.0, 34.0]])


def test_logarithms_behind_a_chart(engine):
    X = everywhere(800)
    model = LogStitchedRegressor(geographic=(0, 1), **FIXED).fit(X, np.exp(harmonic(X)))
    plain = StitchedRegressor(geographic=(0, 1), **FIXED).fit(X, harmonic(X))
    Q = everywhere(50, seed=1)
    (y, g, H), (z, dz, ddz) = ask(model, Q, 2, engine), plain.model_.jet(Q, 2)
    np.testing.assert_allclose(y, np.exp(z), rtol=1e-9)
    np.testing.assert_allclose(g, np.exp(z)[..., None] * dz, rtol=0, atol=1e-9)
    np.testing.assert_allclose(H, np.exp(z)[..., None, None] * (ddz + dz[..., None] * dz[..., None, :]), rtol=0, atol=1e-8)


def test_points_on_both_sides_of_the_dateline_have_one_range():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(155, 205, 300), rng.uniform(-20, 20, 300)])
    X[:, 0] = np.where(X[:, 0] > 180.0, X[:, 0] - 360.0, X[:, 0])
    model = StitchedRegressor(geographic=(0, 1), random_state=0, **FIXED).fit(X, harmonic(X))
    low, high = model.model_.frame[:2, 0]
    assert 155.0 <= low < high <= 205.0
    assert (model.coverage(model.suggest(10)) > 0.0).all()
    assert model.centers_[:, 0].min() >= 155.0
    np.testing.assert_allclose(model.model_.X[:, 0] % 360.0, X[model_rows(model, X), 0] % 360.0, rtol=0, atol=1e-10)
    everywhere_ = StitchedRegressor(geographic=(0, 1), **FIXED).fit(everywhere(500), harmonic(everywhere(500)))
    assert everywhere_.model_.chart.start[0] in (0.0, -180.0)


def model_rows(model, X):
    """The row of the data that each point of the model is."""
    from scipy.spatial import cKDTree

    return cKDTree(model.model_.chart.embed(X)).query(model.model_.embedded_points)[1]
