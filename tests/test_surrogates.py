"""The simulations of `benchmarks.surrogates` are those of the literature, and so are their gradients."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.surrogates import SIMULATIONS, Known, measure, process_gradient

PUBLISHED = {  # inputs in physical units, value: optima of the Virtual Library of Simulation Experiments, else sums by hand
    "branin": ([-np.pi, 12.275], 0.397887),
    "hartmann": ([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], -3.32237),
    "ishigami": ([np.pi / 2, np.pi / 2, np.pi], 1 + 7 + 0.1 * np.pi**4),  # its largest
    "franke": ([1, 1], 0.75 * np.exp(-100 / 49 - 1) + 0.5 * np.exp(-10) - 0.2 * np.exp(-29) + 0.75 * np.exp(-24.5)),
    "curved": ([1, 0.25, 1], 1 + 4 + 16 * np.sqrt(2)),
    "arm": ([1, 1, 1, 1, 0, 0, 0, 0], 4.0),  # stretched
    "friedman": ([0.5, 1, 0, 1, 1], 10 + 5 + 10 + 5),
}
# UQTestFuns 0.7.0 (an independent implementation) at the inputs that have the shares 1/(d + 1), …, d/(d + 1) of their ranges
INDEPENDENT = {
    "ishigami": -1.608806818962515,
    "circuit": 5.7894119412189715,
    "piston": 0.4871809956711214,
    "borehole": 23.396323570706492,
    "arm": 0.6169487747323461,
    "wing": 256.2464517787773,
    "welch": 3.875018368285892,
}


def test_every_simulation_has_a_reference_value():
    assert SIMULATIONS.keys() == PUBLISHED.keys() | INDEPENDENT.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values(name):
    x, value = PUBLISHED[name]
    simulation = SIMULATIONS[name]
    np.testing.assert_allclose(simulation(simulation.in_cube(x)), value, rtol=2e-6)  # published to six digits


@pytest.mark.parametrize("name", INDEPENDENT)
def test_values_of_another_implementation(name):
    d = len(SIMULATIONS[name].ranges)
    np.testing.assert_allclose(SIMULATIONS[name](np.arange(1, d + 1)[None] / (d + 1)), INDEPENDENT[name], rtol=1e-12)


def test_friedman_is_scikit_learns():
    X, y = make_friedman1(50, 5, noise=0, random_state=0)
    np.testing.assert_allclose(SIMULATIONS["friedman"](X), y, rtol=1e-12)


@pytest.mark.parametrize("name", SIMULATIONS)
def test_gradients_are_those_of_differences(name):
    simulation = SIMULATIONS[name]
    U = np.random.default_rng(0).uniform(0.01, 0.99, (200, len(simulation.ranges)))
    h = 1e-5
    differences = [(simulation(U + h * unit) - simulation(U - h * unit)) / (2 * h) for unit in np.eye(U.shape[1])]
    gradient = simulation.gradient(U)
    # Truncation: h² / 6 = 2e-11 times third derivatives, which are large where the arm ends near its shoulder.
    np.testing.assert_allclose(gradient, np.transpose(differences), atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("kernel", [RBF([0.5, 0.8]), Matern([0.5, 0.8], nu=2.5)])
def test_gradients_of_scikit_learns_process_are_those_of_differences(kernel):
    X = np.random.default_rng(0).uniform(size=(60, 2))
    Q = np.random.default_rng(1).uniform(size=(20, 2))
    y = SIMULATIONS["franke"](X)
    model = GaussianProcessRegressor(2.0 * kernel, alpha=1e-6, optimizer=None, normalize_y=True).fit(X, y)
    assert isinstance(model.kernel_.k1, ConstantKernel)
    h = 1e-4
    differences = [(model.predict(Q + h * unit) - model.predict(Q - h * unit)) / (2 * h) for unit in np.eye(2)]
    np.testing.assert_allclose(process_gradient(model, Q, y.std()), np.transpose(differences), atol=1e-5)


def test_peers_are_computed_once_and_the_default_always(tmp_path, monkeypatch):
    runs = []
    monkeypatch.setattr("benchmarks.surrogates.measure", lambda method, *rest: runs.append(method) or {"error": 1.0})
    for _ in range(2):
        known = Known(tmp_path / "kept.json")
        assert [known.figure("branin", 20, 0, method, True) for method in ("default", "smt")] == 2 * [{"error": 1.0}]
    assert runs == ["default", "smt", "default"]


def test_figures_of_the_default_are_finite_and_shares():
    figures = measure("default", SIMULATIONS["franke"], 30, 0)
    assert 0 <= figures["inside"] <= 1
    assert 0 < figures["error"] < 1
    assert 0 < figures["gradient"] < 1
