"""Every lookup equals comparing each query with each ball."""

import numpy as np
import pytest

from stitchwork.model.lookup import Balls, _filtered_pairs


def brute(Q, centers, radii):
    with np.errstate(over="ignore"):
        distance = np.sqrt(((Q[:, None] - centers) ** 2).sum(-1))
    return {(q, r) for q, r in zip(*np.nonzero((distance < radii) | np.isinf(radii)), strict=True)}


def found(pairs):
    assert (np.diff(pairs.region) >= 0).all()
    result = set(zip(pairs.query.tolist(), pairs.region.tolist(), strict=True))
    assert len(result) == len(pairs.query)
    return result


CASES = {
    "radii over six decades": lambda rng, d: 10.0 ** rng.uniform(-4, 2, 300),
    "one radius": lambda rng, d: np.full(300, 0.3 * np.sqrt(d)),
    "an infinite ball": lambda rng, d: np.where(np.arange(300) == 7, np.inf, 0.2),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_batches_and_few_queries_equal_brute_force(case, d):
    rng = np.random.default_rng(d)
    centers, Q = rng.normal(size=(300, d)), rng.normal(size=(200, d))
    Q[:20] = centers[:20]
    radii = CASES[case](rng, d)
    expected = brute(Q, centers, radii)
    assert found(Balls(centers, radii).covering_pairs(Q)) == expected
    assert found(_filtered_pairs(Q, centers, radii)) == expected
    few = np.concatenate([Q[:8], Q[-8:]])
    assert found(Balls(centers, radii).covering_pairs(few)) == brute(few, centers, radii)


def test_balls_far_from_the_origin_keep_their_precision():
    rng = np.random.default_rng(0)
    centers = 1e8 + rng.uniform(size=(60, 2))
    Q, radii = 1e8 + rng.uniform(size=(50, 2)), np.full(60, 0.2)
    expected = brute(Q, centers, radii)
    assert expected
    assert found(_filtered_pairs(Q, centers, radii)) == expected
    assert found(Balls(centers, radii).covering_pairs(Q)) == expected


def test_an_infinite_ball_contains_a_query_whose_distance_overflows():
    Q = np.full((3, 2), 1e200)
    with np.errstate(over="ignore", invalid="ignore"):
        pairs = Balls(np.zeros((1, 2)), np.array([np.inf])).covering_pairs(Q)
    assert found(pairs) == {(0, 0), (1, 0), (2, 0)}
