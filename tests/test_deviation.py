"""How sure it is: deviations against Gaussian processes, sampling and held-out data; intervals that hold what they say."""

import warnings

import numpy as np
import pytest
from conftest import wave
from scipy.spatial.distance import pdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.linear_model import LinearRegression

from stitchwork import StitchedRegressor, load
from stitchwork.fitting.points import merge_coincident
from stitchwork.local.points import Points, join_points
from stitchwork.local.radial import KERNEL_NAMES, kernel_named
from stitchwork.model.deviation import LEVELS, Calibration, point_volumes
from stitchwork.model.few import quantiles_of
from stitchwork.model.noise import find_slopes, group_alike

ONE = {"region_size": 60, "selection": None, "metric": "euclidean"}


@pytest.fixture(scope="module")
def sixty():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 2))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=60), rng.uniform(-0.6, 0.6, (20, 2))


@pytest.mark.parametrize(("name", "theirs"), [("gaussian", None), ("matern32", 1.5), ("matern52", 2.5)])
def test_one_region_has_the_variance_of_a_gaussian_process(sixty, name, theirs):
    X, y, Q = sixty
    model = StitchedRegressor(**ONE, local_model="krr", kernel=name, bandwidth=0.7, ridge=1e-2).fit(X, y).model_
    scale = 0.7 * pdist(X).mean()
    kernel = RBF(scale / np.sqrt(2)) if theirs is None else Matern(scale, nu=theirs)
    process = GaussianProcessRegressor(kernel, alpha=1e-2, optimizer=None).fit(X, y)
    U = np.asfortranarray(model.space.coordinates(Q))
    v, _ = model.levels[0].models.variance(np.zeros(len(Q), dtype=int), U)
    np.testing.assert_allclose(v, process.predict(Q, return_std=True)[1] ** 2, atol=1e-12)


def test_the_gradients_covariance_is_that_of_differences_of_the_process(sixty):
    X, y, Q = sixty
    model = StitchedRegressor(**ONE, local_model="krr", kernel="matern52", bandwidth=0.7, ridge=1e-2).fit(X, y).model_
    process = GaussianProcessRegressor(Matern(0.7 * pdist(X).mean(), nu=2.5), alpha=1e-2, optimizer=None).fit(X, y)
    U = np.asfortranarray(model.space.coordinates(Q))
    _, covariance = model.levels[0].models.variance(np.zeros(len(Q), dtype=int), U, 1)
    step, A = 1e-3, model.space.A
    L = np.array([[1, -1, 0, 0], [0, 0, 1, -1]]) / (2 * step)
    for q, C in zip(Q, covariance, strict=True):
        around = q + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        differences = L @ process.predict(around, return_cov=True)[1] @ L.T
        np.testing.assert_allclose(A @ C @ A.T, differences, rtol=2e-3, atol=1e-4)  # of second order in the step


def test_the_gradients_deviation_is_that_of_sampled_functions(sixty):
    """Functions drawn from the region's posterior, differentiated by formula, scatter as the deviation says."""
    X, y, Q = sixty
    settings = {**ONE, "kernel": "matern52", "degree": 1, "bandwidth": 0.7, "ridge": 1e-2}
    estimator = StitchedRegressor(**settings).fit(X, y)
    fitted, rng = estimator.model_, np.random.default_rng(1)
    _, deviation = estimator.gradient(Q, return_std=True)
    # A function of the prior, observed with noise, less what a fit of these observations says of it: a draw of the error.
    process = GaussianProcessRegressor(Matern(0.7 * pdist(X).mean(), nu=2.5), optimizer=None)
    step = 1e-3
    places = np.concatenate([X, *(Q + s * step * e for e in np.eye(2) for s in (1, -1))])
    L = np.linalg.cholesky(process.kernel(places) + 1e-10 * np.eye(len(places)))
    errors = []
    for _ in range(300):
        f = L @ rng.normal(size=len(places))
        observed = f[:60] + 0.1 * rng.normal(size=60)  # ridge 1e-2 is a noise of 0.1 beside a process of deviation one
        slope = StitchedRegressor(**settings).fit(X, observed).gradient(Q)
        ends = f[60:].reshape(2, 2, len(Q))
        errors.append(slope - ((ends[:, 0] - ends[:, 1]) / (2 * step)).T)
    scale = fitted.calibration().scales[0][0, 0] ** 0.5 * fitted.calibration().factor[0]
    # 300 draws tell a deviation to one part in 24 each; the stitched region is alone here.
    ratio = deviation / scale / np.std(errors, axis=0)
    assert 0.9 < np.median(ratio) < 1.1
    assert (np.abs(np.log(ratio)) < 0.3).all()


def test_a_polynomial_alone_has_the_deviation_of_least_squares():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 1))
    y = 2 * X[:, 0] + 0.3 * rng.normal(size=80)
    model = StitchedRegressor(**{**ONE, "region_size": 80}, local_model="poly", degree=1).fit(X, y)
    Q = np.linspace(-0.9, 0.9, 7)[:, None]
    moments = model.model_.moments(Q)
    P, p = np.hstack([np.ones((80, 1)), X]), np.hstack([np.ones((7, 1)), Q])
    leverage = np.einsum("qi,ij,qj->q", p, np.linalg.inv(P.T @ P), p)
    np.testing.assert_allclose(moments.variance[:, 0] / moments.noise[:, 0], leverage, rtol=1e-6)
    residual = y - LinearRegression().fit(X, y).predict(X)
    assert model.noise_ == pytest.approx(residual.std(ddof=2), rel=0.15)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_every_kernel_has_deviations_that_grow_away_from_the_data(kernel):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = wave(X) + 0.1 * rng.normal(size=300)
    weight = "wendland-c2" if kernel_named(kernel, 2).smoothness >= 1 else "wendland-c0"
    settings = {"region_size": 40, "kernel": kernel, "degree": 1, "ridge": 1e-2, "selection": None, "weight": weight}
    model = StitchedRegressor(**settings).fit(X, y)
    line = np.linspace(0, 40, 4001)[:, None] * [[0.8, 0.6]]
    value, deviation = model.predict(line, return_std=True)
    np.testing.assert_allclose(value, model.predict(line), rtol=1e-9, atol=1e-9)
    assert np.isfinite(deviation).all()
    assert (deviation > 0).all()
    assert deviation[-1] >= 0.9 * y.std()
    assert np.median(deviation[:80]) < 0.5 * deviation[-1]
    assert np.abs(np.diff(np.log(deviation))).max() < 1.0  # steps of 0.01: no jump
    _, bare = model.predict(line, return_std=True, std_of="function")
    assert (bare <= deviation).all()
    if kernel_named(kernel, 2).smoothness >= 2:
        gradient, slopes = model.gradient(line[::40], return_std=True)
        np.testing.assert_allclose(gradient, model.gradient(line[::40]), rtol=1e-7, atol=1e-9)
        assert np.isfinite(slopes).all()
        assert (slopes > 0).all()
    else:
        with pytest.raises(ValueError, match=r"second derivative at zero|needs a prediction of class"):
            model.gradient(line, return_std=True)


def covered(model, X, y, level):
    """Share of observations inside of their intervals."""
    ends = model.predict_interval(X, level)
    return np.mean((ends[..., 0] <= y) & (y <= ends[..., 1]))


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_hold_what_they_say_where_noise_grows_tenfold(seed):
    rng = np.random.default_rng(seed)

    def draw(n):
        X = rng.uniform(0, 5, (n, 2))
        return X, np.sin(X).sum(axis=1) + 0.02 * 10 ** (X[:, 0] / 5) * rng.normal(size=n)

    X, y = draw(3000)
    model = StitchedRegressor(kernel="matern52", metric="euclidean").fit(X, y)
    Q, z = draw(5000)
    # Three points are promised at 90 %, and 1,000 queries tell a share to 1 point. Where noise differs inside of a neighbourhood,
    # residuals are a mixture with a narrow middle, so that intervals of 50 % are a little too wide.
    for level, allowed in ((0.9, 0.03 + 2 * 0.01), (0.5, 0.06 + 2 * 0.016)):
        share = [covered(model, Q[part], z[part], level) for part in (np.floor(Q[:, 0]) == k for k in range(5))]
        assert np.abs(np.array(share) - level).max() < allowed, share
    low, high = (model.noises_[model.centers_[:, 0] < 1].mean(), model.noises_[model.centers_[:, 0] > 4].mean())
    assert 4 < high / low < 12


def test_a_hole_is_less_sure_than_the_data_around_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2000, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.2]
    y = wave(X) + 0.05 * rng.normal(size=len(X))
    model = StitchedRegressor(kernel="matern52", metric="euclidean").fit(X, y)
    Q = rng.uniform(-0.6, 0.6, (200, 2))
    value, deviation = model.predict(Q, return_std=True)
    function = [model.predict(Z, return_std=True, std_of="function")[1].mean() for Z in (Q, [[2.0, 2.0]])]
    assert function[0] > 3 * function[1]
    assert np.sqrt(np.mean((value - wave(Q)) ** 2)) < 2 * deviation.mean()
    assert model.predict([[2.0, 2.0]], return_std=True)[1][0] == pytest.approx(0.05, rel=0.3)


def test_without_noise_deviations_are_of_the_size_of_errors():
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(-3, 3, (2000, 2)), rng.uniform(-2.8, 2.8, (1000, 2))
    model = StitchedRegressor(kernel="gaussian", metric="euclidean", region_size=100).fit(X, wave(X))
    value, deviation = model.predict(Q, return_std=True)
    ratio = np.median(deviation) / np.median(np.abs(value - wave(Q)))
    assert 0.2 < ratio < 5.0


def test_many_outputs_weights_and_metrics(plane):
    X, y = plane
    rng = np.random.default_rng(1)
    noisy = np.stack([y + 0.1 * rng.normal(size=len(y)), 5 * y + 1.0 * rng.normal(size=len(y))], axis=1)
    v = rng.integers(1, 4, len(y)).astype(float)
    model = StitchedRegressor(kernel="matern52", metric="learned", region_size=50).fit(X, noisy, v)
    value, deviation = model.predict(X[:9], return_std=True)
    assert value.shape == deviation.shape == (9, 2)
    assert model.noise_.shape == (2,)
    assert model.noises_.shape == (model.n_regions_, 2)
    assert model.predict_interval(X[:9]).shape == (9, 2, 2)
    assert model.predict_interval(X[:9], [0.5, 0.9, 0.99]).shape == (3, 9, 2, 2)
    widths = np.diff(model.predict_interval(X[:9], [0.5, 0.9, 0.99, 0.9999]), axis=-1)[..., 0]
    assert (np.diff(widths, axis=0) > 0).all()


def test_an_integer_weight_is_repetition_for_deviations_of_the_function(plane, fixed):
    X, y = plane[0], plane[1] + 0.2 * np.random.default_rng(0).normal(size=len(plane[1]))
    v = np.random.default_rng(1).integers(1, 4, len(y))
    settings = {"ridge": 1e-1, "region_size": 50}
    a = fixed(**settings).fit(X, y, v).predict(X[:40], return_std=True)
    b = fixed(**settings).fit(np.repeat(X, v, axis=0), np.repeat(y, v)).predict(X[:40], return_std=True)
    for left, right in zip(a, b, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8)


def test_the_noise_of_repeated_rows_is_that_of_one_observation():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-3, 3, (400, 2)), 5, axis=0)
    model = StitchedRegressor(kernel="matern52", metric="euclidean").fit(X, wave(X) + 0.3 * rng.normal(size=2000))
    assert model.model_.n_points == 400
    assert model.noise_ == pytest.approx(0.3, rel=0.15)
    deviation = model.predict(rng.uniform(-2.5, 2.5, (100, 2)), return_std=True)[1]
    assert np.median(deviation) == pytest.approx(0.3, rel=0.25)


def test_places_that_were_observed_often_tell_the_noise_by_themselves():
    rng = np.random.default_rng(5)
    places = np.linspace(0, 1, 8)  # far too few to tell noise from a wiggle
    X = np.repeat(places, 40)[:, None]
    y = np.sin(20 * X[:, 0]) + 0.1 * rng.normal(size=320)
    model = StitchedRegressor().fit(X, y)
    assert model.noise_ == pytest.approx(0.1, rel=0.15)
    at = np.repeat(places, 200)
    new = np.sin(20 * at) + 0.1 * rng.normal(size=len(at))
    ends = model.predict_interval(at[:, None], 0.9)
    assert 0.85 < np.mean((ends[:, 0] <= new) & (new <= ends[:, 1])) < 0.97


@pytest.mark.parametrize("y", [[0.0, 1.0], [1.0, 1.0], [1e200, -1e200]], ids=str)
def test_one_place_has_finite_noise_that_is_saved(y, tmp_path):
    model = StitchedRegressor(kernel="matern32", metric="euclidean").fit([[0.0, 0.0], [0.0, 0.0]], y)
    assert np.isfinite(model.noise_)
    model.save(tmp_path / "m.stitch")
    assert load(tmp_path / "m.stitch").noise_ == model.noise_


def test_merging_in_parts_keeps_the_spread_of_all_rows():
    rng = np.random.default_rng(6)
    rows = Points(rng.integers(0, 5, (60, 1)).astype(float), rng.normal(size=(60, 2)), rng.uniform(0.5, 2, 60), np.arange(60))
    whole = merge_coincident(rows)
    parts = merge_coincident(join_points(*(merge_coincident(rows.at(np.arange(k, 60, 3))) for k in range(3))))
    order = np.argsort(whole.X[:, 0]), np.argsort(parts.X[:, 0])
    for a, b in zip(whole.at(order[0]).repeats, parts.at(order[1]).repeats, strict=True):
        np.testing.assert_allclose(a, b)
    inside = rows.X[:, 0] == 3.0
    mean = np.average(rows.y[inside], axis=0, weights=rows.v[inside])
    by_hand = (rows.v[inside, None] * (rows.y[inside] - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(whole.repeats.spread[whole.X[:, 0] == 3.0][0], by_hand)


def test_saved_equals_loaded_with_deviations(plane, fixed, tmp_path):
    X, y = plane
    model = fixed(ridge=1e-2).fit(X, y + 0.1 * np.random.default_rng(0).normal(size=len(y)))
    model.save(tmp_path / "before.stitch")
    expected = model.predict(X, return_std=True)[1]
    model.save(tmp_path / "after.stitch")
    for name in ("before", "after"):
        again = load(tmp_path / f"{name}.stitch")
        assert (again.model_.known_calibration is None) == (name == "before")
        np.testing.assert_allclose(again.predict(X, return_std=True)[1], expected, rtol=1e-10)
    sizes = [(tmp_path / f"{name}.stitch").stat().st_size for name in ("before", "after")]
    assert sizes[1] < 1.1 * sizes[0]


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, np.nan, 90, [], [[0.5]]], ids=str)
def test_a_wrong_confidence_level_is_refused(plane, fixed, level):
    with pytest.raises(ValueError, match="`confidence_level` must be between 0 and 1"):
        fixed().fit(*plane).predict_interval(plane[0][:3], level)


def test_what_cannot_be_said_is_a_clear_error(plane, fixed):
    model = fixed().fit(*plane)
    with pytest.raises(ValueError, match="`std_of` must be"):
        model.predict(plane[0][:3], return_std=True, std_of="noise")
    with pytest.raises(ValueError, match="without `normals`"):
        model.gradient(plane[0][:3], normals=plane[0][:3], return_std=True)


class BayesianPlane:
    """Least squares by a plane with its deviation: of the noise, and of what the points leave open."""

    smoothness = np.inf

    def fit(self, X, y, sample_weight):
        return FittedBayesianPlane(X, y)


class FittedBayesianPlane:
    def __init__(self, X, y):
        P = np.c_[X, np.ones(len(X))]
        self.a, residual = np.linalg.lstsq(P, y)[:2]
        self.inverse, self.noise = np.linalg.inv(P.T @ P), residual[0] / (len(X) - P.shape[1])

    def predict(self, X):
        return np.c_[X, np.ones(len(X))] @ self.a

    def gradient(self, X):
        return np.tile(self.a[:-1], (len(X), 1))

    def deviation(self, X):
        P = np.c_[X, np.ones(len(X))]
        return np.sqrt(self.noise * (1.0 + np.einsum("qp,pr,qr->q", P, self.inverse, P)))


def test_a_model_of_ones_own_may_tell_deviations():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 2))
    y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=1000)
    model = StitchedRegressor(local_model=BayesianPlane(), region_size=50).fit(X, y)
    Q = rng.uniform(0.1, 0.9, (500, 2))
    deviation = model.predict(Q, return_std=True)[1]
    assert np.median(deviation) == pytest.approx(0.1, rel=0.1)
    ends = model.predict_interval(Q, 0.9)
    new = Q @ [1.0, 2.0] + 0.1 * rng.normal(size=500)
    assert 0.86 < np.mean((ends[:, 0] <= new) & (new <= ends[:, 1])) < 0.96
    assert model.predict([[9.0, 9.0]], return_std=True)[1][0] > 0.4
    with pytest.raises(ValueError, match="built-in"):
        _ = model.noise_


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_and_constant_responses_have_finite_deviations(n):
    X = np.arange(n, dtype=float)[:, None]
    for y in (np.zeros(n), np.full(n, 3.0), X[:, 0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            value, deviation = StitchedRegressor().fit(X, y).predict([[0.5], [100.0]], return_std=True)
        assert np.isfinite(value).all()
        assert np.isfinite(deviation).all()
        assert (deviation > 0).all()


def test_intervals_follow_the_quantiles_and_go_on_beyond_them():
    from scipy.special import ndtri

    calibration = Calibration((), (), ndtri(0.5 + 0.5 * LEVELS)[:, None] * [[1.0, 2.0]], ())
    np.testing.assert_allclose(calibration.factor, [1.0, 2.0], rtol=2e-3)
    for level in (0.5, 0.9, 0.999999):
        np.testing.assert_allclose(calibration.half_width(level), ndtri(0.5 + 0.5 * level) * np.array([1.0, 2.0]), rtol=2e-3)


def test_scales_are_pooled_among_regions_of_the_same_settings(plane, fixed):
    settings = fixed(selection="loo", kernel=["matern52", "multiquadric"], ridge="auto").fit(*plane).model_.settings
    groups = group_alike(settings)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(settings.kernel)))
    for group in groups:
        assert len({(settings.kernel[j], settings.degree[j], settings.bandwidth[j], settings.ridge[j]) for j in group}) == 1


def test_noise_that_grows_inside_of_one_region_is_told():
    """One region of 400 points, noise that grows tenfold along it: deviations follow, and come back from a file."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (400, 1))
    y = np.sin(X[:, 0]) + 0.02 * 10 ** (X[:, 0] / 5) * rng.normal(size=400)
    model = StitchedRegressor(region_size=400, kernel="gaussian").fit(X, y)
    assert model.n_regions_ == 1
    Q = np.array([[0.5], [4.5]])
    low, high = model.predict(Q, return_std=True)[1]
    true = 0.02 * 10 ** (Q[:, 0] / 5)
    # 400 logs of squares, of variance π²/2 each, on an interval of length 2 tell a slope of log c² to 0.2: 10 % at its ends.
    np.testing.assert_allclose([low, high], true, rtol=0.3)


def test_equal_noise_has_no_slope_and_a_slope_is_found():
    """Of 500 draws: without a slope most are drawn to zero; with one, they are drawn to it by 1 − 2 d / χ²."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, (500, 400, 2))
    even = rng.normal(size=(500, 400, 1))
    ones, all_ = np.ones((500, 400)), np.ones((500, 400), dtype=bool)
    slope, growth = find_slopes(even, ones, all_, u)
    assert np.median(np.abs(slope)) < 0.1
    assert (slope == 0.0).all(axis=(1, 2)).mean() > 0.5
    assert growth.shape == (500, 400, 1)
    grown = even * np.exp(0.5 * (u @ [1.0, -0.5]))[..., None]
    slope, growth = find_slopes(grown, ones, all_, u)
    chi2 = (1.0 + 0.25) * 400 / 3 / (np.pi**2 / 2)  # 1/3 is the variance of a coordinate
    np.testing.assert_allclose(slope.mean(axis=(0, 1)), (1 - 4 / chi2) * np.array([1.0, -0.5]), atol=0.03)
    np.testing.assert_allclose(growth, np.exp(np.einsum("bhd,btd->bht", u, slope)), rtol=1e-12)
    few, _ = find_slopes(grown[:, :100], ones[:, :100], all_[:, :100], u[:, :100])
    assert not few.any()


def test_points_of_a_field_count_by_the_volume_that_they_stand_for():
    rng = np.random.default_rng(0)
    dense, sparse = rng.uniform(0, 1, (2000, 2)), rng.uniform((2, 0), (4, 2), (2000, 2))  # a quarter of the density
    X = np.concatenate([dense, sparse])
    regions = StitchedRegressor(kernel="matern52", metric="euclidean", region_size=50).fit(X, wave(X)).model_.levels[0].regions
    volume, x = point_volumes(regions, 2), regions.models.points.X
    right = x[:, 0] > np.median(x[:, 0])
    assert np.median(volume[right]) / np.median(volume[~right]) == pytest.approx(4.0, rel=0.2)
    assert point_volumes(regions, 4) is None


def test_weighted_quantiles_are_those_of_repeated_residuals():
    z, count = np.random.default_rng(0).exponential(size=(4000, 1)), np.random.default_rng(1).integers(1, 4, 4000)
    found = quantiles_of(z, count.astype(float))
    np.testing.assert_allclose(found, quantiles_of(np.repeat(z, count, axis=0)), rtol=0.02)  # between two of 8,000 residuals


@pytest.mark.parametrize(("n", "d"), [(80, 5), (300, 2), (2000, 2), (100, 1)])
def test_far_outside_the_data_the_function_is_as_uncertain_as_a_response(n, d):
    X = np.random.default_rng(0).uniform(size=(n, d))
    y = np.sin(4 * X[:, 0]) + np.square(X).sum(axis=1)
    model = StitchedRegressor().fit(X, y)
    away = np.full((5, d), 0.5)
    away[:, 0] = [0.5, 2.0, 3.0, 10.0, 1e6]
    inside, *outside = model.predict(away, return_std=True, std_of="function")[1] / y.std()
    assert inside < 0.1
    assert (np.diff(outside) > -1e-9).all()
    assert 0.5 < outside[0] < 1.5
    assert (np.array(outside[2:]) > 0.8).all()
    assert np.max(outside) < 3.01  # never more than nobody would guess
    truth = np.sin(4 * away[3, 0]) + np.square(away[3]).sum()
    assert (
        truth > model.predict_interval(away[3:4])[0, 1]
    )  # no forecast: the interval is as wide as the responses, not as the truth
