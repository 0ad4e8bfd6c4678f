"""The examples run, and their numbers are right."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import own_local_models

from stitchwork import StitchedRegressor


def test_own_local_models_are_stitched_with_their_derivatives():
    errors = own_local_models.main()
    assert errors["spline"] < 0.04  # twice the noise
    assert errors["slope of the spline"] < 0.5
    assert errors["network"] < 0.05
    assert errors["slope of the network"] < 0.3


def test_own_models_have_no_jumps_and_exact_derivatives():
    X = np.random.default_rng(0).uniform(-2, 2, (300, 2))
    model = StitchedRegressor(local_model=own_local_models.Network(), region_size=60).fit(X, np.sin(X[:, 0]) * X[:, 1])
    Q, step = X[:40] * 0.9, 1e-5
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        np.testing.assert_allclose(
            model.gradient(Q)[:, axis], (model.predict(Q + shift) - model.predict(Q - shift)) / (2 * step), atol=1e-6
        )
        slope = (model.gradient(Q + shift) - model.gradient(Q - shift)) / (2 * step)
        np.testing.assert_allclose(model.hessian(Q)[..., axis], slope, atol=1e-4)
    assert model.smoothness_ == 2
    assert "of your own" in model.summary()


def test_own_models_cannot_be_saved_without_pickle(tmp_path):
    X = np.linspace(0, 1, 50)[:, None]
    model = StitchedRegressor(local_model=own_local_models.Spline(), region_size=20).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="without pickle"):
        model.save(tmp_path / "m.stitch")
    with pytest.raises(AttributeError, match="closed form"):
        _ = model.loo_error_


def test_two_outputs_reach_own_models_as_two_columns():
    class Mean:
        smoothness = np.inf

        def fit(self, X, y, sample_weight):
            self_ = Mean()
            self_.value = np.average(y, axis=0, weights=sample_weight)
            return self_

        def predict(self, X):
            return np.tile(self.value, (len(X), 1))

        def gradient(self, X):
            return np.zeros((len(X), len(self.value), X.shape[1]))

        hessian = None

    X = np.random.default_rng(0).uniform(size=(100, 2))
    model = StitchedRegressor(local_model=Mean(), region_size=30).fit(X, np.tile([1.0, 2.0], (100, 1)))
    np.testing.assert_allclose(model.predict(X), np.tile([1.0, 2.0], (100, 1)))


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(code, names)
    Q = np.random.default_rng(1).uniform(0.5, 5.5, (100, 2))
    np.testing.assert_allclose(names["model"].predict(Q), np.sin(Q[:, 0]) * np.cos(Q[:, 1]), atol=1e-5)
    np.testing.assert_array_equal(names["load"]("m.stitch").predict(Q), names["model"].predict(Q))
