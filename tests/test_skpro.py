"""skpro's adapter for scikit-learn regressors with `return_std`: distributions and intervals in its own words."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor

adapters = pytest.importorskip("skpro.regression.adapters.sklearn", reason="distributions of skpro: pip install skpro")
pd = pytest.importorskip("pandas")


def test_the_adapter_says_what_the_model_says():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(600, 1)), columns=["a"])
    y = pd.DataFrame({"y": np.sin(6 * X.a) + 0.1 * rng.normal(size=600)})
    train, test = slice(0, 300), slice(300, 600)
    adapted = adapters.SklearnProbaReg(StitchedRegressor(kernel="matern52")).fit(X[train], y[train])
    ours = StitchedRegressor(kernel="matern52").fit(X[train], y[train].y)
    distribution = adapted.predict_proba(X[test])
    value, deviation = ours.predict(X[test], return_std=True)
    np.testing.assert_allclose(distribution.mean().to_numpy().ravel(), value)
    np.testing.assert_allclose(np.sqrt(distribution.var().to_numpy().ravel()), deviation)
    ends = adapted.predict_interval(X[test], coverage=0.9).to_numpy()
    inside = (ends[:, 0] <= y[test].y) & (y[test].y <= ends[:, 1])
    assert 0.84 < inside.mean() < 0.96
