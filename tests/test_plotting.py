"""Pictures: what is drawn is what the model says, on the axis that was given, with the data's names."""

import numpy as np
import pandas as pd
import pytest

matplotlib = pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'stitchwork[plot]'")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from stitchwork import StitchedRegressor, plotting  # noqa: E402


@pytest.fixture(scope="module")
def model():
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(500, 3)) * [1, 2, 3], columns=["length", "width", "height"])
    y = pd.Series(np.sin(3 * X["length"]) * X["width"] + X["height"], name="lift")
    return StitchedRegressor(selection=None, kernel="gaussian", ridge=1e-8).fit(X, y)


@pytest.fixture(scope="module")
def line():
    X = np.random.default_rng(0).uniform(size=(300, 1))
    return StitchedRegressor(selection=None, region_size=40).fit(X, np.sin(6 * X[:, 0]))


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


DRAWN = {
    "prediction": lambda model, ax=None: plotting.FieldDisplay.from_estimator(model, grid=12, ax=ax),
    "coverage": lambda model, ax=None: plotting.FieldDisplay.from_estimator(model, "coverage", grid=12, ax=ax),
    "gradient": lambda model, ax=None: plotting.FieldDisplay.from_estimator(model, "gradient", grid=12, ax=ax),
    "laplacian": lambda model, ax=None: plotting.FieldDisplay.from_estimator(model, "laplacian", grid=12, ax=ax),
    "arrows": lambda model, ax=None: plotting.GradientDisplay.from_estimator(model, grid=6, ax=ax),
    "regions": lambda model, ax=None: plotting.RegionsDisplay.from_estimator(model, ax=ax),
    "bandwidth": lambda model, ax=None: plotting.SettingsDisplay.from_estimator(model, ax=ax),
    "kernel": lambda model, ax=None: plotting.SettingsDisplay.from_estimator(model, "kernel", ax=ax),
    "errors": lambda model, ax=None: plotting.ErrorDisplay.from_estimator(model, ax=ax),
    "leave-one-out": lambda model, ax=None: plotting.LeaveOneOutDisplay.from_estimator(model, ax=ax),
    "relevance": lambda model, ax=None: plotting.RelevanceDisplay.from_estimator(model, ax=ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_draws_on_the_axis_given_and_returns_itself(model, name):
    figure, ax = plt.subplots()
    display = DRAWN[name](model, ax)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.get_xlabel()
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10  # something is drawn
    assert DRAWN[name](model).ax_ is not ax


@pytest.mark.parametrize("name", [name for name in DRAWN if name != "arrows"])
def test_one_feature_is_drawn_too(line, name):
    display = DRAWN[name](line)
    display.figure_.canvas.draw()
    assert display.ax_.has_data()


def test_the_picture_is_the_prediction(model):
    display = plotting.FieldDisplay.from_estimator(model, features=("length", "height"), at=[0.5, 1.5, 1.0], grid=9)
    X = pd.DataFrame({"length": display.axes[0][3], "width": [1.5], "height": display.axes[1][7]})
    assert display.values[3, 7] == pytest.approx(model.predict(X)[0], rel=1e-12)
    assert display.image_.get_array()[7, 3] == display.values[3, 7]  # rows of an image go up
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "height")
    assert display.figure_.axes[1].get_ylabel() == "lift"


def test_arrows_point_along_the_gradient(model):
    display = plotting.GradientDisplay.from_estimator(model, features=(0, 1), at=[0.5, 1.0, 1.5], grid=5)
    X = np.array([[*display.points[7], 1.5]])
    np.testing.assert_allclose(display.arrows[7], model.gradient(pd.DataFrame(X, columns=model.feature_names_in_))[0, :2])


def test_regions_are_drawn_where_they_are(line):
    display = plotting.RegionsDisplay.from_estimator(line)
    segments = np.array(display.collection_.get_segments())
    np.testing.assert_allclose(segments[:, :, 0].mean(axis=1), line.centers_[display.regions.region, 0], atol=1e-12)
    np.testing.assert_allclose(np.ptp(segments[:, :, 0], axis=1) / 2, line.radii_[display.regions.region], rtol=1e-10)


def test_an_ellipse_of_the_picture_is_the_border_of_its_ball():
    X = np.random.default_rng(1).uniform(size=(300, 2))
    model = StitchedRegressor(selection=None, metric=np.array([[2.0, 0.8], [0.8, 1.0]])).fit(X, X[:, 0])
    collection = plotting.RegionsDisplay.from_estimator(model).collection_
    width, height, angle = (array[0] for array in (collection._widths, collection._heights, collection._angles))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    t = np.linspace(0, 2 * np.pi, 20)
    border = turn @ np.stack([width * np.cos(t), height * np.sin(t)])  # half axes, as matplotlib keeps them
    distance = np.sqrt(np.einsum("iq,ij,jq->q", border, model.metric_, border))
    np.testing.assert_allclose(distance, model.radii_[0], rtol=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_many_regions_are_drawn_as_their_density(d):
    X = np.random.default_rng(1).beta(1, 3, size=(4000, d))
    model = StitchedRegressor(selection=None, region_size=20, metric="euclidean").fit(X, X[:, 0])
    display = plotting.RegionsDisplay.from_estimator(model)
    assert model.n_regions_ > 400
    shown = display.collection_.get_array() if d == 2 else [bar.get_height() for bar in display.collection_]
    assert np.sum(shown) == model.n_regions_  # every region has its centre in one cell
    assert isinstance(plotting.RegionsDisplay.from_estimator(model, ax=plt.subplots()[1]).regions.center, np.ndarray)


@pytest.mark.parametrize("name", DRAWN)
def test_a_display_prints_one_short_line(model, name):
    text = repr(DRAWN[name](model))
    assert "\n" not in text
    assert len(text) < 132
    assert text.startswith(type(DRAWN[name](model)).__name__)


def test_axes_have_units_and_long_names():
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(300, 2)), columns=["lon", "lat"])
    frame.attrs = {"units": {"lon": "degree"}, "long_name": {"lon": "longitude"}}
    height = pd.Series(frame["lon"].to_numpy(), name="height")
    height.attrs["units"] = "m"
    display = plotting.FieldDisplay.from_estimator(StitchedRegressor(selection=None).fit(frame, height), grid=9)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("longitude (degree)", "lat")
    assert display.label == "height (m)"


def test_errors_of_given_data_are_theirs(model):
    X = pd.DataFrame([[0.5, 1.0, 1.0]], columns=model.feature_names_in_)
    display = plotting.ErrorDisplay.from_estimator(model, X, [100.0])
    assert display.errors[0] == pytest.approx(100.0 - model.predict(X)[0])
    with pytest.raises(ValueError, match="both `X` and `y`"):
        plotting.ErrorDisplay.from_estimator(model, X)


def test_wrong_wishes_are_named(model, line):
    with pytest.raises(ValueError, match="`kind` must be one of"):
        plotting.FieldDisplay.from_estimator(model, "beauty")
    with pytest.raises(ValueError, match="`setting` must be"):
        plotting.SettingsDisplay.from_estimator(model, "mood")
    with pytest.raises(ValueError, match="two `features`"):
        plotting.GradientDisplay.from_estimator(line)


def test_a_band_and_the_deviation_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    model = StitchedRegressor(kernel="matern52").fit(X, np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=200))
    display = plotting.FieldDisplay.from_estimator(model, features=(0,), interval=0.9, grid=50)
    assert display.band.shape == (50, 2)
    assert ((display.band[:, 0] < display.values) & (display.values < display.band[:, 1])).all()
    assert len(display.ax_.collections) == 1
    assert (plotting.FieldDisplay.from_estimator(model, "deviation", grid=50).values > 0.05).all()
    with pytest.raises(ValueError, match="along one feature"):
        plotting.FieldDisplay.from_estimator(model, "coverage", interval=0.9)


def test_degrees_have_the_aspect_of_the_ground():
    X = np.random.default_rng(0).uniform(size=(200, 2)) * [10, 20] + [5, 50]
    model = StitchedRegressor(selection=None, region_size=40).fit(X, X[:, 0])
    model.model_ = model.model_.rename(["Longitude [deg]", "lat"], ["y"])
    expected = 1 / np.cos(np.radians(0.5 * (X[:, 1].min() + X[:, 1].max())))
    for display in (plotting.FieldDisplay, plotting.GradientDisplay):
        assert display.from_estimator(model, grid=5).ax_.get_aspect() == pytest.approx(expected)
        turned = display.from_estimator(model, features=(1, 0), grid=5)
        assert turned.ax_.get_aspect() == pytest.approx(1 / expected)
    model.model_ = model.model_.rename(["latent", "long jump"], ["y"])  # other words
    assert plotting.FieldDisplay.from_estimator(model, grid=5).ax_.get_aspect() == "auto"
