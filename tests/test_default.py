"""What the default promises: it adapts to noise, smoothness, scale, holes and outliers, and keeps every promise of the method."""

import numpy as np
import pytest
from conftest import wave

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.fitting.candidates import make_candidates, read_kernels
from stitchwork.fitting.choice import choose_near
from stitchwork.fitting.cover import greedy_cover, measure_overlap
from stitchwork.fitting.defaults import RIDGES
from stitchwork.fitting.scores import Scorer
from stitchwork.local.points import Points
from stitchwork.local.radial import weight_named

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def scattered():
    return np.random.default_rng(0).uniform(-3, 3, (2500, 2))


@pytest.fixture(scope="module")
def clean(scattered):
    return StitchedRegressor().fit(scattered, wave(scattered))


def test_without_noise_it_does_not_smooth(clean):
    Q = np.random.default_rng(1).uniform(-2.9, 2.9, (500, 2))
    assert np.abs(clean.predict(Q) - wave(Q)).max() < 1e-5
    assert np.abs(clean.predict(clean.centers_) - wave(clean.centers_)).max() < 1e-6


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_with_noise_it_does_not_interpolate(scattered, noise):
    y = wave(scattered) + noise * np.random.default_rng(2).normal(size=len(scattered))
    model = StitchedRegressor().fit(scattered, y)
    residual = y - model.predict(scattered)
    Q = np.random.default_rng(1).uniform(-2.8, 2.8, (500, 2))
    # The noise stays in the residuals, within a factor of two, and most of it is out of the prediction.
    assert noise / 2 < residual.std() < 2 * noise
    assert noise / 2 < model.loo_error_ < 2 * noise
    assert np.sqrt(np.mean((model.predict(Q) - wave(Q)) ** 2)) < 0.35 * noise


def test_noise_that_differs_by_place_is_adapted_to_by_place(scattered):
    noisy = scattered[:, 0] > 0
    y = wave(scattered) + np.where(noisy, 0.3, 1e-6) * np.random.default_rng(2).normal(size=len(scattered))
    model = StitchedRegressor().fit(scattered, y)
    quiet = model.ridges_[model.centers_[:, 0] < -1.2], model.ridges_[model.centers_[:, 0] > 1.2]
    assert np.median(quiet[0]) < 1e-2 * np.median(quiet[1])
    Q = np.random.default_rng(1).uniform(-2.8, 2.8, (1000, 2))
    error = np.abs(model.predict(Q) - wave(Q))
    assert np.median(error[Q[:, 0] < -1.2]) < 0.1 * np.median(error[Q[:, 0] > 1.2])


def test_one_wild_value_spoils_no_more_than_its_neighbourhood(scattered):
    y = wave(scattered) + 0.1 * np.random.default_rng(2).normal(size=len(scattered))
    wild = y.copy()
    place = int(np.argmin(np.linalg.norm(scattered, axis=1)))
    wild[place] += 1000.0
    Q = np.random.default_rng(1).uniform(-2.8, 2.8, (1000, 2))
    far = np.linalg.norm(Q - scattered[place], axis=1) > 1.5
    sizes = {"plain": (y, 100), "spoiled": (wild, 100), "plain, larger": (y, "auto"), "spoiled, larger": (wild, "auto")}
    fits = {name: StitchedRegressor(region_size=size).fit(scattered, z) for name, (z, size) in sizes.items()}
    error = {name: np.sqrt(np.mean((model.predict(Q[far]) - wave(Q[far])) ** 2)) for name, model in fits.items()}
    assert error["spoiled"] < 2 * error["plain"]
    # Larger regions reach farther, and still gain more than one wild value costs.
    assert error["plain, larger"] < error["plain"]
    assert error["spoiled, larger"] < 2 * error["plain"]


def test_a_turned_and_stretched_direction_is_found_by_the_learned_metric():
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    X, Q = rng.normal(size=(2500, 4)), rng.normal(size=(500, 4))

    def f(Z):
        return np.sin(3 * Z @ turn[:, 0])

    learned = StitchedRegressor(metric="learned", region_size=60).fit(X, f(X))
    plain = StitchedRegressor(metric="euclidean", region_size=60).fit(X, f(X))
    values, vectors = np.linalg.eigh(learned.metric_)
    assert abs(vectors[:, -1] @ turn[:, 0]) > 0.99
    assert values[-1] > 20 * values[-2]
    assert np.mean((learned.predict(Q) - f(Q)) ** 2) < 0.1 * np.mean((plain.predict(Q) - f(Q)) ** 2)
    auto = StitchedRegressor(region_size=60).fit(X, f(X))
    assert next(iter(auto.metric_trials_)).startswith("learned")


def test_an_irrelevant_feature_loses_its_relevance():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 3)) * [1.0, 100.0, 0.01]
    model = StitchedRegressor().fit(X, np.sin(2 * X[:, 0]) + np.cos(200 * X[:, 2]))
    relevance = model.feature_relevance_
    assert relevance.sum() == pytest.approx(1.0)
    assert relevance[1] < 0.1 * min(relevance[0], relevance[2])


@pytest.mark.parametrize("metric", ["euclidean", "standardized", "learned", np.diag([1.0, 9.0, 4.0])])
@pytest.mark.parametrize("kernel", ["gaussian", "linear"])  # the second has no gradient
def test_relevance_is_squared_slope_times_variance_for_every_metric(metric, kernel):
    rng = np.random.default_rng(5)
    units = np.array([1.0, 100.0, 0.01])
    X, slopes = rng.uniform(size=(400, 3)) * units, np.array([3.0, 2.0, 0.0]) / units
    model = StitchedRegressor(metric=metric, kernel=kernel, degree=1, ridge=1e-8, selection=None).fit(
        X, np.stack([X @ slopes, -9 * X @ slopes], 1)
    )
    expected = slopes**2 * X.var(axis=0)
    for relevance in model.feature_relevance_:  # of each output
        np.testing.assert_allclose(relevance, expected / expected.sum(), atol=1e-4)  # ridge and rounding


def test_constant_responses_depend_on_nothing():
    X = np.random.default_rng(6).uniform(size=(100, 4))
    np.testing.assert_array_equal(StitchedRegressor().fit(X, np.ones(100)).feature_relevance_, 0.25)


def test_the_choice_does_not_depend_on_the_order_of_regions():
    scores, centers = RNG.normal(size=(60, 3, 5)), RNG.normal(size=(60, 2))
    order = RNG.permutation(60)
    chosen = choose_near(scores, centers, centers, 3)
    np.testing.assert_array_equal(choose_near(scores[order], centers[order], centers[order], 3), chosen[order])


def test_a_region_leaves_the_common_choice_only_for_a_clear_reason():
    scores = np.zeros((40, 2, 1)) + 0.01 * RNG.normal(size=(40, 2, 1))
    scores[:, 1] -= 0.5  # the second is better everywhere …
    scores[:12, 0] -= 5.0  # … but for a corner
    centers = np.linspace(0, 1, 40)[:, None]
    chosen = choose_near(scores, centers, centers, common=1)
    assert (chosen[:5] == 0).all()
    assert (chosen[20:] == 1).all()


def test_scores_are_weighted_leave_one_out_errors(scattered):
    points = Points(scattered, wave(scattered)[:, None], np.ones(len(scattered)), np.arange(len(scattered)))
    cover = greedy_cover(scattered, 50, 0.5)
    grid = make_candidates(read_kernels("gaussian", "krr-poly", 50, 2, 2), (1,), (1.0,), (1e-2, 1e-4))
    (scores,) = Scorer(points, cover, 1e-10, weight_named("wendland-c2", 2), 0.8, ALONE).score(np.arange(3), grid)
    from stitchwork.local.polynomial import monomials
    from stitchwork.local.system import loo_residuals, span_range, spectrum

    X = scattered[cover.members[0]]
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    K = np.exp(-((distance / (distance.sum() / (50 * 49))) ** 2))
    R = span_range(monomials(2, 1).values((X - X.mean(axis=0)).T)[None], 1e-10)
    residuals = loo_residuals(spectrum(K[None], R.U), points.y[cover.members[0]][None], np.array([1e-2]))[0][0, :, 0, 0]
    rho = np.linalg.norm(X - cover.centers[0], axis=1) / cover.radii[0] / 0.8
    w = np.maximum(1 - rho, 0) ** 4 * (1 + 4 * rho) + 1e-3
    assert scores[0, 0, 0] == pytest.approx(np.log(np.average(residuals**2, weights=w)), abs=1e-6)


def test_kernels_of_auto_keep_the_promised_smoothness():
    for weight, rough in (("wendland-c2", False), ("wendland-c0", True)):
        kernels = read_kernels("auto", "krr-poly", 100, 2, weight_named(weight, 2).smoothness)
        assert (min(k.smoothness for k in kernels) < 2) == rough
    assert all(k.least_degree < 0 for k in read_kernels("auto", "krr", 100, 2, 2))
    X = np.random.default_rng(0).uniform(size=(300, 2))
    assert StitchedRegressor().fit(X, np.abs(X[:, 0] - 0.5)).smoothness_ >= 2


def test_overlap_follows_the_dimension_of_the_points():
    rng = np.random.default_rng(0)
    sheet = np.hstack([rng.uniform(size=(4000, 2)), np.zeros((4000, 3))])
    assert measure_overlap(sheet, 100) == pytest.approx(measure_overlap(sheet[:, :2], 100))
    assert measure_overlap(sheet, 100) > 0.8
    assert measure_overlap(rng.normal(size=(4000, 8)), 100) < 0.35


def test_coverage_is_one_in_the_data_and_decays_smoothly_outside(clean):
    inside = np.random.default_rng(1).uniform(-2.5, 2.5, (2000, 2))
    covered = clean.coverage(inside)
    assert np.mean(covered > 0.999) > 0.998
    assert covered.min() > 0.98
    line = np.linspace(0, 6, 60001)[:, None] * [[1.0, 0.0]]
    along = clean.coverage(line)
    assert along[-1] == 0.0
    assert np.abs(np.diff(along)).max() < 0.01  # steps of 1e-4: no jump


@pytest.fixture(scope="module")
def holed():
    rng = np.random.default_rng(5)
    X = rng.uniform(-3, 3, (6000, 2))
    X = X[np.linalg.norm(X, axis=1) > 1.3]
    rough = np.sign(np.sin(7 * X[:, 0]) * np.sin(6 * X[:, 1])) * 0.3
    return X, wave(X) + rough + 0.05 * rng.normal(size=len(X))


@pytest.fixture(scope="module")
def holed_model(holed):
    return StitchedRegressor().fit(*holed)


def test_an_island_in_a_hole_is_answered_calmly(holed):
    X, y = holed
    rng = np.random.default_rng(6)
    island = 0.1 * rng.uniform(-1, 1, (40, 2))
    X, y = np.concatenate([X, island]), np.concatenate([y, 3.0 * island[:, 0] + 0.3 * rng.normal(size=40)])
    around = np.linspace(-1.1, 1.1, 300)[:, None] * [[0.6, 0.8]]
    values = StitchedRegressor().fit(X, y).predict(around)
    assert values.min() > y.min() - 0.5
    assert values.max() < y.max() + 0.5


def test_a_hole_in_rough_data_is_answered_calmly(holed, holed_model):
    (_, y), model = holed, holed_model
    line = np.linspace(-1.2, 1.2, 400)[:, None]
    for direction in ([[1.0, 0.0]], [[0.6, 0.8]]):
        values = model.predict(line * direction)
        assert values.min() > y.min() - 0.5
        assert values.max() < y.max() + 0.5
    across = np.linspace(-30, 30, 30001)[:, None] * [[0.8, 0.6]]
    values, slopes = model.predict(across), (model.gradient(across) * [0.8, 0.6]).sum(axis=1)
    increments = 0.5 * (60 / 30000) * (slopes[1:] + slopes[:-1])
    assert np.abs(np.diff(values) - increments).max() < 1e-3 * np.ptp(y)


def test_every_border_of_the_default_is_smooth(holed_model):
    model = holed_model
    rng = np.random.default_rng(0)
    for level in (level.balls for level in model.model_.levels[:-1]):
        region = rng.integers(len(level.radii), size=500)
        direction = rng.normal(size=(500, 2))
        direction *= level.radii[region, None] / np.linalg.norm(direction, axis=1, keepdims=True)
        inside, outside = (model.model_.space.original(level.centers[region] + f * direction) for f in (1 - 1e-9, 1 + 1e-9))
        for function in (model.predict, model.gradient):
            a, b = function(inside), function(outside)
            assert np.abs(a - b).max() < 1e-4 * (np.abs(a).max() + 1)


def test_far_data_does_not_change_the_default_but_for_what_is_chosen_together(scattered):
    y = wave(scattered)
    settings = {"kernel": "gaussian", "degree": 2, "bandwidth": 2.0, "ridge": RIDGES[8], "metric": "euclidean"}
    spoiled = np.where(scattered[:, 0] > 2, 50.0, y)
    Q = np.random.default_rng(1).uniform([-2.5, -2.5], [0, 2.5], (300, 2))
    a, b = (StitchedRegressor(**settings).fit(scattered, z) for z in (y, spoiled))
    np.testing.assert_array_equal(a.predict(Q), b.predict(Q))


def test_the_summary_says_what_was_chosen(clean):
    text = clean.summary()
    for word in ("2,500 distinct points", "metric", "regions", "gaussian", "ridges", "leave-one-out", "of class C2"):
        assert word in text
    assert text._repr_html_().count("<tr>") == len(text.rows)


def test_choices_and_scores_can_be_inspected(clean):
    assert clean.scores_.ndim == 2
    assert clean.scores_.shape[1] == len(RIDGES)
    assert clean.scores_.min() < 1e-5  # errors in deviations: there is no noise
    assert len(clean.kernels_) == len(clean.ridges_) == len(clean.bandwidths_) == clean.n_regions_
    assert set(clean.metric_trials_) >= {"euclidean", "standardized"}


def test_noise_in_many_features_does_not_make_a_spline_singular():
    rng = np.random.default_rng(0)
    size = np.linspace(1.0, 0.3, 10)
    X, Q = rng.normal(size=(800, 10)) * size, rng.normal(size=(400, 10)) * size
    y = X[:, 0] + rng.normal(size=800)
    model = StitchedRegressor(kernel="cubic", degree=1, metric="euclidean", region_size=100, overlap=0.0).fit(X, y)
    # A cubic spline is positive definite only beside all linear functions, however uncertain their slopes are.
    assert np.abs(model.predict(Q) - Q[:, 0]).max() < 3.0


@pytest.mark.parametrize("seed", [0, 4])
def test_rounding_is_far_below_noise(seed):
    # With seed 0 leave-one-out alone takes a wide Gaussian with ridge 1e-12, whose coefficients are the noise times 10¹².
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 10, 600)
    y = np.exp(-0.2 * t) * np.sin(2 * t) + 0.02 * rng.normal(size=600)
    model = StitchedRegressor().fit(t[:, None], y)
    near = 5.0 + 1e-9 * np.arange(50)[:, None]
    value, gradient = model.predict_with_gradient(near)
    assert np.ptp(value - gradient[:, 0] * (near[:, 0] - 5.0)) < 1e-6 * y.std()
    one_by_one = np.array([model.predict(x[None])[0] for x in near])
    assert np.abs(one_by_one - value).max() < 1e-6 * y.std()


@pytest.mark.parametrize(("asked", "order"), [(0, 0), (1, 2), (2, 2), (3, 4), (4, 4)])
def test_weight_and_kernels_follow_the_smoothness_that_is_asked_for(asked, order):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    model = StitchedRegressor(smoothness=asked).fit(X, np.abs(X[:, 0]) + X[:, 1])
    assert model.model_.weight.name == f"wendland-c{order}"
    assert model.smoothness_ >= asked


def test_a_kink_is_answered_better_where_the_prediction_may_have_one():
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(-1, 1, (800, 2)), rng.uniform(-0.9, 0.9, (2000, 2))

    def f(X):
        return np.abs(X[:, 0] + 0.3 * X[:, 1])

    models = [StitchedRegressor(smoothness=k, metric="euclidean").fit(X, f(X)) for k in (1, 2)]  # learned, it is a curve
    errors = [np.sqrt(np.mean((model.predict(Q) - f(Q)) ** 2)) for model in models]
    assert errors[0] < 1.02 * errors[1]
    tried = [read_kernels("auto", "krr-poly", 100, 2, k) for k in (1, 2)]
    assert ["thin-plate" in [kernel.name for kernel in kernels] for kernels in tried] == [True, False]


@pytest.mark.parametrize(
    "parameters",
    [
        {"smoothness": 2, "weight": "wendland-c0"},
        {"smoothness": 1, "weight": "truncated-gaussian"},
        {"smoothness": 2, "kernel": "linear"},
        {"smoothness": 6, "kernel": ["gaussian", "matern52"]},
    ],
    ids=str,
)
def test_a_smoothness_that_cannot_be_had_is_refused(parameters):
    with pytest.raises(ValueError, match="asks for more than"):
        StitchedRegressor(**parameters).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
