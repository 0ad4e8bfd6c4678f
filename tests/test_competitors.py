"""The competitors are what their papers say: each is pinned by an oracle or by the property that it is known for."""

import numpy as np
import pytest
from scipy.interpolate import RBFInterpolator
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVR

from stitchwork.experiments.competitors import KNNSVM, GlobalKRR, LocalKRR, LocalSVM, NadarayaWatson, NeighborRBF, Siren
from stitchwork.experiments.competitors._kernel_ridge import memory_limit
from stitchwork.experiments.competitors._siren import initial_layers

STEP = 1e-9  # across a border


@pytest.fixture(scope="module")
def points():
    X = np.random.default_rng(0).uniform(0, 1, (900, 2))
    return X, np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1])


def largest_jump(predict, ends, n=4000):
    """Largest change between neighbouring points of a fine path, and the median one."""
    path = np.linspace(*ends, n)
    steps = np.abs(np.diff(predict(path)))
    return steps.max(), np.median(steps)


def test_global_krr_is_kernel_ridge(points):
    X, y = points
    ours = GlobalKRR(0.5, 1e-4).fit(X, y)
    oracle = KernelRidge(alpha=1e-4, kernel="rbf", gamma=1 / (0.5 * pdist(X).mean()) ** 2).fit(X, y)
    np.testing.assert_allclose(ours.predict(X[:50] + 0.01), oracle.predict(X[:50] + 0.01), rtol=1e-8)


def test_global_krr_refuses_what_does_not_fit_into_memory(monkeypatch, points):
    monkeypatch.setattr("stitchwork.experiments.competitors._kernel_ridge._MEMORY_SHARE", 1e-6)
    with pytest.raises(MemoryError, match=r"kernel matrix of 900 points takes 0\.0 GB; this machine holds"):
        GlobalKRR().fit(*points)
    assert memory_limit() < 900


def test_knn_svm_is_one_svr_on_the_neighbours_of_each_query(points):
    X, y = points
    query = np.array([[0.4, 0.6]])
    near = NearestNeighbors(n_neighbors=30).fit(X).kneighbors(query, return_distance=False)[0]
    b, scale = pdist(X[near]).mean(), y[near].std()
    oracle = SVR(gamma=1 / b**2, C=0.5 / 1e-2, epsilon=1e-3, max_iter=100_000).fit(X[near], (y[near] - y[near].mean()) / scale)
    ours = KNNSVM(1.0, 1e-2, n_neighbors=30, max_iter=100_000).fit(X, y).predict(query)
    assert ours[0] == pytest.approx(y[near].mean() + scale * oracle.predict(query)[0], abs=1e-3 * scale)  # libsvm's own tolerance


def test_knn_svm_jumps_where_the_neighbours_change(points):
    model = KNNSVM(1.0, 1e-2, n_neighbors=20).fit(*points)
    jump, usual = largest_jump(model.predict, ([0.3, 0.35], [0.32, 0.36]), 1500)
    assert jump > 30 * usual


def test_local_svm_jumps_at_cell_borders_and_nowhere_else(points):
    X, y = points
    model = LocalSVM(cell_size=150).fit(X, y)
    a, b = model.centers_[np.argsort(cdist(model.centers_[:1], model.centers_)[0])[:2]]
    middle, across = (a + b) / 2, (b - a) / np.linalg.norm(b - a)
    jump = np.diff(model.predict(np.array([middle - STEP * across, middle + STEP * across])))[0]
    smooth = np.diff(model.predict(np.array([a - STEP * across, a + STEP * across])))[0]
    assert abs(jump) > 1e-6
    assert abs(smooth) < 1e-7


def test_local_svm_answers_with_the_nearest_cells_own_machine(points):
    X, y = points
    model = LocalSVM(cell_size=150, bandwidths=(1.0,), ridges=(1e-2,)).fit(X, y)
    j = 2
    mine = cdist(X, model.centers_).argmin(axis=1) == j
    b, scale = pdist(X[mine]).mean(), y[mine].std()
    oracle = SVR(gamma=1 / b**2, C=50.0, epsilon=1e-3, max_iter=2000)
    with pytest.warns(ConvergenceWarning):
        oracle.fit(X[mine], (y[mine] - y[mine].mean()) / scale)
    np.testing.assert_allclose(model.predict(X[mine]), y[mine].mean() + scale * oracle.predict(X[mine]), rtol=1e-10)


def test_local_krr_is_continuous_but_kinked(points):
    X, y = points
    model = LocalKRR(1.0, 1e-5, region_size=60).fit(X, y)
    ends = np.array([[0.2, 0.3], [0.8, 0.7]])
    coarse, _ = largest_jump(model.predict, ends, 2000)
    fine, _ = largest_jump(model.predict, ends, 20_000)
    assert fine < coarse / 5  # a jump would stay
    path = np.linspace(*ends, 20_000)
    bends = np.abs(np.diff(model.predict(path), 2))
    assert bends.max() > 100 * np.median(bends)  # second differences show where the slope changes at once


def test_local_krr_weights_the_nearest_centres_only(points):
    X, y = points
    model = LocalKRR(1.0, 1e-5, region_size=60, n_models=4).fit(X, y)
    query = np.array([[0.5, 0.5]])
    before = model.predict(query)
    far = np.argsort(cdist(query, model.centers_)[0])[4:]
    model._alpha[far] = np.nan
    assert model.predict(query) == before


def test_local_krr_with_one_region_is_kernel_ridge(points):
    X, y = points[0][:50], points[1][:50]
    np.testing.assert_allclose(
        LocalKRR(1.0, 1e-3).fit(X, y).predict(X + 0.01), GlobalKRR(1.0, 1e-3).fit(X, y).predict(X + 0.01), rtol=1e-9
    )


def test_nadaraya_watson_is_the_weighted_mean_and_interpolates(points):
    X, y = points
    model = NadarayaWatson(n_neighbors=15, power=0.9).fit(X, y)
    Q = np.random.default_rng(1).uniform(0.1, 0.9, (40, 2))
    r = cdist(Q, X)
    w = np.where(r <= model.radius_, r**-0.9, 0.0)
    np.testing.assert_allclose(model.predict(Q), (w @ y) / w.sum(axis=1), rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), y)
    near = model.predict(X[:20] + 1e-9) - y[:20]
    assert np.abs(near).max() < 1e-4


def test_nadaraya_watson_jumps_where_its_kernel_is_cut_off():
    model = NadarayaWatson(n_neighbors=1).fit(np.array([[0.0], [1.0], [1.9]]), np.array([0.0, 1.0, 2.0]))
    edge = 0.0 + model.radius_
    values = model.predict(np.array([[edge - STEP], [edge + STEP]]))
    assert abs(values[1] - values[0]) > 1e-2


def test_nadaraya_watson_answers_far_away_with_the_nearest_value():
    model = NadarayaWatson(n_neighbors=1).fit(np.array([[0.0], [1.0]]), np.array([3.0, 5.0]))
    np.testing.assert_array_equal(model.predict([[-100.0], [70.0]]), [3.0, 5.0])


def test_neighbour_rbf_is_scipys(points):
    X, y = points
    Q = np.random.default_rng(1).uniform(0.1, 0.9, (30, 2))
    ours = NeighborRBF("cubic", neighbors=40).fit(X, y).predict(Q)
    np.testing.assert_allclose(ours, RBFInterpolator(X, y, neighbors=40, kernel="cubic", degree=2)(Q), rtol=1e-7)


def test_neighbour_rbf_lowers_the_degree_where_the_neighbours_do_not_determine_it():
    t = np.linspace(0, 1, 60)
    X, y = np.stack([t, np.zeros(60)], axis=1), np.sin(3 * t)
    values = NeighborRBF("gaussian", scale=0.3, smoothing=1e-9, neighbors=20).fit(X, y).predict(X[20:30] + np.array([0.005, 0.0]))
    np.testing.assert_allclose(values, np.sin(3 * (t[20:30] + 0.005)), atol=1e-4)
    # Cubic and quintic splines need polynomials that points on a line do not determine.
    linear = RBFInterpolator(X, y, neighbors=20, kernel="linear", degree=0)(X[:3] + 0.005)
    for kernel in ("cubic", "quintic"):
        np.testing.assert_allclose(NeighborRBF(kernel, neighbors=20).fit(X, y).predict(X[:3] + 0.005), linear)


def test_siren_starts_with_the_published_spread():
    layers = initial_layers([3, 256, 256, 256, 1], 30.0, seed=0)
    assert np.abs(layers[0][0]).max() <= 1 / 3
    for W, _ in layers[1:]:
        bound = np.sqrt(6 / 256) / 30.0
        assert 0.95 * bound < np.abs(W).max() <= bound
    U = np.random.default_rng(1).uniform(-1, 1, (2000, 3))
    for W, b in layers[:-1]:
        inside = 30.0 * (U @ W + b)
        U = np.sin(inside)
        assert U.std() == pytest.approx(np.sqrt(0.5), rel=0.1)  # the arcsine law of a sine with a well-spread argument
    inner = 30.0 * (U @ layers[2][0])
    assert inner.std() == pytest.approx(1.0, rel=0.1)  # theorem 1.8 of its supplement: a standard normal before every sine


def test_siren_learns_a_wave():
    pytest.importorskip("jax", reason="SIREN trains on JAX: pip install 'stitchwork[paper]'")
    X = np.random.default_rng(0).uniform(-1, 1, (1500, 1))
    y = 5.0 + 3.0 * np.sin(12 * X[:, 0])
    model = Siren(hidden_layers=2, width=32, omega=10.0, epochs=60, batch_size=128, learning_rate=2e-3).fit(X, y)
    Q = np.linspace(-0.9, 0.9, 200)[:, None]
    assert np.abs(model.predict(Q) - 5.0 - 3.0 * np.sin(12 * Q[:, 0])).max() < 0.3
    again = Siren(hidden_layers=2, width=32, omega=10.0, epochs=60, batch_size=128, learning_rate=2e-3).fit(X, y)
    np.testing.assert_array_equal(model.predict(Q), again.predict(Q))
