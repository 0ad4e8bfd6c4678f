"""Update the levels of a model after its points changed: repair covers, extend thinner samples, refit affected regions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from .._parallel import Threads
from .._types import Array, Index
from ..local.fit import stack_residuals
from ..local.grown import grow_models
from ..local.points import Points, gather, join_points
from ..model.bounds import extremes_of, extremes_of_members, frame_of
from ..model.deviation import blocks_of
from ..model.lookup import Balls
from ..model.origin import Growth
from ..model.stitch import Level, Regions
from ..model.stitched import StitchedModel
from .background import extend_everywhere
from .choice import ridge_from_response
from .cover import Cover
from .defaults import (
    CHECKED_POINTS,
    JUDGES,
    LEAST_WEIGHT,
    MOST_SURPRISE,
    NEGLIGIBLE,
    POLYNOMIAL_AGE,
    REMEMBERED_ERRORS,
    SAMPLED_NEIGHBOURS,
    STALE,
)
from .points import deviation_of, random_sample
from .repair import Change, Repaired, repair_cover


def update_model(model: StitchedModel, points: Points, change: Change, place: Index | None, threads: Threads) -> StitchedModel:
    """The model over ``points``; ``place`` (n,) is the new index of each former point, -1 if gone, None if unchanged."""
    updater = Updater(model.points, points, place, model.origin.parameters["ridge"], threads)
    followed: dict[int, Regions] = {}
    before: Regions | None = None
    here = change
    for level in model.levels[:-1]:
        old = level.regions
        if id(old) in followed or blocks_of(old).points is not model.points:  # the coarse levels of data in parts stay
            followed.setdefault(id(old), old)
            continue
        if before is not None:
            here = updater.join_sample(here, before, old)
        before = followed[id(old)] = updater.repair(old, here, model.growth.overlap if before is None else 0.0, before is None)
    moved = len(change.new) + len(change.altered) + (model.n_points - len(points.X) if change.gone else 0)
    changed = model.growth.changed + moved
    aged = changed > POLYNOMIAL_AGE * len(points.X)
    frame, limits = update_bounds(model, points, change, aged)
    levels = [Level(followed[id(level.regions)], level.support) for level in model.levels[:-1]]
    return replace(
        model,
        levels=(*levels, update_polynomial(model.levels[-1], model.points, points, aged)),
        points=points,
        frame=frame,
        limits=limits,
        extremes=extremes_of(points.y),
        growth=model.growth._replace(changed=0 if aged else changed),
        known_loo_error=None,
        known_calibration=None,
        asked=0,
    )


class Updater(NamedTuple):
    """The points before and after a change, the new indices of former points, and the parameter `ridge`."""

    former: Points
    points: Points
    place: Index | None
    ridge: Any
    threads: Threads

    def members(self, regions: Regions) -> Index:
        """Members (m, h) of the regions, by their present indices."""
        members = blocks_of(regions).members[:: regions.models_per_ball]
        return members if self.place is None else self.place[members]

    def repair(self, regions: Regions, change: Change, overlap: float, whole: bool) -> Regions:
        """Regions over the points as they are now, all of them or a sample with the new ones of the ``change``."""
        members, k, models = self.members(regions), regions.models_per_ball, blocks_of(regions)
        if change.nothing:
            rows, members = np.arange(len(models.members)), _repeat(members, k)
            return replace(regions, models=grow_models(models, self.points, members, models.settings, rows, rows[:0], self.threads))
        cover = Cover(members, gather(regions.centers, np.arange(0, len(regions.radii), k)).T, regions.radii[::k])
        return self.fit(regions, repair_cover(self.points.X, cover, overlap, change, whole))

    def fit(self, regions: Regions, repaired: Repaired) -> Regions:
        """Regions of a repaired cover: unchanged ones keep their models, the others are to be refitted."""
        k, models = regions.models_per_ball, blocks_of(regions)
        former = _rows(repaired.former, k)
        settings = models.settings.at(former)
        anew, members = _rows(repaired.fitted, k), _repeat(repaired.members, k)
        if isinstance(self.ridge, str) and self.ridge == "response":
            touched = ridge_from_response(self.points, members[anew], settings.at(anew))
            settings.ridge[anew] = touched.ridge
        assert regions.extremes is not None
        extremes = regions.extremes[:, former]
        extremes[:, anew] = extremes_of_members(self.points.y, members[anew])
        return Regions(
            np.asfortranarray(np.repeat(repaired.centers, k, axis=0)),
            np.repeat(repaired.radii, k),
            grow_models(models, self.points, members, settings, former, anew, self.threads),
            regions.repeat_shares(len(repaired.radii)),
            k,
            extremes,
        )

    def join_sample(self, change: Change, before: Regions, regions: Regions) -> Change:
        """What a change of the points of the level ``before`` is to the sample of these regions.

        A point joins the sample if none of its nearest points of the level before is in it.
        """
        X, members = self.points.X, self.members(regions)
        altered = change.altered[np.isin(change.altered, members)] if len(change.altered) else change.altered
        gone, asked = False, change.new
        if self.place is not None and (members < 0).any():
            gone = True
            lost = np.unique(blocks_of(regions).members[:: regions.models_per_ball][members < 0])
            close = nearest_members(X, before, self.former.X[lost], SAMPLED_NEIGHBOURS)[1]
            asked = np.unique(np.concatenate([asked, np.setdiff1d(close, members)]))
        reach = nearest_members(X, before, X[asked], SAMPLED_NEIGHBOURS)[0][:, -1]
        away = nearest_members(X, regions, X[asked], 1, members)[0][:, 0]
        open_ = np.flatnonzero(away > reach)
        joins = asked[open_[select_spread(X[asked[open_]], reach[open_])]]
        short = members.shape[1] - len(np.union1d(members[members >= 0], joins)) if gone else 0
        if short > 0:
            others = np.setdiff1d(blocks_of(before).members, np.union1d(members, joins))
            joins = np.concatenate([joins, others[random_sample(len(others), short)]])
        return Change(np.sort(joins), altered, gone)


def _rows(balls: Index, k: int) -> Index:
    """Rows of the k models of each ball."""
    return balls if k == 1 else (balls[:, None] * k + np.arange(k)).ravel()


def _repeat(members: Index, k: int) -> Index:
    """A row of members for each of the k models of a ball."""
    return members if k == 1 else np.repeat(members, k, axis=0)


def nearest_members(X: Array, regions: Regions, Q: Array, count: int, members: Index | None = None) -> tuple[Array, Index]:
    """Distances and indices (q, count) of the nearest points to ``Q`` (q, d) among those of the region that each lies deepest in.

    Infinite where a query lies in no region.
    """
    members = blocks_of(regions).members[:: regions.models_per_ball] if members is None else members
    k, count = regions.models_per_ball, min(count, members.shape[1])
    balls = Balls(gather(regions.centers, np.arange(0, len(regions.radii), k)).T, regions.radii[::k] * (1.0 + 1e-9))
    pairs = balls.covering_pairs(np.asfortranarray(Q))
    depth = np.square(pairs.offset).sum(axis=0) / np.square(balls.radii[pairs.region])
    order = np.lexsort((depth, pairs.query))
    query, first = np.unique(pairs.query[order], return_index=True)
    found = members[pairs.region[order][first]]
    away = np.linalg.norm(X[found] - Q[query][:, None, :], axis=2)
    away[found < 0] = np.inf
    nearest = np.argsort(away, axis=1)[:, :count]
    distance, index = np.full((len(Q), count), np.inf), np.zeros((len(Q), count), dtype=np.intp)
    distance[query], index[query] = (np.take_along_axis(a, nearest, axis=1) for a in (away, found))
    return distance, index[query]


def select_spread(X: Array, reach: Array) -> Index:
    """Points that join a sample one after the other, unless one that has joined is within their ``reach``."""
    if len(X) < 2:
        return np.arange(len(X))
    joined = np.zeros(len(X), dtype=bool)
    around = cKDTree(X).query_ball_point(X, np.minimum(reach, np.finfo(float).max))
    for i, close in enumerate(around):
        joined[i] = not joined[close].any()
    return np.flatnonzero(joined)


def update_polynomial(level: Level, former: Points, points: Points, aged: bool) -> Level:
    """The polynomial of all points, made anew once enough of them have changed."""
    models = blocks_of(level.regions)
    if aged and models.points is former:
        return extend_everywhere(points, int(models.settings.degree[0]), float(models.settings.tolerance[0]))
    if models.points is not former:
        return level
    return Level(replace(level.regions, models=replace(models, points=points)), level.support)


def update_bounds(model: StitchedModel, points: Points, change: Change, aged: bool) -> tuple[Array, Array | None]:
    """Frame of the features and limits of the places; medians are made anew once enough points have changed."""
    given = points.given
    assert given is not None
    if aged or change.gone:
        X = given if model.chart is None else model.chart.original(given)
        return frame_of(X), None if model.chart is None else extremes_of(given)
    new = given[change.new]
    X = new if model.chart is None else model.chart.original(new)
    frame = np.concatenate([widen(model.frame[:2], X), model.frame[2:]])
    return frame, None if model.limits is None else widen(model.limits, new)


def widen(box: Array, X: Array) -> Array:
    """The box (2, d) that also holds the points ``X`` (n, d)."""
    low, high = X.min(axis=0, initial=np.inf), X.max(axis=0, initial=-np.inf)
    return np.stack([np.minimum(box[0], low), np.maximum(box[1], high)])


class ErrorRatio(NamedTuple):
    """How many new points were judged, and the sum of the fourth roots of their squared errors over what was expected."""

    judged: int
    total: float

    def added_to(self, growth: Growth) -> Growth:
        """Merge into the running mean, capped at 200 points."""
        judged, total = growth.judged + self.judged, growth.surprise + self.total
        kept = min(judged, REMEMBERED_ERRORS)
        return growth._replace(judged=kept, surprise=total * kept / max(judged, 1))


def judge_new(model: StitchedModel, rows: Points, known: Index, threads: Threads) -> ErrorRatio:
    """Compare errors at some of the new ``rows``, whose X are places, with leave-one-out errors around them.

    Both are predicted from members of a region that were there at the last choice: later ones may have changed its errors. Only
    points within the supports of regions count, since errors are not estimated elsewhere. ``known`` is the index of the location of
    each row, or -1; a row at a known location is predicted without earlier observations there.
    """
    n = model.n_points
    points = join_points(model.points, model.space.place(rows)._replace(given=rows.X))
    level, valued = model.levels[0], n + np.flatnonzero(rows.measured)
    asked = np.random.default_rng(len(known)).permutation(valued)[:JUDGES]
    models, k = blocks_of(level.regions), level.regions.models_per_ball
    pairs = level.balls.covering_pairs(gather(points.X, asked).T)
    query, first = np.unique(pairs.query, return_index=True)
    region = pairs.region[first] // k * k
    least = (NEGLIGIBLE * deviation_of(model.points.y)) ** 2

    # Each output by the first model, or where models have a share of their own for each, by the one with the largest.
    output_factor = level.regions.output_factor
    lead = np.zeros(model.n_outputs, dtype=np.intp) if output_factor is None else output_factor[:k].argmax(axis=0)

    def judge(i: int) -> float:
        return float(np.mean(np.concatenate([judge_by(i, one)[lead == one] for one in np.unique(lead)])))

    def judge_by(i: int, one: int) -> Array:
        members, settings = models.members[region[i]], models.settings.at(region[[i]] + one)
        chosen = members[members < model.growth.chosen]
        members = (chosen if 2 * len(chosen) >= len(members) else members)[None]
        offset = (points.X[members[0]] - level.regions.centers[region[i]]) / level.balls.radii[region[i]]
        w = np.where(np.square(offset).sum(axis=1) < 1.0, 1.0, LEAST_WEIGHT)  # within the support, as at the new point
        w = w * model.points.measured[members[0]] + np.finfo(float).tiny
        expected = np.average(stack_residuals(model.points, members, settings)[0] ** 2, axis=0, weights=w) + least
        new = asked[query[i]]
        beside = np.append(members[members != known[new - n]], new)[None]
        return np.asarray((stack_residuals(points, beside, settings)[0, -1] ** 2 + least) / expected)

    roots = np.minimum(np.array(threads.map(judge, range(len(query))[:CHECKED_POINTS])) ** 0.25, MOST_SURPRISE)
    if len(query) > CHECKED_POINTS and roots.mean() ** 2 > STALE:  # possibly stale: check more of them
        more = np.array(threads.map(judge, range(len(query))[CHECKED_POINTS:])) ** 0.25
        roots = np.concatenate([roots, np.minimum(more, MOST_SURPRISE)])
    return ErrorRatio(len(roots), float(roots.sum()))
