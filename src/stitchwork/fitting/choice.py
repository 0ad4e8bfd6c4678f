"""The choice: settings of every region, from the scores of some.

Regions do not choose alone: log scores are averaged over neighbouring regions, since a hundred points are too few to tell close
candidates apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.fit import region_errors
from ..local.points import Points
from ..local.settings import Settings
from .candidates import Candidates
from .cover import Cover
from .defaults import (
    CLEARLY,
    JUDGES,
    LEAST_TRUST,
    NEGLIGIBLE,
    NOTICEABLE,
    POOLED_REGIONS,
    RESPONSE_RIDGE,
    RIDGE_STEPS,
    SCORED_REGIONS,
    SCORED_SHARE,
    UNCERTAIN_SLOPE,
)
from .holes import calm_holes
from .plan import Plan
from .points import random_sample
from .scores import Scorer, pool
from .search import search


@dataclass(frozen=True)
class Choice:
    """What all regions share: the candidates that are left, the ``common`` one, and the errors (shapes, ridges) that decided.

    ``local`` says whether regions may leave the common choice.
    """

    candidates: Candidates
    common: int
    errors: Array | None
    local: bool


@dataclass(frozen=True)
class Scores:
    """Leave-one-out scores (r, shapes, ridges) of the regions ``scored``."""

    scored: Index
    table: Array


def make_scorer(points: Points, cover: Cover, plan: Plan) -> Scorer:
    """Leave-one-out scores of a cover, with outputs of any size made to count alike."""
    even = points._replace(y=points.y / plan.deviation)
    return Scorer(even, cover, plan.tolerance, plan.weight, plan.reach, plan.threads)


def score_some(scorer: Scorer, candidates: Candidates) -> Scores:
    """Score the regions that choose for themselves and their neighbours."""
    m = len(scorer.cover)
    scored = random_sample(m, max(SCORED_REGIONS, int(m * SCORED_SHARE)))
    return Scores(scored, scorer.score(scored, candidates))


def settle_regions(points: Points, cover: Cover, choice: Choice, scores: Scores | None, plan: Plan) -> Settings:
    """Settings of every region: the common candidate, or the choice of its neighbourhood where there are ``scores``."""
    if scores is None:
        settings = choice.candidates.settings(np.full(len(cover), choice.common), plan.tolerance)
    else:
        scorer = make_scorer(points, cover, plan)
        centers = points.X[cover.center]
        chosen, error = choose_near(scores.table, centers[scores.scored], centers, choice.common)
        settings = trust_rank(scorer, choice.candidates.settings(chosen, plan.tolerance), np.exp(0.5 * error))
        settings = calm_holes(scorer, settings, plan.candidates.ridges) if plan.any_kernel else settings
    return follow_response(points, cover, settings) if plan.response_ridge else settings


def settle_sample(points: Points, cover: Cover, choice: Choice, plan: Plan) -> Settings:
    """Settings for a thinner sample: it chooses for itself, among what the regions took and where their search began."""
    if not choice.local:
        return settle_regions(points, cover, choice, None, plan)
    scorer = make_scorer(points, cover, plan)
    candidates = search(scorer, choice.candidates.add_shapes(plan.candidates.shapes), ())
    scores = score_some(scorer, candidates)
    common = int(pool(scores.table).argmin())
    return settle_regions(points, cover, replace(choice, candidates=candidates, common=common), scores, plan)


def choose_near(scores: Array, centers: Array, at: Array, common: int) -> tuple[Index, Array]:
    """Index into shapes × ridges for regions at ``at`` (m, d), from scores (r, shapes, ridges) of regions at ``centers`` (r, d),
    and the log squared error to expect.

    The ``common`` candidate is the choice unless the neighbourhood speaks clearly for another: with D the difference of a
    candidate's score and that one's over the nearest regions, a region takes the least mean(D) + z se(D), among ridges not too
    far from the common one: leave-one-out hardly sees what a ridge far too small does between points that nearly coincide.
    """
    table = scores.reshape(len(scores), -1)
    D = table - table[:, [common]]
    steps = np.abs(np.arange(D.shape[1]) % scores.shape[2] - common % scores.shape[2])
    k = min(POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(at, k=np.arange(1, k + 1))
    mean, square = np.zeros((len(at), D.shape[1])), np.zeros((len(at), D.shape[1]))
    for column in nearest.T:
        mean += D[column]
        square += D[column] ** 2
    mean /= k
    error = np.sqrt(np.maximum(square / k - mean * mean, 0.0) / max(k - 1, 1))
    pessimistic = mean + CLEARLY * error
    pessimistic[:, steps > RIDGE_STEPS] = np.inf
    chosen = pessimistic.argmin(axis=1)
    return chosen, table[nearest, common].mean(axis=1) + mean[np.arange(len(at)), chosen]


def trust_rank(scorer: Scorer, settings: Settings, error: Array) -> Settings:
    """Settings whose tolerances of the rank follow the ``error`` (m,) that the regions expect.

    An error e in the responses moves the polynomial by some e / s along a direction of singular value s: by more than the spread of
    the responses, where the points hardly extend along it, as across a ship's track. Such directions are left out, unless
    leave-one-out shows a loss, and but for kernels that are positive definite only beside all linear functions: without one of them
    their system may be singular.
    """
    spread, members = scorer.spread(), scorer.cover.members
    share = np.divide(error, spread, out=np.zeros_like(error), where=spread > 0.0)
    tolerance = np.clip(UNCERTAIN_SLOPE * share / np.sqrt(members.shape[1]), scorer.tolerance, LEAST_TRUST)
    bound = np.array([kernel.least_degree >= 1 for kernel in settings.kernels])[settings.kernel]
    trusting = replace(settings, tolerance=np.where(bound, scorer.tolerance, tolerance))
    touched = np.flatnonzero(trusting.tolerance > settings.tolerance)
    if not len(touched):
        return settings
    judges = touched[random_sample(len(touched), JUDGES)]
    before, after = (
        pool(np.log(region_errors(scorer.points, members[judges], choice.at(judges), scorer.threads) + NEGLIGIBLE**2))
        for choice in (settings, trusting)
    )
    return trusting if after < before + NOTICEABLE else settings


def follow_response(points: Points, cover: Cover, settings: Settings) -> Settings:
    """The paper's fixed ridge: 0.01 % of the mean response in the region."""
    response = np.abs(points.y[cover.members]).mean(axis=(1, 2))
    return replace(settings, ridge=np.maximum(RESPONSE_RIDGE * response, RESPONSE_RIDGE * np.finfo(float).eps))
