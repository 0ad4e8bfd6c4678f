"""The flamelet solver and the reduction to principal components."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from stitchwork.datasets import data_home
from stitchwork.datasets._combustion import principal_components
from stitchwork.datasets._flamelets import (
    dissipation_shape,
    equilibrium,
    jacobian,
    make_flame,
    rates,
    second_difference,
    solve_tridiagonal,
    steady_profile,
)

STORED = "combustion/ch4_air_gri30_flamelets.npz"


@pytest.fixture(scope="module")
def flame():
    pytest.importorskip("cantera", reason="the flamelets are computed with Cantera: pip install 'stitchwork[paper]'")
    return make_flame()


@pytest.fixture(scope="module")
def profile(flame):
    return steady_profile(flame, equilibrium(flame), 1.0, 1e-5)


def test_the_second_difference_is_exact_for_parabolas():
    Z = np.sort(np.random.default_rng(0).uniform(0, 1, 12))
    weights = second_difference(Z)
    values = 3 * Z**2 - Z + 2
    np.testing.assert_allclose(
        weights[:, 0] * values[:-2] + weights[:, 1] * values[1:-1] + weights[:, 2] * values[2:], 6.0, rtol=1e-6
    )


def test_block_elimination_solves_the_block_tridiagonal_system():
    rng = np.random.default_rng(0)
    n, s = 6, 3
    D = rng.normal(size=(n, s, s)) + 5 * np.eye(s)
    below, above, F = rng.normal(size=n), rng.normal(size=n), rng.normal(size=(n, s))
    A = np.zeros((n * s, n * s))
    for i in range(n):
        A[i * s : i * s + s, i * s : i * s + s] = D[i]
        if i:
            A[i * s : i * s + s, (i - 1) * s : i * s] = below[i] * np.eye(s)
        if i < n - 1:
            A[i * s : i * s + s, (i + 1) * s : (i + 2) * s] = above[i] * np.eye(s)
    np.testing.assert_allclose(solve_tridiagonal(D, below, above, F).ravel(), np.linalg.solve(A, F.ravel()), rtol=1e-10)


def test_components_are_those_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(200, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
    components = principal_components(X, 3)
    oracle = PCA(3).fit_transform((X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(np.abs(components.coordinates(X)), np.abs(oracle), atol=1e-10)
    assert (components.loadings.max(axis=0) == np.abs(components.loadings).max(axis=0)).all()
    np.testing.assert_allclose(components.sources(X), components.coordinates(X + components.mean), atol=1e-12)  # not centred


def test_the_grid_and_the_streams_are_those_of_the_recipe(flame):
    assert flame.z_st == pytest.approx(0.05517, abs=5e-6)
    assert len(flame.Z) == 162
    assert np.diff(flame.Z).min() == pytest.approx(8.7e-4, rel=0.01)
    at = np.abs(flame.Z[1:-1] - flame.z_st).argmin()
    assert dissipation_shape(flame)[at] == pytest.approx(1.0, abs=0.05)


def test_the_jacobian_is_that_of_the_rates(flame, profile):
    at = np.abs(flame.Z[1:-1] - flame.z_st).argmin()
    direction = profile[at] * np.random.default_rng(0).normal(size=profile.shape[1])
    step = 1e-6
    ahead, behind = profile.copy(), profile.copy()
    ahead[at] += step * direction
    behind[at] -= step * direction
    slope = (rates(flame, ahead)[1] - rates(flame, behind)[1])[at] / (2 * step)
    np.testing.assert_allclose(jacobian(flame, profile)[at] @ direction, slope, atol=1e-3 * np.abs(slope).max())


def test_a_steady_profile_balances_and_conserves_the_elements(flame, profile):
    T, S = rates(flame, profile)
    around = np.concatenate([flame.ends[:1], profile, flame.ends[1:]])
    L = 0.5 * dissipation_shape(flame)[:, None] * second_difference(flame.Z)
    balance = S + L[:, :1] * around[:-2] + L[:, 1:2] * profile + L[:, 2:] * around[2:]
    assert np.abs(balance).max() < 1e-10 * np.abs(S).max()
    assert 2000 < T.max() < 2100
    np.testing.assert_allclose(profile.sum(axis=1), 1.0, atol=1e-11)
    carbon = np.array([flame.gas.n_atoms(name, "C") for name in flame.gas.species_names]) / flame.weights
    np.testing.assert_allclose(profile @ carbon, flame.Z[1:-1] * (flame.ends[1] @ carbon), atol=1e-13)


def test_the_generator_reproduces_the_stored_table(flame, profile):
    homes = [home / STORED for home in data_home() if (home / STORED).is_file()]
    if not homes:
        pytest.skip(f"{STORED} is in no data home")
    with np.load(homes[0], allow_pickle=False) as stored:
        here = np.flatnonzero((stored["regime"] == 0) & (np.abs(stored["chi_st"] - 1.0) < 1e-12))
        names, state, sources = stored["major_names"], stored["major_state"][here], stored["major_sources"][here]
        largest = np.abs(stored["major_sources"][stored["regime"] == 0]).max(axis=0)
    T, S = rates(flame, profile)
    np.testing.assert_allclose(T, state[:, 0], atol=1e-6)
    for k, name in enumerate(names[1:], 1):
        species = flame.gas.species_index(str(name))
        np.testing.assert_allclose(profile[:, species], state[:, k], atol=1e-10)
        np.testing.assert_allclose(S[:, species], sources[:, k], atol=1e-10 * largest[k])


def test_a_flame_that_is_strained_too_hard_goes_out(flame, profile):
    assert steady_profile(flame, profile, 200.0, 1e-2) is None
