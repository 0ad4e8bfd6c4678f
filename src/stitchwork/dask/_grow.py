"""Add points to a model in parts: boxes whose regions they concern are refitted with the same hyperparameters; others stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import dask
import numpy as np
from scipy.spatial import cKDTree

from .._types import Array, Index
from ..fitting.box import BOX_BITS, Loan
from ..fitting.cover import greedy_cover
from ..fitting.exchange import (
    Cell,
    bound_balls,
    complete_part,
    count_points,
    find_needs,
    lend_points,
    near_cells,
    offer_regions,
)
from ..fitting.growth import add_points, find_locations, match_constants
from ..fitting.points import merge_coincident
from ..fitting.slopes import features_of, fill_embedded, measured_features, use_features
from ..fitting.update import widen
from ..local.fit import fit_blocks
from ..local.points import Points, Slopes, join_points
from ..model.bounds import extremes_of_members
from ..model.chart import Chart
from ..model.deviation import blocks_of
from ..model.lookup import Balls
from ..model.parts import Part
from ..model.space import Space
from ..model.stitch import Regions
from ._cluster import Cluster
from ._model import PartedModel, count_part

_ROUNDING = 1.0 + 1e-9  # distances are computed in more than one way


def grow_parts(cluster: Cluster, model: PartedModel, rows: Points) -> PartedModel:
    """The model with more ``rows``, whose X are embedded points.

    Boxes exchange points and regions as in a fit, so that neighbours agree at their faces.
    """
    seen, chart = model.coarse.growth.seen + len(rows.X), model.coarse.chart
    slopes = model.coarse.points.slopes
    used, told = check_features(slopes, rows.slopes, model.n_features), slopes is not None and slopes.told
    rows = merge_coincident(rows._replace(X=match_constants(model.coarse, rows.X + 0.0)), merge_near=False)
    rows = use_features(rows, used, chart, told)
    at, reach = model.space.coordinates(rows.X), max(support.reach for support in model.manifest.supports)
    looks = dask.compute(*(dask.delayed(look_at_part)(part, at, reach) for part in model.parts))
    box = model.manifest.boxes.of(at)
    touched = [number for number, look in enumerate(looks) if look.reached or (box == number).any()]
    mason = _BoxRefitter(cluster, model, reach)
    shared = model.space, model.n_features, chart
    own = {k: cluster.submit(extend_box, mason.part(k), rows.at(np.flatnonzero(box == k)), *shared, name="own") for k in touched}
    again = mason.refit(own, [look.points for look in looks])
    changed = mason.exchange(again, [look.supported for look in looks])
    return _assemble(cluster, model, rows, changed, seen)


class Look(NamedTuple):
    """Of a part: whether new points concern its own regions, and the cells around its points and the supports of its regions."""

    reached: bool
    points: Cell
    supported: Cell


class _BoxRefitter(NamedTuple):
    """Refits boxes of a model on a cluster; supports of regions are at most ``reach`` times their radii."""

    cluster: Cluster
    model: PartedModel
    reach: float

    def part(self, number: int) -> Any:
        """A part on the cluster, also where it is a file."""
        part = self.model.parts[number]
        return self.cluster.client.compute(part) if dask.is_dask_collection(part) else part

    def refit(self, own: dict[int, Any], around: list[Cell]) -> dict[int, Any]:
        """Refitted parts of boxes with ``own`` points; neighbours lend points. ``around`` are the cells of the points before."""
        cells, overlap, submit = self.model.manifest.boxes.cells, self.model.coarse.growth.overlap, self.cluster.submit
        counted = self.cluster.gather(self.cluster.map(count_points, list(own.values()), name="facts"), "own")
        around = [dict(zip(own, [cell for _, cell in counted], strict=True)).get(k, cell) for k, cell in enumerate(around)]
        wanted = {k: submit(find_needs, points, self.model.region_size, cells[k], name="needs") for k, points in own.items()}
        reached = self.cluster.gather(self.cluster.map(bound_balls, list(wanted.values()), name="facts"), "borrow")
        again = {}
        for (k, points), cell in zip(own.items(), reached, strict=True):
            lenders = {j: own[j] if j in own else submit(take_own, self.part(j), name="own") for j in near_cells(cell, around, k)}
            loans = [submit(lend_points, lender, j, wanted[k], name="lend") for j, lender in lenders.items()]
            again[k] = submit(refit_box, self.part(k), points, k, overlap, *loans, name="fit")
        return again

    def exchange(self, again: dict[int, Any], supported: list[Cell]) -> dict[int, Any]:
        """Complete parts: those fitted ``again``, and those that such regions reach into, or did before."""
        bounds = [self.cluster.submit(bound_part, part, self.reach, name="facts") for part in again.values()]
        now = dict(enumerate(supported)) | dict(zip(again, self.cluster.gather(bounds, "fit"), strict=True))
        changed = {}
        for number, cell in enumerate(self.model.manifest.boxes.cells):
            near = near_cells(cell, list(now.values()), number)
            if again.keys().isdisjoint({number, *near, *near_cells(cell, supported, number)}):
                continue
            offers = [self.cluster.submit(offer_own, again.get(j) or self.part(j), cell, self.reach, name="offer") for j in near]
            changed[number] = self.cluster.submit(complete_part, again.get(number) or self.part(number), *offers, name="part")
        return changed


def _assemble(cluster: Cluster, model: PartedModel, rows: Points, changed: dict[int, Any], seen: int) -> PartedModel:
    """The model with some parts changed, and bounds that hold the new rows."""
    parts = [changed.get(number, part) for number, part in enumerate(model.parts)]
    counts = dask.compute(*(dask.delayed(count_part)(part) for part in parts))
    coarse, chart = model.coarse, model.coarse.chart
    X = rows.X if chart is None else chart.original(rows.X)
    coarse = replace(
        coarse,
        frame=np.concatenate([widen(coarse.frame[:2], X), coarse.frame[2:]]),
        limits=None if coarse.limits is None else widen(coarse.limits, rows.X),
        extremes=widen(coarse.extremes, rows.y[rows.measured]),
        growth=coarse.growth._replace(seen=seen),
    )
    manifest = replace(model.manifest, n_points=sum(c[0] for c in counts), n_regions=sum(c[1] for c in counts), loo_error=None)
    files = [None if number in changed else file for number, file in enumerate(model.files or [None] * len(parts))]
    return PartedModel(manifest, coarse, cluster.client.scatter(coarse), parts, files)


def look_at_part(part: Part, places: Array, reach: float) -> Look:
    """What must be known of a part before new points are assigned to boxes."""
    centers, radii = part.regions.centers[: part.own_regions], part.regions.radii[: part.own_regions]
    balls = Balls(np.asfortranarray(centers), radii * _ROUNDING)
    reached = bool(len(balls.covering_pairs(np.asfortranarray(places)).query))
    return Look(reached, count_points(take_own(part))[1], bound_part(part, reach))


def bound_part(part: Part, reach: float) -> Cell:
    """The cell around the largest supports of the box's own regions."""
    return bound_balls(Balls(part.regions.centers[: part.own_regions], reach * part.regions.radii[: part.own_regions]))


def take_own(part: Part) -> Points:
    """The box's own points."""
    return part.points.at(np.arange(part.own_points))


def check_features(slopes: Slopes | None, more: Slopes | None, d: int) -> Index:
    """The features by which a model has ``slopes``; a `ValueError` if new rows have ``more``."""
    used = features_of(slopes, d)
    other = np.setdiff1d(measured_features(more, d), used)
    if len(other):
        raise ValueError(
            f"`gradient` has slopes by feature {other[0]}, by which the model in parts has none. Fit all rows anew, or use"
            " `to_local()`."
        )
    return used


def extend_box(part: Part, rows: Points, space: Space, features: int, chart: Chart | None) -> Points:
    """The box's own points with more rows; existing points keep their index, by which other boxes know them."""
    own = take_own(part)
    if not len(rows.X):
        return own
    assert own.given is not None
    known = find_locations(own.given, rows.X)
    grown = add_points(own, rows, np.unique(known[known >= 0]), space)[0]
    return fill_embedded(grown, features, chart)


def refit_box(part: Part, points: Points, number: int, overlap: float, *loans: Loan) -> Part:
    """Cover a box anew and fit it; a region has the settings of the one that is nearest among those before."""
    models, k = blocks_of(part.regions), part.regions.models_per_ball
    together = join_points(points, *(loan.points for loan in loans))
    ids = np.concatenate([(number << BOX_BITS) + np.arange(len(points.X)), *(loan.ids for loan in loans)])
    cover = greedy_cover(together.X, models.members.shape[1], overlap, np.arange(len(points.X)))
    former = cKDTree(part.regions.centers[::k]).query(cover.centers)[1]
    settings = models.settings.at((former[:, None] * k + np.arange(k)).ravel())
    fitted = fit_blocks(together, np.repeat(cover.members, k, axis=0), settings)
    share = part.regions.repeat_shares(len(cover))
    centers = np.asfortranarray(np.repeat(cover.centers, k, axis=0))
    extremes = extremes_of_members(together.y, fitted.members)
    regions = Regions(centers, np.repeat(cover.radii, k), fitted, share, k, extremes)
    return Part(together, ids, len(points.X), regions, len(regions.radii))


def offer_own(part: Part, cell: Cell, reach: float) -> Part | None:
    """The box's own regions that reach into another cell."""
    return offer_regions(part.own(), cell, reach)
