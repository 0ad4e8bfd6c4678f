"""Advice is given where it is due, and only there."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork.transform import LogStitchedRegressor
from stitchwork.views.advice import advise, count_known

FIXED = {"selection": None, "kernel": "matern52", "ridge": 1e-3, "metric": "standardized"}


def advice(X, y, **settings):
    return " ".join(advise(StitchedRegressor(**{**FIXED, **settings}).fit(X, y).model_))


@pytest.fixture
def data():
    X = np.random.default_rng(0).uniform(size=(600, 2))
    return X, np.sin(4 * X[:, 0]) + X[:, 1]


def test_nothing_is_said_of_good_data(data):
    X, y = data
    assert advice(X, y) == ""
    assert advice(X, y + 0.1 * np.random.default_rng(1).normal(size=600)) == ""
    assert advise(StitchedRegressor().fit(X, y).model_) == []


def test_noise_alone_teaches_nothing(data):
    assert "nothing was learned" in advice(data[0], np.random.default_rng(1).normal(size=600), ridge=1.0)


def test_one_region_is_said(data):
    X, y = data
    assert "All 80 points make one region" in advice(X[:80], y[:80])


def test_outliers_are_named_with_their_place(data):
    X, y = data
    y = y + 0.01 * np.random.default_rng(1).normal(size=600)
    y[17] = 500.0
    said = advice(X, y, ridge=1.0)
    assert "far from what the others say" in said
    assert "y = 500 where" in said
    assert f"x0 = {X[17, 0]:.6g}" in said


def test_copies_are_counted(data):
    X, y = data
    assert "60 of 660 rows are copies" in advice(np.concatenate([X, X[:60]]), np.concatenate([y, y[:60]]))
    again = np.concatenate([y, y[:60] + 0.1])  # repeated measurements are no copies
    assert "copies" not in advice(np.concatenate([X, X[:60]]), again)


def test_features_without_effect_are_named(data):
    X, y = data
    constant = np.column_stack([X, np.ones(600)])
    assert advice(constant, y).startswith("x2: without effect")


def test_known_rows_are_counted(data):
    X, y = data
    model = StitchedRegressor(**FIXED).fit(X, y).model_
    assert count_known(model, X, y[:, None]) == 600
    assert count_known(model, X, y[:, None] + 1e-6) == 0
    assert count_known(model, np.concatenate([X[:10], X[:10] + 1e-6]), np.concatenate([y[:10], y[:10]])[:, None]) == 10
    logarithmic = LogStitchedRegressor(**FIXED).fit(X, np.exp(y)).model_
    assert count_known(logarithmic, X, np.exp(y)[:, None]) == 600
