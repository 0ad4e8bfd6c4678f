"""The greedy cover equals the point-by-point scan of the paper."""

import numpy as np
import pytest

from stitchwork.fitting.cover import greedy_cover


def scan(X, h, overlap, order):
    """The paper's scan: the first point that no ball covers becomes a centre."""
    covered, centers = np.zeros(len(X), dtype=bool), []
    for i in order:
        if covered[i]:
            continue
        distance = np.linalg.norm(X - X[i], axis=1)
        radius = np.sort(distance)[min(h, len(X)) - 1]
        covered |= distance <= radius / (1 + overlap)
        centers.append(i)
    return centers


@pytest.mark.parametrize("overlap", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("sorted_rows", [False, True])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_batches_give_the_same_cover_as_the_scan(d, sorted_rows, overlap):
    X = np.random.default_rng(d).normal(size=(700, d))
    X = X[np.argsort(X[:, 0])] if sorted_rows else X
    order = np.random.default_rng(1).permutation(700)
    for visited in (None, order):
        cover = greedy_cover(X, 20, overlap, visited)
        assert list(cover.members[:, 0]) == scan(X, 20, overlap, range(700) if visited is None else visited)


def test_each_ball_holds_its_h_nearest_points_and_all_points_are_covered():
    X = np.random.default_rng(0).uniform(size=(500, 3))
    cover = greedy_cover(X, 30)
    distance = np.linalg.norm(X[cover.members] - cover.centers[:, None], axis=2)
    assert cover.members.shape[1] == 30
    np.testing.assert_allclose(distance.max(axis=1), cover.radii)
    assert all(len(set(row)) == 30 for row in cover.members)
    inside = np.linalg.norm(X[:, None] - cover.centers, axis=2) <= cover.radii * (1 + 1e-12)
    assert inside.any(axis=1).all()
    assert (inside.sum(axis=0) == 30).all()


def test_overlap_adds_regions():
    X = np.random.default_rng(0).uniform(size=(2000, 2))
    sizes = [len(greedy_cover(X, 50, overlap)) for overlap in (0.0, 0.25, 0.5)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]


@pytest.mark.parametrize("n", [1, 5])
def test_fewer_points_than_a_region_make_one_region(n):
    cover = greedy_cover(np.random.default_rng(0).uniform(size=(n, 2)), 10)
    assert cover.members.shape == (1, n)
    assert cover.radii[0] > 0
