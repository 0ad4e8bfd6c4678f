"""Surveys on dense lines: more points along the lines must not make what is said between them worse."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor


def survey(kind, rate):
    """Lines ten times as dense along as apart, with two that cross them, or at uneven distances; noise of one per cent."""
    rng = np.random.default_rng(0)
    along = np.arange(0, 10, 0.1)
    at = np.sort(rng.uniform(0, 10, 10)) if kind == "uneven" else np.arange(0.0, 10.5)
    lines = [np.stack([along + 0.02 * rng.normal(size=100), y + 0.05 * rng.normal() + 0.05 * np.sin(along + y)], 1) for y in at]
    if kind == "crossing":
        lines += [np.stack([x + 0.05 * np.sin(along), along], axis=1) for x in (3.0, 7.0)]
    X = np.concatenate(lines)

    def f(X):
        return np.sin(rate * X[:, 0] / 3) * np.cos(rate * X[:, 1] / 4) + 0.3 * np.sin(rate * X.sum(axis=1) / 5)

    return X, f(X) + 0.01 * rng.normal(size=len(X)), f


@pytest.mark.parametrize("kind", ["crossing", "uneven"])
@pytest.mark.parametrize("rate", [1.5, 3.0, 5.0])
def test_all_rows_of_a_survey_are_no_worse_than_every_tenth(kind, rate):
    X, y, f = survey(kind, rate)
    Q = np.stack(np.meshgrid(np.linspace(0.3, 9.7, 40), np.linspace(0.3, X[:, 1].max() - 0.3, 40)), axis=-1).reshape(-1, 2)
    errors = [np.sqrt(np.mean((StitchedRegressor().fit(X[::k], y[::k]).predict(Q) - f(Q)) ** 2)) for k in (1, 10)]
    assert errors[0] < 1.2 * errors[1]
