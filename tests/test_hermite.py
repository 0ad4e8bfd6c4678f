"""Slopes as data in one region: the system against 50 digits, theorems, derivatives, and what was not measured."""

import mpmath as mp
import numpy as np
import pytest

from stitchwork.local.fit import fit_blocks, stack_residuals
from stitchwork.local.points import Points, Slopes
from stitchwork.local.polynomial import monomials
from stitchwork.local.radial import kernel_named
from stitchwork.local.settings import Settings
from stitchwork.local.variance import Stack

SMOOTH = ("gaussian", "matern52", "matern72", "multiquadric", "soft-exponential", "quintic")
ETA = 1e-6


def settings(kernel, d, degree=1, bandwidth=1.0, ridge=ETA, metric=None, slopes=None):
    zero = np.zeros(1, dtype=np.intp)
    metrics = None if metric is None else metric[None]
    degree = max(degree, kernel_named(kernel, d).least_degree)
    return Settings(
        (kernel_named(kernel, d),), zero, np.full(1, bandwidth), np.full(1, ridge), zero + degree, np.full(1, 1e-10), zero,
        metrics, None if slopes is None else np.full(1, slopes),
    )  # fmt: skip


def make_points(n, d, seed=0, told=False, t=2):
    """Locations with responses and all slopes of sin(a·x) and cos(b·x)."""
    rng = np.random.default_rng(seed)
    X, a = rng.uniform(-1, 1, (n, d)), rng.normal(size=(d, t))
    y, G = np.sin(X @ a), np.cos(X @ a)[:, :, None] * a.T
    direction = np.tile(np.eye(d), (n, 1, 1))
    slopes = Slopes(direction, G.swapaxes(1, 2).copy(), np.ones((n, 1 + d)), told)
    return Points(np.asfortranarray(X), y, np.ones(n), np.arange(n), slopes=slopes)


def everything(points):
    return np.arange(len(points.X))[None]


def exact_prediction(points, name, eta, sigma, scale, origin, radius, degree, q):
    """The Hermite system with derivatives of the kernel's plain formula, all in 50 digits."""
    mp.mp.dps = 50
    formula = {
        "gaussian": lambda r2: mp.exp(-r2),
        "matern52": lambda r2: (1 + mp.sqrt(5 * r2) + 5 * r2 / 3) * mp.exp(-mp.sqrt(5 * r2)),
    }[name]
    n, d = points.X.shape
    Z = [[mp.mpf(float(x - o)) / mp.mpf(float(scale)) for x, o in zip(row, origin, strict=True)] for row in points.X]

    def k(a, b):
        return formula(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / mp.mpf(sigma) ** 2)

    def along(f, z, axis):
        return mp.diff(lambda h: f([x + (h if i == axis else 0) for i, x in enumerate(z)]), 0, h=mp.mpf(10) ** -12)

    equations = [(i, None) for i in range(n)] + [(i, a) for i in range(n) for a in range(d)]

    def act(f, equation):
        i, axis = equation
        return f(Z[i]) if axis is None else along(f, Z[i], axis)

    H = len(equations)
    exponents = monomials(d, degree).exponents.tolist()
    basis = [lambda z, e=e: mp.fprod(x**p for x, p in zip(z, e, strict=True)) for e in exponents]
    s = len(basis)
    M, right = mp.zeros(H + s), mp.zeros(H + s, 1)
    for p, one in enumerate(equations):
        for c, other in enumerate(equations[: p + 1]):
            M[p, c] = M[c, p] = act(lambda a, other=other: act(lambda b: k(a, b), other), one)
        for j, monomial in enumerate(basis):
            M[p, H + j] = M[H + j, p] = act(monomial, one)
        M[p, p] += mp.mpf(eta)
        i, axis = one
        slope = None if axis is None else points.slopes.value[i, axis, 0] * radius
        right[p] = mp.mpf(float(points.y[i, 0] if axis is None else slope))
    x = mp.lu_solve(M, right)
    z = [mp.mpf(float(v - o)) / mp.mpf(float(scale)) for v, o in zip(q, origin, strict=True)]
    value = sum(x[p] * act(lambda b: k(z, b), one) for p, one in enumerate(equations))
    return float(value + sum(x[H + j] * monomial(z) for j, monomial in enumerate(basis)))


@pytest.mark.parametrize(("name", "n", "d"), [("gaussian", 30, 1), ("matern52", 10, 2)])
def test_the_system_is_that_of_an_exact_hermite_system(name, n, d):
    points = make_points(n, d, t=1)
    # mpmath differentiates Matérn kernels at distance zero badly: there they are not analytic, and zero is left out by a shift.
    model = fit_blocks(points, everything(points), settings(name, d, ridge=1e-4))
    q = np.full(d, 0.123)
    found = model.evaluate(np.zeros(1, dtype=np.intp), q[None], 0).value[0, 0]
    scale, origin = model.scale[0], model.origin[0]
    expected = exact_prediction(points, name, 1e-4, model.sigma[0], scale, origin, scale, 1, q)
    assert found == pytest.approx(expected, rel=1e-10)  # condition 1e6 times rounding


@pytest.mark.parametrize("kernel", SMOOTH)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_derivatives_are_those_of_central_differences(kernel, d):
    points = make_points(25, d)
    metric = None if d == 1 else np.eye(d) + 0.3 * np.random.default_rng(1).normal(size=(d, d))
    model = fit_blocks(points, everything(points), settings(kernel, d, bandwidth=1.5, metric=metric, ridge=1e-3))
    Q, step = np.random.default_rng(2).uniform(-1, 1, (4, d)), 1e-5
    region = np.zeros(len(Q), dtype=np.intp)
    _, gradient, hessian = model.evaluate(region, Q, 2)
    for k, e in enumerate(step * np.eye(d)):
        up, down = (model.evaluate(region, Q + sign * e, 1) for sign in (1, -1))
        size = max(1.0, np.abs(hessian).max())
        np.testing.assert_allclose((up.value - down.value) / (2 * step), gradient[:, :, k], atol=1e-8 * size)
        np.testing.assert_allclose((up.gradient - down.gradient) / (2 * step), hessian[:, :, :, k], atol=1e-6 * size)


@pytest.mark.parametrize("kernel", SMOOTH)
def test_values_and_slopes_are_interpolated(kernel):
    points = make_points(20, 2)
    model = fit_blocks(points, everything(points), settings(kernel, 2, ridge=1e-13))
    jet = model.evaluate(np.zeros(20, dtype=np.intp), points.X, 1)
    np.testing.assert_allclose(jet.value, points.y, atol=1e-6)
    np.testing.assert_allclose(jet.gradient, points.slopes.value.swapaxes(1, 2), atol=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomials_are_reproduced_from_slopes_and_one_value(d, degree):
    rng = np.random.default_rng(d)
    basis, n = monomials(d, degree), 30
    X, lam = rng.uniform(-1, 1, (n, d)), rng.normal(size=(1, len(basis), 1))
    slopes = np.einsum("ns,sd->nd", basis.values(X.T), basis.differentiate(lam)[0, :, 0])
    weight = np.ones((n, 1 + d))
    weight[1:, 0] = 0.0  # one response alone
    y = np.where(weight[:, :1] > 0.0, basis.values(X.T) @ lam[0], 777.0)
    measured = Slopes(np.tile(np.eye(d), (n, 1, 1)), slopes[:, :, None], weight)
    points = Points(np.asfortranarray(X), y, np.ones(n), np.arange(n), slopes=measured)
    model = fit_blocks(points, everything(points), settings("gaussian", d, degree=degree, ridge=1e-3))
    Q = rng.uniform(-1, 1, (50, d))
    found = model.evaluate(np.zeros(50, dtype=np.intp), Q, 0).value
    np.testing.assert_allclose(found, basis.values(Q.T) @ lam[0], atol=1e-9 * np.abs(lam).sum())


@pytest.mark.parametrize("told", [False, True])
def test_slopes_without_weight_leave_the_fit_of_the_values(told):
    points = make_points(40, 2, told=told)
    points.slopes.weight[:, 1:] = 0.0
    chosen = settings("gaussian", 2)
    with_slopes = fit_blocks(points, everything(points), chosen)
    without = fit_blocks(points._replace(slopes=None), everything(points), chosen)
    Q = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    region = np.zeros(20, dtype=np.intp)
    for a, b in zip(with_slopes.evaluate(region, Q, 2), without.evaluate(region, Q, 2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)  # solved by systems of other sizes
    assert not with_slopes.beta.any()


def test_what_was_not_measured_has_no_equation():
    """Dropping a component by its weight is the same as never having its direction."""
    points = make_points(25, 2)
    points.slopes.weight[:, 2] = 0.0
    first = points.slopes._replace(
        direction=points.slopes.direction[:, :1], value=points.slopes.value[:, :1], weight=points.slopes.weight[:, :2]
    )
    chosen, Q, region = settings("matern52", 2), np.random.default_rng(1).uniform(-1, 1, (20, 2)), np.zeros(20, dtype=np.intp)
    both = [fit_blocks(each, everything(points), chosen) for each in (points, points._replace(slopes=first))]
    for a, b in zip(*(model.evaluate(region, Q, 2) for model in both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "matern52"])
@pytest.mark.parametrize("grouped", [False, True])
def test_locations_are_left_out_with_their_slopes(kernel, grouped):
    """The closed form is what fits without each location predict."""
    points, chosen = make_points(24, 2), settings(kernel, 2, ridge=1e-3)
    points.slopes.weight[3, 1], points.slopes.weight[5, 0] = 0.0, 0.0
    points = points._replace(group=np.arange(24) // 3 if grouped else None)
    e = stack_residuals(points, everything(points), chosen)[0]
    known = Stack(points, everything(points), chosen).know()
    np.testing.assert_allclose(known.residual[0], e, atol=1e-9)  # condition 1e5 times rounding
    for i in (0, 3, 11):
        # Weights in the place of leaving out, so that the region keeps its coordinates.
        weight = points.slopes.weight.copy()
        weight[points.group == points.group[i] if grouped else [i]] = 0.0
        left = points._replace(slopes=points.slopes._replace(weight=weight))
        value = fit_blocks(left, everything(left), chosen).evaluate(np.zeros(1, dtype=np.intp), points.X[[i]], 0).value[0]
        np.testing.assert_allclose(points.y[i] - value, e[i], atol=1e-9)
    assert not e[5].any()
    assert known.variance[0, 5] == 0.0


def test_variances_shrink_by_slopes_and_are_those_of_a_dense_system():
    points, chosen = make_points(12, 2), settings("gaussian", 2, degree=0, ridge=1e-4)
    Q = np.random.default_rng(1).uniform(-0.8, 0.8, (30, 2))
    region = np.zeros(30, dtype=np.intp)
    v, slopes = fit_blocks(points, everything(points), chosen).variance(region, Q, 1)
    plain, _ = fit_blocks(points._replace(slopes=None), everything(points), chosen).variance(region, Q, 1)
    assert (v < plain).all()
    assert (v > 0.0).all()
    # A slope's variance is what the variance of differences tends to: compare with that at the points, where slopes are known.
    _, at = fit_blocks(points, everything(points), chosen).variance(np.zeros(12, dtype=np.intp), points.X, 1)
    assert np.einsum("naa->na", at).max() < 1e-2 < np.einsum("naa->na", slopes).max()
