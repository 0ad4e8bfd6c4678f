"""Every region is bounded by its own points: what it says saturates beyond the range of their responses."""

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import tracks, wave

from stitchwork import StitchedRegressor, load, native
from stitchwork.local.fit import stack_residuals
from stitchwork.model.bounds import bound_regions, extremes_of_members
from stitchwork.model.loo import stitched_loo_residuals
from stitchwork.model.stitch import contributions

WILD = {"kernel": "gaussian", "degree": 2, "bandwidth": 2.0, "ridge": 1e-8, "selection": None, "metric": "euclidean"}


class Cubic:
    """Least squares by polynomials of degree three along every axis, which leave their points at once."""

    smoothness = np.inf

    def fit(self, X, y, sample_weight):
        return FittedCubic(np.linalg.lstsq(powers(X), y, rcond=None)[0])


class FittedCubic:
    def __init__(self, coefficients):
        self.coefficients = coefficients

    def predict(self, X):
        return powers(X) @ self.coefficients

    def gradient(self, X):
        c = self.coefficients[1:].reshape(3, -1)
        return c[0] + 2 * c[1] * X + 3 * c[2] * X**2


def powers(X):
    return np.concatenate([np.ones((len(X), 1)), X, X**2, X**3], axis=1)


def make_data(kind, seed=0):
    """Points of the plane, or a table, with responses that make wide kernels wild."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (250, 2))
    noisy = wave(X) + 0.5 * rng.normal(size=250)
    if kind == "tracks":
        return tracks(8, 30, seed, noise=0.05)[:2]
    if kind == "table":
        X = rng.normal(size=(150, 6))
        return X, X[:, 0] + rng.standard_t(2, 150)
    return X, {
        "noisy": noisy,
        "outliers": np.where(rng.random(250) < 0.03, 1e3 * noisy, noisy),
        "constant": np.full(250, 3.0),
        "zero": np.zeros(250),
        "nearly constant": 1e6 + 1e-9 * noisy,
        "half constant": np.where(X[:, 0] < 0, 0.0, noisy),
        "outputs": np.stack([noisy, 1e9 * noisy**3, np.zeros(250)], axis=1),
        "huge": 1e150 * noisy,
        "tiny": 1e-150 * noisy,
    }[kind]


def queries(X, seed=1):
    """Inside, around, and far outside."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    inside, around = rng.uniform(low, high, (40, X.shape[1])), rng.uniform(2 * low - high, 2 * high - low, (30, X.shape[1]))
    return np.concatenate([inside, around, [high + 1e3 * (high - low), low - 1e12 * (high - low)]])


def beyond(model, Q):
    """How many pairs of a query and a region that holds it would say something beyond the region's bounds."""
    model, count = model.model_, 0
    U = np.asfortranarray(model.space.coordinates(model.inside.saturate(model.embed(Q))[0]))
    for level in model.levels[:-1]:
        pairs = level.balls.covering_pairs(U)
        free = level.models.evaluate(pairs.region, U[pairs.query], 0).value
        count += level.regions.bounds.at(pairs.region).beyond(free).sum()
    return count


def said_at(model, x):
    """Level, region, share and value of all that answer at ``x``."""
    model = model.model_
    return list(contributions(model.levels, model.space.coordinates(model.inside.saturate(x[None])[0]), model.weight, model.w0))


def member_range(model, level, region):
    """Least and greatest response of the points of a region, and their range, (t,) each."""
    regions = model.model_.levels[level].regions
    points = getattr(regions.models, "points", model.model_.points)
    own = points.y[regions.models.members[region]]
    return own.min(axis=0), own.max(axis=0), np.maximum(np.ptp(own, axis=0), 1e-6 * np.abs(own).max(axis=0))


def value_rounding(model, level, region):
    """How far sums Σ α_i K(x_i, q) in other orders may be apart, (t,): a kernel is at most one, and polynomials are small."""
    return np.finfo(float).eps * np.abs(model.model_.levels[level].models.alpha[region]).sum(axis=0)


KINDS = ("noisy", "tracks", "outliers", "constant", "zero", "nearly constant", "half constant", "outputs", "huge", "tiny")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, WILD | {"region_size": 25}) for kind in KINDS),
        ("noisy", WILD | {"region_size": 140}),
        ("noisy", {}),
        ("outliers", {}),
        ("table", {}),
        ("tracks", {"local_model": "poly", "degree": 3, "region_size": 30}),
        ("noisy", {"local_model": Cubic(), "region_size": 20}),
        ("noisy", None),
    ],
    ids=lambda x: x if isinstance(x, str) else "paper" if x is None else "+".join(map(str, x)) or "default",
)
def test_no_answer_leaves_the_bounds_of_the_regions_that_give_it(kind, settings):
    X, y = make_data(kind)
    model = (StitchedRegressor.paper() if settings is None else StitchedRegressor(**settings)).fit(X, y)
    last = len(model.model_.levels) - 1
    Q = queries(X)
    answers = model.predict(Q).reshape(len(Q), -1)
    assert np.isfinite(answers).all()
    assert np.isfinite(model.gradient(Q)).all()
    for x, answer in zip(Q, answers, strict=True):
        ends = []
        for level, region, _, value in said_at(model, x):
            if level == last:
                continue
            least, most, extent = member_range(model, level, region)
            rounding = 1e-12 * np.maximum(np.abs(least), np.abs(most))
            ends.append((least - extent - rounding, most + extent + rounding))
            assert (ends[-1][0] <= value).all()
            assert (value <= ends[-1][1]).all()
        if not any(level == last for level, *_ in said_at(model, x)):
            lower, upper = np.array(ends).min(axis=0)[0], np.array(ends).max(axis=0)[1]
            assert (lower <= answer).all()
            assert (answer <= upper).all()


@pytest.mark.parametrize("kind", ["noisy", "tracks", "outputs"])
def test_derivatives_where_bounds_bind_are_those_of_the_prediction(kind):
    X, y = make_data(kind)
    model = StitchedRegressor(**WILD | {"region_size": 25, "ridge": 1e-5, "weight": "wendland-c4"}).fit(X, y)
    Q, step = queries(X)[:70], 1e-5
    assert beyond(model, Q) > 100
    gradient, hessian = model.gradient(Q), model.hessian(Q)
    for k, axis in enumerate(np.eye(2)):
        ahead, behind = model.predict_with_gradient(Q + step * axis), model.predict_with_gradient(Q - step * axis)
        size = np.abs(gradient).max(axis=(0, -1)) + 1e-300
        np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * step * size), gradient[..., k] / size, atol=1e-5)
        curved = np.abs(hessian).max(axis=(0, -1, -2))[..., None] + 1e-300
        np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * step) / curved, hessian[..., k] / curved, atol=1e-5)


@pytest.mark.skipif(not native.available(), reason="there is no compiled library")
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("noisy", {"region_size": 25}),
        ("noisy", {"region_size": 200}),  # more points than are worked on at once
        ("tracks", {"region_size": 25}),
        ("outputs", {"region_size": 140}),
        ("table", {"region_size": 60, "degree": 1}),
        ("table", {"region_size": 140, "degree": -1}),
        ("constant", {"region_size": 25}),
    ],
    ids=str,
)
def test_the_library_says_what_numpy_says_where_bounds_bind(kind, changes):
    X, y = make_data(kind)
    model = StitchedRegressor(**WILD | {"ridge": 1e-5} | changes).fit(X, y)
    Q = queries(X)
    assert kind == "constant" or beyond(model, Q) > 100
    expected, found = model.model_.reference_jet(Q, 2), model.model_.jet(Q, 2)
    for a, b in zip(expected, found, strict=True):
        size = np.abs(a).max(axis=(0, *range(2, a.ndim)), keepdims=True) + 1e-300
        np.testing.assert_allclose(b / size, a / size, atol=1.0 if kind == "constant" else 1e-8)  # of a constant, all is rounding
    rows = [model.model_.jet(q[None], 2) for q in Q]
    for k, part in enumerate(found):
        np.testing.assert_array_equal(np.concatenate([row[k] for row in rows]), part)


def test_left_out_residuals_are_those_of_the_bounded_regions():
    X, y = make_data("noisy")
    for groups in (None, np.arange(250) % 60):
        model = StitchedRegressor(**WILD | {"region_size": 250, "ridge": 1e-3}).fit(X, y, groups=groups).model_
        assert model.n_regions == 1
        points, level = model.points, model.levels[0]
        members, extremes = level.models.members[0], 0.15 * level.regions.extremes  # so that they bind
        said = points.y[members] - stack_residuals(points, members[None], level.models.settings)[0]
        held = bound_regions(extremes[:, 0]).saturate(said)[0]
        assert 10 < (held != said).sum() < 200
        residuals, known = stitched_loo_residuals(
            points, [replace(level, regions=replace(level.regions, extremes=extremes))], model.weight
        )
        np.testing.assert_allclose(residuals[members[known[members]]], (points.y[members] - held)[known[members]], atol=1e-8)


@pytest.mark.parametrize("kind", ["noisy", "tracks", "outputs"])
def test_the_deviation_of_a_region_never_exceeds_its_range(kind):
    X, y = make_data(kind)
    model = StitchedRegressor(**WILD | {"region_size": 25}).fit(X, y)
    Q, last = queries(X), len(model.model_.levels) - 1
    variance = model.model_.moments(Q).variance
    hidden = model.model_.inside.hidden_share(Q)[:, None] * model.model_.points.y.var(axis=0)  # what saturated features add
    factor2 = model.model_.calibration().factor ** 2
    for x, found, more in zip(Q, variance, hidden, strict=True):
        told = said_at(model, x)
        if any(level == last for level, *_ in told):
            continue
        rounding = np.array([value_rounding(model, level, region) for level, region, *_ in told])
        ranges = [member_range(model, level, region)[2] for level, region, *_ in told]
        values = np.array([value for *_, value in told])
        shares = np.array([np.broadcast_to(share, values.shape[1]) for _, _, share, _ in told])  # (k, t)
        disagreement = (shares * (np.abs(values - (shares * values).sum(axis=0)) + 2 * rounding.max(axis=0)) ** 2).sum(axis=0)
        most = (shares * np.square(ranges)).sum(axis=0)
        assert (found <= (most + np.maximum(factor2, 1.0) * disagreement + more) * (1 + 1e-12)).all()


def test_responses_that_are_all_equal_bound_by_rounding_and_zeros_by_nothing_else():
    bounds = bound_regions(np.array([[[2.0, 0.0, -1.0]], [[2.0, 0.0, 3.0]]]))
    np.testing.assert_allclose(bounds.margin, [[1e-6, 0.0, 2.0]])
    value, first, second = bounds.saturate(np.array([[5.0, 1.0, -1e9]]))
    np.testing.assert_allclose(value, [[2.0 + 2e-6, 0.0, -5.0]])
    assert (first == 0.0).all()
    assert (second == 0.0).all()
    value, first, _ = bounds.saturate(np.array([[2.0, 0.0, 4.9]]))
    assert value.tolist() == [[2.0, 0.0, 4.9]]
    assert first.tolist() == [[1.0, 0.0, 1.0]]  # without a margin it is constant


def test_bounds_are_saved(tmp_path):
    X, y = make_data("outputs")
    model, Q = StitchedRegressor(**WILD | {"region_size": 25}).fit(X, y), queries(X)
    model.save(tmp_path / "m.stitch")
    again = load(tmp_path / "m.stitch")
    assert beyond(model, Q) > 100
    np.testing.assert_array_equal(again.predict(Q), model.predict(Q))
    for one, other in zip(again.model_.levels, model.model_.levels, strict=True):
        np.testing.assert_array_equal(one.regions.extremes, other.regions.extremes)


def test_a_file_of_format_7_is_read_and_gets_its_bounds_from_its_points():
    path = Path(__file__).parent / "golden" / "format7.stitch"
    model = load(path)
    recorded = [0.0023508453230649084, 0.5569143541615955, -0.7756702133646405, 0.7455040140929539]
    np.testing.assert_allclose(model.predict([[0.0, 0.0], [0.3, -0.2], [-0.5, 0.4], [0.6, 0.6]]), recorded, rtol=1e-9)
    assert_bounds_follow(model)


@pytest.mark.skipif(not native.available(), reason="there is no compiled library")
@pytest.mark.parametrize("kind", ["format 7", "as it is"])
def test_a_file_that_is_opened_in_c_has_the_bounds_that_it_has_in_python(tmp_path, kind):
    path = Path(__file__).parent / "golden" / "format7.stitch"
    if kind == "as it is":
        path = tmp_path / "m.stitch"
        StitchedRegressor(**WILD | {"region_size": 25, "ridge": 1e-5}).fit(*make_data("noisy")).save(path)
    model, library, handle = load(path), ctypes.CDLL(native.library()), ctypes.c_void_p()
    Q = np.random.default_rng(0).uniform(-1.5, 1.5, (200, 2))
    found, expected = np.empty(len(Q)), model.model_.reference_jet(Q, 0).value[:, 0]
    library.st_batch.argtypes = [ctypes.c_void_p, ctypes.c_long, *(ctypes.c_void_p,) * 4]
    library.st_close.argtypes = [ctypes.c_void_p]
    assert library.st_open(str(path).encode(), ctypes.byref(handle)) == 0
    assert library.st_batch(handle, len(Q), Q.ctypes.data, found.ctypes.data, None, None) == 0
    library.st_close(handle)
    assert beyond(model, Q) > 20
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def assert_bounds_follow(model):
    """The bounds of every level but the last are those of its members' responses."""
    *levels, last = model.model_.levels
    assert last.regions.extremes is None
    for level in levels:
        expected = extremes_of_members(level.models.points.y, level.models.members)
        np.testing.assert_array_equal(level.regions.extremes, expected)


@pytest.mark.filterwarnings("ignore:Errors at new points")
def test_bounds_follow_the_points_of_a_model_that_grows(plane, fixed):
    X, y = plane
    rng = np.random.default_rng(0)
    model = fixed().fit(X[:500], y[:500])
    for k in range(500, 600, 20):
        model.partial_fit(X[k : k + 20], 1.1 * y[k : k + 20])
        assert_bounds_follow(model)
    model.partial_fit(X[:10], rng.normal(size=10) - 50.0)  # known places: their responses change
    assert_bounds_follow(model)
    model.forget(X[200:230])
    assert_bounds_follow(model)
    assert np.isfinite(model.predict(X)).all()


def test_far_responses_change_no_bounds(plane, fixed):
    X, y = plane
    far = y.copy()
    far[np.argmax(X[:, 0])] = 1e9
    Q = np.random.default_rng(0).uniform(-2.5, 0.0, (100, 2))
    np.testing.assert_array_equal(fixed().fit(X, far).predict(Q), fixed().fit(X, y).predict(Q))


def test_regions_without_extremes_are_free(plane, fixed):
    model = fixed().fit(*plane).model_
    freed = replace(model, levels=tuple(replace(one, regions=replace(one.regions, extremes=None)) for one in model.levels))
    Q = np.random.default_rng(0).uniform(-2, 2, (100, 2))
    np.testing.assert_allclose(freed.reference_jet(Q, 0).value, model.reference_jet(Q, 0).value, atol=1e-9)
