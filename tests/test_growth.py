"""Models that grow: the invariants of a cover after any sequence of updates, locality, and agreement with a fresh fit."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from stitchwork import StitchedRegressor, load
from stitchwork._parallel import ALONE
from stitchwork.fitting.defaults import FEW_REGIONS, WHOLE_FIELD
from stitchwork.local import grown
from stitchwork.model.stitch import distinct_levels

FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "ridge": 1e-6, "degree": 2, "metric": "euclidean", "region_size": 20}
STEPS = ["add", "cluster", "far", "repeat", "forget"]


def wave(X):
    return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, -1])


def scattered(n, d=2, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    return X, wave(X)


def check_covers(model):
    """Every region holds the h nearest points of its centre, the centre first, and every point is covered."""
    model = model.model_
    X, growth = model.points.X, model.growth
    for depth, level in enumerate(distinct_levels(model.levels)):
        regions, members = level.regions, level.models.members
        h, k = members.shape[1], regions.models_per_ball
        sample = np.arange(len(X)) if depth == 0 else np.unique(members)
        tree = cKDTree(X[sample])
        nearest, _ = tree.query(regions.centers, k=np.arange(1, h + 1))
        held = np.sort(np.linalg.norm(X[members] - regions.centers[:, None], axis=2), axis=1)
        np.testing.assert_allclose(held, nearest, rtol=0, atol=1e-12)  # rounding of coordinates within [-1, 1]
        np.testing.assert_allclose(regions.radii, held[:, -1], rtol=1e-12)
        assert (regions.centers == X[members[:, 0]]).all()
        assert all(len(set(row)) == h for row in members.tolist())
        covered = np.zeros(len(sample), dtype=bool)
        reach = 1.0 / (1.0 + (growth.overlap if depth == 0 else 0.0))
        for center, radius in zip(regions.centers[::k], regions.radii[::k], strict=True):
            covered[tree.query_ball_point(center, radius * reach * (1 + 1e-9))] = True
        assert covered.all()


def untouched_rows(before, after):
    """Pairs of rows of the regions of two models that have the same centre and the same members with the same responses."""
    a, b = before.levels[0], after.levels[0]
    place = {tuple(x): i for i, x in enumerate(before.points.X)}
    rows = {tuple(x): i for i, x in enumerate(a.regions.centers)}
    for j, center in enumerate(b.regions.centers):
        i = rows.get(tuple(center))
        if i is None:
            continue
        new, old = b.models.members[j], a.models.members[i]
        same = [place.get(tuple(x), -1) for x in after.points.X[new]] == old.tolist()
        if same and (after.points.y[new] == before.points.y[old]).all() and (after.points.v[new] == before.points.v[old]).all():
            yield i, j


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(["add", "cluster", "far", "repeat", "forget"]), st.integers(1, 40)), min_size=1, max_size=6)
)
def test_any_sequence_of_updates_keeps_the_cover_whole(steps):
    X, y = scattered(300)
    model = StitchedRegressor(**FIXED).fit(X, y)
    rng = np.random.default_rng(1)
    for step, size in steps:
        before = model.model_
        if step == "forget":
            model.forget(rng.permutation(before.X)[:size])
        else:
            centre = {"add": 0.0, "cluster": 0.3, "far": 5.0, "repeat": 0.0}[step]
            new = before.X[rng.integers(before.n_points, size=size)]
            if step != "repeat":
                new = rng.uniform(-1, 1, (size, 2)) * {"add": 1.0, "cluster": 0.02, "far": 0.5}[step] + centre
            model.partial_fit(new, wave(new))
        check_covers(model)
        for i, j in untouched_rows(before, model.model_):
            for name in ("origin", "scale", "sigma", "alpha", "lam"):
                old, new = getattr(before.levels[0].models, name)[i], getattr(model.model_.levels[0].models, name)[j]
                assert np.array_equal(old, new), name
    Q = rng.uniform(-1.2, 1.2, (60, 2))
    assert all(abs(sum(part.share for part in model.contributions(q)) - 1.0) < 1e-12 for q in Q[:5])
    step = 1e-6
    slope = np.stack([(model.predict(Q + step * e) - model.predict(Q - step * e)) / (2 * step) for e in np.eye(2)], axis=1)
    # Central differences: ε / step of rounding for answers of size one, and step² times a third derivative of some thousands.
    np.testing.assert_allclose(model.gradient(Q), slope, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grown_model_is_as_good_as_a_fresh_one(d):
    X, y = scattered(1200, d)
    grown = StitchedRegressor(**FIXED).fit(X[:600], y[:600])
    for part in range(600, 1200, 100):
        grown.partial_fit(X[part : part + 100], y[part : part + 100])
    check_covers(grown)
    fresh = StitchedRegressor(**FIXED).fit(X, y)
    order = np.random.default_rng(2).permutation(1200)
    shuffled = StitchedRegressor(**FIXED).fit(X[order], y[order])
    Q, _ = scattered(2000, d, seed=3)
    Q *= 0.95
    by_order = np.sqrt(np.mean((fresh.predict(Q) - shuffled.predict(Q)) ** 2))
    # Another order of the rows makes another cover; growing makes one of these, but for a few regions more.
    assert np.sqrt(np.mean((fresh.predict(Q) - grown.predict(Q)) ** 2)) < 2.0 * by_order


@pytest.mark.parametrize("waiting", [False, True])
def test_regions_may_go_where_none_is_fitted_anew(waiting):
    X, y = scattered(300)
    models = StitchedRegressor(**FIXED).fit(X, y).model_.levels[0].regions.models
    every = np.arange(len(models.members))
    stay, none = every[every != 2], every[:0]
    former = models
    if waiting:  # the region that goes is still to be fitted
        former = grown.grow_models(models, models.points, models.members, models.settings, every, np.array([2]), ALONE)
    left = grown.grow_models(former, models.points, models.members[stay], models.settings.at(stay), stay, none, ALONE)
    for name in ("alpha", "lam", "sigma", "origin", "scale"):
        np.testing.assert_array_equal(getattr(left, name), getattr(models, name)[stay])


def test_far_regions_and_predictions_stay_as_they_were():
    X, y = scattered(2000)
    model = StitchedRegressor(**FIXED).fit(X, y)
    Q = np.random.default_rng(5).uniform(-1, -0.2, (500, 2))
    before, old = model.predict(Q), model.model_
    model.partial_fit([[0.9, 0.9], [0.91, 0.88]], [0.0, 0.1])
    # Sums of a hundred terms whose sizes add up to some tens, in another order.
    np.testing.assert_allclose(model.predict(Q), before, rtol=0, atol=1e-12)
    assert (model.model_.points.X[: old.n_points] == old.points.X).all()


def test_the_first_call_fits_and_few_points_are_fitted_anew():
    X, y = scattered(300)
    model = StitchedRegressor().partial_fit(X[:100], y[:100])
    model.partial_fit(X[100:], y[100:])
    fresh = StitchedRegressor().fit(X, y)
    assert model.n_samples_seen_ == 300
    assert model.model_.n_points < FEW_REGIONS * model.model_.region_size
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))


def test_repeated_locations_are_averaged_in():
    X, y = scattered(400)
    model = StitchedRegressor(**FIXED).fit(X, y)
    model.partial_fit(X[:50], y[:50] + 0.2, sample_weight=np.full(50, 3.0))
    assert model.model_.n_points == 400
    both = StitchedRegressor(**FIXED).fit(
        np.concatenate([X, X[:50]]), np.concatenate([y, y[:50] + 0.2]), np.concatenate([np.ones(400), np.full(50, 3.0)])
    )
    np.testing.assert_allclose(model.predict(X), both.predict(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.model_.noises(), both.model_.noises(), rtol=1e-6)


def test_forgetting_is_the_inverse_of_adding():
    X, y = scattered(500)
    model = StitchedRegressor(**FIXED).fit(X, y)
    before = model.predict(X)
    model.partial_fit([[0.1, 0.2]], [9.0])
    assert abs(model.predict([[0.1, 0.2]])[0] - wave(np.array([[0.1, 0.2]]))[0]) > 0.1
    model.forget([[0.1, 0.2]])
    check_covers(model)
    # A region that was founded or dropped on the way changes the average by no more than what its models differ by.
    np.testing.assert_allclose(model.predict(X), before, rtol=0, atol=1e-4)


def test_a_moving_window_does_not_creep():
    X, y = scattered(4000)
    model = StitchedRegressor(**FIXED).fit(X[:1000], y[:1000])
    sizes = []
    for start in range(0, 3000, 100):
        model.partial_fit(X[1000 + start : 1100 + start], y[1000 + start : 1100 + start]).forget(X[start : start + 100])
        sizes.append((model.model_.n_points, model.n_regions_, sum(len(level.regions.radii) for level in model.model_.levels)))
    assert {n for n, _, _ in sizes} == {1000}
    assert max(m for _, m, _ in sizes[10:]) < 1.3 * sizes[0][1]
    assert max(m for *_, m in sizes[10:]) < 1.3 * sizes[0][2]
    check_covers(model)


def test_saved_and_pickled_models_go_on_growing(tmp_path):
    X, y = scattered(700)
    model = StitchedRegressor(**FIXED).fit(X[:600], y[:600], groups=np.arange(600) % 30)
    model.partial_fit(X[600:650], y[600:650], groups=np.arange(50) % 31)
    model.save(tmp_path / "m.stitch")
    copies = [load(tmp_path / "m.stitch"), pickle.loads(pickle.dumps(model))]
    for each in (model, *copies):
        each.partial_fit(X[650:], y[650:], groups=np.full(50, 30.0))
        assert len(np.unique(each.model_.points.group)) == 31
    for copy in copies:
        assert copy.n_samples_seen_ == 700
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_averages_of_models_grow_together():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (800, 5))
    y = X @ [1.0, 2.0, 0.0, 0.5, -1.0] + np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=800)
    model = StitchedRegressor(region_size=60).fit(X[:500], y[:500])
    assert model.model_.models_per_ball > 1
    before = model.predict(X[500:])
    model.partial_fit(X[500:], y[500:])
    check_covers(model)
    assert model.kernels_.shape == (model.n_regions_, model.model_.models_per_ball)
    assert np.square(model.predict(X[500:]) - y[500:]).mean() < np.square(before - y[500:]).mean()


def test_a_warning_says_when_the_choice_is_stale():
    X, y = scattered(1500)
    model = StitchedRegressor().fit(X[:1000], y[:1000])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in range(1000, 1300, 50):
            model.partial_fit(X[part : part + 50], y[part : part + 50])
    assert 0.3 < model.stale_ < 2.0
    noise = 0.3 * np.random.default_rng(4).normal(size=200)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for part in range(1300, 1500, 50):
            model.partial_fit(X[part : part + 50], y[part : part + 50] + noise[part - 1300 : part - 1250])
    assert ["choose them again" in str(warning.message) for warning in caught] == [True]
    assert model.stale_ > 2.0
    assert model.fit(X, y).stale_ == 1.0


def test_one_large_batch_is_enough_to_be_stale():
    X, y = scattered(1000)
    model = StitchedRegressor(kernel="gaussian", region_size=100).fit(X[:600], y[:600])
    with pytest.warns(UserWarning, match="choose them again"):
        model.partial_fit(X[600:], y[600:] + np.random.default_rng(0).normal(size=400))


def test_a_feature_that_was_constant_so_far_is_learned():
    X, _ = scattered(900, 2)
    X[:600, 1] = 0.5
    model = StitchedRegressor().fit(X[:600], X[:600, 0])
    model.partial_fit(X[600:], X[600:, 0] + X[600:, 1] - 0.5)
    assert model.gradient([[0.0, 0.2]])[0, 1] > 0.8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.partial_fit(np.ones((3, 3)), np.ones(3)), "features"),
        (lambda m: m.partial_fit([[np.nan, 0.0]], [1.0]), "NaN"),
        (lambda m: m.partial_fit([[0.0, 0.0]], [np.inf]), "infinity"),
        (lambda m: m.partial_fit([[0.0, 0.0]], [[1.0, 2.0]]), "shape"),
        (lambda m: m.partial_fit([[0.0, 0.0]], [1.0], groups=[1]), "has no groups"),
        (lambda m: m.partial_fit([[0.0, 0.0]], [1.0], sample_weight=[-1.0]), "negative"),
        (lambda m: m.forget([[0.123, 0.456]]), "locations"),
        (lambda m: m.forget(m.model_.X), "nothing would be left"),
    ],
)
def test_what_is_refused_leaves_the_model_as_it_was(change, message):
    X, y = scattered(300)
    model = StitchedRegressor(**FIXED).fit(X, y)
    before = model.model_
    with pytest.raises(ValueError, match=message):
        change(model)
    assert model.model_ is before


def test_groups_must_go_on_as_they_began():
    X, y = scattered(300)
    model = StitchedRegressor(**FIXED).fit(X, y, groups=np.arange(300) % 10)
    with pytest.raises(ValueError, match="was fitted with groups"):
        model.partial_fit(X[:1], y[:1])


def test_what_was_chosen_on_half_of_the_points_is_chosen_anew():
    X, y = scattered(1300)
    settings = {"kernel": "gaussian", "region_size": 100}
    model = StitchedRegressor(**settings).fit(X[:600], y[:600])
    model.partial_fit(X[600:1199], y[600:1199])
    assert model.model_.growth.chosen == 600
    model.partial_fit(X[1199:1200], y[1199:1200])
    assert model.model_.growth.chosen == 1200
    np.testing.assert_array_equal(model.predict(X), StitchedRegressor(**settings).fit(X[:1200], y[:1200]).predict(X))
    fixed = StitchedRegressor(**FIXED).fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    assert fixed.model_.growth.chosen == 600  # there was nothing to choose


def test_what_was_chosen_on_points_of_which_half_are_gone_is_chosen_anew(tmp_path):
    X, y = scattered(400)
    settings = {"kernel": "gaussian", "region_size": 20}
    model = StitchedRegressor(**settings).fit(X, y).forget(X[:199])
    assert model.model_.growth.chosen == 201
    model.save(tmp_path / "m.stitch")
    for each in (model, load(tmp_path / "m.stitch")):  # a file tells how many there were
        each.forget(X[199:200])
        assert each.model_.growth.chosen == each.model_.growth.basis == 200
        np.testing.assert_array_equal(each.predict(X), StitchedRegressor(**settings).fit(X[200:], y[200:]).predict(X))
    fixed = StitchedRegressor(**FIXED).fit(X, y).forget(X[:240])
    assert fixed.model_.growth.basis == 400  # there was nothing to choose


def test_so_few_points_that_one_region_would_hold_them_are_fitted_anew():
    X, y = scattered(WHOLE_FIELD + 10)
    model = StitchedRegressor().fit(X, y)
    assert model.n_regions_ > 1
    assert model.forget(X[:9]).n_regions_ > 1
    model.forget(X[9:10])
    assert model.n_regions_ == 1
    np.testing.assert_array_equal(model.predict(X), StitchedRegressor().fit(X[10:], y[10:]).predict(X))


def test_threads_that_ask_a_grown_model_at_once_wait_for_one_fit(monkeypatch):
    model, fits, fit_blocks = StitchedRegressor(**FIXED).fit(*scattered(400)), [], grown.fit_blocks

    def slow(*arguments):
        fits.append(threading.get_ident())
        time.sleep(0.1)
        return fit_blocks(*arguments)

    monkeypatch.setattr(grown, "fit_blocks", slow)
    model.partial_fit(*scattered(20, seed=1))
    models = model.model_.levels[0].regions.models
    start = threading.Barrier(8)

    def ask(name):
        start.wait()
        return getattr(models, name)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, ["alpha", "lam", "scale", "sigma"] * 2))
    assert len(fits) == 1
    assert found[0] is found[4]


def test_predictions_in_threads_while_points_come():
    """Bounded in time; each answer is that of some model, whole."""
    model, stop = StitchedRegressor(**FIXED).fit(*scattered(300)), time.monotonic() + 4.0
    Q, truth = scattered(5, seed=9)

    def ask(_):
        while time.monotonic() < stop:
            assert np.abs(model.predict(Q) - truth).max() < 0.1

    with ThreadPoolExecutor(8) as pool:
        asking = pool.map(ask, range(8))
        seed = 0
        while time.monotonic() < stop:
            seed += 1
            X, y = scattered(3, seed=seed)
            if model.model_.n_points < 600:
                model.partial_fit(X, y)
            else:
                model.forget(model.model_.X[:3])
        list(asking)


def test_new_responses_at_embedded_points_count_for_what_is_stale():
    X, y = scattered(600)
    noise = 0.05 * np.random.default_rng(5).normal(size=(2, 600))
    model = StitchedRegressor(**FIXED | {"ridge": 1e-2}).fit(X, y + noise[0])
    same = model.partial_fit(X[::6], (y + noise[1])[::6]).stale_
    assert 0.5 < same < 1.6
    with pytest.warns(UserWarning, match="no longer suit"):
        model.partial_fit(X[1::6], y[1::6] + 100.0)
    assert model.stale_ > 3.0


def test_leave_one_out_is_in_the_order_of_the_rows(tmp_path):
    X, y = scattered(500)
    model = StitchedRegressor(**FIXED).fit(np.concatenate([X, X[:5]]), np.concatenate([y, y[:5]]))
    np.testing.assert_array_equal(model.leave_one_out().X, X)
    np.testing.assert_allclose(model.leave_one_out().y, y, atol=1e-14)
    more = scattered(10, seed=3)
    model.partial_fit(*more)
    np.testing.assert_array_equal(model.leave_one_out().X, np.concatenate([X, more[0]]))
    model.save(tmp_path / "m.stitch")
    np.testing.assert_array_equal(load(tmp_path / "m.stitch").leave_one_out().X, np.concatenate([X, more[0]]))
    without = model.forget(X[:100]).leave_one_out()
    np.testing.assert_array_equal(without.X, np.concatenate([X[100:], more[0]]))


@pytest.mark.parametrize("coordinates", [{"periodic": {0: 360.0}}, {"periodic": {0: 0.7, 1: 24.0}}, {"geographic": (0, 1)}])
@pytest.mark.parametrize("shift", [0.0, -180.0, 100.0])
def test_points_that_a_model_tells_can_be_forgotten(coordinates, shift):
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(0, 360, 300) + shift, rng.uniform(-90, 90, 300), rng.normal(size=300)], axis=1)
    model = StitchedRegressor(**FIXED | {"metric": "standardized"}, **coordinates).fit(X, rng.normal(size=300))
    told = model.model_.X
    for x in told[::4]:
        model.forget(x[None])
    assert model.model_.n_points == 225
    near = told[1:2] + np.array([[0.0, 0.0, 1e-12]])
    with pytest.raises(ValueError, match="exactly as they were given"):
        model.forget(near)
    with pytest.raises(ValueError, match="exactly as they were given"):
        model.forget(told[1:2] + np.array([[1e-6, 0.0, 0.0]]))


def test_coefficients_of_the_highest_degree_go_with_the_last_region_that_has_it():
    """Else neither the library nor a file takes the model."""
    from dataclasses import replace

    from stitchwork._parallel import ALONE
    from stitchwork.local.fit import fit_blocks
    from stitchwork.local.grown import grow_models

    models = StitchedRegressor(**FIXED).fit(*scattered(600)).model_.levels[0].models
    degree = np.where(np.arange(len(models.members)) == 0, 2, 1)
    settings = replace(models.settings, degree=degree)
    base = fit_blocks(models.points, models.members, settings, ALONE)
    rows = np.arange(1, len(degree))
    grown = grow_models(base, models.points, models.members[1:], settings.at(rows), rows, np.array([0]), ALONE)
    assert base.lam.shape[1] == 6
    assert grown.lam.shape[1] == 3
    np.testing.assert_array_equal(grown.lam[1:], base.lam[2:, :3])
