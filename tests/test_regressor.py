"""The estimator: oracles, invariances, equivalences, parameters, errors."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import sklearn
from conftest import wave
from scipy.interpolate import RBFInterpolator
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stitchwork import StitchedRegressor


@pytest.fixture(scope="module")
def queries():
    return np.random.default_rng(3).uniform(-3, 3, (300, 2))


def test_one_region_is_scipys_interpolator(plane, queries):
    X, y = plane[0][:80], plane[1][:80]
    model = StitchedRegressor(region_size=80, kernel="gaussian", degree=2, bandwidth=0.7, ridge=1e-4, selection=None).fit(X, y)
    theirs = RBFInterpolator(X, y, kernel="gaussian", epsilon=1 / (0.7 * pdist(X).mean()), smoothing=1e-4, degree=2)
    inside = queries[np.linalg.norm(queries - model.centers_[0], axis=1) < 0.9 * model.radii_[0]]
    assert model.n_regions_ == 1
    np.testing.assert_allclose(model.predict(inside), theirs(inside), atol=1e-9)


def test_one_region_without_polynomial_is_kernel_ridge(plane, queries):
    X, y = plane[0][:80], plane[1][:80]
    model = StitchedRegressor(region_size=80, local_model="krr", bandwidth=0.5, ridge=1e-2, selection=None).fit(X, y)
    gamma = (0.5 * pdist(X).mean()) ** -2
    theirs = KernelRidge(alpha=1e-2, kernel="rbf", gamma=gamma).fit(X, y)
    inside = queries[np.linalg.norm(queries - model.centers_[0], axis=1) < 0.9 * model.radii_[0]]
    np.testing.assert_allclose(model.predict(inside), theirs.predict(inside), atol=1e-10)


def test_translation_rotation_and_scale_change_nothing(plane, fixed, queries):
    X, y = plane
    expected = fixed().fit(X, y).predict(queries)
    angle = 0.7
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    # The condition of the local systems, 1 / ridge, stands between rounding and the prediction.
    for move in (lambda Z: Z + np.array([5.0, -3.0]), lambda Z: Z @ rotation, lambda Z: 1e9 * Z, lambda Z: 1e-9 * Z):
        np.testing.assert_allclose(fixed().fit(move(X), y).predict(move(queries)), expected, atol=1e-8)
    for scale in (1e-12, -3.0, 1e12):
        np.testing.assert_allclose(fixed().fit(X, scale * y).predict(queries), scale * expected, atol=1e-8 * abs(scale))


def test_gradients_turn_with_the_space(plane, fixed, queries):
    X, y = plane
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    turned = fixed().fit(X @ Q, y)
    np.testing.assert_allclose(turned.gradient(queries @ Q) @ Q.T, fixed().fit(X, y).gradient(queries), atol=1e-6)


def test_order_of_queries_chunks_and_threads_change_nothing(plane, fixed):
    X, y = plane
    model = fixed().fit(X, y)
    Q = np.random.default_rng(3).uniform(-3.5, 3.5, (5000, 2))
    whole = model.predict_with_gradient(Q)
    order = np.random.default_rng(0).permutation(len(Q))
    with sklearn.config_context(working_memory=1):
        chunked = model.predict_with_gradient(Q)
    threaded = fixed(n_jobs=2).fit(X, y).predict_with_gradient(Q)
    shuffled = [part[np.argsort(order)] for part in model.predict_with_gradient(Q[order])]
    for other in (chunked, threaded, shuffled):
        for a, b in zip(whole, other, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12 * np.abs(a).max())
    for _ in range(2):  # the second time regions are at hand from the first
        singles = [np.concatenate(part) for part in zip(*(model.predict_with_gradient(q[None]) for q in Q[:50]), strict=True)]
        for a, b in zip(whole, singles, strict=True):
            np.testing.assert_allclose(b, a[:50], rtol=1e-12, atol=1e-12 * np.abs(a).max())


def test_single_queries_from_several_threads_agree(fixed):
    """They share the regions that are kept for the next query."""
    X = np.random.default_rng(0).uniform(-3, 3, (3000, 2))
    model = fixed().fit(X, wave(X))
    Q = np.random.default_rng(1).uniform(-3, 3, (400, 2))
    with ThreadPoolExecutor(4) as pool:
        single = list(pool.map(lambda q: model.predict(q[None])[0], Q))
    np.testing.assert_allclose(single, model.predict(Q), rtol=1e-11, atol=1e-11)


def test_single_queries_against_many_regions_use_the_levels_and_agree(fixed):
    X = np.random.default_rng(0).uniform(-3, 3, (6000, 2))
    model = fixed(region_size=20).fit(X, wave(X))
    assert model.n_regions_ > 256
    Q = np.random.default_rng(1).uniform(-3, 3, (40, 2))
    np.testing.assert_allclose([model.predict(q[None])[0] for q in Q], model.predict(np.vstack([Q, Q]))[:40], rtol=1e-12)


def test_an_integer_weight_is_repetition(fixed, queries):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (500, 2))
    y = wave(X) + 0.3 * rng.normal(size=500)
    v = rng.integers(0, 4, 500)
    for settings in ({"ridge": 1e-1}, {"selection": "loo", "bandwidth": "auto", "ridge": "auto"}):
        weighted = fixed(**settings).fit(X, y, sample_weight=v)
        repeated = fixed(**settings).fit(np.repeat(X, v, axis=0), np.repeat(y, v))
        np.testing.assert_allclose(weighted.predict(queries), repeated.predict(queries), atol=1e-9)
        assert weighted.loo_error_ == pytest.approx(repeated.loo_error_)
    assert np.abs(weighted.predict(queries) - fixed(**settings).fit(X, y).predict(queries)).max() > 1e-3


def test_many_outputs_are_each_their_own(plane, fixed, queries):
    X, y = plane
    both = fixed().fit(X, np.stack([y, np.exp(y)], axis=1))
    for column, target in enumerate((y, np.exp(y))):
        one = fixed().fit(X, target)
        np.testing.assert_allclose(both.predict(queries)[:, column], one.predict(queries), rtol=1e-10)
        np.testing.assert_allclose(both.gradient(queries)[:, column], one.gradient(queries), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(both.hessian(queries)[:, column], one.hessian(queries), rtol=1e-6, atol=1e-5)
    assert both.hessian(queries).shape == (300, 2, 2, 2)
    assert fixed().fit(X, y[:, None]).predict(queries).shape == (300, 1)


def test_value_and_gradient_come_in_one_call(plane, fixed, queries):
    model = fixed().fit(*plane)
    value, gradient = model.predict_with_gradient(queries)
    np.testing.assert_allclose(value, model.predict(queries), rtol=1e-13, atol=1e-13)  # rounding: other code for other orders
    np.testing.assert_array_equal(gradient, model.gradient(queries))


def test_surface_gradients_lie_in_the_tangent_plane(fixed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = fixed(region_size=60).fit(X, X[:, 0] * X[:, 1])
    Q = X[:200]
    exact = np.stack([Q[:, 1], Q[:, 0], np.zeros(200)], axis=1)
    exact -= (exact * Q).sum(axis=1, keepdims=True) * Q
    surface = model.gradient(Q, normals=-2.0 * Q)  # neither length nor side matters
    assert np.abs((surface * Q).sum(axis=1)).max() < 1e-12
    np.testing.assert_allclose(surface, exact, atol=1e-6)
    with pytest.raises(ValueError, match="`normals` must be finite, one per query"):
        model.gradient(Q, normals=Q[:5])
    with pytest.raises(ValueError, match="row 3 is"):
        model.gradient(Q, normals=np.where(np.arange(200)[:, None] == 3, 0.0, Q))


def test_metrics_are_changes_of_coordinates(plane, fixed, queries):
    X, y = plane
    A = np.array([[2.0, 0.0], [1.0, 0.5]])
    matrix = fixed(metric=A @ A.T).fit(X, y)
    moved = fixed().fit(X @ A, y)
    np.testing.assert_allclose(matrix.predict(queries), moved.predict(queries @ A), atol=1e-8)
    np.testing.assert_allclose(matrix.gradient(queries), moved.gradient(queries @ A) @ A.T, atol=1e-6)
    np.testing.assert_allclose(matrix.hessian(queries), A @ moved.hessian(queries @ A) @ A.T, atol=1e-3)
    np.testing.assert_allclose(matrix.metric_, A @ A.T)
    np.testing.assert_allclose(matrix.centers_ @ A, moved.centers_, atol=1e-12)
    np.testing.assert_allclose(matrix.radii_, moved.radii_)
    standardized = fixed(metric="standardized").fit(X * [1e4, 1e-3], y)
    expected = fixed().fit(X / X.std(axis=0), y).predict(queries / X.std(axis=0))
    np.testing.assert_allclose(standardized.predict(queries * [1e4, 1e-3]), expected, atol=1e-7)


def test_fit_leaves_its_arguments_alone(plane, fixed):
    X, y = plane[0].copy(), plane[1].copy()
    fixed().fit(X, y, sample_weight=np.ones(len(X))).gradient(X)
    np.testing.assert_array_equal(X, plane[0])
    np.testing.assert_array_equal(y, plane[1])


def test_the_random_order_is_seeded(plane, fixed):
    a, b, c = (fixed(order="random", random_state=seed).fit(*plane) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.centers_, b.centers_)
    assert not np.array_equal(a.centers_[:3], c.centers_[:3])


def test_loo_error_is_that_of_refitting_without_each_point(fixed):
    # One region, so that leaving a point out does not move the cover: all its weights cancel.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    y = wave(X) + 0.1 * rng.normal(size=30)
    model = fixed(region_size=30, ridge=1e-2, local_model="krr").fit(X, y)
    sigma = pdist(X).mean()
    errors = []
    for i in range(30):
        rest = np.arange(30) != i
        errors.append(y[i] - KernelRidge(alpha=1e-2, kernel="rbf", gamma=sigma**-2).fit(X[rest], y[rest]).predict(X[i : i + 1])[0])
    assert model.loo_error_ == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-8)


def test_the_paper_constructor_has_the_papers_settings():
    model = StitchedRegressor.paper()
    assert (model.region_size, model.degree, model.kernel, model.weight, model.overlap) == (100, 2, "gaussian", "wendland-c2", 0.0)
    assert model.bandwidth == (0.25, 0.5, 1.0, 2.0, 5.0)
    assert model.ridge == (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
    assert (model.selection, model.metric, model.order, model.background_weight) == ("holdout", "euclidean", "stored", 1e-5)
    assert StitchedRegressor.paper(region_size=50).region_size == 50


def test_the_papers_search_picks_one_pair_for_all_regions(plane):
    model = StitchedRegressor.paper(region_size=50).fit(*plane)
    assert len(set(model.bandwidths_)) == len(set(model.ridges_)) == 1
    assert model.scores_.shape == (5, 5)
    best = np.unravel_index(model.scores_.argmin(), (5, 5))
    assert (model.bandwidths_[0], model.ridges_[0]) == (model.bandwidth[best[0]], model.ridge[best[1]])


def test_the_papers_fixed_ridge_follows_the_response(plane):
    X, y = plane
    model = StitchedRegressor.paper(selection=None, region_size=600).fit(X, y)
    assert model.bandwidths_[0] == 1.0
    assert model.ridges_[0] == pytest.approx(1e-4 * np.abs(y).mean())


def test_holdout_beats_the_worst_candidate(plane, queries):
    X, y = plane
    best = StitchedRegressor.paper(region_size=50).fit(X, y)
    worst = StitchedRegressor.paper(region_size=50, selection=None, bandwidth=0.25, ridge=1e-1).fit(X, y)
    assert best.score(queries, wave(queries)) > worst.score(queries, wave(queries))


def test_pipelines_grids_clones_and_frames(plane, queries):
    X, y = plane
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = StitchedRegressor(region_size=40, kernel="gaussian", degree=1).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == ["east", "north"]
    assert model.score(frame, y) > 0.999
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"east": "west"}))
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(StandardScaler(), StitchedRegressor(region_size=40, selection=None)).fit(X, y)
    assert pipeline.score(queries, wave(queries)) > 0.99
    search = GridSearchCV(StitchedRegressor(selection=None), {"region_size": [30, 60], "ridge": [1e-8, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_["ridge"] == 1e-8


BAD_PARAMETERS = {
    "region_size": [1, 2.5, "many", True, np.array([3, 4])],
    "local_model": ["svm", 3],
    "kernel": ["rbf", None, [], ["gaussian", "rbf"], ["auto"]],
    "degree": [-2, 1.5, "two", True, None, [], [1, -2], 10**9],
    "bandwidth": [0.0, -1.0, [], "b", [1.0, np.nan]],
    "ridge": [0.0, [1e-3, -1.0], "none"],
    "selection": ["cv", True],
    "weight": ["wendland", 2, "wendland-c1", "wendland-c2000"],
    "overlap": [-0.1, np.nan, "some", np.array([1.0, 2.0])],
    "metric": ["manhattan", np.eye(3), np.array([[1.0, 2.0], [0.0, 1.0]]), -np.eye(2), np.zeros((2, 2)), np.array([["a"]])],
    "background": ["none"],
    "smoothness": [-1, 1.5, "very", 101],
    "background_weight": [0.0, -1e-5],
    "rank_tolerance": [-1.0],
    "order": ["sorted"],
    "n_jobs": [0, "two", 1.5],
    "random_state": ["x", -1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_PARAMETERS.items() for value in values], ids=str)
def test_bad_parameters_are_named_before_any_work(plane, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must"):
        StitchedRegressor(**{name: value}).fit(*plane)


def test_a_grid_without_selection_is_refused_with_the_remedy(plane):
    with pytest.raises(ValueError, match=r"`ridge` must be one value when `selection` is None.*'loo'"):
        StitchedRegressor(selection=None, ridge=[1e-3, 1e-2]).fit(*plane)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0, np.nan]] * 5, [1.0] * 5, "Input X contains NaN"),
        ([[0.0, np.inf]] * 5, [1.0] * 5, "Input X contains infinity"),
        ([[0.0, 1.0]] * 5, [1.0, 2.0, np.nan, 4.0, 5.0], "Input y contains NaN"),
        ([[0.0, 1.0]] * 5, [1.0] * 4, "inconsistent numbers of samples"),
        (np.empty((0, 2)), [], "Found array with 0 sample"),
        ([["a", "b"]] * 3, [1.0] * 3, "could not convert string to float"),
        ([[0.0, 1.0]] * 3, ["x", "y", "z"], "could not convert string to float"),
        ([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], "Expected 2D array, got 1D array"),
    ],
)
def test_bad_data_is_a_clear_value_error(X, y, message):
    with pytest.raises(ValueError, match=message):
        StitchedRegressor().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [([1.0], "shape"), ([-1.0] * 600, "not negative"), ([0.0] * 600, "all weights are zero"), ([np.nan] * 600, "finite")],
)
def test_bad_weights_are_a_clear_value_error(plane, weight, message):
    with pytest.raises(ValueError, match=f"`sample_weight` must .*{message}"):
        StitchedRegressor().fit(*plane, sample_weight=weight)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([[1.0, 2.0, 3.0]], "X has 3 features, but StitchedRegressor is expecting 2 features"),
        ([[np.nan, 1.0]], "Input X contains NaN"),
        (np.empty((0, 2)), "Found array with 0 sample"),
    ],
)
def test_bad_queries_are_a_clear_value_error(plane, fixed, queries, message):
    with pytest.raises(ValueError, match=message):
        fixed().fit(*plane).predict(queries)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "groups"])
def test_masked_values_are_refused_and_masked_arrays_without_any_are_not(plane, fixed, name):
    X, y = plane
    given = {"X": X, "y": y, "sample_weight": np.ones(len(X)), "groups": np.arange(len(X)) // 2}
    masked = np.ma.array(given[name])
    plain = fixed().fit(**given).predict(X[:5])
    np.testing.assert_array_equal(fixed().fit(**given | {name: masked}).predict(np.ma.array(X[:5])), plain)
    masked[3] = np.ma.masked
    with pytest.raises(ValueError, match=rf"`{name}` has \d masked values\. Drop the rows"):
        fixed().fit(**given | {name: masked})


def test_masked_queries_are_refused(plane, fixed):
    model, queries = fixed().fit(*plane), np.ma.masked_less(plane[0][:20], 0.0)
    for ask in (model.predict, model.gradient, model.coverage, model.forget, lambda X: model.partial_fit(X, np.zeros(20))):
        with pytest.raises(ValueError, match="masked values"):
            ask(queries)


@pytest.mark.parametrize("size", [1e155, 1e160, 1e300, 1e308])
def test_responses_whose_squares_are_no_numbers_are_refused(plane, fixed, size):
    X, y = plane
    huge = size * (y / np.abs(y).max())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "invalid value encountered in reduce")  # scikit-learn sums them up
        with pytest.raises(ValueError, match=r"`y` has numbers as large as .*Divide it by a unit"):
            fixed().fit(X, huge)
        with pytest.raises(ValueError, match="Divide it by a unit"):
            fixed().fit(X, y).partial_fit(X[:5] + 0.01, huge[:5])


def test_large_responses_have_finite_intervals_and_are_saved(plane, fixed, tmp_path):
    X, y = plane
    model = fixed().fit(X, 1e151 * y / np.abs(y).max())
    assert np.isfinite(model.predict_interval(X[:5])).all()
    model.save(tmp_path / "m.stitch")


def test_many_features_are_warned_of(fixed):
    X = np.random.default_rng(0).normal(size=(80, 51))
    with pytest.warns(UserWarning, match=r"51 features.*PCA"):
        fixed(degree=1).fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fixed(degree=1).fit(X[:, :50], X[:, 0])
