"""The block system against the paper's truncated SVD, scipy, scikit-learn, least squares and leaving out in turn."""

import numpy as np
import pytest
from scipy.interpolate import RBFInterpolator
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from stitchwork.local.factors import factorise, solve_systems
from stitchwork.local.polynomial import monomials
from stitchwork.local.system import loo_residuals, project, span_range, spectrum

TOLERANCE = 1e-10


def system(n=40, d=2, degree=2, sigma=1.0, seed=0, points=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) if points is None else points
    K = np.exp(-cdist(X, X, "sqeuclidean") / sigma**2)
    return X, K, monomials(d, degree).values(X.T), rng.normal(size=(len(X), 2))


def solve(K, P, y, eta):
    one = np.ones(1)
    factors = factorise(K[None].copy(), span_range(P[None], TOLERANCE), eta * one, one, one, np.ones((1, len(K))))
    alpha, lam = solve_systems(factors, y[None])
    return alpha[0], lam[0]


def truncated_svd_solution(K, P, y, eta):
    """The paper's solver: singular values of the whole block matrix, cut off at 1e-10."""
    s = P.shape[1]
    block = np.block([[K + eta * np.eye(len(K)), P], [P.T, np.zeros((s, s))]])
    U, S, Vt = np.linalg.svd(block)
    keep = TOLERANCE * S[0] < S
    rhs = np.vstack([y, np.zeros((s, y.shape[1]))])
    solution = Vt[keep].T @ ((U[:, keep].T @ rhs) / S[keep, None])
    return solution[: len(K)], solution[len(K) :]


SHAPES = {
    "scattered": None,
    "grid": np.stack(np.meshgrid(np.linspace(-1, 1, 6), np.linspace(-1, 1, 6)), -1).reshape(-1, 2),
    "line": np.linspace(-1, 1, 30)[:, None] * [[0.6, 0.8]],
    "circle": np.stack([np.cos(np.arange(30.0)), np.sin(np.arange(30.0))], axis=1),
    "fewer points than monomials": np.random.default_rng(3).uniform(-1, 1, (4, 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("eta", [1e-1, 1e-3, 1e-6])
def test_the_solution_is_that_of_the_truncated_svd(shape, eta):
    _, K, P, y = system(points=SHAPES[shape])
    alpha, lam = solve(K, P, y, eta)
    expected_alpha, expected_lam = truncated_svd_solution(K, P, y, eta)
    # The block matrix has the condition number 1 / eta times a hundred; in the directions that P annuls, where nothing but the
    # cut-off singular vectors speak, the oracle's own rounding enters with its square.
    np.testing.assert_allclose(alpha, expected_alpha, atol=1e-12 / eta * max(np.abs(expected_alpha).max(), 1.0))
    np.testing.assert_allclose(P @ lam, P @ expected_lam, atol=1e-12 / eta * max(np.abs(expected_lam).max(), 1.0))
    np.testing.assert_allclose(lam, expected_lam, atol=1e-14 / eta**2 * max(np.abs(expected_lam).max(), 1.0))
    assert np.abs(P.T @ alpha).max() < 1e-11 * max(np.abs(alpha).max(), 1)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_scipy_gives_the_same_function(degree):
    X, K, P, y = system(degree=degree, sigma=0.8)
    alpha, lam = solve(K, P, y, 1e-3)
    Q = np.random.default_rng(9).uniform(-1, 1, (50, 2))
    ours = np.exp(-cdist(Q, X, "sqeuclidean") / 0.8**2) @ alpha + monomials(2, degree).values(Q.T) @ lam
    theirs = RBFInterpolator(X, y, kernel="gaussian", epsilon=1 / 0.8, smoothing=1e-3, degree=degree)(Q)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_without_polynomial_it_is_kernel_ridge():
    X, K, P, y = system(degree=-1)
    alpha, lam = solve(K, P, y, 1e-2)
    np.testing.assert_allclose(alpha, KernelRidge(alpha=1e-2, kernel="rbf", gamma=1.0).fit(X, y).dual_coef_, atol=1e-11)
    assert lam.shape == (0, 2)


@pytest.mark.parametrize("shape", ["scattered", "line"])
def test_without_kernel_it_is_least_squares_of_least_norm(shape):
    _, K, P, y = system(points=SHAPES[shape])
    _, lam = solve(np.zeros_like(K), P, y, 1.0)
    np.testing.assert_allclose(lam, np.linalg.lstsq(P, y, rcond=TOLERANCE)[0], atol=1e-10)


def test_projection_equals_its_formula():
    _, K, P, _ = system()
    U = span_range(P[None], TOLERANCE).U
    projector = np.eye(len(K)) - U[0] @ U[0].T
    M = project(K[None].copy(), U, np.array([3.0]))
    np.testing.assert_allclose(M[0], projector @ K @ projector + 3.0 * U[0] @ U[0].T, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_rank_is_revealed(shape):
    _, _, P, _ = system(points=SHAPES[shape])
    assert span_range(P[None], TOLERANCE).rank[0] == np.linalg.matrix_rank(P, rtol=TOLERANCE)


@pytest.mark.parametrize("degree", [-1, 0, 2])
@pytest.mark.parametrize("eta", [1e-1, 1e-4])
def test_closed_form_equals_leaving_each_point_out(degree, eta):
    X, K, P, y = system(n=25, degree=degree)
    U = span_range(P[None], TOLERANCE).U
    closed = loo_residuals(spectrum(K[None].copy(), U), y[None], np.array([1.0, eta]))[0][0, :, :, 1]
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        alpha, lam = solve(K[np.ix_(rest, rest)], P[rest], y[rest], eta)
        np.testing.assert_allclose(closed[i], y[i] - K[i, rest] @ alpha - P[i] @ lam, rtol=1e-7, atol=1e-9)


def test_a_point_of_leverage_one_has_a_finite_residual():
    X = np.vstack([np.random.default_rng(0).uniform(-1, 0, (6, 1)), [[5.0]]])
    K, P = np.zeros((7, 7)), np.hstack([np.ones((7, 1)), (X == 5.0).astype(float)])
    residuals, _ = loo_residuals(spectrum(K[None], span_range(P[None], TOLERANCE).U), X[None], np.array([1e-12]))
    assert np.isfinite(residuals).all()
    assert residuals[0, -1, 0, 0] == 5.0  # without the point nothing is known there


def test_a_polynomial_that_passes_through_everything_is_not_rewarded():
    _, K, P, y = system(points=SHAPES["fewer points than monomials"])
    residuals, _ = loo_residuals(spectrum(K[None], span_range(P[None], TOLERANCE).U), y[None], np.array([1e-3]))
    np.testing.assert_array_equal(residuals[0, :, :, 0], y)
