"""Data and models that many tests share."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor


def wave(X):
    """A smooth function of any number of variables."""
    return np.sin(2 * X[:, 0]) * np.cos(X[:, -1]) + 0.3 * X.sum(axis=1)


@pytest.fixture(scope="session")
def plane():
    """600 scattered points in the plane, y = wave."""
    X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    return X, wave(X)


@pytest.fixture(scope="session")
def fixed():
    """Constructor with fixed hyperparameters and small regions, so that there are many borders."""

    def make(**changes):
        settings = {"region_size": 30, "kernel": "gaussian", "degree": 2, "bandwidth": 1.0, "ridge": 1e-6, "selection": None}
        return StitchedRegressor(**{**settings, "metric": "euclidean", **changes})

    return make
