"""Variances from factors that are kept."""

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from stitchwork import StitchedRegressor
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
    np.testing.assert_allclose(values, models.evaluate(region, at, 0).value, rtol=1e-12)
    again = models.estimate(region, at)[1]
    np.testing.assert_array_equal(again, v)


def test_where_there_is_no_cholesky_factor_the_block_matrix_is_solved():
    X, y = data()
    model = StitchedRegressor(kernel="gaussian", ridge=1e-30, bandwidth=20.0, degree=0, region_size=50).fit(X, y)
    models = model.model_.levels[0].models
    region, at = pairs(models)
    _, v = models.estimate(region, at)
    assert any(factor.whole for factor, _ in models._factors(region[:1]))
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


@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "cubic", "linear"])
def test_leave_one_out_is_that_of_the_eigenvectors(kernel):
    X, y = data()
    model = StitchedRegressor(kernel=kernel, ridge=1e-3, bandwidth=1.0, degree=2, region_size=50).fit(X, y)
    models = model.model_.levels[0].models
    found = point_residuals(models.points, models.members, models.settings)
    np.testing.assert_allclose(found, stack_residuals(models.points, models.members, models.settings), rtol=1e-6, atol=1e-9)


def test_points_that_decide_a_direction_alone_are_left_to_eigenvectors():
    """Three points, of which a quadratic explains all: nothing is known of any of them without itself."""
    model = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    models = model.model_.levels[0].models
    exact = replace(models.settings, degree=np.full_like(models.settings.degree, 2))
    some = exact.at(np.flatnonzero(exact.kind == exact.kind[0]))
    found = point_residuals(models.points, models.members[: len(some.kernel)], some)
    np.testing.assert_array_equal(found, stack_residuals(models.points, models.members[: len(some.kernel)], some))


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


def test_the_least_recently_asked_leaves_first():
    class Owner:
        pass

    class Kept:
        nbytes = 10

    cache, owner = FactorCache(25), Owner()
    one = (Kept(), 1.0)
    cache.keep(owner, np.array([1, 2]), [one, one])
    cache.find(owner, np.array([1]))
    cache.keep(owner, np.array([3]), [one])
    assert [found is not None for found in cache.find(owner, np.array([1, 2, 3]))] == [True, False, True]


def test_threads_share_it():
    X, y = data(2000)
    model = StitchedRegressor(kernel="matern52", ridge=1e-3, bandwidth=1.0, degree=1, region_size=40, n_jobs=1).fit(X, y)
    expected = model.predict(X, return_std=True)[1]
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: model.predict(X, return_std=True)[1], range(8)):
            np.testing.assert_array_equal(found, expected)
