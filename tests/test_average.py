"""Tables: models that are averaged, metrics of a region's own, blocks left out together."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import stitchwork
from stitchwork import StitchedRegressor
from stitchwork.fitting.defaults import SHARE_DEVIATION
from stitchwork.fitting.likelihood import Rows, maximise_likelihood, negative_log_likelihood, polynomial_basis
from stitchwork.fitting.whole import share_out
from stitchwork.local.batch import make_batch
from stitchwork.local.fit import fit_blocks
from stitchwork.local.groups import targets_left_out
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named
from stitchwork.local.settings import Settings
from stitchwork.local.system import loo_residuals, spectrum
from stitchwork.local.variance import Stack


def table(n=150, d=5, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.logspace(0, 2, d)
    return X, np.sin(X[:, 0]) + 0.3 * np.abs(X[:, 0]) + 0.02 * X[:, d // 2] * np.sign(X[:, 1]) + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def averaged():
    return StitchedRegressor().fit(*table())


def settings_of(kernel, degree, ridge, local_metrics=None, local_metric=0):
    one = np.zeros(1, dtype=np.intp)
    return Settings(
        (kernel,), one, np.ones(1), np.full(1, ridge), one + degree, np.full(1, 1e-10), one + local_metric, local_metrics
    )


def test_a_small_table_is_one_region_of_several_models(averaged):
    assert averaged.n_regions_ == 1
    assert averaged.model_.region_size == 150
    k = averaged.kernels_.shape[1]
    assert 2 <= k <= 12
    assert averaged.kernels_.shape == averaged.ridges_.shape == averaged.bandwidths_.shape == averaged.degrees_.shape == (1, k)
    assert averaged.centers_.shape == (1, 5)
    assert averaged.noises_.shape == (1,)
    x = table(1, seed=1)[0][0]
    parts = averaged.contributions(x)
    assert sum(part.share for part in parts) == pytest.approx(1.0)
    assert sum(part.share * part.value for part in parts) == pytest.approx(averaged.predict(x[None])[0])
    assert {part.region for part in parts if part.level == 0} == {0}


def test_an_averaged_model_is_the_same_from_a_file_and_in_other_frameworks(averaged, tmp_path):
    Q = table(40, seed=2)[0]
    averaged.save(tmp_path / "m.stitch")
    again = stitchwork.load(tmp_path / "m.stitch")
    for ask in ("predict", "gradient", "hessian", "coverage"):
        np.testing.assert_array_equal(getattr(again, ask)(Q), getattr(averaged, ask)(Q))
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from stitchwork.export import to_torch

    module = to_torch(averaged)
    x = torch.tensor(Q, requires_grad=True)
    y = module(x)
    np.testing.assert_allclose(y.detach().numpy(), averaged.predict(Q), rtol=1e-9, atol=1e-9)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_allclose(gradient.numpy(), averaged.gradient(Q), rtol=1e-6, atol=1e-8)


def test_derivatives_of_an_average_are_those_of_its_prediction(averaged):
    Q, step = 0.5 * table(20, seed=3)[0], 1e-5
    for axis in np.eye(5):
        ahead, behind = averaged.predict_with_gradient(Q + step * axis), averaged.predict_with_gradient(Q - step * axis)
        np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * step), averaged.gradient(Q) @ axis, atol=1e-6)
        np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * step), averaged.hessian(Q) @ axis, atol=1e-4)


def test_leave_one_out_of_an_average_is_what_a_fit_without_the_point_says(averaged):
    X, y = table()
    model = averaged.model_
    found = averaged.leave_one_out()
    residuals = found.residual
    place = {tuple(x): i for i, x in enumerate(np.round(found.X, 9))}
    regions, models = model.levels[0].regions, model.levels[0].models
    for i in (0, 17, 101):
        said = 0.0
        for j, share in enumerate(regions.share):
            mine, without = models.settings.at(np.array([j])), model.points.at(np.flatnonzero(model.points.row != i))
            # A bandwidth is in units of the members' mean distance, in which the point itself takes part: keep that of the region.
            units = [
                batch.b[0] * batch.scale[0]
                for batch in (
                    make_batch(points, np.arange(len(points.X))[None], False, mine.local_metric_of(0))
                    for points in (model.points, without)
                )
            ]
            mine = replace(mine, bandwidth=mine.bandwidth * units[0] / units[1])
            one = fit_blocks(without, np.arange(len(without.X))[None], mine)
            q = model.points.X[model.points.row == i]
            said += share * one.evaluate(np.zeros(1, dtype=np.intp), q, 0).value[0, 0]
        expected = y[i] - said
        assert residuals[place[tuple(np.round(X[i], 9))]] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_shares_are_the_best_on_the_simplex():
    rng = np.random.default_rng(0)
    for _ in range(20):
        E = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + rng.normal(size=(60, 1))
        C = E.T @ E / 60
        w = share_out(C, 60)
        assert w.sum() == pytest.approx(1.0)
        assert (w >= 0).all()
        M = C + np.diagonal(C).min() / (60 * SHARE_DEVIATION**2) * np.eye(3)
        used = np.flatnonzero(w)
        assert (w[used] >= 0.05).all()
        grid = np.zeros((5000, 3))
        grid[:, used] = rng.dirichlet(np.ones(len(used)), 5000)
        assert w @ M @ w <= np.einsum("ga,ab,gb->g", grid, M, grid).min() + 1e-12
    np.testing.assert_allclose(share_out(np.ones((4, 4)), 10), 0.25)


def test_few_rows_hardly_move_shares_and_many_do():
    C = np.diag([1.0, 2.0])
    few, many = share_out(C, 10), share_out(C, 100_000)
    assert 0.5 < few[0] < 0.55
    np.testing.assert_allclose(many, [2 / 3, 1 / 3], atol=1e-3)  # inverse variances


@pytest.mark.parametrize("name", ["matern52", "soft-exponential", "cubic", "gaussian"])
def test_a_turned_region_is_one_in_another_space(name):
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(60, 3)), rng.normal(size=(3, 3))
    y, kernel, all_ = rng.normal(size=(60, 2)), kernel_named(name, 3), np.arange(60)[None]
    plain = Points(np.asfortranarray(X), y, np.ones(60), np.arange(60))
    moved = Points(np.asfortranarray(X @ T), y, np.ones(60), np.arange(60))
    turned = fit_blocks(plain, all_, settings_of(kernel, 1, 1e-2, np.stack([np.eye(3), T]), 1))
    direct = fit_blocks(moved, all_, settings_of(kernel, 1, 1e-2))
    Q, zero = rng.normal(size=(7, 3)), np.zeros(7, dtype=np.intp)
    a, b = turned.evaluate(zero, Q, 2), direct.evaluate(zero, Q @ T, 2)
    np.testing.assert_allclose(a.value, b.value, atol=1e-9)
    np.testing.assert_allclose(a.gradient, b.gradient @ T.T, atol=1e-8)
    np.testing.assert_allclose(a.hessian, T @ b.hessian @ T.T, atol=1e-7)
    (v, C), (w, D) = turned.variance(zero, Q, 1), direct.variance(zero, Q @ T, 1)
    np.testing.assert_allclose(v, w, atol=1e-9)
    np.testing.assert_allclose(C, T @ D @ T.T, atol=1e-7)


@pytest.mark.parametrize("degree", [-1, 0, 2])
def test_a_point_left_out_with_others_is_what_a_fit_without_them_says(degree):
    rng = np.random.default_rng(1)
    X, kernel = rng.uniform(-1, 1, (40, 2)), kernel_named("matern52", 2)
    y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(40, 1))
    points = Points(np.asfortranarray(X), y, np.ones(40), np.arange(40))
    batch = make_batch(points, np.arange(40)[None], rough=False)
    K, R, _ = batch.system(kernel, np.ones(1), degree, 1e-10)
    S, eta = spectrum(K.copy(), R.U), 1e-3
    _, alpha = loo_residuals(S, y[None], np.array([eta]))
    B = (S.V * S.inverse(np.array([eta]))[:, None, :, 0]) @ S.V.swapaxes(1, 2)
    members, size = np.array([[5, 3, 11, 20, 21, 22], [8, 9, 0, 0, 0, 0]]), np.array([6, 2])
    found = targets_left_out(B, alpha[..., 0], batch.unknown_y, np.zeros(2, dtype=int), members, size)
    for row, count, residual in zip(members, size, found, strict=True):
        kept = np.setdiff1d(np.arange(40), row[:count])
        U = R.U[0]
        M = np.block([[K[0][np.ix_(kept, kept)] + eta * np.eye(len(kept)), U[kept]], [U[kept].T, np.zeros((U.shape[1],) * 2)]])
        c = np.linalg.solve(M, np.concatenate([y[kept], np.zeros((U.shape[1], 1))]))
        said = K[0][row[0], kept] @ c[: len(kept)] + U[row[0]] @ c[len(kept) :]
        np.testing.assert_allclose(residual, y[row[0]] - said, rtol=1e-5, atol=1e-8)


def rows_of(X, y, v=None):
    v = np.ones(len(X)) if v is None else v / v.mean()
    return Rows(X, y - np.average(y, axis=0, weights=v), np.sqrt(v), np.arange(X.shape[1]))


@pytest.mark.parametrize("name", ["matern52", "soft-exponential", "gaussian"])
@pytest.mark.parametrize("degree", [0, 1])
def test_the_likelihood_is_that_of_what_polynomials_leave_and_has_its_gradient(name, degree):
    kernel = kernel_named(name, 3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.sin(2 * X[:, :1]) + 0.05 * rng.normal(size=(80, 1))
    rows, theta = rows_of(X, y, rng.uniform(0.5, 2.0, 80)), np.array([-0.3, -1.0, 0.2, -4.0])
    U = polynomial_basis(rows, degree, 1e-10)
    value, gradient = negative_log_likelihood(theta, rows, U, kernel)
    expected = approx_fprime(theta, lambda t: negative_log_likelihood(t, rows, U, kernel)[0], 1e-7)
    np.testing.assert_allclose(gradient, expected, atol=1e-3)
    # By a basis N of what is orthogonal to the polynomials: ½ (n - p) log s² + ½ log det NᵀCN, and the prior.
    N = np.linalg.svd(U)[0][:, U.shape[1] :]
    Z = X * np.exp(theta[:3])
    C = kernel(((Z[:, None] - Z[None]) ** 2).sum(-1))[0] * rows.root_v[:, None] * rows.root_v + np.exp(theta[3]) * np.eye(80)
    z, inner = N.T @ (rows.y[:, 0] * rows.root_v), N.T @ C @ N
    s2 = z @ np.linalg.solve(inner, z) / len(z)
    apart = theta[:3] - theta[:3].mean()
    direct = 0.5 * len(z) * np.log(s2) + 0.5 * np.linalg.slogdet(inner)[1] + 0.5 * np.log1p(apart**2).sum()
    assert value == pytest.approx(direct, rel=1e-8)


def test_the_likelihood_ranks_features_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=80)
    start = np.append(np.full(3, -0.5), np.log(1e-2))
    theta, _ = maximise_likelihood(rows_of(X, y[:, None]), kernel_named("matern52", 3), 0, [start], 60, 1e-10)
    # The scales of scikit-learn's Gaussian process, which knows no prior and has a mean of zero, rank alike.
    kernel = ConstantKernel() * Matern(np.ones(3), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    theirs = 1.0 / GaussianProcessRegressor(kernel).fit(X, y - y.mean()).kernel_.k1.k2.length_scale
    np.testing.assert_array_equal(np.argsort(theta[:3]), np.argsort(theirs))


def test_calibration_of_a_stack_with_a_turn_is_that_of_the_space():
    rng = np.random.default_rng(3)
    X, T, y = rng.normal(size=(30, 2)), rng.normal(size=(2, 2)), rng.normal(size=(30, 1))
    kernel, all_ = kernel_named("matern52", 2), np.arange(30)[None]
    a = Stack(Points(np.asfortranarray(X), y, np.ones(30), np.arange(30)), all_, settings_of(kernel, 0, 1e-1, T[None])).know()
    b = Stack(Points(np.asfortranarray(X @ T), y, np.ones(30), np.arange(30)), all_, settings_of(kernel, 0, 1e-1)).know()
    np.testing.assert_allclose(a.residual, b.residual, atol=1e-9)
    np.testing.assert_allclose(a.variance, b.variance, rtol=1e-9)
