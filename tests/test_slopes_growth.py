"""Models with measured slopes that grow and forget, against rows that are merged and regions that are fitted anew."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_growth import check_covers, untouched_rows

from stitchwork import StitchedRegressor, load
from stitchwork.fitting.defaults import FEW_REGIONS
from stitchwork.local.fit import fit_blocks
from stitchwork.model.stitch import distinct_levels
from stitchwork.transform import LogStitchedRegressor

FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "ridge": 1e-6, "degree": 1, "metric": "euclidean", "region_size": 30}
Q = np.random.default_rng(8).uniform(-1, 1, (200, 2))


def waves(X):
    """Responses and slopes."""
    a, b = 3 * X[:, 0], 2 * X[:, 1]
    return np.sin(a) * np.cos(b), np.stack([3 * np.cos(a) * np.cos(b), -2 * np.sin(a) * np.sin(b)], axis=1)


def data(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    return X, *waves(X)


class Rows:
    """All that was observed at each location, with weights: what a model should know."""

    def __init__(self):
        self.at = {}

    def add(self, X, y, G, v):
        for x, *one in zip(X, y, G, v, strict=True):
            self.at.setdefault(tuple(x), []).append(one)

    def forget(self, X):
        for x in X:
            del self.at[tuple(x)]

    def means(self, x):
        """Response, slopes and their weights at a location, by the plain formula; zero where there are none."""
        numbers = np.array([[y, *g] for y, g, _ in self.at[x]])
        v = np.array([v for *_, v in self.at[x]])[:, None] * ~np.isnan(numbers)
        return (v * np.nan_to_num(numbers)).sum(axis=0) / np.maximum(v.sum(axis=0), 1e-300), v.sum(axis=0)


def check_model(model, rows):
    """The points are the means of the rows, regions hold the nearest points, and their coefficients are those of a fit of them."""
    check_covers(model)
    model = model.model_
    points = model.points
    assert {tuple(x) for x in points.given} == set(rows.at)
    for i, x in enumerate(points.given):
        means, weights = rows.means(tuple(x))
        own = points.slopes.weight[i] * points.v[i]
        np.testing.assert_allclose(own, weights, rtol=1e-12)
        found = np.concatenate([points.y[i] * (own[0] > 0), points.slopes.value[i, :, 0]])
        np.testing.assert_allclose(found, means, rtol=1e-12, atol=1e-14)
    for level in distinct_levels(model.levels)[:-1]:
        fresh = fit_blocks(points, level.models.members, level.models.settings)
        for name in ("origin", "scale", "sigma", "alpha", "lam", "beta"):
            found, expected = getattr(level.models, name), getattr(fresh, name)
            # Stacks of other sizes are summed in another order: rounding, as the ridge of 1e-6 lets it grow.
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * (1.0 + np.abs(expected).max()), err_msg=name)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(["add", "responses", "slopes", "far", "repeat", "forget"]), st.integers(1, 30)), max_size=5)
)
def test_after_any_sequence_a_model_is_that_of_its_rows(steps):
    rng, rows = np.random.default_rng(1), Rows()
    X, y, G = data(150)
    model = StitchedRegressor(**FIXED).fit(X, y, gradient=G)
    rows.add(X, y, G, np.ones(150))
    for step, size in steps:
        before = model.model_
        if step == "forget":
            gone = rng.permutation(before.X)[:size]
            model.forget(gone)
            rows.forget(gone)
        else:
            new = before.X[rng.integers(before.n_points, size=size)]
            if step != "repeat":
                new = rng.uniform(-1, 1, (size, 2)) * (0.5 if step == "far" else 1.0) + (5.0 if step == "far" else 0.0)
            y, G = waves(new)
            y, v = y + 0.1 * rng.normal(size=size), rng.uniform(0.5, 2.0, size)
            if step == "slopes":
                y, G[:: 2, 0] = np.full(size, np.nan), np.nan  # fmt: skip
            elif step == "responses":
                G[:] = np.nan
            model.partial_fit(new, y, v, gradient=None if step == "responses" else G)
            rows.add(new, y, G, v)
        check_model(model, rows)
    coarse, fine = (
        np.stack([(model.predict(Q + step * e) - model.predict(Q - step * e)) / (2 * step) for e in np.eye(2)], axis=1)
        for step in (2e-5, 1e-5)
    )
    # Central differences: rounding over the step, and step² times a third derivative, which the two steps tell where it is large.
    assert (np.abs(model.gradient(Q) - fine) <= 1e-5 + 1e-4 * np.abs(fine) + np.abs(coarse - fine)).all()


def test_far_regions_keep_their_arrays_bit_for_bit():
    X, y, G = data(600)
    model = StitchedRegressor(**FIXED).fit(X, y, gradient=G)
    old = model.model_
    model.partial_fit([[0.9, 0.9]], [0.3], gradient=[[1.0, 2.0]]).forget(X[:1])
    same = [
        (i, j) for i, j in untouched_rows(old, model.model_) if np.abs(old.levels[0].regions.centers[i] - [0.9, 0.9]).max() > 1.0
    ]
    assert len(same) > 0.3 * old.n_regions
    for name in ("origin", "scale", "sigma", "alpha", "lam", "beta"):
        before, after = getattr(old.levels[0].models, name), getattr(model.model_.levels[0].models, name)
        assert all((before[i] == after[j]).all() for i, j in same), name


@pytest.mark.parametrize("apart", [0.2, 1e-5])
def test_repeated_locations_equal_a_fit_of_all_rows(apart):
    X, y, G = data(200)
    more, v = np.full((50, 2), np.nan), np.full(50, 3.0)
    more[:, 0] = G[:50, 0] + apart
    both = StitchedRegressor(**FIXED).fit(
        np.concatenate([X, X[:50]]),
        np.concatenate([y, y[:50] + apart]),
        np.concatenate([np.ones(200), v]),
        gradient=np.concatenate([G, more]),
    )
    for parts in (1, 2):  # means, weights and spreads add up
        model = StitchedRegressor(**FIXED).fit(X, y, gradient=G)
        for _ in range(parts):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.partial_fit(X[:50], y[:50] + apart, v / parts, gradient=more)
        found, expected = model.model_.points, both.model_.points
        for name in ("X", "y", "v"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14)
        for name in ("value", "weight", "direction"):
            np.testing.assert_allclose(getattr(found.slopes, name), getattr(expected.slopes, name), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.repeats.spread, expected.repeats.spread, rtol=1e-9, atol=1e-20)
        if apart < 0.1:  # else slopes get another weight
            np.testing.assert_allclose(model.predict(Q), both.predict(Q), rtol=0, atol=1e-9)
            np.testing.assert_allclose(model.gradient(Q), both.gradient(Q), rtol=0, atol=1e-8)


def test_few_points_are_fitted_anew():
    X, y, G = data(40)
    model = StitchedRegressor().partial_fit(X[:20], y[:20], gradient=G[:20]).partial_fit(X[20:], y[20:], gradient=G[20:])
    np.testing.assert_array_equal(model.predict(Q), StitchedRegressor().fit(X, y, gradient=G).predict(Q))


def test_slopes_that_come_to_a_model_without_any_fit_all_anew():
    X, y, G = data(300)
    model = StitchedRegressor(**FIXED).fit(X[:290], y[:290]).partial_fit(X[290:], y[290:], gradient=G[290:])
    some = np.full((300, 2), np.nan)
    some[290:] = G[290:]
    fresh = StitchedRegressor(**FIXED).fit(X, y, gradient=some)
    assert model.model_.region_size == fresh.model_.region_size == 10
    np.testing.assert_array_equal(model.predict(Q), fresh.predict(Q))


def test_slopes_by_a_feature_that_had_none_fit_all_anew():
    X, y, G = data(300)
    half = np.where(np.arange(300)[:, None] < 250, G * [np.nan, 1.0], G)
    model = StitchedRegressor(**FIXED).fit(X[:250], y[:250], gradient=half[:250]).partial_fit(X[250:], y[250:], gradient=half[250:])
    assert model.model_.points.equations == 3
    np.testing.assert_array_equal(model.predict(Q), StitchedRegressor(**FIXED).fit(X, y, gradient=half).predict(Q))


def test_a_model_that_forgot_all_slopes_and_fits_anew_has_none():
    X, y, G = data(40)
    slopes = np.where(np.arange(40)[:, None] < 3, G, np.nan)
    model = StitchedRegressor().fit(X, y, gradient=slopes).forget(X[:3])
    assert model.model_.points.slopes is None
    np.testing.assert_array_equal(model.predict(Q), StitchedRegressor().fit(X[3:], y[3:]).predict(Q))


def test_forgetting_is_the_inverse_of_adding():
    X, y, G = data(300)
    model = StitchedRegressor(**FIXED).fit(X, y, gradient=G)
    before = model.predict(Q)
    model.partial_fit([[0.1, 0.2]], [9.0], gradient=[[5.0, -5.0]])
    assert np.abs(model.predict(Q) - before).max() > 0.1
    model.forget([[0.1, 0.2]])
    # A region that was founded or dropped on the way changes the average by no more than what its models differ by.
    np.testing.assert_allclose(model.predict(Q), before, rtol=0, atol=1e-4)


def test_the_level_of_regions_with_slopes_alone_follows_the_responses():
    """Half of the plane has slopes alone: its level comes from the other half, and goes with what is forgotten there."""
    X, y, G = data(400)
    right = X[:, 0] > 0.0
    model = StitchedRegressor(**FIXED).fit(X, np.where(right, np.nan, y), gradient=G)
    error = np.abs(model.predict(Q) - waves(Q)[0]).max()
    assert error < 0.5
    x = np.array([[0.95, 0.5]])
    model.partial_fit(x, waves(x)[0] + 7.0, gradient=waves(x)[1])
    away = np.abs(model.predict([[0.9, 0.4]]) - waves(np.array([[0.9, 0.4]]))[0])
    assert away > 5.0
    model.forget(x)
    check_covers(model)
    assert np.abs(model.predict(Q) - waves(Q)[0]).max() < 1.5 * error


@pytest.mark.parametrize("chart", [{"periodic": {0: 2.0}}, {"geographic": (0, 1)}])
@pytest.mark.parametrize("many", [False, True])
def test_a_chart_takes_more_slopes(chart, many):
    n = 260 if many else 40
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2)) * ([1, 1] if "periodic" in chart else [30, 60])
    unit = np.pi if "periodic" in chart else np.pi / 180
    a, b = unit * X.T
    y = np.sin(a) * np.cos(b) ** 2
    G = unit * np.stack([np.cos(a) * np.cos(b) ** 2, -np.sin(a) * np.sin(2 * b)], axis=1)
    settings, start = {**chart, **(FIXED if many else {})}, 3 * n // 4
    fresh = StitchedRegressor(**settings).fit(X, y, gradient=G)
    model = StitchedRegressor(**settings).fit(X[:start], y[:start], gradient=G[:start])
    model.partial_fit(X[start:], y[start:], gradient=G[start:])
    if not many:  # few points are fitted anew, from the same places and directions
        np.testing.assert_array_equal(model.gradient(X), fresh.gradient(X))
    found, expected = (np.abs(each.gradient(X) - G).max() for each in (model, fresh))
    assert found < 1.5 * expected + 1e-12


def test_known_errors_and_logarithms_take_more_slopes():
    X, y, G = data(40)
    told = {"noise_std": np.full(40, 0.01), "gradient_std": 0.1}
    first, rest = ({"noise_std": np.full(20, 0.01), "gradient_std": 0.1},) * 2
    model = StitchedRegressor().fit(X[:20], y[:20], gradient=G[:20], **first).partial_fit(X[20:], y[20:], gradient=G[20:], **rest)
    np.testing.assert_allclose(model.predict(Q), StitchedRegressor().fit(X, y, gradient=G, **told).predict(Q), atol=1e-9)
    with pytest.raises(ValueError, match="`gradient_std`: give it"):
        model.partial_fit(X[:1] + 0.01, y[:1], gradient=G[:1], noise_std=[0.01])
    e = np.exp(y)
    log = LogStitchedRegressor().partial_fit(X[:20], e[:20], gradient=(e[:, None] * G)[:20])
    log.partial_fit(X[20:], e[20:], gradient=(e[:, None] * G)[20:])
    np.testing.assert_array_equal(log.predict(Q), LogStitchedRegressor().fit(X, e, gradient=e[:, None] * G).predict(Q))


def test_saved_models_go_on_growing(tmp_path):
    X, y, G = data(250)
    groups = np.arange(250) % 25
    model = StitchedRegressor(**FIXED).fit(X[:200], y[:200], groups=groups[:200], gradient=G[:200])
    model.partial_fit(X[200:220], y[200:220], groups=groups[200:220], gradient=G[200:220])
    model.save(tmp_path / "m.stitch")
    copy = load(tmp_path / "m.stitch")
    for each in (model, copy):
        each.partial_fit(X[220:], y[220:], groups=groups[220:], gradient=G[220:])
    np.testing.assert_array_equal(copy.predict(Q), model.predict(Q))
    assert 0.0 < model.loo_error_ < 0.1


def test_an_alarm_is_raised_by_responses_and_not_by_rows_without():
    X, y, G = data(400)
    model = StitchedRegressor(**FIXED).fit(X[:200], y[:200], gradient=G[:200])
    assert model.partial_fit(X[200:250], np.full(50, np.nan), gradient=G[200:250]).stale_ == 1.0
    with pytest.warns(UserWarning, match="choose them again"):
        model.partial_fit(X[250:300], y[250:300] + np.random.default_rng(0).normal(size=50), gradient=G[250:300])


X_, Y_, G_ = data(160)
REFUSED = {
    "`gradient` must have shape": lambda model: model.partial_fit(X_[:2] + 0.01, Y_[:2], gradient=G_[:2, :1]),
    "neither a response nor a slope": lambda model: model.partial_fit(
        X_[:2] + 0.01, [1.0, np.nan], gradient=[[1.0, 1.0], [np.nan, np.nan]]
    ),
    "NaN": lambda model: model.partial_fit(X_[:1], [np.nan]),
    "must not be infinite": lambda model: model.partial_fit(X_[:1], Y_[:1], gradient=[[np.inf, 0.0]]),
    "`gradient_std` needs `gradient`": lambda model: model.partial_fit(X_[:1], Y_[:1], gradient_std=1.0),
    "`gradient_std`: leave it out": lambda model: model.partial_fit(X_[:1], Y_[:1], gradient=G_[:1], gradient_std=1.0),
    "slopes alone would be left": lambda model: model.forget(X_[:10]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_is_refused_and_the_model_stays(message):
    model = StitchedRegressor(**FIXED).fit(X_, np.where(np.arange(160) < 10, Y_, np.nan), gradient=G_)
    before = model.model_
    assert before.n_points >= FEW_REGIONS * before.region_size
    with pytest.raises(ValueError, match=message):
        REFUSED[message](model)
    assert model.model_ is before


def test_a_kernel_without_a_second_derivative_takes_no_slopes():
    model = StitchedRegressor(kernel="thin-plate").fit(X_, Y_)
    with pytest.raises(ValueError, match="no second derivative"):
        model.partial_fit(X_[:1] + 0.01, Y_[:1], gradient=G_[:1])


def test_one_row_may_come_though_its_features_do_not_vary():
    model = StitchedRegressor(**FIXED).fit(X_, Y_, gradient=G_)
    assert model.partial_fit(X_[:1] + 0.01, Y_[:1], gradient=G_[:1]).model_.n_points == 161
