"""Models of log y answer in y: medians, exact derivatives, intervals; saved, in C, and in other frameworks."""

import ctypes

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.utils.estimator_checks import check_estimator

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork.plotting import FieldDisplay
from stitchwork.transform import LogStitchedRegressor

FIXED = {"selection": None, "kernel": "gaussian", "ridge": 1e-6, "region_size": 60}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (400, 2))
    return X, np.exp(np.sin(2 * X[:, 0]) + X[:, 1] + 0.05 * rng.normal(size=400))


@pytest.fixture(scope="module")
def model(data):
    return LogStitchedRegressor(**FIXED).fit(*data)


@pytest.fixture(scope="module")
def plain(data):
    """The same function of log y."""
    return StitchedRegressor(**FIXED).fit(data[0], np.log(data[1]))


def test_values_are_those_of_the_transformed_target(model, data):
    other = TransformedTargetRegressor(StitchedRegressor(**FIXED), func=np.log, inverse_func=np.exp).fit(*data)
    np.testing.assert_allclose(model.predict(data[0]), other.predict(data[0]), rtol=1e-12)  # rounding of exp


def test_derivatives_follow_the_chain_rule(model, plain, data):
    Q = np.random.default_rng(1).uniform(-0.5, 2.5, (50, 2))  # also beyond the data
    z, dz, ddz = plain.predict(Q), plain.gradient(Q), plain.hessian(Q)
    y = np.exp(z)
    value, gradient = model.predict_with_gradient(Q)
    np.testing.assert_allclose(value, y, rtol=1e-10)
    np.testing.assert_allclose(gradient, y[:, None] * dz, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
    expected = y[:, None, None] * (ddz + dz[:, :, None] * dz[:, None, :])
    np.testing.assert_allclose(model.hessian(Q), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(model(Q, nu=(1, 1)), expected[:, 0, 1], rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_deviations_are_those_of_a_log_normal_variable(model, plain, data):
    Q = data[0][:5]
    z, s = plain.predict(Q, return_std=True)
    draws = np.exp(z[:, None] + s[:, None] * np.random.default_rng(2).normal(size=(5, 200_000)))
    value, deviation = model.predict(Q, return_std=True)
    np.testing.assert_allclose(value, np.median(draws, axis=1), rtol=0.01)  # 200,000 draws: a standard error of 0.3 % of s
    np.testing.assert_allclose(deviation, draws.std(axis=1), rtol=0.02)
    ends = plain.predict_interval(Q, 0.8)
    np.testing.assert_allclose(model.predict_interval(Q, 0.8), np.exp(ends), rtol=1e-9)
    uncertainty = model.gradient(Q, return_std=True)[1]
    np.testing.assert_allclose(uncertainty, value[:, None] * plain.gradient(Q, return_std=True)[1], rtol=1e-9)


def test_leave_one_out_is_in_y(model, plain, data):
    inner, outer = plain.leave_one_out(), model.leave_one_out()
    np.testing.assert_allclose(outer.y - outer.residual, np.exp(inner.y - inner.residual), rtol=1e-9)
    assert sorted(outer.y) == pytest.approx(sorted(data[1]))
    assert model.loo_error_ == pytest.approx(np.sqrt(np.mean(outer.residual**2)))
    assert "of log y" in model.summary()


def test_it_is_saved_and_loaded_as_itself(model, data, tmp_path):
    model.save(tmp_path / "m.stitch")
    loaded = load(tmp_path / "m.stitch")
    assert type(loaded) is LogStitchedRegressor
    np.testing.assert_array_equal(loaded.predict(data[0]), model.predict(data[0]))
    assert loaded.get_params() == clone(model).get_params()
    whole = (tmp_path / "m.stitch").read_bytes()
    assert b'"link":"log"' in whole
    StitchedRegressor(**FIXED).fit(*data).save(tmp_path / "plain.stitch")
    assert type(load(tmp_path / "plain.stitch")) is StitchedRegressor


@pytest.mark.skipif(not stitchwork.native.available(), reason="the package was built without a C compiler")
def test_the_compiled_library_answers_in_y(model, data, tmp_path):
    model.save(tmp_path / "m.stitch")
    library, handle = ctypes.CDLL(stitchwork.native.library()), ctypes.c_void_p()
    assert library.st_open(str(tmp_path / "m.stitch").encode(), ctypes.byref(handle)) == 0
    x = np.array([0.7, 1.1])
    f, g, H = np.empty(1), np.empty(2), np.empty((2, 2))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, f, g, H)]
    assert library.st_hessian(handle, *pointers) == 0
    library.st_close(handle)
    expected = model.predict([x]), model.gradient([x])[0], model.hessian([x])[0]
    for found, want in zip((f, g, H), expected, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9)


def test_torch_answers_in_y(model):
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from stitchwork.export import to_torch

    x = torch.tensor([[0.7, 1.1]], dtype=torch.float64)
    np.testing.assert_allclose(to_torch(model)(x).detach().numpy(), model.predict(x.numpy()), rtol=1e-9)


def test_pictures_and_grids_are_in_y(data):
    X, y = data
    model = LogStitchedRegressor(**FIXED).fit(X[:, :1], y)
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'stitchwork[plot]'")
    assert FieldDisplay.from_estimator(model).ax_.get_ylim()[1] > 10
    field = pytest.importorskip("xarray") and model.grid(5, std=True)
    np.testing.assert_allclose(field["y"], model.predict(field["x0"].to_numpy()[:, None]), rtol=1e-12)


def test_names_come_along_and_what_is_not_positive_is_refused(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = LogStitchedRegressor(**FIXED).fit(frame, pd.Series(y, name="rate"))
    assert model.target_names_ == ["rate"]
    assert list(model.feature_names_in_) == ["a", "b"]
    before = model.model_
    with pytest.raises(ValueError, match="`y` must be positive to be modelled by its logarithm, and its least value is 0"):
        model.fit(frame, np.where(y < 1, 0.0, y))
    assert model.model_ is before


def test_points_that_are_added_are_taken_by_their_logarithm(data):
    X, y = data
    fresh, grown = LogStitchedRegressor(**FIXED), LogStitchedRegressor(**FIXED)
    fresh.partial_fit(X[:350], y[:350]).partial_fit(X[350:], y[350:])
    other = StitchedRegressor(**FIXED).fit(X[:350], np.log(y[:350])).partial_fit(X[350:], np.log(y[350:]))
    np.testing.assert_allclose(fresh.predict(X), np.exp(other.predict(X)), rtol=1e-9)
    grown.fit(X, y).forget(X[:10])
    assert grown.model_.origin.link == "log"


def test_scikit_learn_checks():
    odd = {"check_regressor_multioutput": "it takes negative responses, also where an estimator asks for positive ones"}
    found = check_estimator(LogStitchedRegressor(selection=None), expected_failed_checks=odd, on_skip=None)
    assert sum(one["status"] == "passed" for one in found) > 40
