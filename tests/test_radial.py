"""Kernels and weights: values, derivatives, smoothness, definiteness."""

import json
from pathlib import Path

import numpy as np
import pytest

from stitchwork.local.radial import KERNEL_NAMES, NO_KERNEL, Radial, kernel_named, weight_named, wendland

RADII = np.array([0.05, 0.3, 0.5, 0.77, 0.95, 1.3])
EVERY = [*KERNEL_NAMES, "wendland-c0", "wendland-c2", "wendland-c4", "wendland-c6", "wendland-c2-native", "truncated-gaussian"]


def radial(name, d=3):
    return kernel_named(name, d) if name in (*KERNEL_NAMES, NO_KERNEL.name) else weight_named(name, d)


def value(function, r):
    return function(np.array(r, dtype=float) ** 2)[0]


@pytest.mark.parametrize("name", EVERY)
def test_powers_of_D_are_derivatives(name):
    function, step = radial(name), 1e-5
    _, first, second = function(RADII**2, 2)
    slope = (value(function, RADII + step) - value(function, RADII - step)) / (2 * step)
    curvature = (value(function, RADII + step) - 2 * value(function, RADII) + value(function, RADII - step)) / step**2
    scale = 1.0 + np.abs(first) * RADII + np.abs(second) * RADII**2
    np.testing.assert_allclose(first * RADII, slope, atol=1e-8 * scale.max())  # central differences: step² and eps / step
    np.testing.assert_allclose(first + RADII**2 * second, curvature, atol=1e-4 * scale.max())  # eps / step²


@pytest.mark.parametrize("name", EVERY)
def test_nothing_is_special_at_radius_zero(name):
    assert all(np.isfinite(term).all() for term in radial(name)(np.array([0.0, 1e-300, 1e-20]), 2))


# Table 9.1 of Wendland, Scattered Data Approximation (2004).
TABLE = {
    (1, 0): lambda r, u: u,
    (1, 1): lambda r, u: u**3 * (3 * r + 1),
    (1, 2): lambda r, u: u**5 * (8 * r**2 + 5 * r + 1),
    (3, 0): lambda r, u: u**2,
    (3, 1): lambda r, u: u**4 * (4 * r + 1),
    (3, 2): lambda r, u: u**6 * (35 * r**2 + 18 * r + 3) / 3,
    (3, 3): lambda r, u: u**8 * (32 * r**3 + 25 * r**2 + 8 * r + 1),
    (5, 0): lambda r, u: u**3,
    (5, 1): lambda r, u: u**5 * (5 * r + 1),
    (5, 2): lambda r, u: u**7 * (16 * r**2 + 7 * r + 1),
}


@pytest.mark.parametrize(("d", "k"), TABLE)
def test_the_recursion_gives_the_published_table(d, k):
    r = np.linspace(0, 1.2, 25)
    np.testing.assert_allclose(
        value(Radial("", wendland(d // 2 + k + 1, k), 2 * k), r), TABLE[d, k](r, np.maximum(1 - r, 0)), atol=1e-13
    )


@pytest.mark.parametrize("k", [4, 5, 8])
def test_orders_beyond_any_table_join_zero_with_2k_derivatives(k):
    function = weight_named(f"wendland-c{2 * k}", 3)
    near = 1.0 - np.array([1e-3, 5e-4])
    # u^(2k + 2) leads at the border, so halving u divides the value by 2^(2k + 2).
    ratio = np.divide(*value(function, near))
    assert abs(np.log2(ratio) - (2 * k + 2)) < 0.2
    assert value(function, [0.0])[0] == pytest.approx(1.0, abs=1e-12)
    assert function.smoothness == 2 * k


@pytest.mark.parametrize("name", KERNEL_NAMES)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_kernels_are_positive_definite_beside_their_polynomial(name, d):
    X = np.random.default_rng(0).uniform(-1, 1, (25, d))
    kernel = kernel_named(name, d)
    (K,) = kernel(((X[:, None] - X[None]) ** 2).sum(-1))
    columns = {-1: np.zeros((25, 0)), 0: np.ones((25, 1)), 1: np.hstack([np.ones((25, 1)), X])}
    columns[2] = np.hstack([columns[1], *(X[:, i : i + 1] * X[:, i:] for i in range(d))])
    P = columns[kernel.least_degree]
    N = np.linalg.svd(P, full_matrices=True)[0][:, P.shape[1] :]
    assert np.linalg.eigvalsh(N.T @ K @ N).min() > -1e-12


def test_weights_of_three_dimensions_serve_all_and_native_ones_follow_the_dimension():
    r = np.array([0.8])
    assert value(weight_named("wendland-c2", 19), r) == value(weight_named("wendland-c2", 2), r)
    assert value(weight_named("wendland-c2-native", 19), r) < 1e-6 < value(weight_named("wendland-c2", 19), r)


@pytest.mark.parametrize(
    "name",
    ["wendland", "wendland-c3", "wendland-c", "gaussian", "", "wendland-c102", "wendland-c99999998", "wendland-c" + "8" * 99],
)
def test_unknown_weights_are_refused(name):
    with pytest.raises(ValueError, match="`weight` must be"):
        weight_named(name, 2)


GOLDEN = json.loads((Path(__file__).parent / "golden" / "radial.json").read_text())


def golden_names():
    """Every kernel and weight of the library is in the file."""
    assert {*KERNEL_NAMES, NO_KERNEL.name, "truncated-gaussian", "wendland-c2"} <= set(GOLDEN["terms"])
    return GOLDEN["terms"]


def near_golden(found, name):
    """Within a few units of the last place, and of a rounding of s near r = 1, where weights meet zero."""
    expected = np.array(GOLDEN["terms"][name])
    for j in range(len(found)):
        size = np.abs(expected[:, j]) + 1e-3 * (name not in KERNEL_NAMES)
        np.testing.assert_allclose((found[j] - expected[:, j]) / np.maximum(size, 1e-300), 0.0, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("name", golden_names())
def test_numpy_agrees_with_the_golden_vectors(name):
    near_golden(radial(name, GOLDEN["dimension"])(np.array(GOLDEN["squared_radii"]), 3), name)


@pytest.mark.parametrize("framework", ["torch", "jax.numpy"])
def test_other_frameworks_agree_with_the_golden_vectors(framework):
    xp = pytest.importorskip(framework, reason=f"{framework} is an optional part")
    if framework == "jax.numpy":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    for name in golden_names():
        s = xp.asarray(np.array(GOLDEN["squared_radii"]))
        near_golden([np.asarray(term) for term in radial(name, GOLDEN["dimension"]).profile.terms(xp, s, 2)], name)
