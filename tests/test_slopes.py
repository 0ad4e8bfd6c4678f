"""Measured slopes through the estimator: what they bring, what may be missing, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import stitchwork.native
from stitchwork import StitchedRegressor, load
from stitchwork._parallel import ALONE
from stitchwork.datasets import make_2d
from stitchwork.fitting import suggest
from stitchwork.fitting.likelihood import Rows, negative_log_likelihood, polynomial_basis
from stitchwork.local.radial import kernel_named
from stitchwork.transform import LogStitchedRegressor


def waves(X, t=1):
    """Σ sin(2 x_k + o) for outputs o, with slopes (n, t, d)."""
    shift = np.arange(t)
    y = np.sin(2 * X[:, None] + shift[:, None]).sum(axis=2)
    return y, 2 * np.cos(2 * X[:, None] + shift[:, None])


def data(n, d, t=1, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    y, G = waves(X, t)
    return (X, y[:, 0], G[:, 0]) if t == 1 else (X, y, G)


def inside(d, n=200):
    return np.random.default_rng(9).uniform(-0.9, 0.9, (n, d))


def error(model, X, t=1):
    y, _ = waves(X, t)
    return np.sqrt(np.mean((model.predict(X).reshape(y.shape) - y) ** 2)) / y.std()


FIELD = {"region_size": 60, "kernel": "gaussian", "degree": 1, "bandwidth": 2.0, "ridge": 1e-9, "metric": "euclidean"}


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_slopes_of_few_runs_lower_errors_and_gradient_errors(d):
    X, y, G = data(10 + 3 * d, d)
    plain, slopes, Q = StitchedRegressor().fit(X, y), StitchedRegressor().fit(X, y, gradient=G), inside(d)
    assert error(slopes, Q) < max(0.5 * error(plain, Q), 1e-6)
    truth = waves(Q)[1][:, 0]
    without, with_ = (np.square(model.gradient(Q) - truth).mean() for model in (plain, slopes))
    assert with_ < max(0.3 * without, 1e-10)


def test_slopes_of_a_field_lower_the_error_of_the_default_to_a_fifth():
    field = make_2d(1500)
    errors, few = [], {"kernel": "gaussian", "degree": 0, "bandwidth": (1.0, 2.0), "metric": "euclidean"}  # a short search
    for more in ({}, {"gradient": field.gradient(field.data)}):
        model = StitchedRegressor(**few).fit(field.data, field.target, **more)
        errors.append(np.sqrt(np.mean((model.predict(field.test_data) - field.test_target) ** 2)))
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("changes", [{}, FIELD, {**FIELD, "kernel": "matern52"}, {**FIELD, "kernel": "quintic", "degree": 2}])
@pytest.mark.parametrize("t", [1, 2])
def test_derivatives_are_exact_and_the_library_agrees_with_numpy(changes, t):
    X, y, G = data(90 if changes else 30, 2, t)
    model = StitchedRegressor(**changes).fit(X, y, gradient=G).model_
    Q, step = np.concatenate([inside(2, 60), [[1.4, -1.2], [0.0, 1.1]]]), 1e-4
    value, gradient, hessian = model.reference_jet(Q, 2)
    models = model.levels[0].models
    # Rounding of large coefficients, ε Σ|α|, which a step divides; and curvature within a step.
    rounding = np.finfo(float).eps * max(np.abs(a).sum(axis=(1, 2)).max() + np.abs(b).sum(axis=(1, 2, 3)).max()
                                         for a, b in [(models.alpha, models.beta)])  # fmt: skip
    for k, e in enumerate(step * np.eye(2)):
        up, down = model.reference_jet(Q + e, 1), model.reference_jet(Q - e, 1)
        size = 1.0 + np.abs(hessian).max()
        np.testing.assert_allclose((up.value - down.value) / (2 * step), gradient[:, :, k], atol=1e-5 * size + rounding / step)
        far = 1e-4 * size + 10.0 * rounding / step
        np.testing.assert_allclose((up.gradient - down.gradient) / (2 * step), hessian[:, :, :, k], atol=far)
    if stitchwork.native.available():
        for found, expected in zip(model.jet(Q, 2), (value, gradient, hessian), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12 * (1.0 + np.abs(expected).max()) + 100.0 * rounding)


def test_values_and_slopes_are_met_at_the_points():
    X, y, G = data(40, 2)
    value, gradient = StitchedRegressor().fit(X, y, gradient=G).predict_with_gradient(X)
    np.testing.assert_allclose(value, y, atol=1e-6)
    np.testing.assert_allclose(gradient, G, atol=1e-5)


@pytest.mark.parametrize("changes", [{}, {"region_size": 60}])
def test_a_plane_is_found_from_slopes_and_one_response(changes):
    X = np.random.default_rng(0).uniform(-1, 1, (80, 2))
    y = np.where(np.arange(80) == 17, 3.0 + X @ [1.0, -2.0], np.nan)
    model = StitchedRegressor(**changes).fit(X, y, gradient=np.tile([1.0, -2.0], (80, 1)))
    Q = inside(2)
    # To the ridge of models without a plane in the average; `test_hermite` has the theorem to rounding.
    np.testing.assert_allclose(model.predict(Q), 3.0 + Q @ [1.0, -2.0], atol=1e-4)
    np.testing.assert_allclose(model.gradient(Q), np.tile([1.0, -2.0], (200, 1)), atol=1e-3)


@pytest.mark.parametrize("changes", [{}, FIELD])
def test_some_components_and_some_responses_may_be_missing(changes):
    X, y, G = data(n := 120 if changes else 40, 2)
    rng = np.random.default_rng(1)
    some, values = np.where(rng.random(G.shape) < 0.3, np.nan, G), np.where(rng.random(n) < 0.3, np.nan, y)
    some[np.isnan(values)] = G[np.isnan(values)]
    plain = StitchedRegressor(**changes).fit(X[~np.isnan(values)], values[~np.isnan(values)])
    model = StitchedRegressor(**changes).fit(X, values, gradient=some)
    assert error(model, inside(2)) < max(error(plain, inside(2)), 1e-6)
    assert len(model.model_.left_out().y) == (~np.isnan(values)).sum()
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_a_feature_whose_slopes_were_never_measured_costs_no_equations():
    X, y, G = data(60, 2)
    G[:, 1] = np.nan
    model = StitchedRegressor().fit(X, y, gradient=G)
    assert model.model_.points.equations == 2
    np.testing.assert_allclose(model.gradient(X)[:, 0], G[:, 0], atol=1e-4)


def test_regions_hold_fewer_locations_for_the_same_equations():
    X, y, G = data(300, 2)
    assert StitchedRegressor(**FIELD).fit(X, y, gradient=G).model_.region_size == 20


@pytest.mark.parametrize("chart", [{"periodic": {0: 2.0}}, {"geographic": (0, 1)}])
def test_slopes_are_those_by_the_features_of_a_chart(chart):
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2)) * ([1, 1] if "periodic" in chart else [30, 60])
    unit = np.pi if "periodic" in chart else np.pi / 180
    y = np.sin(unit * X[:, 0]) * np.cos(unit * X[:, 1]) ** 2
    G = np.stack(
        [
            unit * np.cos(unit * X[:, 0]) * np.cos(unit * X[:, 1]) ** 2,
            -unit * np.sin(unit * X[:, 0]) * np.sin(2 * unit * X[:, 1]),
        ],
        axis=1,
    )
    model = StitchedRegressor(**chart).fit(X, y, gradient=G)
    np.testing.assert_allclose(model.gradient(X), G, atol=1e-4 * np.abs(G).max())


def test_slopes_follow_a_metric_that_mixes_features():
    X, y, G = data(80, 2)
    metric = np.array([[2.0, 0.7], [0.7, 0.5]])
    G[::3, 0] = np.nan  # components alone, which a mixed coordinate is not
    model = StitchedRegressor(**{**FIELD, "metric": metric}).fit(X, y, gradient=G)
    measured = ~np.isnan(G)
    np.testing.assert_allclose(model.gradient(X)[measured], G[measured], atol=1e-2)


def test_the_learned_metric_takes_slopes_along():
    rng = np.random.default_rng(0)
    X, a = rng.uniform(-1, 1, (400, 2)), np.array([3.0, 2.9])
    model = StitchedRegressor(metric="learned", region_size=90).fit(X, np.sin(X @ a), gradient=np.cos(X @ a)[:, None] * a)
    Q = inside(2)
    np.testing.assert_allclose(model.predict(Q), np.sin(Q @ a), atol=1e-3)


@pytest.mark.parametrize("changes", [{}, FIELD])
def test_an_integer_weight_is_repetition(changes):
    X, y, G = data(n := 50 if changes else 20, 2)
    weight = np.where(np.arange(n) % 3 == 0, 2, 1)
    once = StitchedRegressor(**changes).fit(X, y, weight, gradient=G)
    rows = np.repeat(np.arange(n), weight)
    again = StitchedRegressor(**changes).fit(X[rows], y[rows], gradient=G[rows])
    np.testing.assert_allclose(once.predict(inside(2)), again.predict(inside(2)), atol=1e-6)


def test_noisy_slopes_beside_noisy_responses_do_no_harm():
    X, y, G = data(60, 2)
    rng = np.random.default_rng(3)
    y, G = y + 0.1 * rng.standard_normal(60), G + 0.2 * rng.standard_normal(G.shape)
    plain, slopes = StitchedRegressor().fit(X, y), StitchedRegressor().fit(X, y, gradient=G)
    assert error(slopes, inside(2)) < 1.02 * error(plain, inside(2))


def test_known_errors_of_slopes_weigh_them():
    X, y, G = data(50, 2)
    rng = np.random.default_rng(3)
    y = y + 0.01 * rng.standard_normal(50)
    wrong = G + 3.0 * rng.standard_normal(G.shape)
    noise = np.full(50, 0.01)
    told = StitchedRegressor().fit(X, y, noise_std=noise, gradient=wrong, gradient_std=3.0)
    believed = StitchedRegressor().fit(X, y, noise_std=noise, gradient=wrong, gradient_std=0.01)
    plain = StitchedRegressor().fit(X, y, noise_std=noise)
    assert error(told, inside(2)) < 1.2 * error(plain, inside(2))
    assert error(told, inside(2)) < 0.3 * error(believed, inside(2))


def test_groups_are_left_out_with_their_slopes():
    X, y, G = data(90, 2)
    groups = np.arange(90) // 6
    model = StitchedRegressor(**FIELD).fit(X, y, groups=groups, gradient=G)
    assert 0.0 < model.loo_error_ < 0.1


def test_slopes_along_curves_do_no_harm_between_them():
    """Regions of fewer locations hold one curve each unless the metric is learned: they say nothing of the gaps between curves."""
    level, along = np.repeat(np.linspace(0, 4, 24), 80), np.tile(np.linspace(0, 1, 80), 24)
    X, y = np.stack([along, level], axis=1), np.tanh((along - 0.3 - 0.1 * level) / 0.05)
    G = np.stack([(1 - y**2) / 0.05, np.full(len(y), np.nan)], axis=1)
    curve = np.repeat(np.arange(24), 80)
    kept = curve % 5 != 2
    model = StitchedRegressor(kernel="gaussian").fit(X[kept], y[kept], groups=curve[kept], gradient=G[kept])
    # With Euclidean distances 0.21, of the deviation of y: no region knows more than one curve.
    assert np.sqrt(np.mean((model.predict(X[~kept]) - y[~kept]) ** 2)) < 1e-3


def test_standard_deviations_shrink_and_hold_the_truth():
    X, y, G = data(25, 2)
    Q = inside(2)
    (_, plain), (found, slopes) = (
        StitchedRegressor().fit(X, y, **more).predict(Q, return_std=True) for more in ({}, {"gradient": G})
    )
    assert np.median(slopes) < 0.5 * np.median(plain)
    assert (np.abs(found - waves(Q)[0][:, 0]) < 3.0 * slopes + 1e-9).mean() > 0.9


def test_the_deviation_of_a_gradient_vanishes_where_slopes_are_known():
    X, y, G = data(30, 2)
    model = StitchedRegressor(**{**FIELD, "ridge": 1e-8}).fit(X, y, gradient=G)
    at, between = (np.median(model.gradient(Q, return_std=True)[1]) for Q in (X, inside(2)))
    assert at < 0.5 * between


@pytest.mark.parametrize("changes", [{}, FIELD])
def test_a_saved_model_is_the_same(tmp_path, changes):
    X, y, G = data(70 if changes else 20, 2, t=2)
    model = StitchedRegressor(**changes).fit(X, y, gradient=G)
    model.predict(X, return_std=True)
    model.save(tmp_path / "m.stitch")
    loaded, Q = load(tmp_path / "m.stitch"), inside(2)
    for a, b in zip(model.model_.jet(Q, 2), loaded.model_.jet(Q, 2), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(model.predict(Q, return_std=True), loaded.predict(Q, return_std=True), strict=True):
        np.testing.assert_array_equal(a, b)
    assert loaded.loo_error_ == pytest.approx(model.loo_error_)


def test_only_models_with_slopes_have_the_new_format(tmp_path):
    X, y, G = data(30, 1)
    for name, more, version in (("a", {}, b'"version":"8"'), ("b", {"gradient": G}, b'"version":"9"')):
        StitchedRegressor().fit(X, y, **more).save(tmp_path / name)
        assert version in (tmp_path / name).read_bytes()


def test_logarithms_have_relative_slopes():
    X, y, G = data(20, 1)
    model = LogStitchedRegressor().fit(X, np.exp(y), gradient=np.exp(y)[:, None] * G)
    np.testing.assert_allclose(model.gradient(X), np.exp(y)[:, None] * G, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "matern52", "multiquadric", "soft-exponential"])
def test_the_likelihood_with_slopes_has_its_gradient(name):
    rng = np.random.default_rng(0)
    n, d, k = 12, 3, 2
    root_v = np.ones(n * (1 + k))
    root_v[[5, n + 7]], root_v[n + 3] = 0.0, 0.5
    rows = Rows(
        rng.normal(size=(n, d)), rng.normal(size=(n * 3, 2)), root_v, np.array([0, 1, 1]), slopes=rng.normal(size=(n, k, d))
    )
    kernel, U, theta, step = kernel_named(name, d), polynomial_basis(rows, 1, 1e-10), np.array([-0.5, -0.8, -2.0]), 1e-5
    _, gradient = negative_log_likelihood(theta, rows, U, kernel)
    ends = [[negative_log_likelihood(theta + s * step * e, rows, U, kernel)[0] for s in (1, -1)] for e in np.eye(3)]
    np.testing.assert_allclose(gradient, [(up - down) / (2 * step) for up, down in ends], rtol=1e-7)


def test_a_table_with_slopes_goes_round(tmp_path):
    from typer.testing import CliRunner

    from stitchwork.cli import app

    x, y, g = data(40, 2)
    columns = {"a": x[:, 0], "b": x[:, 1], "y": y, "dy/da": g[:, 0], "dy/db": g[:, 1]}
    pd.DataFrame(columns).to_csv(tmp_path / "runs.csv", index=False)
    runner, saved, out = CliRunner(), tmp_path / "m.stitch", tmp_path / "out.csv"
    fixed = [part for name in ("kernel=gaussian", "degree=1", "bandwidth=2.0", "ridge=1e-9") for part in ("--set", name)]
    fitted = runner.invoke(
        app, ["fit", str(tmp_path / "runs.csv"), "-t", "y", "--gradient", "dy/da,dy/db", "-o", str(saved), *fixed]
    )
    assert fitted.exit_code == 0, fitted.output
    predicted = runner.invoke(app, ["predict", str(saved), str(tmp_path / "runs.csv"), "--gradient", "--only", "-o", str(out)])
    assert predicted.exit_code == 0, predicted.output
    np.testing.assert_allclose(pd.read_csv(out)[["dy/da", "dy/db"]], g, atol=1e-3)
    updated = runner.invoke(app, ["update", str(saved), str(tmp_path / "runs.csv"), "--gradient", "dy/da,dy/db"])
    assert updated.exit_code == 0, updated.output
    assert (load(saved).model_.points.repeats.often == 2).all()
    wrong = runner.invoke(app, ["fit", str(tmp_path / "runs.csv"), "-t", "y", "-f", "a", "--gradient", "dy/db", "-o", str(saved)])
    assert wrong.exit_code == 2
    assert "must name slopes of targets by features" in wrong.output


def test_slopes_of_a_table_and_of_python_make_one_model_of_the_logarithm(tmp_path):
    from typer.testing import CliRunner

    from stitchwork.cli import app

    x, *_ = data(40, 2)
    y = np.exp(x[:, 0] + 0.5 * x[:, 1])
    g = y[:, None] * [1.0, 0.5]
    columns = {"a": x[:, 0], "b": x[:, 1], "y": y, "dy/da": g[:, 0], "dy/db": g[:, 1]}
    pd.DataFrame(columns).to_csv(tmp_path / "runs.csv", index=False)
    pd.DataFrame(columns).head(10).assign(a=lambda rows: rows["a"] + 0.01).to_csv(tmp_path / "more.csv", index=False)
    runner, saved = CliRunner(), tmp_path / "m.stitch"
    arguments = [str(tmp_path / "runs.csv"), "-t", "y", "--gradient", "dy/da,dy/db", "--log", "-o", str(saved)]
    fitted = runner.invoke(app, ["fit", *arguments])
    assert fitted.exit_code == 0, fitted.output
    python = LogStitchedRegressor().fit(x, y, gradient=g)
    np.testing.assert_allclose(load(saved).predict(x + 0.1), python.predict(x + 0.1), rtol=1e-9)
    updated = runner.invoke(app, ["update", str(saved), str(tmp_path / "more.csv"), "--gradient", "dy/da,dy/db"])
    assert updated.exit_code == 0, updated.output
    python.partial_fit(x[:10] + np.array([0.01, 0.0]), y[:10], gradient=g[:10])
    np.testing.assert_allclose(load(saved).predict(x + 0.1), python.predict(x + 0.1), rtol=1e-6)


class Own:
    smoothness = 2

    def fit(self, X, y, sample_weight):
        raise AssertionError("never fitted")


X, Y, G = data(30, 2)
NAN = np.full(30, np.nan)
REFUSED = {
    "`gradient` must have shape": ({}, {"gradient": G[:, :1]}),
    "must not be infinite": ({}, {"gradient": np.where(np.arange(60).reshape(30, 2) == 3, np.inf, G)}),
    "all of it is NaN": ({}, {"gradient": np.full((30, 2), np.nan)}),
    "of your own": ({"local_model": Own()}, {"gradient": G}),
    "no second derivative": ({"kernel": "thin-plate"}, {"gradient": G}),
    "below `smoothness`": ({"kernel": "cubic", "smoothness": 2}, {"gradient": G}),
    "needs `noise_std`": ({}, {"gradient": G, "gradient_std": 0.1}),
    "`gradient_std` must be positive": ({}, {"gradient": G, "gradient_std": -1.0, "noise_std": np.ones(30)}),
    "`gradient_std` must be a number": ({}, {"gradient": G, "gradient_std": np.ones(7), "noise_std": np.ones(30)}),
    "`gradient_std` needs `gradient`": ({}, {"gradient_std": 1.0}),
    "at least one row": ({}, {"gradient": G, "y": NAN}),
    "neither a response nor a slope": (
        {},
        {"gradient": np.where(np.arange(30)[:, None] == 4, np.nan, G), "y": np.where(np.arange(30) == 4, np.nan, Y)},
    ),
    "which is constant": ({}, {"gradient": G, "X": X * [1.0, 0.0]}),
    "for all outputs": ({}, {"gradient": np.stack([G, np.where(G > 0, np.nan, G)], axis=1), "y": np.stack([Y, Y], axis=1)}),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_is_refused_and_the_model_stays(message):
    parameters, more = REFUSED[message]
    model = StitchedRegressor(kernel="gaussian").fit(X, Y)
    before = model.model_
    model.set_params(**parameters)
    arguments = {"X": X, "y": Y} | more
    with pytest.raises(ValueError, match=message):
        model.fit(**arguments)
    assert model.model_ is before


def test_responses_without_slopes_must_be_there():
    with pytest.raises(ValueError, match="NaN"):
        StitchedRegressor().fit(X, NAN)


def test_suggestions_keep_away_from_locations_with_slopes_alone():
    X, y, G = data(40, 2)
    model = StitchedRegressor(**FIELD).fit(X, np.where(np.arange(40) % 2, y, np.nan), gradient=G)
    candidates = np.concatenate([X[::2] + 1e-6, inside(2, 20)])  # beside points with slopes alone, and elsewhere
    chosen = model.suggest(10, candidates=candidates)
    assert (np.linalg.norm(chosen[:, None] - X[::2], axis=2).min(axis=1) > 1e-3).all()


def test_suggestions_go_where_no_slopes_were_measured():
    """Slopes on one side of four random samples: it needs fewer new points than the other, and more than one half goes there."""
    there = {"known on the left": [], "none": []}
    for seed in range(4):
        X, y, G = data(120, 2, seed=seed)
        left = (X[:, :1] < np.median(X[:, 0])) & np.ones(2, dtype=bool)
        for name, gradient in (("known on the left", np.where(left, G, np.nan)), ("none", None)):
            model = StitchedRegressor(**FIELD).fit(X, y, gradient=gradient)
            there[name].append((model.suggest(30)[:, 0] > np.median(X[:, 0])).mean())
    assert np.mean(there["known on the left"]) > np.mean(there["none"]) + 0.15


def test_slopes_everywhere_leave_suggestions_to_errors_and_changes():
    X, y, G = data(60, 2)
    model = StitchedRegressor(**FIELD).fit(X, y, gradient=G).model_
    known = suggest.know_errors(model, ALONE)
    assert known.sloped.all()
    np.testing.assert_array_equal(suggest.share_wrong(known, suggest.coordinates(model, known.X)), 1.0)


def test_other_questions_work_with_slopes():
    model = StitchedRegressor(**FIELD).fit(X, Y, gradient=G)
    assert model.suggest(2).shape == (2, 2)
    assert model.contributions(X[0])[0].share > 0.0
    assert model.predict_interval(X).shape == (30, 2)
    assert model.feature_relevance_.sum() == pytest.approx(1.0)
    assert np.all(model.noise_ >= 0.0)
