"""Where regions will be asked, and what is left out to imitate it."""

from dataclasses import replace

import numpy as np
import pytest
from test_choice import scorer_of

from stitchwork.fitting.candidates import make_candidates
from stitchwork.fitting.cover import fills_space, greedy_cover
from stitchwork.fitting.expected import ask as ask_queries
from stitchwork.fitting.expected import expect_errors
from stitchwork.fitting.questions import draw_questions, join_questions
from stitchwork.fitting.scores import choose_left_out
from stitchwork.local.batch import make_batch
from stitchwork.local.points import Points
from stitchwork.local.radial import kernel_named, weight_named
from stitchwork.local.system import spectrum
from stitchwork.local.variance import Stack
from stitchwork.model.lookup import Balls

WEIGHT = weight_named("wendland-c2", 2)


def ask(X, h=60, **options):
    cover = greedy_cover(X, h, 0.8)
    return cover, draw_questions(X, cover, np.arange(len(cover)), (0.7, 1.25, 2.0), WEIGHT, 2, **options)


def left_out(X, cover, questions):
    points = Points(np.asfortranarray(X), np.zeros((len(X), 1)), np.ones(len(X)), np.arange(len(X)))
    return choose_left_out(make_batch(points, cover.members, rough=True), questions)


@pytest.fixture(scope="module")
def scattered():
    return np.random.default_rng(0).uniform(0, 10, (2000, 2))


def test_distances_are_those_from_the_query_to_the_nearest_member(scattered):
    cover, questions = ask(scattered)
    for region in (0, 17, len(cover) - 1):
        members = scattered[cover.members[region]]
        queries = members[questions.target[region]] + questions.shift[region]
        nearest = np.linalg.norm(queries[:, None] - members[None], axis=2).min(axis=1)
        np.testing.assert_allclose(questions.distance[region], nearest, atol=1e-12)
        outside = ((queries < scattered.min(axis=0)) | (queries > scattered.max(axis=0))).any(axis=1)
        assert (questions.share[region][outside] == 0.0).all()


def test_shares_are_those_of_the_stitch(scattered):
    cover, questions = ask(scattered)
    region = 11
    queries = scattered[cover.members[region]][questions.target[region]] + questions.shift[region]
    rho = np.linalg.norm(queries[:, None] - cover.centers[None], axis=2) / (0.7 * cover.radii)
    w = WEIGHT(np.minimum(rho, 1.0) ** 2)[0] * (rho < 1.0)
    answered = w.sum(axis=1) > 0.0
    inside = ((queries >= scattered.min(axis=0)) & (queries <= scattered.max(axis=0))).all(axis=1)
    expected = np.where(inside, w[:, region] / np.maximum(w.sum(axis=1), 1e-300), 0.0)
    np.testing.assert_allclose(questions.share[region][answered], expected[answered], atol=1e-12)


def test_regions_at_a_hole_answer_for_more_volume(scattered):
    holed = scattered[np.linalg.norm(scattered - 5.0, axis=1) > 2.0]
    cover, questions = ask(holed)
    radius = np.linalg.norm(cover.centers - 5.0, axis=1)
    inside = (radius > 3.2) & (np.abs(cover.centers - 5.0).max(axis=1) < 4.0)
    assert np.median(questions.volume[radius < 2.3]) > 1.5 * np.median(questions.volume[inside])


def test_nobody_is_asked_where_a_finer_level_answers(scattered):
    everywhere = Balls(np.array([[5.0, 5.0]]), np.array([100.0]))
    _, questions = ask(scattered, before=[everywhere])
    assert not questions.share.any()


def test_scattered_points_leave_out_few_and_holes_many(scattered):
    cover, questions = ask(scattered)
    plain = left_out(scattered, cover, questions)
    asked = questions.share > 0.0
    assert 2.0 < plain.size[asked].mean() < 8.0
    holed = scattered[np.linalg.norm(scattered - 5.0, axis=1) > 2.0]
    cover, questions = ask(holed)
    size = left_out(holed, cover, questions).size
    at_hole = np.linalg.norm(cover.centers - 5.0, axis=1) < 2.2
    weighed = [np.average(size[which], weights=questions.share[which]) for which in (at_hole, ~at_hole)]
    assert weighed[0] > 1.5 * weighed[1]
    assert size.max() <= 30  # half of a region


def test_beside_a_track_what_goes_on_along_it_is_left_out():
    """Tracks of points, ten times as dense along as apart: a query halfway between two has none within half of that distance."""
    t = np.arange(0.0, 10.0, 0.1)
    X = np.concatenate([np.stack([t, np.full_like(t, k)], axis=1) for k in range(10)])
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    cover, questions = ask(X)
    left = left_out(X, cover, questions)
    between = (questions.distance > 0.4) & (questions.share > 0.0)
    assert between.any()
    for region, question in np.argwhere(between)[:20]:
        members = X[cover.members[region]]
        out = members[left.order[region, question, : left.size[region, question]]]
        target = members[questions.target[region, question]]
        on_track = members[np.abs(members[:, 1] - target[1]) < 0.3]
        near = on_track[np.abs(on_track[:, 0] - target[0]) < 1.5 * questions.distance[region, question]]
        assert {tuple(x) for x in near} <= {tuple(x) for x in out}


def test_questions_of_parts_are_joined(scattered):
    _, questions = ask(scattered)
    joined = join_questions([questions.at(np.arange(5)), None, questions.at(np.arange(5, 9))])
    np.testing.assert_array_equal(joined.target, questions.target[:9])
    assert join_questions([None]) is None


def test_a_region_that_is_never_asked_is_judged_by_single_points(scattered):
    scorer = scorer_of(scattered[:400], np.sin(scattered[:400, 0]))
    regions = np.arange(len(scorer.cover))
    grid = make_candidates([kernel_named("gaussian", 2)], [1], [1.0], [1e-2, 1e-6])
    questions = draw_questions(scorer.points.X, scorer.cover, regions, (0.8, 2.0), WEIGHT, 2)
    silent = questions._replace(share=np.zeros_like(questions.share))
    single, anywhere = scorer._replace(questions=silent).score(regions, grid)
    np.testing.assert_array_equal(single, anywhere)
    single, anywhere = scorer._replace(questions=questions).score(regions, grid)
    assert (anywhere > single).mean() > 0.5  # between points it is harder


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "degree", "ridge"), [("gaussian", 0, 1e-6), ("matern52", 2, 1e-2), ("cubic", 1, 1e-8)])
def test_expected_errors_have_the_variance_of_the_block_system(scattered, name, degree, ridge, weighted):
    """The oracle solves the block system of every query; see `local.variance`."""
    cover, questions = ask(scattered)
    y = np.sin(scattered[:, :1])
    v = np.random.default_rng(1).uniform(0.5, 2.0, len(scattered)) if weighted else np.ones(len(scattered))
    points = Points(np.asfortranarray(scattered), y, v, np.arange(len(scattered)))
    regions, kernel, ridges = np.arange(4), kernel_named(name, 2), np.array([ridge, 10.0 * ridge])
    some = questions.at(regions)
    batch = make_batch(points, cover.members[regions], rough=True)
    system = batch.system(kernel, np.full(4, 1.5), degree, 1e-12)
    asked = ask_queries(batch, kernel, np.full(4, 1.5), degree, system, some, None)
    found = asked.variance(spectrum(system[0], system[1].U), ridges)
    settings = make_candidates([kernel], [degree], [1.5], ridges).settings(np.zeros(4, dtype=int), 1e-12)
    rows = np.arange(4)[:, None]
    queries = np.moveaxis(scattered[cover.members[regions]][rows, some.target] + some.shift, 2, 0)
    expected, _ = Stack(points, cover.members[regions], settings).variance(queries, 0)
    np.testing.assert_allclose(found[..., 0] - ridge, expected, rtol=1e-6, atol=1e-9)


def test_expected_errors_are_those_of_the_process_that_made_the_data(scattered):
    """Samples of a Gaussian process: with its own kernel, expected errors are true on average, also far from the points."""
    rng = np.random.default_rng(2)
    cover, questions = ask(scattered)
    regions, kernel = np.arange(30), kernel_named("matern52", 2)
    some, ratio = questions.at(regions), []
    batch = make_batch(
        Points(np.asfortranarray(scattered), scattered[:, :1], np.ones(2000), np.arange(2000)), cover.members[regions], True
    )
    rows = np.arange(30)[:, None]
    everything = np.concatenate(
        [batch.Z, batch.Z[:, rows, some.target] + np.moveaxis(some.shift, 2, 0) / batch.scale[:, None]], axis=2
    )
    h = cover.members.shape[1]
    for _ in range(20):
        draw = np.empty((30, everything.shape[2], 1))
        for b in range(30):
            far = ((everything[:, b, :, None] - everything[:, b, None, :]) ** 2).sum(axis=0)
            K = kernel(far / batch.sigma(kernel, np.full(30, 1.0))[b] ** 2)[0] + 1e-9 * np.eye(len(far))
            draw[b, :, 0] = np.linalg.cholesky(K) @ rng.normal(size=len(far))
        drawn = replace(batch, y=draw[:, :h])
        K, R, factor = drawn.system(kernel, np.ones(30), 0, 1e-12)
        asked = ask_queries(drawn, kernel, np.ones(30), 0, (K, R, factor), some, None)
        S = spectrum(K.copy(), R.U)
        residuals, alpha = drawn.leave_out(S, np.array([1e-9]))
        expected = expect_errors(drawn, asked.variance(S, np.array([1e-9])), residuals, alpha, some.share)[:, 0]
        truth = []
        for b in range(30):
            far = ((everything[:, b, h:, None] - everything[:, b, None, :h]) ** 2).sum(axis=0)
            kq = kernel(far / batch.sigma(kernel, np.ones(30))[b] ** 2)[0]
            one = np.block([[K[b] + 1e-9 * np.eye(h), np.ones((h, 1))], [np.ones((1, h)), np.zeros((1, 1))]])
            solved = np.linalg.solve(one, np.concatenate([draw[b, :h], [[0.0]]]))
            e = draw[b, h:, 0] - (np.concatenate([kq, np.ones((len(kq), 1))], axis=1) @ solved)[:, 0]
            truth.append((some.share[b] * e**2).sum() / max(some.share[b].sum(), 1e-300))
        ratio.append((np.mean(truth), expected.mean()))
    true, said = np.mean(ratio, axis=0)
    assert 0.8 < said / true < 1.25


def test_points_on_a_curved_sheet_do_not_fill_their_space(scattered):
    u, v = scattered.T
    t = np.arange(0.0, 50.0, 0.01)
    lines = np.concatenate([np.stack([t, np.full_like(t, k)], axis=1) for k in range(50)])
    assert fills_space(scattered, 100)
    assert fills_space(np.stack([u, v, 3.0 * u - v], axis=1), 100)  # a plane in space is flat
    assert fills_space(lines, 100)  # a hundred times as dense along as apart
    assert fills_space(np.random.default_rng(0).random((2000, 3)), 100)
    assert not fills_space(np.stack([u, v, np.sin(u) * np.cos(v)], axis=1), 100)
    assert not fills_space(np.stack([np.cos(u), np.sin(u)], axis=1), 100)
