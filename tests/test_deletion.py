"""Slopes and responses that all others contradict: the statistic, the advice, and fits without them."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork.datasets import make_2d
from stitchwork.local.variance import Stack
from stitchwork.model.deletion import chi2_median, compare_equations, delete_equations
from stitchwork.views.advice import advise


def runs(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    y = np.sin(2 * X[:, 0]) * np.exp(X[:, 1]) + X[:, 2] ** 2
    G = np.stack([2 * np.cos(2 * X[:, 0]) * np.exp(X[:, 1]), np.sin(2 * X[:, 0]) * np.exp(X[:, 1]), 2 * X[:, 2]], axis=1)
    return X, y, G


def flip(G, *rows):
    return np.where(np.isin(np.arange(len(G)), rows)[:, None], -G, G)


def left(stack, keep):
    """yᵀBy of some equations alone, from the dense block system, and N - p."""
    K = stack.M[0, : stack.h, : stack.h][np.ix_(keep, keep)]
    P, y = stack.M[0, : stack.h, stack.h :][keep], stack.batch.weighted_y[0, keep, 0]
    r = P.shape[1]
    solution = np.linalg.solve(np.block([[K, P], [P.T, np.zeros((r, r))]]), np.append(y, np.zeros(r)))
    return y @ solution[: len(keep)], len(keep) - r


def test_the_statistic_compares_fits_with_and_without_the_equations():
    X, y, G = runs(14)
    rng = np.random.default_rng(1)
    y, G = y + 0.1 * rng.standard_normal(14), G + 0.1 * rng.standard_normal(G.shape)
    G[3, 1] = np.nan
    fixed = {"region_size": 56, "kernel": "gaussian", "degree": 1, "bandwidth": 1.0, "ridge": 1e-2, "metric": "euclidean"}
    model = StitchedRegressor(**fixed).fit(X, y, gradient=G).model_
    models = model.levels[0].models
    stack = Stack(model.points, models.members[:1], models.settings.at(np.array([0])))
    F, residual = compare_equations(stack)
    measured = np.flatnonzero(stack.batch.root_v[0] > 0.0)
    total, free = left(stack, measured)
    falls, degrees = np.empty((14, 2)), np.empty((14, 2))
    for i in range(14):
        for kind, out in enumerate(([i], 14 + 3 * i + np.arange(3))):
            keep = np.setdiff1d(measured, out)
            rest, fewer = left(stack, keep)
            falls[i, kind], degrees[i, kind] = (total - rest) / (free - fewer), free - fewer
    rest = (total - degrees * falls) / (free - degrees)
    expected = falls / np.maximum(rest, np.median(falls, axis=0) / [chi2_median(1), chi2_median(3)])
    np.testing.assert_allclose(F[0, :, :, 0], expected, rtol=1e-7)
    # The residual of a slope is what a fit without the slopes of its row predicts there.
    at = 1
    row = int(model.points.row[models.members[0, at]])
    assert row != 3
    without = StitchedRegressor(**fixed).fit(X, y, gradient=np.where(np.arange(14)[:, None] == row, np.nan, G))
    other = without.model_.levels[0].models
    said = other.evaluate(np.zeros(1, dtype=int), model.points.X[models.members[0, [at]]], 1).gradient[0, 0] @ model.space.A.T
    np.testing.assert_allclose(residual[0, at, :, 0], G[row] - said, rtol=1e-6)


@pytest.mark.parametrize("wrong", [7, 21])
def test_advice_names_the_place_whose_slope_has_a_wrong_sign(wrong):
    X, y, G = runs(40)
    model = StitchedRegressor().fit(X, y, gradient=G)
    assert not any("slopes" in text for text in advise(model.model_))
    (text,) = (text for text in advise(model.fit(X, y, gradient=flip(G, wrong)).model_) if "slopes" in text)
    assert f"The slopes at x0 = {X[wrong, 0]:.6g}, x1 = {X[wrong, 1]:.6g}" in text
    k = int(np.abs(G[wrong]).argmax())
    assert f"dy/dx{k} = {-G[wrong, k]:.6g}" in text


def test_a_robust_fit_leaves_wrong_slopes_and_responses_out():
    X, y, G = runs(40)
    Q = np.random.default_rng(5).uniform(-0.9, 0.9, (300, 3))
    truth = np.sin(2 * Q[:, 0]) * np.exp(Q[:, 1]) + Q[:, 2] ** 2

    def error(model):
        return np.sqrt(np.mean((model.predict(Q) - truth) ** 2))

    clean = StitchedRegressor(robust=True).fit(X, y, gradient=G)
    assert clean.outlier_weights_.all()
    wrong = y + np.where(np.arange(40) == 30, 3.0, 0.0)
    for response, slopes, rows in ((y, flip(G, 7), [7]), (wrong, G, [30]), (wrong, flip(G, 7), [7, 30])):
        model = StitchedRegressor(robust=True).fit(X, response, gradient=slopes)
        assert np.flatnonzero(model.outlier_weights_ == 0.0).tolist() == rows
        assert error(model) < 5.0 * error(clean)
        assert error(model) < 0.2 * error(StitchedRegressor().fit(X, response, gradient=slopes))


def test_a_robust_fit_of_a_field():
    field = make_2d(400)
    G = field.gradient(field.data)
    row = int(np.argsort(np.linalg.norm(G, axis=1))[350])
    few = {"region_size": 90, "kernel": "gaussian", "degree": 1, "bandwidth": 2.0, "ridge": (1e-8, 1e-5, 1e-2)}
    model = StitchedRegressor(robust=True, **few).fit(field.data, field.target, gradient=flip(G, row))
    assert model.outlier_weights_[row] == 0.0
    assert (model.outlier_weights_ == 0.0).sum() <= 3
    plain = StitchedRegressor(**few).fit(field.data, field.target, gradient=flip(G, row))
    found = delete_equations(plain.model_)
    assert plain.model_.points.row[found.F[:, 1, 0].argmax()] == row


def test_rows_at_one_place_go_together():
    X, y, G = runs(40)
    again = [5, 7, 9]
    X, y, G = (np.concatenate([one, one[again]]) for one in (X, y, flip(G, 7)))
    model = StitchedRegressor(robust=True).fit(X, y, gradient=G)
    assert np.flatnonzero(model.outlier_weights_ == 0.0).tolist() == [7, 41]
