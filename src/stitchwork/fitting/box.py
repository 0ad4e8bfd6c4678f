"""What is done to one box of space: cover its points, show some of its regions, score them, settle, fit.

A box covers its own points, but the members of its regions are the h nearest of *all* points: those beyond its faces are borrowed
(see `exchange`). On one machine everything is one box.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._types import Array, Index
from ..local.points import Points, join_points
from ..model.parts import Part
from .background import fit_regions
from .candidates import Candidates
from .choice import Choice, Scores, make_scorer, score_some, settle_regions
from .cover import Cover, greedy_cover
from .plan import Plan
from .scores import sum_scores
from .search import pick_telling, search

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


def open_box(points: Points, number: int, plan: Plan, *loans: Loan) -> Box:
    """Cover the points of a box by balls of the h nearest of all points."""
    together = join_points(points, *(loan.points for loan in loans))
    ids = np.concatenate([(number << BOX_BITS) + np.arange(len(points.X)), *(loan.ids for loan in loans)])
    cover = greedy_cover(together.X, plan.h, plan.overlap, plan.scan(points.row), plan.threads.count)
    return Box(together, ids, len(points.X), cover)


def excerpt_box(box: Box, share: float, plan: Plan) -> tuple[Points, Cover]:
    """Regions of a box that tell most, with their points, to search on; ``share`` is that of the box in the whole sample."""
    used, cover = box.cover.at(pick_telling(make_scorer(box.points, box.cover, plan), share)).compact()
    return box.points.at(used), cover


def search_excerpts(plan: Plan, *excerpts: tuple[Points, Cover]) -> Candidates:
    """The candidates that a search leaves, on regions of all boxes; points that several know are repeated, which nobody notices."""
    offset = np.cumsum([0, *(len(points.X) for points, _ in excerpts)])
    members = np.concatenate([start + cover.members for start, (_, cover) in zip(offset, excerpts, strict=False)])
    radii = np.concatenate([cover.radii for _, cover in excerpts])
    scorer = make_scorer(join_points(*(points for points, _ in excerpts)), Cover(members, radii), plan)
    return search(scorer, plan.candidates, plan.moves)


def score_box(box: Box, candidates: Candidates, plan: Plan) -> Scores:
    """Score some of the regions."""
    return score_some(make_scorer(box.points, box.cover, plan), candidates)


def tally_scores(scores: Scores) -> tuple[Array, int]:
    """What the common choice of all boxes needs to know of one."""
    return sum_scores(scores.table), len(scores.scored)


def fit_box(box: Box, scores: Scores | None, choice: Choice | None, plan: Plan) -> Part:
    """Settle every region and fit it; no choice means a model of the user's own."""
    settings = None if choice is None else settle_regions(box.points, box.cover, choice, scores, plan)
    return Part(box.points, box.ids, box.own, fit_regions(box.points, box.cover, settings, plan), len(box.cover))
