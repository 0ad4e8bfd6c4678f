"""Choose the hyperparameters of every region from the scores of some regions.

Errors are averaged over neighbouring regions, since a hundred points are too few to tell close candidates apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.batch import batch_size
from ..local.points import Points
from ..local.settings import Settings
from ..local.variance import Stack
from ..model.lookup import Balls
from .candidates import Candidates
from .cover import Cover
from .defaults import (
    CHOICE_MARGIN,
    HOLE_REACH,
    JUDGES,
    LEAST_JUDGES,
    LEAST_SCREENED,
    MOST_ASKED,
    MOST_SCORED,
    POOLED_REGIONS,
    REGION_SIZE,
    RESPONSE_RIDGE,
    SCORED_REGIONS,
    SCORED_SHARE,
    SCREENED_POINTS,
    WHOLE_SHARE,
)
from .plan import Plan
from .points import random_sample
from .questions import Questions, draw_questions
from .scores import Scorer, pool
from .search import sample_regions, search

_MOST_LOG = 100.0  # of a squared error: no candidate that bad is chosen, and sums of squares stay finite


@dataclass(frozen=True)
class Family:
    """Candidates from which every region takes one, ``common`` unless its neighbourhood differs; the ``share`` of the family in
    the average, a number or one for each output (t,); and a ``factor`` for the ridges."""

    candidates: Candidates
    common: int
    share: float | Array = 1.0
    factor: float = 1.0


@dataclass(frozen=True)
class Choice:
    """The common choice: the families that are averaged, and the errors (shapes, ridges) that decided it.

    ``local`` says whether regions may deviate from the common choice.
    """

    families: tuple[Family, ...]
    errors: Array | None
    local: bool


def choose_one(candidates: Candidates, common: int, errors: Array | None = None) -> Choice:
    """One candidate for all regions."""
    return Choice((Family(candidates, common),), errors, local=False)


@dataclass(frozen=True)
class Scores:
    """Scores (k, r, shapes, ridges) of the regions ``scored``, for every family, and the ``volume`` (k, r) that each counts for."""

    scored: Index
    tables: tuple[Array, ...]
    volume: Array

    def keep(self, families: Sequence[int]) -> Scores:
        """Those of some families."""
        return Scores(self.scored, tuple(self.tables[k] for k in families), self.volume)


def make_scorer(points: Points, cover: Cover, plan: Plan, questions: Questions | None = None) -> Scorer:
    """The scorer of the regions of a cover, with outputs scaled so that they count alike."""
    even = points.in_units(plan.deviation)
    return Scorer(even, cover, plan.tolerance, plan.weight, plan.reach, plan.threads, plan.alone, questions)


def pick_regions(
    points: Points, cover: Cover, size: int, plan: Plan, before: Sequence[Balls] = (), enough: int = 0
) -> tuple[Index, Cover, Questions | None]:
    """Pick about ``size`` regions of a cover to be scored: their indices, a cover of the points that are used, and their questions.

    Of a large region, a part of the points is used, or several parts until there are ``enough``.
    """
    some = random_sample(len(cover), MOST_ASKED)
    if not plan.field or plan.alone:
        chosen = some[random_sample(len(some), size)]
        parts = look_at_parts(cover.at(chosen), enough, plan)
        return np.repeat(chosen, len(parts) // len(chosen)), parts, None
    levels = plan.reaches if not before else (HOLE_REACH,)
    thin = cover.thin(plan.searched)
    volume = draw_questions(points.X, thin, some, levels, plan.weight, plan.features, before).volume
    chosen, counts = sample_regions(volume, size)
    chosen = some[chosen]
    parts = look_at_parts(cover.at(chosen), enough, plan)
    each = len(parts) // len(chosen)
    asked = draw_questions(points.X, thin, chosen, levels, plan.weight, plan.features, before)
    if each > 1:  # parts of one region differ in their points
        asked = draw_questions(points.X, parts, np.arange(len(parts)), levels, plan.weight, plan.features, before)
    return np.repeat(chosen, each), parts, asked._replace(volume=np.repeat(counts, each))


def score_some(points: Points, cover: Cover, families: Sequence[Candidates], plan: Plan, before: Sequence[Balls] = ()) -> Scores:
    """Score the regions that choose for themselves and their neighbours; one that holds everything is scored in parts."""
    m = len(cover)
    most = max(int(MOST_SCORED * (REGION_SIZE / min(plan.searched, cover.members.shape[1])) ** 2), SCORED_REGIONS)
    wanted = int(np.clip(m * SCORED_SHARE, SCORED_REGIONS, most))
    scored, parts, questions = pick_regions(points, cover, wanted, plan, before, SCORED_REGIONS)
    scorer, every = make_scorer(points, parts, plan, questions), np.arange(len(parts))
    return Scores(scored, tuple(scorer.score(every, family) for family in families), scorer.volume(every))


def look_at_parts(cover: Cover, enough: int, plan: Plan) -> Cover:
    """One part of each large region, or more until there are ``enough``; all parts of a region that holds everything."""
    return cover.split(plan.searched) if plan.alone else cover.thin(plan.searched, max(enough // len(cover), 1))


def judge_families(points: Points, cover: Cover, choice: Choice, scores: Scores, plan: Plan) -> tuple[list[Family], Array]:
    """Families, and the mean products (k, k) of their leave-one-out residuals in some regions.

    If a single region was searched in parts, all of its points together allow a smaller ridge: it is lowered while that helps.
    """
    scorer, families, residuals = make_scorer(points, cover, plan), [], []
    judges = random_sample(len(cover), JUDGES)
    w = scorer.point_weights(judges)
    for k, family in enumerate(choice.families):
        one = replace(choice, families=(family,))
        e = leave_out_some(scorer, judges, assign_settings(points, cover, one, scores.keep([k]), plan)[0].at(judges))
        while plan.alone and (family.common % len(family.candidates.ridges)) + 1 < len(family.candidates.ridges):
            lower = replace(family, common=family.common + 1)
            settings = assign_settings(points, cover, replace(choice, families=(lower,)), None, plan)[0]
            found = leave_out_some(scorer, judges, settings)
            if np.square(found).mean() >= np.square(e).mean():
                break
            family, e = lower, found
        families.append(family)
        residuals.append(e)
    E = np.stack(residuals)
    return families, np.einsum("rh,krht,lrht->kl", w, E, E) / len(judges)


def leave_out_some(scorer: Scorer, regions: Index, settings: Settings) -> Array:
    """Leave-one-out residuals (r, h, t) of some regions at their settings."""
    members = scorer.cover.members[regions]
    residuals = np.empty((*members.shape, scorer.points.y.shape[1]))

    def fill(i: Index) -> None:
        residuals[i] = Stack(scorer.points, members[i], settings.at(i)).know().residual

    scorer.threads.map(fill, settings.stacks(batch_size(members.shape[1] * scorer.points.equations)), "average")
    return residuals


def assign_settings(points: Points, cover: Cover, choice: Choice, scores: Scores | None, plan: Plan) -> list[Settings]:
    """Settings of every region for each family: the common candidate, or that of its neighbourhood where there are ``scores``."""
    settled = []
    for k, family in enumerate(choice.families):
        chosen = np.full(len(cover), family.common)
        if scores is not None and not plan.alone:
            chosen = choose_near(scores.tables[k].mean(axis=0), cover.centers[scores.scored], cover.centers, family.common)
        settings = family.candidates.settings(chosen, plan.tolerance)
        settings = replace(settings, ridge=family.factor * settings.ridge)
        settled.append(ridge_from_response(points, cover.members, settings) if plan.response_ridge else settings)
    return settled


def judge_whole(points: Points, cover: Cover, candidates: Candidates, plan: Plan) -> tuple[Array, Array]:
    """Scores (r, shapes, ridges) of some whole regions, after parts of them were searched, at ridges by half powers of ten."""
    judges = random_sample(len(cover), int(np.clip(WHOLE_SHARE * len(cover), LEAST_JUDGES, JUDGES)))
    questions = draw_questions(points.X, cover, judges, plan.reaches, plan.weight, plan.features)
    scorer, every = make_scorer(points, cover.at(judges), plan, questions), np.arange(len(judges))
    return scorer.score(every, replace(candidates, ridges=half_steps(candidates.ridges))), scorer.volume(every)


def half_steps(ridges: Array) -> Array:
    """Ridges and those half a power of ten below them, largest first."""
    return np.sort(np.concatenate([ridges, ridges / np.sqrt(10.0)]))[::-1]


def take_whole(candidates: Candidates, scores: Array, volume: Array) -> Family:
    """The family whose common shape serves whole regions best, with a factor for its ridges."""
    ridges = half_steps(candidates.ridges)
    shape, step = divmod(int(pool(scores, volume).argmin()), len(ridges))
    ridge = ridges[step]
    nearest = int(np.abs(np.log(candidates.ridges / ridge)).argmin())
    return Family(candidates, shape * len(candidates.ridges) + nearest, factor=float(ridge / candidates.ridges[nearest]))


def assign_sample_settings(points: Points, cover: Cover, choice: Choice, plan: Plan, before: Sequence[Balls]) -> Settings:
    """Settings for a thinner sample: it makes its own choice, among the regions' candidates and those where their search began.

    It is scored at queries that it will answer: those outside the supports of all finer levels, the balls ``before``. Where models
    are averaged, a sample takes the common candidate of the family with the largest share.
    """
    first = max(choice.families, key=lambda family: float(np.mean(family.share)))
    if not choice.local or plan.families:
        return assign_settings(points, cover, replace(choice, families=(first,)), None, plan)[0]
    size = max(int(SCREENED_POINTS / plan.searched), LEAST_SCREENED)
    _, parts, questions = pick_regions(points, cover, size, plan, before)
    scorer = make_scorer(points, parts, plan, questions)
    candidates = search(scorer, first.candidates.add_shapes(plan.candidates.shapes), ())
    scores = score_some(points, cover, (candidates,), plan, before)
    family = Family(candidates, int(pool(scores.tables[0], scores.volume).argmin()), factor=first.factor)
    return assign_settings(points, cover, replace(choice, families=(family,)), scores, plan)[0]


def choose_near(scores: Array, centers: Array, at: Array, common: int) -> Index:
    """Index into shapes × ridges for regions at ``at`` (m, d), from scores (r, shapes, ridges) of regions at ``centers`` (r, d).

    The ``common`` candidate stays unless another one is better in the neighbourhood by CHOICE_MARGIN standard errors, first by
    `weigh_errors`, then by `weigh_logs`. By the first, a region where the common candidate fails decides for its neighbours; by the
    second, a region with little noise among noisy ones decides for itself.
    """
    table = scores.reshape(len(scores), -1)
    k = min(POOLED_REGIONS, len(centers))
    _, nearest = cKDTree(centers).query(at, k=np.arange(1, k + 1))
    chosen = np.full(len(at), common)
    for weigh in (weigh_errors, weigh_logs):
        left = np.flatnonzero(chosen == common)
        mean, variance = weigh(table, nearest[left].T, common)
        pessimistic = mean + CHOICE_MARGIN * np.sqrt(np.maximum(variance, 0.0) / max(k - 1, 1))
        chosen[left] = pessimistic.argmin(axis=1)
    return chosen


def weigh_errors(table: Array, nearest: Index, common: int) -> tuple[Array, Array]:
    """Logs of the mean errors of neighbours (k, m), relative to those of the ``common`` candidate c, and their variances.

    With e the root mean squared errors in ``table`` (r, candidates): log(mean e / mean e_c), mean (e / mean e - e_c / mean e_c)².
    """
    e, k = np.exp(0.5 * np.minimum(table, _MOST_LOG)), len(nearest)
    mean, square, product = (np.zeros((nearest.shape[1], e.shape[1])) for _ in range(3))
    for near in (e[column] for column in nearest):
        mean += near / k
        square += near * near / k
        product += near * near[:, [common]] / k
    mean_c, square_c = mean[:, [common]], square[:, [common]]
    return np.log(mean / mean_c), square / mean**2 - 2.0 * product / (mean * mean_c) + square_c / mean_c**2


def weigh_logs(table: Array, nearest: Index, common: int) -> tuple[Array, Array]:
    """Means over neighbours (k, m) of the log errors in ``table`` (r, candidates), relative to the ``common`` one; variances."""
    D, k = table - table[:, [common]], len(nearest)
    mean, square = np.zeros((nearest.shape[1], D.shape[1])), np.zeros((nearest.shape[1], D.shape[1]))
    for near in (D[column] for column in nearest):
        mean += near / k
        square += near * near / k
    return mean, square - mean * mean


def ridge_from_response(points: Points, members: Index, settings: Settings) -> Settings:
    """The paper's fixed ridge: 0.01 % of the mean response of the ``members`` (m, h) of each region."""
    response = np.abs(points.y[members]).mean(axis=(1, 2))
    return replace(settings, ridge=np.maximum(RESPONSE_RIDGE * response, RESPONSE_RIDGE * np.finfo(float).eps))
