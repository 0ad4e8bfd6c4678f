"""Known errors of observations."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from stitchwork import StitchedRegressor, load
from stitchwork.transform import LogStitchedRegressor


def make_field(seed, n=700, tests=1000, further=0.0):
    """A sample of a Gaussian process with errors that span a factor of 100: data, errors, tests, truth, and its own prediction."""
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(0, 8, (n, 2)), rng.uniform(0.3, 7.7, (tests, 2))
    everything = np.concatenate([X, T])
    kernel = Matern(1.5, nu=2.5)
    f = np.linalg.cholesky(kernel(everything) + 1e-10 * np.eye(n + tests)) @ rng.normal(size=n + tests)
    s = 10 ** rng.uniform(-2, 0, n)
    y = f[:n] + np.sqrt(s**2 + further**2) * rng.normal(size=n)
    exact = GaussianProcessRegressor(kernel, alpha=s**2 + further**2, optimizer=None).fit(X, y)
    return X, y, s, T, f[n:], exact.predict(T)


@pytest.mark.parametrize("n", [700, 1100])
def test_a_field_with_known_errors_is_found_as_well_as_by_the_process_that_made_it(n):
    X, y, s, T, truth, exact = make_field(0, n)
    model = StitchedRegressor().fit(X, y, noise_std=s)
    ours, best = (np.sqrt(np.mean((found - truth) ** 2)) for found in (model.predict(T), exact))
    assert ours < 1.05 * best
    unweighted = np.sqrt(np.mean((StitchedRegressor().fit(X, y).predict(T) - truth) ** 2))
    assert ours < 0.9 * unweighted
    rng = np.random.default_rng(1)
    new = 10 ** rng.uniform(-2, 0, len(T))
    observed = truth + new * rng.normal(size=len(T))
    lower, upper = model.predict_interval(T, 0.9, noise_std=new).T
    inside = (lower <= observed) & (observed <= upper)
    fifth = np.digitize(new, np.quantile(new, [0.2, 0.4, 0.6, 0.8]))
    assert all(abs(inside[fifth == k].mean() - 0.9) < 0.06 for k in range(5))
    assert model.noise_ < 0.05


def test_further_noise_is_found_where_the_data_ask_for_it():
    X, y, s, T, truth, exact = make_field(3, further=0.3)
    model = StitchedRegressor().fit(X, y, noise_std=s)
    assert 0.2 < model.noise_ < 0.4
    assert np.sqrt(np.mean((model.predict(T) - truth) ** 2)) < 1.05 * np.sqrt(np.mean((exact - truth) ** 2))
    _, one = model.predict(T, return_std=True, noise_std=0.01)
    assert (one >= model.noise_).all()


def test_deviations_are_of_the_error_that_is_given_of_a_typical_one_or_of_the_function():
    X, y, s, T, *_ = make_field(1, 400)
    model = StitchedRegressor().fit(X, y, noise_std=s)
    _, function = model.predict(T, return_std=True, std_of="function")
    _, typical = model.predict(T, return_std=True)
    _, large = model.predict(T, return_std=True, noise_std=5.0)
    np.testing.assert_allclose(large**2 - function**2, 25.0 + model.noise_**2, rtol=1e-6)
    np.testing.assert_allclose(typical**2 - function**2, np.median(s**2 + model.noise_**2), rtol=1e-6)


def test_the_unit_of_errors_and_responses_is_free_and_files_keep_errors(tmp_path):
    X, y, s, T, *_ = make_field(2, 300)
    model, scaled = StitchedRegressor().fit(X, y, noise_std=s), StitchedRegressor().fit(X, 1e6 * y, noise_std=1e6 * s)
    for one, other in zip(model.predict(T, return_std=True), scaled.predict(T, return_std=True), strict=True):
        np.testing.assert_allclose(1e6 * one, other, rtol=1e-5, atol=1e-3)
    model.save(tmp_path / "m.stitch")
    again = load(tmp_path / "m.stitch")
    np.testing.assert_array_equal(
        again.predict(T, return_std=True, noise_std=0.1), model.predict(T, return_std=True, noise_std=0.1)
    )
    again.partial_fit(T[:5], np.zeros(5), noise_std=np.full(5, 1e3))  # hardly seen
    assert np.median(np.abs(again.predict(T) - model.predict(T))) < 0.02
    np.testing.assert_array_equal(again.model_.errors, model.model_.errors)


def test_observations_at_one_location_are_averaged_by_their_errors():
    X = np.repeat(np.linspace(0, 1, 60)[:, None], 2, axis=0)
    y = np.tile([0.0, 1.0], 60)
    model = StitchedRegressor(region_size=30, kernel="gaussian", degree=0, ridge=1e-6).fit(X, y, noise_std=np.tile([1.0, 2.0], 60))
    np.testing.assert_allclose(model.predict([[0.5]]), 0.2, atol=1e-6)


def test_outputs_have_errors_of_their_own_and_logarithms_relative_ones():
    X, y, s, T, *_ = make_field(4, 300)
    two = StitchedRegressor().fit(X, np.stack([y, 10 * y], axis=1), noise_std=np.stack([s, 10 * s], axis=1))
    value, deviation = two.predict(T, return_std=True, noise_std=np.tile([1.0, 10.0], (len(T), 1)))
    np.testing.assert_allclose(10 * deviation[:, 0], deviation[:, 1], rtol=1e-4)
    np.testing.assert_allclose(10 * value[:, 0], value[:, 1], rtol=1e-4, atol=1e-5)
    positive = np.exp(y)
    log = LogStitchedRegressor().fit(X, positive, noise_std=s * positive)
    plain = StitchedRegressor().fit(X, y, noise_std=s)
    # Logarithms of exponentials are rounded, and the search for hyperparameters ends within 1e-5 of the likelihood.
    np.testing.assert_allclose(np.log(log.predict(T)), plain.predict(T), atol=1e-5)


@pytest.mark.parametrize(
    ("noise_std", "weights", "message"),
    [
        (np.zeros(30), None, "positive"),
        (-np.ones(30), None, "positive"),
        (np.full(30, np.nan), None, "positive"),
        (np.ones(29), None, r"shape \(30,\)"),
        (np.ones((30, 2)), None, "shape"),
        (np.ones(30), np.ones(30), "either `sample_weight` or `noise_std`"),
        (np.full(30, 1e-300), None, "Rescale"),
    ],
)
def test_bad_errors_are_refused_and_the_model_stays(noise_std, weights, message):
    X = np.linspace(0, 1, 30)[:, None]
    model = StitchedRegressor().fit(X, X[:, 0])
    before = model.model_
    with pytest.raises(ValueError, match=message):
        model.fit(X, X[:, 0], sample_weight=weights, noise_std=noise_std)
    with pytest.raises(ValueError, match="with all rows or with none"):
        model.partial_fit(X, X[:, 0], noise_std=np.ones(30))
    assert model.model_ is before


def hills(X):
    return 5.0 * np.sin(X[:, 0]) * np.cos(X[:, 1])


def noisy_hills(n, seed, further=0.0):
    """Points in a square, errors between 0.7 and 5, responses with these errors and further noise, and queries."""
    rng = np.random.default_rng(seed)
    X, s = rng.uniform(0, 6, (n, 2)), np.exp(rng.uniform(np.log(0.7), np.log(5.0), n))
    return X, s, hills(X) + np.hypot(s, further) * rng.normal(size=n), rng.uniform(0.3, 5.7, (500, 2))


@pytest.mark.parametrize(("n", "seeds"), [(150, 6), (1300, 3)])
def test_the_function_lies_inside_its_own_intervals(n, seeds):
    inside = []
    for seed in range(seeds):
        X, s, y, Q = noisy_hills(n, seed)
        value, std = StitchedRegressor().fit(X, y, noise_std=s).predict(Q, return_std=True, std_of="function")
        inside.append(np.mean(np.abs(value - hills(Q)) < 1.645 * std))
    # Errors in one field are alike: the shares of single fields have a standard deviation of about 0.1.
    assert 0.8 < np.mean(inside) < 0.98
    assert min(inside) > 0.55


@pytest.mark.parametrize("n", [300, 1300])
def test_further_noise_is_found_beside_errors_of_any_size(n):
    X, s, y, _ = noisy_hills(n, 2, further=4.0)
    found = StitchedRegressor().fit(X, y, noise_std=s).model_.errors.further[0] ** 0.5
    assert 3.2 < found < 4.8  # four standard errors of 4 / √(2 · 200)


def test_larger_errors_make_smoother_functions():
    X, s, y, _ = noisy_hills(150, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # errors larger than the responses vary
        models = [StitchedRegressor().fit(X, y, noise_std=factor * s) for factor in (0.5, 1.0, 2.0, 4.0)]
    rough = [np.square(model.predict(X) - y).mean() for model in models]
    assert rough[1] < rough[2] < rough[3]
    assert rough[0] < rough[2]


def test_errors_in_another_unit_are_noticed():
    X, s, y, _ = noisy_hills(60, 0)
    with pytest.warns(UserWarning, match="in the unit of y"):
        StitchedRegressor().fit(X, y, noise_std=1000.0 * s)
