"""The choice: settings of every region, from the scores of some.

Regions do not choose alone: log scores are averaged over neighbouring regions, since a hundred points are too few to tell close
candidates apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..local.batch import batch_size
from ..local.fit import region_errors
from ..local.points import Points
from ..local.settings import Settings
from ..local.variance import Stack
from .candidates import Candidates
from .cover import Cover
from .defaults import (
    CLEARLY,
    JUDGES,
    LEAST_JUDGES,
    LEAST_TRUST,
    MOST_SCORED,
    NEGLIGIBLE,
    NOTICEABLE,
    POOLED_REGIONS,
    REGION_SIZE,
    RESPONSE_RIDGE,
    RIDGE_STEPS,
    SCORED_REGIONS,
    SCORED_SHARE,
    SHRINKAGE,
    UNCERTAIN_SLOPE,
    WHOLE_SHARE,
)
from .holes import calm_holes, calm_lonely
from .plan import Plan
from .points import random_sample
from .scores import Scorer, pool
from .search import find_smoothest, search


@dataclass(frozen=True)
class Family:
    """Candidates of which every region takes one: those that are left, the ``common`` one, and their share in the answer."""

    candidates: Candidates
    common: int
    share: float = 1.0


@dataclass(frozen=True)
class Choice:
    """What all regions share: the families whose members answer together, and the errors (shapes, ridges) that decided.

    ``local`` says whether regions may leave the common choice.
    """

    families: tuple[Family, ...]
    errors: Array | None
    local: bool


def choose_one(candidates: Candidates, common: int, errors: Array | None = None) -> Choice:
    """One candidate for all regions."""
    return Choice((Family(candidates, common),), errors, local=False)


@dataclass(frozen=True)
class Scores:
    """Leave-one-out scores (r, shapes, ridges) of the regions ``scored``, for every family."""

    scored: Index
    tables: tuple[Array, ...]

    def keep(self, families: Sequence[int]) -> Scores:
        """Those of some families."""
        return Scores(self.scored, tuple(self.tables[k] for k in families))


def make_scorer(points: Points, cover: Cover, plan: Plan, whole: bool = False) -> Scorer:
    """Leave-one-out scores of a cover, with outputs of any size made to count alike; large regions by a part, or ``whole``."""
    even = points._replace(y=points.y / plan.deviation)
    cover = cover if plan.alone or whole else cover.thin(plan.searched)
    return Scorer(even, cover, plan.tolerance, plan.weight, plan.reach, plan.threads, plan.alone, plan.curves)


def score_some(points: Points, cover: Cover, families: Sequence[Candidates], plan: Plan) -> Scores:
    """Score the regions that choose for themselves and their neighbours; one that holds everything is scored in parts."""
    m = len(cover)
    most = max(int(MOST_SCORED * (REGION_SIZE / min(plan.searched, cover.members.shape[1])) ** 2), SCORED_REGIONS)
    # The few places where curves are far apart are not to be missed.
    wanted = m if points.group is not None or plan.curves else int(m * SCORED_SHARE)
    scored = random_sample(m, int(np.clip(wanted, SCORED_REGIONS, most)))
    parts = look_at_parts(cover.at(scored), SCORED_REGIONS, plan)
    scorer, every = make_scorer(points, parts, plan), np.arange(len(parts))
    return Scores(np.repeat(scored, len(parts) // len(scored)), tuple(scorer.score(every, family) for family in families))


def look_at_parts(cover: Cover, enough: int, plan: Plan) -> Cover:
    """Large regions in parts, one for each, or more if ``enough`` is not reached otherwise; all of one that holds everything."""
    return cover.split(plan.searched) if plan.alone else cover.thin(plan.searched, max(enough // len(cover), 1))


def judge_families(points: Points, cover: Cover, choice: Choice, scores: Scores, plan: Plan) -> tuple[list[Family], Array]:
    """Families, and the mean products (k, k) of their leave-one-out residuals in some regions.

    Of one region that was searched in parts, all points together bear a smaller ridge: it is lowered while that helps.
    """
    scorer, families, residuals = make_scorer(points, cover, plan), [], []
    judges = random_sample(len(cover), JUDGES)
    w = scorer.point_weights(judges)
    for k, family in enumerate(choice.families):
        one = replace(choice, families=(family,))
        e = leave_out_some(scorer, judges, settle_regions(points, cover, one, scores.keep([k]), plan)[0].at(judges))
        while plan.alone and (family.common % len(family.candidates.ridges)) + 1 < len(family.candidates.ridges):
            lower = replace(family, common=family.common + 1)
            settings = settle_regions(points, cover, replace(choice, families=(lower,)), None, plan)[0]
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

    scorer.threads.map(fill, settings.stacks(batch_size(members.shape[1])), "average")
    return residuals


def share_out(C: Array) -> Array:
    """Shares (k,) ≥ 0 that sum to one, with the least wᵀ C w + μ |w - 1/k|²: stacking, drawn to equal shares.

    Every set of families that may be in use is tried: there are few.
    """
    k = len(C)
    M = C + SHRINKAGE * np.diagonal(C).min() * np.eye(k)  # the part of |w - 1/k|² that is not quadratic is constant
    best, least = np.full(k, 1.0 / k), np.inf
    for chosen in range(1, 2**k):
        inside = [i for i in range(k) if chosen >> i & 1]
        w = np.zeros(k)
        w[inside] = np.linalg.lstsq(M[np.ix_(inside, inside)], np.ones(len(inside)), rcond=None)[0]
        if (w < 0.0).any() or not w.any():
            continue
        w /= w.sum()
        if w @ M @ w < least:
            best, least = w, w @ M @ w
    return best


def settle_regions(points: Points, cover: Cover, choice: Choice, scores: Scores | None, plan: Plan) -> list[Settings]:
    """Settings of every region for each family: the common candidate, or that of its neighbourhood where there are ``scores``."""
    settled = []
    for k, family in enumerate(choice.families):
        factor = 1.0
        if scores is not None and plan.noisy:
            family, factor = judge_whole(points, cover, family, plan)
        if scores is None or plan.alone:
            settings = family.candidates.settings(np.full(len(cover), family.common), plan.tolerance)
        else:
            scorer = make_scorer(points, cover, plan)
            centers = points.X[cover.center]
            chosen, error = choose_near(scores.tables[k], centers[scores.scored], centers, family.common)
            settings = trust_rank(scorer, family.candidates.settings(chosen, plan.tolerance), np.exp(0.5 * error))
            if plan.any_kernel and not plan.noisy:
                settings = calm_holes(scorer, settings, plan.candidates.ridges)
            if plan.any_kernel:
                settings = calm_lonely(scorer, settings, plan.candidates.ridges)
        settings = replace(settings, ridge=factor * settings.ridge)
        settled.append(follow_response(points, cover, settings) if plan.response_ridge else settings)
    return settled


def judge_whole(points: Points, cover: Cover, family: Family, plan: Plan) -> tuple[Family, float]:
    """The family whose common shape serves whole regions best, after parts of them chose, and a factor for its ridges.

    Some regions tell, at ridges by half powers of ten; of shapes that tie the smoothest is taken.
    """
    candidates, steps = family.candidates, len(family.candidates.ridges)
    ridges = np.sort(np.concatenate([candidates.ridges, candidates.ridges / np.sqrt(10.0)]))[::-1]
    judges = random_sample(len(cover), int(np.clip(WHOLE_SHARE * len(cover), LEAST_JUDGES, JUDGES)))
    scores = make_scorer(points, cover, plan, whole=True).score(judges, replace(candidates, ridges=ridges))
    shape = find_smoothest(candidates, scores, any_kernel=True)
    ridge = ridges[pool(scores)[shape].argmin()]
    nearest = int(np.abs(np.log(candidates.ridges / ridge)).argmin())
    return replace(family, common=shape * steps + nearest), float(ridge / candidates.ridges[nearest])


def settle_sample(points: Points, cover: Cover, choice: Choice, plan: Plan) -> Settings:
    """Settings for a thinner sample: it chooses for itself, among what the regions took and where their search began.

    Where models are averaged, a sample takes the common candidate of the family with the largest share.
    """
    first = max(choice.families, key=lambda family: family.share)
    if not choice.local or plan.families:
        return settle_regions(points, cover, replace(choice, families=(first,)), None, plan)[0]
    scorer = make_scorer(points, cover, plan)
    tie = "smoothest" if plan.noisy else "widest"
    candidates = search(scorer, first.candidates.add_shapes(plan.candidates.shapes), (), tie=tie)
    scores = score_some(points, cover, (candidates,), plan)
    family = Family(candidates, int(pool(scores.tables[0]).argmin()))
    return settle_regions(points, cover, replace(choice, families=(family,)), scores, plan)[0]


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
    touched = np.flatnonzero((trusting.tolerance > settings.tolerance) & (settings.degree > 0))  # a constant is always there
    if not len(touched):
        return settings
    most = int(np.clip(JUDGES * (REGION_SIZE / members.shape[1]) ** 2, LEAST_JUDGES, JUDGES))  # of large regions fewer
    judges = touched[random_sample(len(touched), most)]
    before, after = (
        pool(np.log(region_errors(scorer.points, members[judges], choice.at(judges), scorer.threads) + NEGLIGIBLE**2))
        for choice in (settings, trusting)
    )
    return trusting if after < before + NOTICEABLE else settings


def follow_response(points: Points, cover: Cover, settings: Settings) -> Settings:
    """The paper's fixed ridge: 0.01 % of the mean response in the region."""
    response = np.abs(points.y[cover.members]).mean(axis=(1, 2))
    return replace(settings, ridge=np.maximum(RESPONSE_RIDGE * response, RESPONSE_RIDGE * np.finfo(float).eps))
