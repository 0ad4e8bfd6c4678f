"""Conformal intervals of MAPIE on top of our predictions and deviations: what has a guarantee, for those who need one."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor

regression = pytest.importorskip("mapie.regression", reason="conformal intervals: pip install 'mapie>=1.5'")


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (3000, 1))
    y = np.sin(X[:, 0]) + 0.05 * (1 + X[:, 0]) * rng.normal(size=3000)
    return [(X[part], y[part]) for part in (slice(0, 1000), slice(1000, 2000), slice(2000, 3000))]


@pytest.mark.parametrize("score", ["absolute", "std"])
def test_conformal_intervals_hold_what_they_say(parts, score):
    scores = pytest.importorskip("mapie.conformity_scores")
    if score == "std":
        if not hasattr(scores, "StdConformityScore"):
            pytest.skip("StdConformityScore came with MAPIE 1.5")
        score = scores.StdConformityScore()
    (X, y), held_out, (Q, z) = parts
    model = StitchedRegressor(kernel="matern52").fit(X, y)
    conformal = regression.SplitConformalRegressor(model, confidence_level=0.9, conformity_score=score, prefit=True)
    values, ends = conformal.conformalize(*held_out).predict_interval(Q)
    np.testing.assert_allclose(values, model.predict(Q))
    lower, upper = ends[:, 0, 0], ends[:, 1, 0]
    # 1,000 rows calibrate and 1,000 judge: each tells a share of 90 % to one point.
    assert abs(np.mean((lower <= z) & (z <= upper)) - 0.9) < 3 * np.sqrt(2) * 0.0095
    if score != "absolute":
        width = upper - lower
        assert width[Q[:, 0] > 4].mean() > 2 * width[Q[:, 0] < 1].mean()  # adapts to the noise
