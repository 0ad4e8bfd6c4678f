"""Search, choice and rules, each by itself: against brute force, or by what they promise."""

import numpy as np
import pytest
from conftest import wave

from stitchwork import StitchedRegressor
from stitchwork._parallel import ALONE
from stitchwork.fitting import defaults
from stitchwork.fitting.background import thin_samples
from stitchwork.fitting.candidates import Candidates, Shape, make_candidates, read_candidates, read_kernels
from stitchwork.fitting.choice import choose_near
from stitchwork.fitting.cover import greedy_cover, measure_overlap
from stitchwork.fitting.defaults import CHOICE_MARGIN, POOLED_REGIONS
from stitchwork.fitting.points import merge_coincident, random_sample
from stitchwork.fitting.scores import Scorer, pool, pool_sums, sum_scores
from stitchwork.fitting.search import narrow, sample_regions, search
from stitchwork.local.fit import fit_blocks
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named, weight_named
from stitchwork.model.stitch import Level, Regions, stitch


def scorer_of(X, y, h=40, overlap=0.5):
    points = Points(np.asfortranarray(X), y[:, None] / y.std(), np.ones(len(X)), np.arange(len(X)))
    return Scorer(points, greedy_cover(X, h, overlap), 1e-10, weight_named("wendland-c2", 2), 0.8, ALONE)


@pytest.mark.parametrize("kernel", ["gaussian", "cubic", "matern32"])
def test_leave_one_out_of_the_stitched_prediction_is_refitting_without_each_point(kernel):
    """Several regions: each that holds the point is fitted again without it, at its own settings and scales, and stitched."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 2))
    y = wave(X) + 0.1 * rng.normal(size=120)
    settings = {"region_size": 25, "kernel": kernel, "degree": 1, "ridge": 1e-2, "selection": None, "metric": "euclidean"}
    model = StitchedRegressor(**settings, overlap=0.5).fit(X, y).model_
    level, points = model.levels[0], model.points
    residuals = model.left_out().residual
    balls, models = level.balls, level.models
    for i in range(0, 120, 7):
        value = weight = 0.0
        for j in np.flatnonzero((models.members == i).any(axis=1)):
            rest = models.members[j][models.members[j] != i]
            rho2 = np.sum((points.X[i] - balls.centers[j]) ** 2) / balls.radii[j] ** 2
            w = max(float(model.weight(np.array([rho2]))[0][0]), np.finfo(float).eps)
            weight += w
            value += w * value_without(points, rest, models, j, points.X[i])
        assert residuals[i, 0] == pytest.approx(points.y[i, 0] - value / weight, rel=1e-6, abs=1e-9)


def value_without(points, rest, models, j, x):
    """The block system of region j on ``rest``, solved in full, at ``x``; coordinates, σ and the spline's factor stay."""
    kernel = models.settings.kernels[models.settings.kernel[j]]
    members, unit = models.members[j], models.scale[j] * models.sigma[j]
    Z = points.X[members] / unit

    def K(a, b):
        return kernel(((a[:, None] - b[None]) ** 2).sum(-1))[0]

    P = np.hstack([np.ones((len(members), 1)), Z])
    factor = 1.0
    if kernel.least_degree >= 0:  # unit mean eigenvalue beside the polynomial, on all of the region's points
        N = np.linalg.svd(P)[0][:, 3:]
        factor = N.shape[1] / np.trace(N.T @ K(Z, Z) @ N)
    z, q = points.X[rest] / unit, (x / unit)[None]
    P = np.hstack([np.ones((len(rest), 1)), z])
    block = np.block([[factor * K(z, z) + 1e-2 * np.eye(len(rest)), P], [P.T, np.zeros((3, 3))]])
    solution = np.linalg.solve(block, np.r_[points.y[rest, 0], np.zeros(3)])
    return (factor * K(q, z) @ solution[: len(rest)] + np.hstack([[1.0], q[0]]) @ solution[len(rest) :])[0]


def test_the_search_finds_the_kernel_that_made_the_data():
    """A Gaussian process with a Matérn kernel, sampled: the search keeps a bandwidth near the true one, and a rough kernel."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (500, 2))
    distance2 = ((X[:, None] - X[None]) ** 2).sum(-1)
    (K,) = kernel_named("matern32", 2)(distance2 / 0.3**2)
    y = np.linalg.cholesky(K + 1e-10 * np.eye(500)) @ rng.normal(size=500)
    parameters = {"selection": "loo", "local_model": "krr-poly", "kernel": ["gaussian", "matern32"], "degree": 0}
    candidates, moves = read_candidates({**parameters, "bandwidth": "auto", "ridge": "auto"}, 40, 2, 2, 1.0)
    scorer = scorer_of(X, y)
    left = search(scorer, candidates, moves)
    assert 1 <= len(left.shapes) <= defaults.KEPT_SHAPES
    assert left.kernels[left.shapes[0].kernel].name == "matern32"
    # What is left is as good as the best of all that could have been tried on these regions.
    sample = np.arange(len(scorer.cover))
    widths = [Shape(1, 0, 2.0 ** (k / 2)) for k in range(-4, 9)]
    everything = scorer.score(sample, Candidates(candidates.kernels, tuple(widths), candidates.ridges))
    mine = scorer.score(sample, left)
    volume = scorer.volume(sample)
    assert pool(mine, volume).min() < pool(everything, volume).min() + 0.05


def test_narrowing_keeps_the_best_and_what_helps_elsewhere():
    shapes = tuple(Shape(0, degree, 1.0) for degree in range(4))
    candidates = Candidates((kernel_named("gaussian", 2),), shapes, np.ones(1))
    centers = np.linspace(0, 1, 40)[:, None]
    scores = np.zeros((40, 4, 1))
    scores[:, 1] = -1.0  # best everywhere …
    scores[:12, 2] = -3.0  # … but in a corner
    scores[:, 3] = -1.0 - 0.1 * defaults.LEAST_GAIN  # a little better than the second
    kept = [shape.degree for shape in narrow(candidates, scores[None], np.ones((1, 40)), centers, keep=3).shapes]
    assert kept == [3, 2]


def test_regions_are_drawn_by_the_volume_that_they_answer_for():
    volume = np.ones(1000)
    volume[7], volume[500:] = 300.0, 0.0
    chosen, counts = sample_regions(volume, 40)
    assert 7 in chosen  # surely: it is more than an even part
    assert (chosen < 500).all()
    step = volume.sum() / 40
    assert counts[chosen == 7] == pytest.approx(300.0 / step)
    assert (counts[chosen != 7] == 1.0).all()
    assert counts.sum() == pytest.approx(40, rel=0.1)
    few, alike = sample_regions(np.zeros(5), 40)
    assert (few == np.arange(5)).all()
    assert (alike == 1.0).all()


def test_pooling_in_parts_is_pooling_at_once():
    rng = np.random.default_rng(0)
    scores, volume = rng.normal(size=(2, 50, 3, 4)), rng.uniform(size=(2, 50))
    parts = [np.s_[:, :7], np.s_[:, 7:8], np.s_[:, 8:]]
    sums = [(sum_scores(scores[part], volume[part]), volume[part].sum(axis=1)) for part in parts]
    np.testing.assert_allclose(pool_sums(sums), pool(scores, volume))


def test_a_pooled_score_is_the_mean_of_the_logs_of_two_mean_squared_errors():
    rng = np.random.default_rng(0)
    scores, volume = rng.normal(size=(2, 50, 3)), rng.uniform(size=(2, 50))
    means = [np.log(np.average(np.exp(one), axis=0, weights=w)) for one, w in zip(scores, volume, strict=True)]
    np.testing.assert_allclose(pool(scores, volume), np.mean(means, axis=0))


def test_candidates_make_sense():
    kernels = [kernel_named(name, 2) for name in ("gaussian", "cubic", "linear")]
    made = make_candidates(kernels, (-1, 2), (0.5, 1.0), (1e-3, 1e-1, 1.0))
    assert set(made.shapes) == {
        *(Shape(0, degree, b) for degree in (-1, 2) for b in (0.5, 1.0)),
        *(Shape(1, degree, 1.0) for degree in (1, 2)),
        *(Shape(2, degree, 1.0) for degree in (0, 2)),
    }
    assert len(made) == 8 * 3
    settings = made.settings(np.arange(len(made)), 1e-10)
    assert settings.ridge.tolist() == [1e-3, 1e-1, 1.0] * 8
    wider = made.vary_bandwidth(2.0, narrow=True)
    assert {shape.bandwidth for shape in wider.shapes if shape.kernel == 0} == {0.25, 0.5, 1.0, 2.0}
    assert {shape.bandwidth for shape in wider.shapes if shape.kernel == 1} == {1.0}
    assert {shape.degree for shape in made.vary_degree((0, 3)).shapes if shape.kernel == 1} == {1, 2, 3}


def test_kernels_and_degrees_take_sequences(plane):
    X, y = plane
    one = StitchedRegressor(kernel="matern52", degree=1, metric="euclidean").fit(X, y)
    grid = StitchedRegressor(kernel=["exponential", "matern52"], degree=(0, 1), metric="euclidean").fit(X, y)
    assert set(grid.kernels_) <= {"exponential", "matern52"}
    assert set(grid.degrees_) <= {0, 1}
    assert grid.loo_error_ < 1.5 * one.loo_error_
    assert read_kernels(["cubic", "cubic", "linear"], "krr-poly", 50, 2, 2) == (kernel_named("cubic", 2), kernel_named("linear", 2))


def test_degree_minus_one_is_no_polynomial(plane, fixed):
    X, y = plane
    Q = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    model = fixed(degree=-1).fit(X, y)
    assert set(model.degrees_) == {-1}
    inside = model.coverage(Q) == 1.0
    np.testing.assert_array_equal(model.predict(Q)[inside], fixed(local_model="krr").fit(X, y).predict(Q)[inside])


def test_sizes_of_regions_follow_their_rule():
    assert [defaults.region_size(n, 2) for n in (10, 10**4, 10**7)] == [100] * 3
    assert [defaults.region_size(n, 5) for n in (100, 1500, 2500, 10**4, 4 * 10**4, 10**7)] == [100, 1500, 400, 400, 316, 100]
    assert defaults.whole_degrees(50, 2, ()) == (0, 1, 2)
    assert defaults.whole_degrees(50, 8, ()) == (0, 1)
    assert defaults.whole_degrees(50, 8, (2,)) == (2,)
    assert defaults.degrees(100, 2) == (-1, 0, 1, 2)
    assert defaults.degrees(100, 20) == (-1, 0, 1)
    assert defaults.degrees(2, 3) == (-1, 0)
    for h, d in ((100, 2), (100, 8), (40, 3)):
        from math import comb

        assert all(comb(k + d, d) <= h / 3 for k in defaults.degrees(h, d))


@pytest.mark.parametrize(("d", "low", "high"), [(1, 1.0, 1.0), (2, 0.85, 1.0), (3, 0.5, 0.7), (8, 0.1, 0.3)])
def test_overlap_makes_about_four_times_the_regions(d, low, high):
    X = np.random.default_rng(0).uniform(size=(6000, d))
    overlap = measure_overlap(X, 60)
    assert low <= overlap <= high
    if d <= 3:
        ratio = len(greedy_cover(X, 60, overlap)) / len(greedy_cover(X, 60))
        assert (1.5 if d == 1 else 2.5) < ratio < 5.5
    assert measure_overlap(X[:60], 60) == measure_overlap(X, 7) == 0.0


def test_regions_of_many_features_do_not_overlap():
    """A sheet of two dimensions: in 100 columns it has four times the regions of the paper's cover, in 101 as many as this."""
    plane = np.random.default_rng(0).uniform(size=(1000, 2))
    X = plane @ np.random.default_rng(1).normal(size=(2, 101))
    assert measure_overlap(X, 50) == 0.0
    assert measure_overlap(X[:, :100], 50) > 0.8
    wide = len(greedy_cover(X, 50, measure_overlap(X, 50)))
    assert 2.5 * wide < len(greedy_cover(X[:, :100], 50, measure_overlap(X[:, :100], 50)))


def test_thinned_samples_are_nested_even_and_end_with_one_region():
    n, h = 10_000, 50
    y = np.random.default_rng(0).normal(size=(n, 2))
    samples = thin_samples(y, h)
    assert [len(sample) for sample in samples] == [2500, 625, 156, 50]
    for before, sample in zip([np.arange(n), *samples], samples, strict=False):
        assert set(sample) <= set(before)
        assert (np.diff(sample) > 0).all()
        gaps = np.diff(np.flatnonzero(np.isin(before, sample)))
        assert gaps.max() <= 2 * -(-len(before) // len(sample))
    assert np.abs(y[samples[-1]]).mean() < 0.5 * np.abs(y).mean()  # the typical ones
    assert thin_samples(y[:50], 50) == []


def test_coincident_points_become_one():
    X = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [5.0, 5.0], [2.0, 3.0]])
    y, v = np.array([[1.0], [2.0], [4.0], [9.0], [5.0]]), np.array([1.0, 1.0, 2.0, 0.0, 3.0])
    points = merge_coincident(Points(X, y, v, np.arange(5)))
    np.testing.assert_array_equal(points.X, [[0.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(points.y[:, 0], [3.0, 17 / 4])
    np.testing.assert_array_equal(points.v, [3.0, 4.0])
    np.testing.assert_array_equal(points.row, [0, 1])
    np.testing.assert_array_equal(points.repeats.often, [2.0, 2.0])
    np.testing.assert_allclose(points.repeats.spread[:, 0], [4.0 + 2.0, (2 - 17 / 4) ** 2 + 3 * (5 - 17 / 4) ** 2])
    assert random_sample(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert len(set(random_sample(100, 10))) == 10


def test_a_cover_has_its_centre_first_even_where_distances_underflow():
    X = np.concatenate([np.arange(6)[:, None] * 1e-200, [[1.0]]])
    cover = greedy_cover(X, 3)
    assert all(len(set(members)) == 3 for members in cover.members)
    inside = {int(i) for members in cover.members for i in members}
    assert inside == set(range(7))
    assert len(set(cover.members[:, 0])) == len(cover)


def test_levels_of_the_same_regions_share_them(plane, fixed):
    X, y = plane
    model = fixed().fit(X, y).model_
    assert model.levels[0].regions is model.levels[1].regions
    assert model.levels[0].regions is model.levels[2].regions
    assert [level.reach for level in model.levels[1:3]] == [defaults.GAP_REACH, defaults.HOLE_REACH]
    points, members = model.points, model.levels[0].models.members
    again = fit_blocks(points, members, model.settings)
    level = Level(Regions(model.levels[0].regions.centers, model.levels[0].regions.radii, again), model.levels[0].support)
    U = points.X[:20]
    a, b = (stitch([first, *model.levels[1:]], U, 0, model.weight, model.w0).value for first in (level, model.levels[0]))
    np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(7)
    X = rng.uniform(-3, 3, (400, 2))
    return X, wave(X) + 0.1 * rng.normal(size=400), rng.uniform(-2.8, 2.8, (200, 2))


@pytest.fixture(scope="module")
def expected(noisy):
    X, y, Q = noisy
    return StitchedRegressor().fit(X, y).predict(Q)


@pytest.mark.parametrize("factor", [2.0**-40, 1024.0, -8.0])
def test_the_unit_of_responses_does_not_matter(noisy, expected, factor):
    X, y, Q = noisy
    np.testing.assert_allclose(StitchedRegressor().fit(X, factor * y).predict(Q) / factor, expected, atol=1e-9)


@pytest.mark.parametrize("factor", [2.0**-30, 4096.0])
def test_the_unit_of_features_does_not_matter(noisy, expected, factor):
    X, y, Q = noisy
    np.testing.assert_allclose(StitchedRegressor().fit(factor * X, y).predict(factor * Q), expected, atol=1e-8)


def test_the_unit_of_sample_weights_does_not_matter(noisy):
    X, y, Q = noisy
    v = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    expected = StitchedRegressor().fit(X, y, v).predict(Q)
    np.testing.assert_allclose(StitchedRegressor().fit(X, y, 1000.0 * v).predict(Q), expected, atol=1e-6)


def test_the_order_of_rows_does_not_matter_with_one_region(noisy):
    X, y, Q = noisy[0][:90], noisy[1][:90], noisy[2]
    order = np.random.default_rng(0).permutation(90)
    a, b = (StitchedRegressor().fit(X[rows], y[rows]) for rows in (np.arange(90), order))
    assert a.n_regions_ == b.n_regions_ == 1
    np.testing.assert_array_equal(a.kernels_, b.kernels_)
    np.testing.assert_allclose(a.predict(Q), b.predict(Q), atol=1e-8)


def test_the_order_of_rows_hardly_matters_with_many(noisy, expected):
    X, y, Q = noisy
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = StitchedRegressor().fit(X[order], y[order]).predict(Q)
    assert np.sqrt(np.mean((shuffled - expected) ** 2)) < 0.03  # noise of 0.1, of which a third is left


def test_a_neighbourhood_is_judged_by_the_mean_of_its_errors_and_then_by_logs():
    """The formulas of `choose_near`, region by region, in plain Python."""
    rng = np.random.default_rng(0)
    scores, centers, common = rng.normal(size=(60, 3, 4), scale=2.0), rng.uniform(size=(60, 2)), 5
    chosen = []
    for center in centers:
        near = scores[np.argsort(np.linalg.norm(centers - center, axis=1))[:POOLED_REGIONS]]
        by_mean, by_log = {}, {}
        for shape, ridge in np.ndindex(3, 4):
            e, c = np.exp(near[:, shape, ridge] / 2), np.exp(near[:, 1, 1] / 2)
            error = np.std(e / e.mean() - c / c.mean()) / np.sqrt(POOLED_REGIONS - 1)
            by_mean[4 * shape + ridge] = np.log(e.mean() / c.mean()) + CHOICE_MARGIN * error
            D = near[:, shape, ridge] - near[:, 1, 1]
            by_log[4 * shape + ridge] = D.mean() + CHOICE_MARGIN * D.std() / np.sqrt(POOLED_REGIONS - 1)
        first = min(by_mean, key=by_mean.get)
        chosen.append(first if first != common else min(by_log, key=by_log.get))
    assert len(set(chosen)) > 3
    np.testing.assert_array_equal(choose_near(scores, centers, centers, common), chosen)


def test_one_region_that_the_common_choice_fails_decides_for_its_neighbours():
    centers = np.linspace(0.0, 1.0, 60)[:, None]
    scores = np.zeros((60, 2, 1))
    scores[:, 1] = 0.5  # the second shape is a little worse everywhere,
    scores[30] = [[12.0], [0.5]]  # but in one region the first fails
    chosen = choose_near(scores, centers, centers, common=0)
    assert chosen[30] == 1
    np.testing.assert_array_equal(chosen[[0, 10, 50, 59]], 0)


def test_a_field_can_always_choose_a_spline_without_powers():
    d = 2
    kernels = tuple(kernel_named(name, d) for name in ("gaussian", "quintic", "cubic"))
    candidates = Candidates(kernels, (Shape(0, 3, 1.0),), np.array([1e-6]))
    assert candidates.add_spline().shapes == (Shape(0, 3, 1.0), Shape(2, 1, 1.0))
    alone = Candidates(kernels[:1], (Shape(0, 3, 1.0),), np.array([1e-6]))
    assert alone.add_spline() == alone
