"""The steps for one box of space: cover its points, extract regions to search on, score regions, assign hyperparameters, fit.

A box covers its own points, but the members of its regions are the h nearest of *all* points: those beyond its faces are borrowed
(see `exchange`). On one machine everything is one box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array, Index
from ..local.points import Points, join_points
from ..model.bounds import extremes_of
from ..model.chart import Chart
from ..model.lookup import Balls
from ..model.parts import Part
from ..model.space import Space
from .background import fit_regions
from .candidates import Candidates
from .choice import Choice, Family, Scores, assign_settings, judge_families, judge_whole, make_scorer, pick_regions, score_some
from .cover import Cover, greedy_cover, sum_weights
from .defaults import LEAST_SCREENED, SCREENED_POINTS
from .plan import Plan
from .questions import Questions, join_questions
from .scores import sum_scores
from .search import search

BOX_BITS = 40  # an id is the number of the box and, in this many bits, the position in it


class Loan(NamedTuple):
    """Points with their ids."""

    points: Points
    ids: Index


class Box(NamedTuple):
    """The points of a box, then those that it borrowed, and the cover of its own."""

    points: Points
    ids: Index
    own: int
    cover: Cover


def bound_data(points: Points, space: Space, chart: Chart | None) -> tuple[Array, Array, Array]:
    """The extremes of the places, the features and the responses in a box, (2, e), (2, d) and (2, t)."""
    E = space.original(points.X) if points.given is None else points.given  # as given, a constant feature has no extent
    X = E if chart is None else chart.original(E)
    if not len(E):  # an empty box changes no minimum or maximum
        ends = np.array([[np.inf], [-np.inf]])
        return np.tile(ends, E.shape[1]), np.tile(ends, X.shape[1]), np.tile(ends, points.y.shape[1])
    return extremes_of(E), extremes_of(X), extremes_of(points.y)


def open_box(points: Points, number: int, plan: Plan, *loans: Loan) -> Box:
    """Cover the points of a box by balls of the h nearest of all points."""
    together = join_points(points, *(loan.points for loan in loans))
    ids = np.concatenate([(number << BOX_BITS) + np.arange(len(points.X)), *(loan.ids for loan in loans)])
    cover = greedy_cover(together.X, plan.h, plan.overlap, plan.scan(points.row), plan.threads.count)
    return Box(together, ids, len(points.X), cover)


class Excerpt(NamedTuple):
    """Some regions of a box with their points and questions."""

    points: Points
    cover: Cover
    questions: Questions | None


def excerpt_box(box: Box, share: float, plan: Plan) -> Excerpt:
    """Regions of a box to search on, with their points; ``share`` is that of the box in the whole sample."""
    enough = int(share * SCREENED_POINTS / plan.searched)
    _, parts, questions = pick_regions(box.points, box.cover, max(enough, LEAST_SCREENED), plan, enough=enough)
    used, cover = parts.compact()
    return Excerpt(box.points.at(used), cover, questions)


def search_excerpts(plan: Plan, *excerpts: Excerpt) -> tuple[Candidates, ...]:
    """The families that a search leaves, on regions of all boxes; points that several boxes know are duplicated."""
    offset = np.cumsum([0, *(len(part.points.X) for part in excerpts)])
    members = np.concatenate([start + part.cover.members for start, part in zip(offset, excerpts, strict=False)])
    centers, radii = (np.concatenate([getattr(part.cover, name) for part in excerpts]) for name in ("centers", "radii"))
    points, questions = join_points(*(part.points for part in excerpts)), join_questions([part.questions for part in excerpts])
    scorer = make_scorer(points, Cover(members, centers, radii), plan, questions)
    if not plan.families:
        found = search(scorer, plan.candidates, plan.moves)
        return (found.add_spline() if plan.any_kernel and plan.field else found,)
    return tuple(search(scorer, family, plan.moves, keep=1) for family in plan.families)


def score_box(box: Box, families: tuple[Candidates, ...], plan: Plan) -> Scores:
    """Score some of the regions."""
    return score_some(box.points, box.cover, families, plan)


def judge_box(box: Box, candidates: Candidates, plan: Plan) -> tuple[Array, Array]:
    """Scores of some whole regions, where parts of them were searched, and their volumes."""
    return judge_whole(box.points, box.cover, candidates, plan)


def tally_scores(scores: Scores) -> tuple[list[Array], Array]:
    """The sums over one box from which the common choice is made."""
    return [sum_scores(table, scores.volume) for table in scores.tables], scores.volume.sum(axis=1)


def tally_products(box: Box, scores: Scores, choice: Choice, plan: Plan) -> tuple[list[Family], Array, int]:
    """The families, their mean products of residuals, from which shares follow, and the number of points of one box."""
    return *judge_families(box.points, box.cover, choice, scores, plan), box.own


def tally_weights(box: Box, plan: Plan) -> tuple[list[float], int]:
    """The sums of the weights of its regions at their points, for each reach, and the number of its points."""
    return [sum_weights(box.points.X, box.cover, reach, plan.weight) for reach in plan.reaches], box.own


def balls_of(box: Box, reach: float) -> Balls:
    """The supports of the regions of a box, at this reach."""
    return Balls(np.asfortranarray(box.cover.centers), reach * box.cover.radii)


def fit_box(box: Box, scores: Scores | None, choice: Choice | None, plan: Plan, keep: bool = False) -> Part:
    """Assign hyperparameters to every region and fit it; no choice means a custom local model. Factors may be kept."""
    settings = None if choice is None else assign_settings(box.points, box.cover, choice, scores, plan)
    shares = None if choice is None else np.array([family.share for family in choice.families])
    regions = fit_regions(box.points, box.cover, settings, plan, shares, keep)
    return Part(box.points, box.ids, box.own, regions, len(regions.radii))
