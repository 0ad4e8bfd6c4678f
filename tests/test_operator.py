"""The prediction as a linear map of the responses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array

from stitchwork import StitchedRegressor, load
from stitchwork.export import to_weights
from stitchwork.transform import LogStitchedRegressor


def wave(X):
    return np.sin(X[:, 0]) + 0.5 * X[:, 1] * np.cos(0.7 * X[:, 1])


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(0, 10, (700, 2))
    return X, wave(X)


def assert_linear(model, X, y, T, rtol=1e-6):
    """W y is the prediction and its derivatives; rows sum to one and to zero."""
    for order, ask in enumerate((model.predict, model.gradient, model.hessian)):
        W, bound = model.operator(T, order, return_bound=True)
        expected = ask(T)
        assert W.shape == (expected.size, len(X))
        found = (W @ y).reshape(expected.shape)
        np.testing.assert_allclose(found[~bound], expected[~bound], rtol=0, atol=rtol * (1.0 + np.abs(expected).max()))
        assert (~bound).mean() > 0.8
        np.testing.assert_allclose(W.sum(axis=1), float(order == 0), atol=1e-5 * max(np.abs(W).sum(axis=1).max(), 1.0))


SETTINGS = {
    "many regions": {"region_size": 40, "kernel": "matern52", "degree": 1, "ridge": 1e-4},
    "no polynomial behind all": {"region_size": 40, "kernel": "gaussian", "degree": 2, "ridge": 1e-6, "background": "polynomial"},
    "polynomials alone": {"region_size": 40, "local_model": "poly", "degree": 2},
    "a learned metric": {"region_size": 60, "kernel": "matern52", "degree": 0, "ridge": 1e-4, "metric": "learned"},
    "few points": {"kernel": "auto"},
    "a feature with a period": {"region_size": 40, "kernel": "matern52", "degree": 0, "ridge": 1e-3, "periodic": {0: 2 * np.pi}},
    "the globe": {"region_size": 40, "kernel": "matern52", "degree": 0, "ridge": 1e-3, "geographic": (0, 1)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_weights_times_responses_are_the_prediction(data, name):
    X, y = data
    y = y + 0.05 * np.random.default_rng(1).normal(size=len(y))
    T = np.random.default_rng(2).uniform(-0.5, 10.5, (60, 2))
    assert_linear(StitchedRegressor(**SETTINGS[name]).fit(X, y), X, y, T)


def test_tables_with_averaged_models_and_outputs_of_their_own():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1700, 5))
    Y = np.stack([np.sin(X[:, 0]) + X[:, 1], X[:, 3] ** 2], axis=1) + 0.1 * rng.normal(size=(1700, 2))
    model = StitchedRegressor(region_size=150).fit(X, Y)
    T = X[:20] + 0.1
    np.testing.assert_allclose(model.operator(T) @ Y, model.predict(T), atol=1e-7)
    small = StitchedRegressor().fit(X[:200], Y[:200])
    assert small.model_.levels[0].regions.output_factor is not None  # they share no feature
    with pytest.raises(ValueError, match="Name one with `output`"):
        small.operator(T)
    for output in range(2):
        np.testing.assert_allclose(small.operator(T, output=output) @ Y[:200, output], small.predict(T)[:, output], atol=1e-7)


def test_columns_are_rows_of_the_data_in_their_order(data, tmp_path):
    """Coincident rows share a weight by their weights, rows of weight zero have none; also in a file."""
    X, y = data
    rng = np.random.default_rng(4)
    X, y = np.concatenate([X, X[:50]]), np.concatenate([y, y[:50] + rng.normal(size=50)])
    v = rng.integers(0, 3, len(y)).astype(float)
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1, ridge=1e-3).fit(X, y, sample_weight=v)
    T = rng.uniform(0, 10, (30, 2))
    assert_linear(model, X, y, T)
    W = model.operator(T)
    assert not W[:, np.flatnonzero(v == 0.0)].nnz
    model.save(tmp_path / "m.stitch")
    np.testing.assert_array_equal(load(tmp_path / "m.stitch").operator(T).toarray(), W.toarray())
    order = rng.permutation(len(y))
    other = StitchedRegressor(region_size=40, kernel="matern52", degree=1, ridge=1e-3).fit(
        X[order], y[order], sample_weight=v[order]
    )
    assert_linear(other, X, y[order], T)


def test_known_errors_weigh_coincident_rows(data):
    X, y = data
    X, y = np.concatenate([X, X[:100]]), np.concatenate([y, y[:100] + 1.0])
    s = np.random.default_rng(5).uniform(0.1, 1.0, len(y))
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1).fit(X, y, noise_std=s)
    assert_linear(model, X, y, np.random.default_rng(6).uniform(0, 10, (30, 2)))


def test_the_weights_do_not_depend_on_the_responses_or_on_chunks(data, monkeypatch):
    X, y = data
    fixed = {"region_size": 40, "kernel": "matern52", "degree": 1, "bandwidth": 1.0, "ridge": 1e-3, "background": "polynomial"}
    T = np.random.default_rng(7).uniform(0, 10, (40, 2))
    W = StitchedRegressor(**fixed).fit(X, y).operator(T, 1)
    other = StitchedRegressor(**fixed).fit(X, 1e6 * np.cos(y)).operator(T, 1)
    np.testing.assert_allclose(other.toarray(), W.toarray(), atol=1e-9 * np.abs(W).max())
    monkeypatch.setattr("stitchwork.model.operator._BYTES", 1)
    np.testing.assert_allclose(StitchedRegressor(**fixed).fit(X, y).operator(T, 1).toarray(), W.toarray(), atol=1e-10)


def test_the_adjoint_and_the_propagation_of_errors(data):
    """⟨W y, z⟩ = ⟨y, Wᵀ z⟩, and W Wᵀ is the covariance of predictions from independent errors, as refits with such errors show."""
    X, y = data
    fixed = {"region_size": 60, "kernel": "matern52", "degree": 1, "bandwidth": 1.0, "ridge": 1e-1, "background": "polynomial"}
    T = np.random.default_rng(8).uniform(1, 9, (3, 2))
    X, y = X[:300], y[:300]
    model = StitchedRegressor(**fixed).fit(X, y)
    W = model.operator(T)
    z = np.arange(3.0)
    assert np.isclose((W @ y) @ z, y @ (W.T @ z))
    rng = np.random.default_rng(9)
    refits = [model.refit(y + 0.1 * rng.normal(size=len(y))).predict(T) for _ in range(250)]
    np.testing.assert_allclose(np.cov(np.array(refits).T), 0.01 * (W @ W.T).toarray(), atol=0.35 * 0.01 * (W @ W.T).max())


@given(st.sampled_from(["gaussian", "matern52", "cubic", "multiquadric"]), st.integers(0, 2), st.floats(-6, 0), st.integers(0, 99))
@settings(max_examples=8, deadline=None)
def test_polynomials_of_the_degree_are_reproduced(kernel, degree, log_ridge, seed):
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(-1, 1, (200, 2)), rng.uniform(-1, 1, (10, 2))
    degree = max(degree, {"cubic": 1}.get(kernel, 0))
    model = StitchedRegressor(region_size=50, kernel=kernel, degree=degree, ridge=10.0**log_ridge).fit(X, rng.normal(size=200))
    W = model.operator(T)
    for power in range(min(degree, 1) + 1):  # the polynomial behind all levels is of degree one
        np.testing.assert_allclose(W @ X[:, 0] ** power, T[:, 0] ** power, atol=1e-6)


def test_growing_models_go_on_and_refuse_what_they_cannot_tell(data):
    X, y = data
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1, ridge=1e-3).fit(X[:600], y[:600])
    T = np.random.default_rng(10).uniform(1, 9, (20, 2))
    model.partial_fit(X[600:], y[600:])
    np.testing.assert_allclose(model.operator(T) @ y, model.predict(T), atol=1e-7)
    model.forget(X[:10])
    np.testing.assert_allclose(model.operator(T) @ y, model.predict(T), atol=1e-7)
    model.partial_fit(X[20:25], y[20:25])
    with pytest.raises(ValueError, match="with all rows"):
        model.operator(T)


def test_bad_questions_are_refused(data):
    X, y = data
    model = StitchedRegressor(region_size=40, kernel="matern52", ridge=1e-3).fit(X, y)
    for options, message in (({"derivative": 3}, "0, 1 or 2"), ({"output": 1}, "between 0 and 0")):
        with pytest.raises(ValueError, match=message):
            model.operator(X[:2], **options)
    with pytest.raises(ValueError, match="logarithm"):
        LogStitchedRegressor(region_size=40).fit(X, np.exp(y)).operator(X[:2])


def test_a_refit_is_the_fit_with_the_same_hyperparameters(data):
    X, y = data
    X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20] + 0.1])
    fixed = {"region_size": 40, "kernel": "matern52", "degree": 1, "bandwidth": 1.0, "ridge": 1e-3, "background": "polynomial"}
    T, new = np.random.default_rng(11).uniform(0, 10, (40, 2)), np.cos(y)
    model = StitchedRegressor(**fixed).fit(X, y)
    W = model.operator(T)
    model.refit(new)
    fresh = StitchedRegressor(**fixed).fit(X, new)
    np.testing.assert_allclose(model.predict(T), fresh.predict(T), atol=1e-9)
    np.testing.assert_allclose(model.predict(T), W @ new, atol=1e-9)
    assert np.isclose(model.loo_error_, fresh.loo_error_)


def test_a_refit_warns_of_hyperparameters_that_do_not_suit_and_refuses_other_shapes(data):
    X, y = data
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1).fit(X, y)
    before = model.model_
    for bad, message in ((y[:-1], "700 rows"), (y[:, None, None], "dim"), (np.full(700, np.nan), "NaN")):
        with pytest.raises(ValueError, match=message):
            model.refit(bad)
    assert model.model_ is before
    with pytest.warns(UserWarning, match="do not suit"):
        model.refit(np.random.default_rng(0).normal(size=700) + 10 * y.mean())


def test_many_fields_are_refitted_at_once(data):
    X, y = data
    fields = np.stack([y, np.cos(y), 3.0 * y + 1.0], axis=1)
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1, bandwidth=1.0, ridge=1e-3).fit(X, y)
    T = np.random.default_rng(11).uniform(0, 10, (40, 2))
    W, one = model.operator(T), model.predict(T)
    many = model.refit(fields).predict(T)
    assert many.shape == (40, 3)
    np.testing.assert_allclose(many, W @ fields, atol=1e-9)
    np.testing.assert_allclose(model.refit(y).predict(T), one, atol=1e-9)
    assert model.predict(T).shape == (40,)
    s = np.full(len(y), 0.1)
    known = StitchedRegressor(region_size=40, kernel="matern52", degree=1, bandwidth=1.0, ridge=1e-3).fit(X, y, noise_std=s)
    with pytest.raises(ValueError, match="their own hyperparameters or errors"):
        known.refit(fields)


def test_weights_are_written_in_the_layout_of_regridding_tools(data, tmp_path):
    xarray = pytest.importorskip("xarray")
    X, y = data
    model = StitchedRegressor(region_size=40, kernel="matern52", degree=1, bandwidth=1.0, ridge=1e-3).fit(X, y)
    T = np.random.default_rng(11).uniform(0, 10, (40, 2))
    to_weights(model, T).to_netcdf(tmp_path / "weights.nc")
    read = xarray.load_dataset(tmp_path / "weights.nc")
    assert read["row"].values.min() == 1
    W = coo_array(
        (read["S"].values, (read["row"].values - 1, read["col"].values - 1)), shape=(read.attrs["n_b"], read.attrs["n_a"])
    )
    np.testing.assert_allclose(W @ y, model.predict(T), rtol=1e-9)
    assert abs(W - model.operator(T)).max() == 0.0


def slopes_data(n=90, t=1, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    Y = np.stack([np.sin(2 * X[:, 0] + k) * np.exp(X[:, 1]) for k in range(t)], axis=1)
    G = np.stack([np.stack([2 * np.cos(2 * X[:, 0] + k) * np.exp(X[:, 1]), Y[:, k]], axis=1) for k in range(t)], axis=1)
    return (X, Y[:, 0], G[:, 0]) if t == 1 else (X, Y, G)


def measured(y, G):
    """What columns of an operator stand for: responses, then slopes row by row, by each feature."""
    return np.concatenate([y, G.ravel()]) if y.ndim == 1 else np.concatenate([y, G.swapaxes(1, 2).reshape(-1, y.shape[1])])


SLOPED = {
    "many regions": {"region_size": 60, "kernel": "matern52", "degree": 1, "ridge": 1e-4},
    "polynomials alone": {"region_size": 60, "local_model": "poly", "degree": 2},
    "a learned metric": {"region_size": 60, "kernel": "quintic", "degree": 2, "ridge": 1e-4, "metric": "learned"},
    "a period": {"region_size": 60, "kernel": "gaussian", "degree": 0, "ridge": 1e-3, "periodic": {0: 2 * np.pi}},
    "few points": {"kernel": "auto"},
}


@pytest.mark.parametrize("name", SLOPED)
@pytest.mark.parametrize("t", [1, 2])
def test_slopes_have_columns_after_those_of_responses(name, t):
    """W times responses and slopes is the prediction; what was not measured may be NaN, and weighs nothing."""
    X, y, G = slopes_data(40 if name == "few points" else 120, t)
    rng = np.random.default_rng(1)
    G[(rng.random(len(X)) < 0.3)] *= np.array([np.nan, 1.0])
    y[::7] = np.nan
    y += 0.01 * rng.normal(size=y.shape)
    model = StitchedRegressor(**SLOPED[name]).fit(X, y, gradient=G)
    T = rng.uniform(-1.0, 1.0, (30, 2))
    for order, ask in enumerate((model.predict, model.gradient, model.hessian)):
        expected = ask(T).reshape(30, t, -1)
        for output in range(t):
            W, bound = model.operator(T, order, output, return_bound=True)
            assert W.shape == (30 * 2**order, 3 * len(X))
            found = (W @ measured(y, G)).reshape(30, -1, t)[~bound, :, output]
            np.testing.assert_allclose(found, expected[~bound, output], atol=1e-6 * (1.0 + np.abs(expected).max()))
            assert (~bound).mean() > 0.8


def test_columns_of_slopes_at_coincident_rows_and_of_some_features(tmp_path):
    X, y, G = slopes_data(100)
    rng = np.random.default_rng(2)
    X[60:] = X[:40]
    y, G = y + 0.1 * rng.normal(size=100), G + 0.1 * rng.normal(size=(100, 2))
    G[:, 0], v = np.nan, rng.integers(0, 3, 100).astype(float)
    T = rng.uniform(-0.9, 0.9, (20, 2))
    fixed = {"region_size": 60, "kernel": "matern52", "degree": 1, "ridge": 1e-3}
    errors = {"noise_std": np.full(100, 0.1), "gradient_std": rng.uniform(0.1, 1.0, (100, 2))}
    for more in ({"sample_weight": v}, errors):
        model = StitchedRegressor(**fixed).fit(X, y, gradient=G, **more)
        W = model.operator(T)
        np.testing.assert_allclose(W @ measured(y, G), model.predict(T), atol=1e-9)
        assert W[:, 100:].nnz
        model.save(tmp_path / "m.stitch")
        np.testing.assert_array_equal(load(tmp_path / "m.stitch").operator(T).toarray(), W.toarray())


def test_regions_with_slopes_alone_have_no_operator():
    X, y, G = slopes_data(200)
    y[X[:, 0] > -0.5] = np.nan
    model = StitchedRegressor(region_size=30, kernel="matern52", degree=1, ridge=1e-3).fit(X, y, gradient=G)
    with pytest.raises(ValueError, match="hold slopes alone"):
        model.operator([[0.9, 0.0]])


@pytest.mark.parametrize("changes", [{}, SLOPED["many regions"]])
def test_refit_with_slopes_is_a_fit_with_the_same_hyperparameters(changes):
    """The operator tells what other responses and slopes give; the rows may be coincident, and some numbers missing."""
    X, y, G = slopes_data(40 if not changes else 120)
    X[-5:] = X[:5]
    y, G = np.concatenate([y[:-5], y[:5] + 0.1]), np.concatenate([G[:-5], G[:5]])
    G[3], y[4] = np.nan, np.nan
    model = StitchedRegressor(**changes).fit(X, y, gradient=G)
    T = np.random.default_rng(3).uniform(-0.9, 0.9, (20, 2))
    before, W = model.predict(T), model.operator(T)
    np.testing.assert_allclose(model.refit(y, gradient=G).predict(T), before, atol=1e-9)
    other, slopes = y - 2.0 * X[:, 0], G - [2.0, 0.0]
    np.testing.assert_allclose(model.refit(other, gradient=slopes).predict(T), W @ measured(other, slopes), atol=1e-5)
    two = model.refit(np.stack([y, other], axis=1), gradient=np.stack([G, slopes], axis=1)).predict(T)
    np.testing.assert_allclose(two[:, 0], before, atol=1e-9)
    for message, arguments in {
        "`gradient` is missing": (y, None),
        "must have shape": (y, G[:, :1]),
        "row 0 has none": (y, np.full_like(G, np.nan)),
        "`y` must have a finite number": (np.full_like(y, np.nan), G),
    }.items():
        now = model.model_
        with pytest.raises(ValueError, match=message):
            model.refit(*arguments)
        assert model.model_ is now
    with pytest.raises(ValueError, match="were fitted with slopes"):
        StitchedRegressor(**SETTINGS["many regions"]).fit(X[:30], y[5:35]).refit(y[5:35], G[5:35])


@pytest.mark.parametrize("where", [11.0, 30.0, -20.0])
def test_weights_reach_outside_where_no_region_of_a_level_is_near(where):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (800, 2))
    y = wave(X) + 0.1 * rng.normal(size=800)
    model = StitchedRegressor(kernel="matern52", degree=1).fit(X, y)
    for order, ask in enumerate((model.predict, model.gradient, model.hessian)):
        W, bound = model.operator([[where, 5.0]], order, return_bound=True)
        if not bound.any():
            np.testing.assert_allclose(W @ y, ask([[where, 5.0]]).ravel(), atol=1e-9)
