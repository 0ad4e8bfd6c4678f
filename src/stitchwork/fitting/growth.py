"""A model that grows and forgets: points come, change or go, and only the regions that they concern are fitted anew.

Metric, overlap and hyperparameters are kept; a new region takes those of its nearest neighbour. There are two exceptions, fitted
from scratch: data of a few regions, where choosing costs little; and models whose hyperparameters were chosen on points of which
half are gone, or which are no more than half of all points. Nothing here changes the model it is given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .._parallel import Threads
from .._types import Array, Index
from ..local.points import Points, Repeats, join_points
from ..model.deviation import blocks_of
from ..model.loo import levels_over
from ..model.origin import Growth
from ..model.space import Space
from ..model.stitched import StitchedModel
from .defaults import CONSTANT, FEW_REGIONS, LEAST_JUDGED, REFIT_GROWTH, STALE
from .plan import is_whole
from .points import merge_coincident
from .recipe import fit_here
from .repair import Change
from .slopes import as_places, features_of, fill_embedded, fill_responses, measured_features, use_features
from .update import judge_new, update_model

_ROUNDING = 64.0 * np.finfo(float).eps  # relative error of an embedded point that was mapped to features and back


def grow(model: StitchedModel, rows: Points, threads: Threads) -> StitchedModel:
    """The model with more ``rows``, whose X are places; those at known locations are averaged in."""
    seen = model.growth.seen + len(rows.X)
    rows = merge_coincident(rows._replace(X=match_constants(model, rows.X + 0.0)), merge_near=False)
    known = find_locations(model.embedded_points, rows.X)
    used, told = all_features(model, rows), any(part.slopes is not None and part.slopes.told for part in (model.points, rows))
    rows = use_features(rows, used, model.chart, told)
    many = needs_fit(model, model.n_points + int((known < 0).sum()), model.growth.chosen)
    if many or rows.equations != model.points.equations or widens_constant(model, rows.X):
        before = use_features(as_places(model.points, model.n_features, model.chart), used, model.chart, told)
        return fit_anew(model, join_points(before, rows._replace(row=rows.row + _next_row(before))), seen, threads)
    points, change = add_points(model.points, rows, np.unique(known[known >= 0]), model.space)
    points, change = fill_again(model, points, change, None)
    grown = update_model(model, points, change, None, threads)
    return replace(grown, growth=judge_new(model, rows, known, threads).added_to(grown.growth._replace(seen=seen)))


def forget(model: StitchedModel, X: Array, threads: Threads) -> StitchedModel:
    """The model without the locations ``X`` (k, d), in the user's features."""
    places = X + 0.0 if model.chart is None else model.chart.embed_data(X)
    known = find_rounded(model, match_constants(model, places))
    if (known < 0).any():
        row = int(np.argmax(known < 0))
        raise ValueError(
            f"`X` must hold locations of the model's points, exactly as they were given; row {row}, {X[row].tolist()}, is not one."
        )
    stays = np.ones(model.n_points, dtype=bool)
    stays[known] = False
    left = np.flatnonzero(stays)
    if not len(left):
        raise ValueError("`X` holds all locations of the model, and nothing would be left. Fit a new model instead.")
    points, chosen = model.points.at(left), int(stays[: model.growth.chosen].sum())
    if not points.measured.any():
        raise ValueError("`X` holds all locations with a response, and slopes alone would be left. Keep one of them.")
    if needs_fit(model, len(left), chosen):
        return fit_anew(model, as_places(points, model.n_features, model.chart), model.growth.seen, threads)
    place = np.full(model.n_points, -1)
    place[left] = np.arange(len(left))
    none = np.empty(0, dtype=np.intp)
    points, change = fill_again(model, points, Change(none, none, True), place)
    left_over = update_model(model, points, change, place, threads)
    return replace(left_over, growth=left_over.growth._replace(chosen=chosen))


def needs_fit(model: StitchedModel, n: int, chosen: int) -> bool:
    """Whether to fit n points from scratch: they are few, or the local model is custom, or the points have changed too much.

    ``chosen`` points are left of those that hyperparameters were chosen on. They must be more than half of the n points, and more
    than half of the points at that time.
    """
    if model.settings is None or n < FEW_REGIONS * model.region_size:
        return True
    if is_whole(model.origin.parameters, n, model.n_features, model.points.equations):
        return True  # so few that one region would hold them all
    something = model.origin.scores is not None or len(model.origin.metric_trials) > 1
    return something and max(n, model.growth.basis) >= REFIT_GROWTH * chosen


def is_stale(growth: Growth) -> bool:
    """Whether new points say that what was chosen no longer suits the data."""
    return growth.judged >= LEAST_JUDGED and growth.stale > STALE


def fit_anew(model: StitchedModel, points: Points, seen: int, threads: Threads) -> StitchedModel:
    """Fit from scratch and choose again, with the parameters and names of the model, and points in the order of their rows."""
    points = merge_coincident(points.at(np.argsort(points.row, kind="stable")))
    points = fill_responses(use_features(points, measured_features(points.slopes, model.n_features), model.chart))
    origin, noise = replace(model.origin, metric_trials={}, scores=None), None if model.errors is None else model.errors.unit
    fitted = fit_here(points, model.flat, origin, threads, model.chart, noise)
    return replace(fitted, growth=fitted.growth._replace(seen=seen), errors=model.errors, merged=model.merged)


def match_constants(model: StitchedModel, X: Array) -> Array:
    """``X`` where coordinates that equal a constant one of the model, up to rounding, are set to that constant."""
    low, high = model.box
    same = (low == high) & (np.abs(X - low) <= CONSTANT * np.abs(low))
    return np.where(same, low, X)


def widens_constant(model: StitchedModel, X: Array) -> bool:
    """Whether a coordinate of places ``X`` varies that was constant so far: the metric ignores it."""
    low, high = model.box
    return bool(((low == high) & (low != X)).any())


def find_locations(given: Array, X: Array) -> Index:
    """Index of the location ``given`` (n, d) at each row of ``X`` (k, d), or -1."""
    found = np.full(len(X), -1)
    near = np.ones(len(given), dtype=bool)
    for column, asked in zip(given.T, X.T, strict=True):
        near &= (column >= asked.min()) & (column <= asked.max())
    candidates = np.flatnonzero(near)
    both = np.concatenate([given[candidates], X])
    order = np.lexsort(both.T)
    same = (both[order[1:]] == both[order[:-1]]).all(axis=1)
    start = np.concatenate([[0], np.cumsum(~same)])  # equal rows have equal numbers, and the model's, at most one, comes first
    first = order[np.searchsorted(start, start)]
    known = (order >= len(candidates)) & (first < len(candidates))
    found[order[known] - len(candidates)] = candidates[first[known]]
    return found


def find_rounded(model: StitchedModel, places: Array) -> Index:
    """Index of the location at each of ``places`` (k, e), or -1.

    With a chart, mapping to features and back rounds: a location that differs by this much is found, too, so that points which
    the model returns are recognised. Features without a period are not rounded, and must be equal.
    """
    known, chart = find_locations(model.embedded_points, places), model.chart
    asked = np.flatnonzero(known < 0)
    if chart is None or not len(asked):
        return known
    near = cKDTree(model.embedded_points).query(places[asked])[1]
    size = np.array([p + abs(start) for p, start in zip(chart.periods, chart.start, strict=True)])
    if chart.globe is not None:
        size[chart.globe[1]] = size[chart.globe[0]]
    rounding = _ROUNDING * np.where(chart.curved, size[chart.blocks], 0.0)
    same = (np.abs(model.embedded_points[near] - places[asked]) <= rounding).all(axis=1)
    known[asked[same]] = near[same]
    return known


def add_points(old: Points, rows: Points, hit: Index, space: Space) -> tuple[Points, Change]:
    """Points with more ``rows``, which repeat those at ``hit``: these stay in place, new ones follow."""
    own = old.at(hit)
    assert own.given is not None
    rows = space.place(rows._replace(row=rows.row + _next_row(old)))._replace(X=rows.X)
    merged = merge_coincident(join_points(own._replace(X=own.given, given=None), rows), merge_near=False)
    placed = merged._replace(X=space.coordinates(merged.X), given=merged.X)
    altered, new = placed.at(np.arange(len(hit))), placed.at(np.arange(len(hit), len(merged.X)))
    points = join_points(old, new)  # copies, so that what follows leaves the model alone
    points.y[hit], points.v[hit] = altered.y, altered.v
    if altered.repeats is not None and len(hit):
        often, spread = points.observed()
        often[hit], spread[hit] = altered.repeats
        points = points._replace(repeats=Repeats(often, spread))
    if points.slopes is not None and altered.slopes is not None:
        points.slopes.value[hit], points.slopes.weight[hit] = altered.slopes.value, altered.slopes.weight
    return points, Change(np.arange(len(old.X), len(points.X)), hit, False)


def all_features(model: StitchedModel, rows: Points) -> Index:
    """The features by which a model or more ``rows`` have slopes."""
    d = model.n_features
    return np.union1d(features_of(model.points.slopes, d), measured_features(rows.slopes, d))


def fill_again(model: StitchedModel, points: Points, change: Change, place: Index | None) -> tuple[Points, Change]:
    """Fill in the responses that were not measured, and add to the change what this altered.

    A filled-in response has no weight, except at the centre of a region without measured ones: if it changes there, the point
    counts as altered.
    """
    if points.measured.all():
        return points, change
    filled = fill_embedded(points, model.n_features, model.chart).y
    places = np.arange(model.n_points) if place is None else place
    started = places[_centers_without_response(model)]
    started = started[started >= 0]
    moved = started[(filled[started] != points.y[started]).any(axis=1)]
    return points._replace(y=filled), change._replace(altered=np.union1d(change.altered, moved))


def _centers_without_response(model: StitchedModel) -> Index:
    """Centres of the regions, on all levels, that hold no measured response."""
    found = [np.empty(0, dtype=np.intp)]
    for level in levels_over(model.points, model.levels[:-1]):
        members = blocks_of(level.regions).members
        found.append(members[~model.points.measured[members].any(axis=1), 0])
    return np.unique(np.concatenate(found))


def _next_row(points: Points) -> int:
    return int(points.row.max(initial=-1)) + 1
