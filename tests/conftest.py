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


def tracks(n_tracks=40, length=60, seed=0, noise=0.0):
    """Points close together along tracks that are far apart: X, y, and the track of each."""
    rng = np.random.default_rng(seed)
    along = np.sort(rng.uniform(0, 4, (n_tracks, length)), axis=1)
    across = np.linspace(0, 4, n_tracks)[:, None] + 0.02 * np.sin(3 * along)
    X = np.stack([along.ravel(), across.ravel()], axis=1)
    y = np.sin(2 * X[:, 0]) * np.cos(1.5 * X[:, 1]) + noise * rng.normal(size=len(X))
    return X, y, np.repeat(np.arange(n_tracks), length)
