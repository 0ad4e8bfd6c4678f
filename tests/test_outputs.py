"""Several outputs lose nothing by being fitted together: each has models, shares and relevant features of its own."""

from dataclasses import replace

import numpy as np
import pytest
from test_export import framework, in_jax, in_torch  # noqa: F401
from test_native import assert_same

from stitchwork import StitchedRegressor, load
from stitchwork.fitting.background import interleave
from stitchwork.local.fit import fit_blocks
from stitchwork.local.radial import kernel_named
from stitchwork.model.description import describe, restore
from stitchwork.model.parts import Part, join_parts
from stitchwork.model.stitch import Regions

SHARES = np.array([[0.3, 0.0], [0.7, 1.0]])


def pair(X):
    return np.stack([np.sin(3 * X[:, 0]) + 0.1 * X[:, 1], X[:, 2] ** 2 * X[:, 3]], axis=1)


def runs(noise=0.0, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 5))
    return X, pair(X) + noise * rng.normal(size=(n, 2)), rng.uniform(size=(500, 5))


@pytest.fixture(scope="module")
def together():
    X, Y, _ = runs()
    return StitchedRegressor().fit(X, Y)


@pytest.fixture(scope="module")
def alone():
    X, Y, _ = runs()
    return [StitchedRegressor().fit(X, y) for y in Y.T]


@pytest.fixture(scope="module")
def noisy():
    X, Y, Q = runs(0.02)
    return StitchedRegressor().fit(X, Y), [StitchedRegressor().fit(X, y) for y in Y.T], Q


@pytest.fixture
def shared(fixed):
    """Many regions of two models each, with shares of their own for two outputs."""
    X = np.random.default_rng(3).uniform(-1, 1, (300, 2))
    return with_shares(fixed(region_size=40).fit(X, np.stack([np.sin(3 * X[:, 0]), X[:, 1] ** 3 - X[:, 0]], axis=1)))


def with_shares(model):
    fitted = model.model_
    first, blocks = fitted.levels[0].regions, fitted.levels[0].models
    kernels = tuple(kernel_named(name, fitted.dimension) for name in ("gaussian", "matern72"))
    settings = [replace(blocks.settings, kernels=kernels, kernel=np.full(len(blocks.members), k)) for k in range(2)]
    each = np.arange(len(blocks.members)).repeat(2)
    models = fit_blocks(fitted.points, blocks.members[each], interleave(settings))
    shares = np.tile(SHARES, (len(blocks.members), 1))
    centers = np.asfortranarray(first.centers[each])
    regions = Regions(centers, first.radii[each], models, shares, 2, first.extremes[:, each])
    levels = tuple(replace(level, regions=regions) if level.regions is first else level for level in fitted.levels)
    model.model_ = replace(fitted, levels=levels)
    return model


def one_model(model, k):
    """The same with the k-th of the two models alone."""
    fitted = model.model_
    first, chosen = fitted.levels[0].regions, np.arange(k, len(fitted.levels[0].regions.radii), 2)
    part = Part(fitted.points, np.arange(fitted.n_points), fitted.n_points, first, len(first.radii)).restrict(chosen)
    regions = replace(part.regions, share=None, models_per_ball=1)
    levels = tuple(replace(level, regions=regions) if level.regions is first else level for level in fitted.levels)
    return replace(fitted, levels=levels, points=part.points)


def test_outputs_together_are_what_each_is_alone(together, alone):
    _, Y, Q = runs()
    assert together.model_.levels[0].regions.share.shape == (together.model_.models_per_ball, 2)
    np.testing.assert_allclose(together.model_.levels[0].regions.share.sum(axis=0), 1.0)
    error, truth = np.abs(together.predict(Q) - pair(Q)), pair(Q)
    for k, one in enumerate(alone):
        assert np.abs(together.predict(Q)[:, k] - one.predict(Q)).max() < 1e-6 * Y[:, k].std()
        assert (
            np.sqrt(np.mean(error[:, k] ** 2)) < 1.1 * np.sqrt(np.mean((one.predict(Q) - truth[:, k]) ** 2)) + 1e-7 * Y[:, k].std()
        )


def test_leave_one_out_and_deviations_together_are_those_of_each_alone(noisy):
    together, alone, Q = noisy
    left, (_, deviation) = together.leave_one_out(), together.predict(Q, return_std=True)
    ends, noise, (slope, of_slope) = together.predict_interval(Q), together.noise_, together.gradient(Q[:20], return_std=True)
    assert together.model_.levels[0].regions.output_factor is not None
    for k, one in enumerate(alone):
        np.testing.assert_allclose(left.residual[:, k], one.leave_one_out().residual, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(deviation[:, k], one.predict(Q, return_std=True)[1], rtol=1e-6)
        np.testing.assert_allclose(ends[:, k], one.predict_interval(Q), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(noise[k], one.noise_, rtol=1e-6)
        ours, theirs = one.gradient(Q[:20], return_std=True)
        np.testing.assert_allclose(slope[:, k], ours, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(of_slope[:, k], theirs, rtol=1e-5)


def test_relevance_is_that_of_each_output(together, alone):
    assert together.feature_relevance_.shape == (2, 5)
    np.testing.assert_allclose(together.feature_relevance_.sum(axis=1), 1.0)
    assert together.feature_relevance_[0, 0] > 0.99
    assert together.feature_relevance_[1, 2:4].sum() > 0.99
    for row, one in zip(together.feature_relevance_, alone, strict=True):
        assert one.feature_relevance_.shape == (5,)
        np.testing.assert_allclose(row, one.feature_relevance_, atol=1e-6)


def test_outputs_that_are_alike_have_common_models():
    X, Y, Q = runs(0.02, n=100)
    model, one = StitchedRegressor().fit(X, Y[:, [0, 0]] * [1.0, -7.0]), StitchedRegressor().fit(X, Y[:, 0])
    assert model.model_.levels[0].regions.share is None or model.model_.levels[0].regions.share.ndim == 1
    np.testing.assert_allclose(model.predict(Q), one.predict(Q)[:, None] * [1.0, -7.0], rtol=1e-5, atol=1e-6)


def test_a_constant_output_disturbs_none():
    X, Y, Q = runs(0.02, n=60)
    model = StitchedRegressor().fit(X, np.stack([Y[:, 0], np.full(60, 5.0)], axis=1))
    np.testing.assert_allclose(model.predict(Q)[:, 1], 5.0, rtol=1e-9)
    np.testing.assert_allclose(model.predict(Q)[:, 0], StitchedRegressor().fit(X, Y[:, 0]).predict(Q), rtol=1e-5, atol=1e-6)


def test_shares_for_each_output_agree_with_numpy(together, shared):
    rng = np.random.default_rng(1)
    assert_same(together, np.concatenate([rng.uniform(-0.2, 1.2, (80, 5)), together.model_.X[:10]]))
    assert_same(shared, np.concatenate([rng.uniform(-1.3, 1.3, (200, 2)), shared.centers_]))


def test_an_output_hears_the_models_that_have_a_share_in_it(shared):
    Q = np.random.default_rng(2).uniform(-1, 1, (100, 2))
    first, second = (one_model(shared, k).reference_jet(Q, 2) for k in range(2))
    for both, a, b in zip(shared.model_.reference_jet(Q, 2), first, second, strict=True):
        np.testing.assert_allclose(both[:, 0], 0.3 * a[:, 0] + 0.7 * b[:, 0], atol=1e-9 * np.abs(both).max())
        np.testing.assert_allclose(both[:, 1], b[:, 1], atol=1e-9 * np.abs(both).max())
    np.testing.assert_allclose(shared.coverage(Q), one_model(shared, 0).coverage(Q), atol=1e-12)
    left = shared.model_.left_out().residual
    for k in range(2):
        a, b = (one_model(shared, j).left_out().residual[:, k] for j in range(2))
        np.testing.assert_allclose(left[:, k], SHARES[0, k] * a + SHARES[1, k] * b, atol=1e-9)


def test_contributions_add_up_for_every_output(shared):
    parts = shared.contributions([0.1, 0.2])
    np.testing.assert_allclose(sum(part.share for part in parts), 1.0)
    np.testing.assert_allclose(sum(part.share * part.value for part in parts), shared.predict([[0.1, 0.2]])[0], atol=1e-12)


def test_shares_for_each_output_are_saved_and_checked(together, shared, tmp_path):
    for model, d in ((together, 5), (shared, 2)):
        Q = np.random.default_rng(3).uniform(-1, 1, (50, d))
        model.save(tmp_path / "model.stitch")
        again = load(tmp_path / "model.stitch")
        np.testing.assert_array_equal(again.predict(Q), model.predict(Q))
        np.testing.assert_array_equal(again.noises_, model.noises_)
        np.testing.assert_array_equal(again.model_.levels[0].regions.share, model.model_.levels[0].regions.share)
    header, arrays = describe(shared.model_)
    good = arrays["regions0/share"]
    for bad in (good * [1.0, 0.9], good[:, :1], np.abs(good) * [1.0, -1.0], good[:-1]):
        with pytest.raises(ValueError, match="share"):
            restore(type(describe(shared.model_))(header, arrays | {"regions0/share": bad}))


def test_the_library_refuses_shares_that_do_not_sum_to_one(shared):
    from stitchwork.native import available, make_evaluator

    if not available():
        pytest.skip("there is no compiled library")
    _, arrays = describe(shared.model_)
    for bad in ([1.0, 0.9], [1.0, -1.0]):
        with pytest.raises(RuntimeError, match="makes no sense"):
            make_evaluator(arrays | {"regions0/share": arrays["regions0/share"] * bad}, "wendland-c2", "gaussian,matern72")


def test_parts_keep_shares_for_each_output(shared):
    fitted = shared.model_
    regions = fitted.levels[0].regions
    whole = Part(fitted.points, np.arange(fitted.n_points), fitted.n_points, regions, len(regions.radii))
    half = len(regions.radii) // 4 * 2
    parts = [whole.restrict(rows) for rows in (np.arange(half), np.arange(half, len(regions.radii)))]
    np.testing.assert_array_equal(join_parts(parts).regions.share, regions.share)


def test_models_that_grow_keep_shares_for_each_output(shared):
    rng = np.random.default_rng(4)
    more = rng.uniform(-1, 1, (5, 2))
    shared.partial_fit(more, np.stack([np.sin(3 * more[:, 0]), more[:, 1] ** 3 - more[:, 0]], axis=1))
    regions = shared.model_.levels[0].regions
    np.testing.assert_array_equal(regions.share, np.tile(SHARES, (len(regions.radii) // 2, 1)))
    assert_same(shared, rng.uniform(-1, 1, (50, 2)))


def test_exports_have_shares_for_each_output(framework, shared):  # noqa: F811
    Q = np.random.default_rng(5).uniform(-1.2, 1.2, (30, 2))
    expected = shared.predict(Q), shared.gradient(Q), shared.hessian(Q)
    for found, ours in zip(framework.derivatives(shared, Q, 2), expected, strict=True):
        np.testing.assert_allclose(np.asarray(found), ours, rtol=0, atol=1e-8 * np.abs(ours).max())


def test_the_page_has_shares_for_each_output(open_page, ask_page, shared, tmp_path):
    from stitchwork.report import write_report
    from stitchwork.report._payload import contribution_rows, payload

    write_report(shared, tmp_path / "report.html")
    page = open_page((tmp_path / "report.html").as_uri())
    facts = payload(shared.model_, None, "", live=False)
    Q = np.random.default_rng(6).uniform(-1.2, 1.2, (40, 2))
    for k in range(2):
        found = ask_page(page, facts, Q, k)
        for part, ours in (
            ("value", shared.predict(Q)[:, k]),
            ("gradient", shared.gradient(Q)[:, k]),
            ("laplacian", np.trace(shared.hessian(Q)[:, k], axis1=1, axis2=2)),
        ):
            np.testing.assert_allclose(found[part], ours, rtol=1e-7, atol=1e-7 * np.abs(ours).max(), err_msg=part)
        np.testing.assert_allclose(found["coverage"], shared.coverage(Q), atol=1e-12)
        listed, expected = found["contributions"][0], contribution_rows(shared.model_, Q[0], k)
        np.testing.assert_allclose([one["share"] for one in listed], [one["share"] for one in expected], rtol=1e-9)
