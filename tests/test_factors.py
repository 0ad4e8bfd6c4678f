"""Variances from factors that are kept."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.local.factors import CACHE, FactorCache
from stitchwork.local.fit import stack_residuals
from stitchwork.local.radial import KERNEL_NAMES
from stitchwork.model.loo import point_residuals


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def pairs(models, seed=1):
    """Regions and places in and around them."""
    rng = np.random.default_rng(seed)
    region = np.sort(rng.integers(0, len(models.members), 150))
    return region, np.asfortranarray(models.origin[region] + models.scale[region, None] * rng.uniform(-1, 1, (150, 2)))


def rounding(models):
    """Of values: ε Σ|α|, times what distances from one product lose beside those from differences."""
    return 64 * np.finfo(float).eps * np.abs(models.alpha).sum(axis=1).max()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_variance_is_that_of_the_block_matrix(kernel, weighted):
    X, y = data()
    model = StitchedRegressor(kernel=kernel, ridge=1e-4, bandwidth=1.0, degree=2, region_size=50)
    model.fit(X, y, sample_weight=np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if weighted else None)
    models = model.model_.levels[0].models
    region, at = pairs(models)
    values, v = models.estimate(region, at)
    expected, _ = models.variance(region, at)
    np.testing.assert_allclose(v, expected, rtol=1e-5, atol=1e-9)  # splines of 50 points in units of a mean eigenvalue of one
    np.testing.assert_allclose(values, models.evaluate(region, at, 0).value, rtol=0.0, atol=rounding(models))
    again = models.estimate(region, at)[1]
    np.testing.assert_array_equal(again, v)


def test_where_there_is_no_cholesky_factor_the_block_matrix_is_solved():
    X, y = data()
    model = StitchedRegressor(kernel="gaussian", ridge=1e-30, bandwidth=20.0, degree=0, region_size=50).fit(X, y)
    models = model.model_.levels[0].models
    region, at = pairs(models)
    _, v = models.estimate(region, at)
    assert models.factors(region[:1])[0].whole is not None
    assert np.isfinite(v).all()
    _, std = model.predict(X[:50], return_std=True)
    assert np.isfinite(std).all()


def test_polynomials_alone_and_deficient_ones():
    X, y = data()
    line = np.stack([X[:, 0], X[:, 0]], axis=1) + 1e-13 * X  # monomials in two features have one direction
    for settings in ({"local_model": "poly", "degree": 2}, {"kernel": "cubic"}):
        model = StitchedRegressor(region_size=50, **settings)
        for places in (X, line):
            models = model.fit(places, y).model_.levels[0].models
            region, at = pairs(models)
            np.testing.assert_allclose(models.estimate(region, at)[1], models.variance(region, at)[0], rtol=1e-4, atol=1e-7)


MANY = {
    "weights": {"kernel": "matern52", "ridge": 1e-3, "bandwidth": 1.0, "degree": 1},
    "no polynomial": {"kernel": "gaussian", "ridge": 1e-4, "bandwidth": 0.5, "local_model": "krr"},
    "polynomials alone": {"local_model": "poly", "degree": 2},
    "splines": {"kernel": "cubic", "ridge": 1e-4},
    "no Cholesky factor": {"kernel": "gaussian", "ridge": 1e-30, "bandwidth": 20.0, "degree": 0},
}


@pytest.mark.parametrize("name", MANY)
def test_many_columns_of_responses_are_solved_as_each_by_itself(name):
    X, y = data()
    v = np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if name == "weights" else None
    model = StitchedRegressor(region_size=50, **MANY[name]).fit(X, y, sample_weight=v)
    Y = y[:, None] * np.linspace(-1.0, 1.0, 40) + np.cos(X[:, :1] * np.linspace(0.5, 2.0, 40))
    regions = model.model_.levels[0].regions
    assert (name == "no Cholesky factor") == any(one.whole is not None for one in regions.models.factors(np.arange(5)))
    points = regions.models.points
    many = regions.models.solve(points._replace(y=Y[points.row]), ALONE)
    for k in (0, 17, 39):
        one = regions.models.solve(points._replace(y=Y[points.row, k : k + 1]), ALONE)
        for found, expected in ((many.alpha, one.alpha), (many.lam, one.lam)):  # to rounding in systems of this condition
            np.testing.assert_allclose(found[..., [k]], expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max(initial=1.0))


@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "cubic", "linear"])
def test_leave_one_out_is_that_of_the_eigenvectors(kernel):
    X, y = data()
    model = StitchedRegressor(kernel=kernel, ridge=1e-3, bandwidth=1.0, degree=2, region_size=50).fit(X, y)
    models = model.model_.levels[0].models
    found = point_residuals(models.points, models, np.arange(len(models.members)))
    np.testing.assert_allclose(found, stack_residuals(models.points, models.members, models.settings), rtol=1e-6, atol=1e-9)


def test_points_that_decide_a_direction_alone_are_left_to_eigenvectors():
    """Three points, of which a quadratic explains all: nothing is known of any of them without itself."""
    model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    models = model.model_.levels[0].models
    exact = replace(models.settings, degree=np.full_like(models.settings.degree, 2))
    some = np.flatnonzero(exact.kind == exact.kind[0])
    found = point_residuals(models.points, replace(models, settings=exact), some)
    np.testing.assert_array_equal(found, stack_residuals(models.points, models.members[some], exact.at(some)))


def test_the_cache_stays_within_its_bytes_and_forgets_models():
    X, y = data(3000)
    model = StitchedRegressor(kernel="matern52", ridge=1e-3, bandwidth=1.0, degree=1, region_size=40).fit(X, y)
    before = CACHE.limit
    try:
        CACHE.resize(1 << 20)
        _, few = model.predict(X, return_std=True)
        assert 0 < CACHE.used <= 1 << 20
        CACHE.resize(0)
        assert CACHE.used == 0
        _, none = model.predict(X, return_std=True)
        CACHE.resize(1 << 28)
        _, all_ = model.predict(X, return_std=True)
        np.testing.assert_allclose(few, all_, rtol=1e-12)
        np.testing.assert_allclose(none, all_, rtol=1e-12)
        assert CACHE.used > 1 << 20
        del model
        gc.collect()
        assert CACHE.used == 0 or CACHE.used < 1 << 20  # other tests' models may be there
    finally:
        CACHE.resize(before)


def test_fit_keeps_its_factors_so_that_a_refit_factorises_nothing(monkeypatch):
    X, y = data(3000)
    model = StitchedRegressor(kernel="matern52", ridge=1e-3, bandwidth=1.0, degree=1, region_size=40).fit(X, y)
    for level in model.model_.levels[:-1]:
        assert None not in CACHE.find(level.models.owner, np.arange(len(level.models.members)))
    monkeypatch.setattr("stitchwork.local.blocks.factorise_regions", None)
    np.testing.assert_allclose(model.refit(2.0 * y + 1.0).predict(X), 2.0 * model.refit(y).predict(X) + 1.0, atol=1e-9)


def test_a_refit_without_room_for_factors_is_the_same():
    X, y = data(1500)
    model = StitchedRegressor(kernel="matern52", ridge=1e-3, bandwidth=1.0, degree=1, region_size=40)
    before = CACHE.limit
    try:
        CACHE.resize(0)
        without = model.fit(X, y).refit(y**2).predict(X)
        CACHE.resize(1 << 18)  # some regions
        some = model.fit(X, y).refit(y**2).predict(X)
    finally:
        CACHE.resize(before)
    np.testing.assert_allclose(without, model.fit(X, y).refit(y**2).predict(X), rtol=1e-12)
    np.testing.assert_allclose(some, without, rtol=1e-12)


class Owner:
    """Whose factors are kept."""


class Kept:
    """A factor of ten bytes."""

    nbytes = 10


def test_regions_that_are_asked_in_turn_are_found_as_far_as_there_is_room():
    cache, owner, found = FactorCache(200), Owner(), []
    for _ in range(20):
        for region in range(30):  # for twenty of which there is room
            known = cache.find(owner, np.array([region]))[0]
            found.append(known is not None)
            if known is None:
                cache.keep(owner, np.array([region]), [Kept()])
        assert cache.used <= 200
    # A region that leaves one of C others at random stays through N - C misses with (1 - 1/C)^(misses): half of them, about.
    assert 0.35 < np.mean(found[30:]) < 2 / 3
    cache.forget(id(owner))
    assert cache.used == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [*KERNEL_NAMES, None])
def test_the_compiled_posterior_is_that_of_numpy(kernel, weighted, monkeypatch):
    X, y = data()
    settings = {"local_model": "poly", "degree": 2} if kernel is None else {"kernel": kernel, "bandwidth": 1.0, "degree": 2}
    model = StitchedRegressor(ridge=1e-4, region_size=37, **settings)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X)) if weighted else None
    models = model.fit(X, np.stack([y, y**2], axis=1), sample_weight=weights).model_.levels[0].models
    region, at = pairs(models)
    values, v = models.estimate(region, at)
    alone = [models.estimate(region[i : i + 1], at[i : i + 1]) for i in range(0, 150, 10)]
    monkeypatch.setattr("stitchwork.local.blocks.evaluate_posterior", lambda *_: None)
    expected = models.estimate(region, at)
    # Kernels of splines are larger than what is left of them: rounding is relative to the largest.
    close = {"rtol": 1e-8, "atol": 1e-9}
    np.testing.assert_allclose(values, expected[0], rtol=0.0, atol=rounding(models))
    np.testing.assert_allclose(v, expected[1], **close)
    np.testing.assert_allclose(np.concatenate([one[1] for one in alone]), expected[1][::10], **close)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("place", ["inside", "at the border", "far outside"])
def test_one_row_has_the_deviation_that_it_has_among_many(outputs, place):
    X, y = data(1500)
    weights = np.random.default_rng(3).uniform(0.5, 2.0, len(X))
    targets = y if outputs == 1 else np.stack([y, 3.0 * np.cos(X[:, 0])], axis=1)
    model = StitchedRegressor(region_size=40).fit(X, targets, sample_weight=weights)
    rng = np.random.default_rng(4)
    low, high = {"inside": (1, 9), "at the border": (9.5, 12.0), "far outside": (40.0, 60.0)}[place]
    Q = rng.uniform(low, high, (30, 2))
    value, std = model.predict(Q, return_std=True)
    for i, row in enumerate(Q):
        one, own = model.predict(row[None], return_std=True)
        np.testing.assert_allclose(one[0], value[i], rtol=1e-9)
        np.testing.assert_allclose(own[0], std[i], rtol=1e-7)


def test_one_row_of_averaged_models_and_charts_has_the_deviation_that_it_has_among_many():
    rng = np.random.default_rng(5)
    X = rng.uniform(0, 1, (900, 5)) * [1, 1, 1, 1, 360]
    y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(np.radians(X[:, 4])) + 0.1 * rng.normal(size=900)
    model = StitchedRegressor(periodic={4: 360.0}).fit(X, y)
    _, std = model.predict(X[:20], return_std=True)
    alone = [model.predict(row[None], return_std=True)[1][0] for row in X[:20]]
    np.testing.assert_allclose(alone, std, rtol=1e-7)


def test_threads_share_it():
    X, y = data(2000)
    model = StitchedRegressor(kernel="matern52", ridge=1e-3, bandwidth=1.0, degree=1, region_size=40, n_jobs=1).fit(X, y)
    expected = model.predict(X, return_std=True)[1]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.predict(X, return_std=True)[1], range(8)):
            np.testing.assert_array_equal(found, expected)


def test_a_model_that_dies_while_the_cache_is_at_work_is_forgotten_without_waiting():
    """The garbage collector may run in the thread that holds the lock."""
    cache, owner = FactorCache(1000), Owner()
    cache.keep(owner, np.arange(2), [Kept(), Kept()])
    finished = threading.Event()

    def die():
        nonlocal owner
        with cache._lock:
            del owner
            gc.collect()
        finished.set()

    threading.Thread(target=die, daemon=True).start()
    assert finished.wait(10)
    assert cache.find(Owner(), np.arange(2)) == [None, None]
    assert cache.used == 0
