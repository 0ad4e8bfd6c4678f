"""A stitched model in parts: the regions of one box of space, with all that reach into it from outside.

So a part answers every query inside its box, and neighbouring boxes agree at their common face. Behind all parts stands one coarse
model, a `StitchedModel` of a sample, whose levels are their background.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._types import Index
from ..local.blocks import COEFFICIENTS, BlockModels
from ..local.points import Points, gather, join_points
from ..local.settings import join_settings
from .stitch import Level, Regions, Support
from .stitched import StitchedModel

ROW_BITS = 40  # a row of the data is the number of its partition and, in this many bits, the row in it


@dataclass(frozen=True)
class Part:
    """Fitted regions of a box over ``points`` with ``ids``; those copied from other boxes come last.

    ``own_points`` and ``own_regions`` count what belongs to the box.
    """

    points: Points
    ids: Index
    own_points: int
    regions: Regions
    own_regions: int

    def levels(self, supports: Sequence[Support]) -> list[Level]:
        """The regions as levels, to be followed by those of the coarse model."""
        return [Level(self.regions, support) for support in supports]

    def restrict(self, chosen: Index) -> Part:
        """Some regions with their points; all of the box's own points stay if all of its own regions do."""
        m = self.regions.models
        assert isinstance(m, BlockModels)  # models of the user's own are fitted in one part
        used, members = np.unique(m.members[chosen], return_inverse=True)
        points = self.points.at(used)
        rows = {name: getattr(m, name)[chosen] for name in COEFFICIENTS if name != "members"}
        members, beta = members.reshape(len(chosen), m.members.shape[1]), None if m.beta is None else m.beta[chosen]
        models = BlockModels(points=points, members=members, settings=m.settings.at(chosen), beta=beta, **rows)
        r = self.regions
        share = None if r.share is None else r.share[chosen]
        extremes = None if r.extremes is None else r.extremes[:, chosen]
        regions = Regions(gather(r.centers, chosen).T, r.radii[chosen], models, share, r.models_per_ball, extremes)
        own_points, own_regions = int((used < self.own_points).sum()), int((chosen < self.own_regions).sum())
        return Part(points, self.ids[used], own_points, regions, own_regions)

    def own(self) -> Part:
        """The box's own regions."""
        if self.own_regions == len(self.regions.radii):
            return self
        return self.restrict(np.arange(self.own_regions))


def join_parts(parts: Sequence[Part]) -> Part:
    """One part of all regions; points that several know are kept once, in the order of their first appearance."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([part.ids for part in parts])
    _, first, place = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    offset = np.cumsum([0, *(len(part.ids) for part in parts)])
    models: list[Any] = [part.regions.models for part in parts]
    members = np.concatenate([rank[place[start + m.members]] for start, m in zip(offset, models, strict=False)])
    points = join_points(*(part.points for part in parts)).at(first[order])
    widest = max(m.lam.shape[1] for m in models)

    def all_of(name: str, owners: Sequence[object]) -> Any:
        return np.concatenate([getattr(owner, name) for owner in owners])

    fitted = BlockModels(
        points=points,
        members=members,
        settings=join_settings([m.settings for m in models]),
        beta=None if points.slopes is None else all_of("beta", models),
        lam=np.concatenate([np.pad(m.lam, ((0, 0), (0, widest - m.lam.shape[1]), (0, 0))) for m in models]),
        **{name: all_of(name, models) for name in ("origin", "scale", "sigma", "alpha")},
    )
    balls = [part.regions for part in parts]
    centers = np.asfortranarray(all_of("centers", balls))
    share = None if balls[0].share is None else all_of("share", balls)
    known = [each.extremes for each in balls if each.extremes is not None]
    extremes = np.concatenate(known, axis=1) if len(known) == len(balls) else None
    regions = Regions(centers, all_of("radii", balls), fitted, share, balls[0].models_per_ball, extremes)
    return Part(points, ids[first[order]], parts[0].own_points, regions, parts[0].own_regions)


def assemble(coarse: StitchedModel, parts: Sequence[Part], supports: Sequence[Support]) -> StitchedModel:
    """All parts, with the coarse model behind them, as one model."""
    whole = join_parts([part.own() for part in parts])
    return replace(
        coarse, points=whole.points, levels=(*whole.levels(supports), *coarse.levels), known_loo_error=None, known_calibration=None
    )


def number_rows(model: StitchedModel) -> StitchedModel:
    """Number the rows of partitioned data one after the other, as `operator` needs them.

    Returns the model as it is where the rows are not known: some were averaged or had no weight, or parts grew.
    """
    n, growth = model.n_points, model.growth
    order = np.argsort(model.points.row)
    code = model.points.row[order]
    first = np.flatnonzero(np.diff(code >> ROW_BITS, prepend=-1))
    complete = (code & ((1 << ROW_BITS) - 1)) == np.arange(n) - np.repeat(first, np.diff(first, append=n))
    if model.settings is None or model.points.repeats is not None or growth.seen != growth.chosen or not complete.all():
        return model
    points: dict[int, Points] = {}
    regions: dict[int, Regions] = {}

    def renumber(old: Points) -> Points:
        return points.setdefault(id(old), old._replace(row=np.searchsorted(code, old.row)))

    for level in model.levels:
        models = level.models
        assert isinstance(models, BlockModels)
        regions[id(level.regions)] = regions.get(id(level.regions)) or replace(
            level.regions, models=replace(models, points=renumber(models.points))
        )
    levels = tuple(Level(regions[id(level.regions)], level.support) for level in model.levels)
    return replace(model, levels=levels, points=renumber(model.points), growth=growth._replace(seen=n))
