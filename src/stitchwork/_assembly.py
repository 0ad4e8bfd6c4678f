"""Assembling a stitched model from points: covers, settings, local models, levels.

Every function here is a recipe over the modules below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._background import ALL_AROUND, WIDER, everywhere, thinned_samples
from ._blocks import Settings, fit_blocks
from ._cover import Cover, greedy_cover
from ._holes import calm_at_holes
from ._local import Points, RegionModels, fit_foreign, gather
from ._parallel import shown
from ._plan import Plan
from ._select import (
    RESPONSE_RIDGE,
    Grid,
    Scorer,
    auto_overlap,
    choose_candidates,
    even_outputs,
    search,
    spread_sample,
    with_trusted_rank,
)
from ._stitch import Level, stitched

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_SCORED_REGIONS = 200  # up to here every region is scored, beyond it one in four: their neighbours share the choice
_HELD_OUT = 0.2  # share of the points that the paper's search is judged on


@dataclass(frozen=True)
class Assembly:
    """A stitched model: levels from the regions to the infinite ball, and how they came about.

    ``settings`` belongs to the regions of the first level and is None for models of the user's own; ``scores`` is the table that
    decided: (m, shapes, ridges) pooled log scores, or (shapes, ridges) held-out errors.
    """

    levels: list[Level]
    cover: Cover
    settings: Settings | None
    scores: Array | None

    @property
    def reach(self) -> float:
        """Share of its radius within which a region speaks."""
        return float(self.levels[0].radii[0] / self.cover.radii[0])


def assemble(points: Points, plan: Plan) -> Assembly:
    """Cover, choose, fit, and build the background."""
    if plan.overlap is None:
        plan = replace(plan, overlap=auto_overlap(points.X, plan.h))
    covers = make_covers(points, plan)
    if plan.foreign is not None:
        models = [fit_foreign(points, cover, plan.foreign, plan.flat, plan.n_jobs) for cover in covers]
        return Assembly(stack_levels(points, covers, models, plan), covers[0], None, None)
    settings, scores = choose_settings(points, covers, plan)
    return Assembly(fit_levels(points, covers, settings, plan), covers[0], settings[0], scores)


def make_covers(points: Points, plan: Plan) -> list[Cover]:
    """Cover of all points, then, for the hierarchy, of thinner and thinner samples."""
    n = len(points.X)
    workers = plan.n_jobs or 1
    covers = [greedy_cover(points.X, plan.h, plan.overlap or 0.0, plan.scan(points.row), workers)]
    for sample in thinned_samples(n, plan.h) if plan.background == "hierarchy" else ():
        # No extra overlap: these speak where there is no data, and gain nothing by it.
        cover = greedy_cover(points.X[sample], plan.h, 0.0, np.argsort(points.row[sample]), workers)
        covers.append(Cover(sample[cover.center], cover.radii, sample[cover.members]))
    return covers


def choose_settings(points: Points, covers: list[Cover], plan: Plan) -> tuple[list[Settings], Array | None]:
    """Settings of every region of every cover, and the scores that decided for the first."""
    scores = None
    if plan.selection == "loo" and (len(plan.grid) > 1 or plan.moves):
        first, grid, scores = select_by_loo(points, covers[0], plan)
        coarse = coarse_plan(plan, grid)
        settings = [first, *(select_by_loo(points, cover, coarse)[0] for cover in covers[1:])]
    elif plan.selection == "holdout" and len(plan.grid) > 1:
        scores = holdout_scores(points, plan)
        settings = _uniform_settings(covers, plan, int(scores.argmin()))
    else:
        settings = _uniform_settings(covers, plan, 0)
    if plan.response_ridge:
        settings = [with_response_ridge(points, cover, chosen) for cover, chosen in zip(covers, settings, strict=True)]
    return settings, scores


def coarse_plan(plan: Plan, grid: Grid) -> Plan:
    """The plan of thinner samples: they choose among what the regions took and where their search began."""
    shapes = tuple(dict.fromkeys((*grid.shapes, *plan.grid.shapes)))
    return replace(plan, grid=replace(plan.grid, shapes=shapes), moves=())


def fit_levels(points: Points, covers: list[Cover], settings: list[Settings], plan: Plan) -> list[Level]:
    """Fit the regions of every cover and chain them."""
    models = [
        fit_blocks(points, cover, chosen, plan.n_jobs, plan.progress("fit")) for cover, chosen in zip(covers, settings, strict=True)
    ]
    return stack_levels(points, covers, models, plan)


def stack_levels(points: Points, covers: list[Cover], models: Sequence[RegionModels], plan: Plan) -> list[Level]:
    """The chain of levels: regions, wider regions, thinner samples, the infinite ball."""

    def level(i: int, reach: float) -> Level:
        return Level(gather(points.X, covers[i].center).T, reach * covers[i].radii, models[i])

    degree = max(shape.degree for shape in plan.grid.shapes)
    if plan.background == "polynomial":
        return [level(0, plan.reach), everywhere(points, degree, plan.tolerance)]
    last = len(covers) - 1
    wider = [level(i, ALL_AROUND if i == last else WIDER) for i in range(last + 1)]
    return [level(0, plan.reach), *wider, everywhere(points, min(degree, 1), plan.tolerance)]


def holdout_scores(points: Points, plan: Plan) -> Array:
    """Root mean squared error of every candidate, the same in all regions, on held-out points: (shapes, ridges)."""
    n = len(points.X)
    # Ranked by response before they are shuffled, so that the split does not depend on the order of the rows.
    shuffled = np.lexsort((*points.X.T, *points.y.T))[np.random.default_rng(0).permutation(n)]
    held, kept = np.split(shuffled, [max(1, round(_HELD_OUT * n))])
    table = np.zeros((len(plan.grid.shapes), len(plan.grid.ridges)))
    if not len(kept):
        return table
    X, y, v, _ = points.at(np.sort(held))
    train = points.at(np.sort(kept))
    covers = make_covers(train, plan)
    quiet = replace(plan, verbose=False)
    for candidate in shown(range(table.size), plan.progress("search")):
        levels = fit_levels(train, covers, _uniform_settings(covers, plan, candidate), quiet)
        error = stitched(levels, X, 0, plan.weight, plan.w0).value - y
        table.flat[candidate] = np.sqrt(np.average((error * error).mean(axis=1), weights=v))
    return table


def _uniform_settings(covers: list[Cover], plan: Plan, candidate: int) -> list[Settings]:
    """One candidate for all regions."""
    return [plan.grid.settings(np.full(len(cover), candidate), plan.tolerance) for cover in covers]


def select_by_loo(points: Points, cover: Cover, plan: Plan) -> tuple[Settings, Grid, Array]:
    """Settings of every region by leave-one-out, the grid that the search left, and its scores.

    The grid is searched on a sample of the regions; of all regions one in four is scored, and each chooses with its neighbours.
    """
    scorer = make_scorer(points, cover, plan)
    grid = search(scorer, plan.grid, plan.moves)
    scored = scored_sample(cover)
    table = scorer.scores(scored, grid)
    return settle(scorer, grid, scored, table, plan), grid, table


def make_scorer(points: Points, cover: Cover, plan: Plan, scale: Array | None = None) -> Scorer:
    """Leave-one-out scores of a cover; ``scale`` are deviations of the outputs if not those of ``points``."""
    evened = even_outputs(points, scale)
    return Scorer(evened, cover, plan.tolerance, plan.weight, plan.reach, plan.n_jobs, plan.progress("select"))


def scored_sample(cover: Cover) -> Index:
    """The regions that are scored for themselves and their neighbours."""
    return spread_sample(len(cover), max(_SCORED_REGIONS, len(cover) // 4))


def settle(scorer: Scorer, grid: Grid, scored: Index, table: Array, plan: Plan, common: int | None = None) -> Settings:
    """Settings of every region from the scores of some: its choice, how far to trust its polynomial, calm where there is a hole."""
    centers = scorer.points.X[scorer.cover.center]
    candidate, error = choose_candidates(table, centers[scored], centers, common)
    settings = with_trusted_rank(scorer, grid.settings(candidate, plan.tolerance), np.exp(0.5 * error))
    return calm_at_holes(scorer, settings, plan.grid.ridges)


def with_response_ridge(points: Points, cover: Cover, settings: Settings) -> Settings:
    """The paper's fixed ridge: 0.01 % of the mean response in the region."""
    response = np.abs(points.y[cover.members]).mean(axis=(1, 2))
    floor = RESPONSE_RIDGE * np.finfo(float).eps
    return replace(settings, ridge=np.maximum(RESPONSE_RIDGE * response, floor))
