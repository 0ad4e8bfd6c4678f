"""The solver on the sphere: its grid, its orders, its return to the start; and the sample that is drawn from it."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial import cKDTree

from stitchwork.datasets import make_sphere, sphere_solution
from stitchwork.datasets._advection import PERIOD, advect, areas, deforming_flow, departures, icosahedral_nodes, make_stencils
from stitchwork.datasets._sphere import BELLS, _bernoulli, cosine_bells, cosine_bells_gradient
from stitchwork.experiments.sphere import forward_difference


def smooth(X):
    return sum(np.exp(-3 * np.square(X - bell).sum(axis=1)) for bell in BELLS)


def smooth_gradient(X):
    gradient = sum(-6 * (X - bell) * np.exp(-3 * np.square(X - bell).sum(axis=1))[:, None] for bell in BELLS)
    return gradient - np.sum(gradient * X, axis=1, keepdims=True) * X


def order(errors):
    """Exponent between successive halvings of the spacing."""
    return np.log2(np.asarray(errors)[:-1] / np.asarray(errors)[1:])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("frequency", [1, 2, 7])
def test_nodes_are_ten_f_squared_plus_two_on_the_sphere(frequency):
    nodes = icosahedral_nodes(frequency)
    assert nodes.shape == (10 * frequency**2 + 2, 3)
    np.testing.assert_allclose(np.linalg.norm(nodes, axis=1), 1.0, rtol=1e-14)


def test_the_papers_grid_has_92162_nodes_of_nearly_equal_spacing():
    nodes = icosahedral_nodes(96)
    assert len(nodes) == 92_162
    nearest = cKDTree(nodes).query(nodes, k=2)[0][:, 1]
    assert nearest.max() / nearest.min() < 1.5


def test_areas_sum_to_the_sphere():
    assert areas(icosahedral_nodes(6)).sum() == pytest.approx(4 * np.pi, rel=1e-12)


def test_the_flow_is_tangential_and_smooth_at_the_poles():
    X = icosahedral_nodes(5)
    assert np.abs(np.sum(deforming_flow(X, 1.3) * X, axis=1)).max() < 1e-14
    near = np.array([[1e-6, 0, 1], [-1e-6, 0, 1], [0, 1e-6, 1], [0, -1e-6, 1]])
    assert np.ptp(deforming_flow(near, 0.7), axis=0).max() < 1e-5


def test_departure_points_follow_the_flow_with_fourth_order():
    X = icosahedral_nodes(3)[::7]

    def exact(x, t, dt):
        return solve_ivp(lambda s, p: deforming_flow(p[None], s)[0], (t + dt, t), x, rtol=1e-11, atol=1e-12).y[:, -1]

    errors = []
    for dt in (0.2, 0.1, 0.05):
        truth = np.array([exact(x, 0.4, dt) for x in X])
        errors.append(np.abs(departures(X, 0.4, dt) - truth).max())
    assert order(errors).min() > 4.5  # one step of a method of fourth order errs by the fifth


def test_interpolation_is_of_the_fifth_order_and_gradients_of_the_fourth():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    values, slopes = [], []
    for frequency in (8, 16, 32):
        nodes = icosahedral_nodes(frequency)
        stencils = make_stencils(nodes)
        values.append(np.abs(stencils.interpolate(smooth(nodes), X, cKDTree(nodes)) - smooth(X)).max())
        slopes.append(np.abs(stencils.surface_gradient(smooth(nodes)) - smooth_gradient(nodes)).max())
    assert order(values).mean() > 4.5
    assert order(slopes).mean() > 3.5


def test_the_solution_comes_back_and_keeps_its_mass_with_the_grid():
    errors, masses = [], []
    for frequency in (8, 16, 32):
        nodes = icosahedral_nodes(frequency)
        area, start = areas(nodes), smooth(nodes)
        end = advect(make_stencils(nodes), start, frequency)
        errors.append(np.sqrt(area @ (end - start) ** 2 / (area @ start**2)))
        masses.append(abs(area @ (end - start)) / (area @ start))
    assert order(errors)[-1] > 2.5
    assert errors[-1] < 0.01
    assert masses[-1] < 1e-3


def test_half_way_the_solution_is_somewhere_else():
    nodes = icosahedral_nodes(16)
    stencils = make_stencils(nodes)
    start, tree, q = smooth(nodes), cKDTree(nodes), smooth(nodes)
    for step in range(8):
        q = stencils.interpolate(q, departures(nodes, step * PERIOD / 16, PERIOD / 16), tree)
    assert np.abs(q - start).max() > 0.3


def test_the_bells_are_the_papers_and_their_gradient_is_theirs():
    assert cosine_bells(BELLS) == pytest.approx([1.0, 1.0])
    assert cosine_bells(np.array([[-1.0, 0, 0]])) == pytest.approx([0.1])
    X = icosahedral_nodes(10)
    gradient, step = cosine_bells_gradient(X), 1e-6
    assert np.abs(np.sum(gradient * X, axis=1)).max() < 1e-12
    for tangent in np.eye(3):
        along = tangent - (X @ tangent)[:, None] * X
        ahead, behind = (moved / np.linalg.norm(moved, axis=1, keepdims=True) for moved in (X + step * along, X - step * along))
        slope = (cosine_bells(ahead) - cosine_bells(behind)) / (2 * step)
        np.testing.assert_allclose(np.sum(gradient * along, axis=1), slope, atol=1e-4)


def test_the_sample_follows_the_appendix():
    nodes = icosahedral_nodes(20)
    rng = np.random.default_rng(0)
    share = np.mean([_bernoulli(nodes, rng) for _ in range(400)], axis=0)
    distance = [np.linalg.norm(nodes - bell, axis=1) for bell in BELLS]
    expected = 1 - np.prod([d / d.max() for d in distance], axis=0)
    # Every node has its own trials: the mean over nodes of the squared difference is that of a binomial share.
    assert np.mean((share - expected) ** 2) == pytest.approx(np.mean(expected * (1 - expected)) / 400, rel=0.1)


def test_the_data_is_what_it_says_and_is_computed_once(cache, monkeypatch):
    data = make_sphere(400, 500, frequency=10)
    assert data.data.shape == (400, 3)
    assert data.test_data.shape == (500, 3)
    assert data.target.min() >= 0.0
    assert data.test_target.min() > 0.0  # so that relative errors are finite
    assert not {tuple(x) for x in data.data} & {tuple(x) for x in data.test_data}
    monkeypatch.setattr("stitchwork.datasets._sphere.advect", None)
    np.testing.assert_array_equal(make_sphere(400, 500, frequency=10).target, data.target)
    assert sphere_solution(10).return_error < 0.6
    with pytest.raises(ValueError, match="Raise `frequency`"):
        make_sphere(5000, frequency=10)


def test_forward_differences_are_those_of_first_order():
    errors = []
    for frequency in (10, 20, 40):
        nodes = icosahedral_nodes(frequency)
        gradient = forward_difference(smooth, nodes, nodes)
        assert np.abs(np.sum(gradient * nodes, axis=1)).max() < 1e-10
        errors.append(np.abs(gradient - smooth_gradient(nodes)).mean())
    assert order(errors) == pytest.approx([1.0, 1.0], abs=0.15)
