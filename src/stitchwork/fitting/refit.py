"""New responses at the points of a model: its regions and hyperparameters stay, and only their systems are solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..local.fit import fit_blocks, region_errors
from ..local.points import Points
from ..model.bounds import extremes_of, extremes_of_members
from ..model.deviation import blocks_of
from ..model.operator import check_rows
from ..model.stitch import Level, Regions
from ..model.stitched import StitchedModel
from .background import extend_everywhere
from .defaults import JUDGES
from .points import random_sample

_OTHER_RIDGES = (1e-6, 1e-3, 1e3, 1e6, 1e9)  # in units of those in use
_FAR_BETTER = 1.5  # times smaller errors with other ridges: a warning


def refit(model: StitchedModel, y: Array, threads: Threads) -> StitchedModel:
    """The model of responses ``y`` (N, t) to the rows that it was fitted to."""
    check_rows(model)
    means = y if model.merged is None else model.merged.matrix() @ y
    points = model.points._replace(y=np.ascontiguousarray(means[model.points.row]), repeats=None)
    known: dict[int, Regions] = {}
    for level in model.levels[:-1]:
        if id(level.regions) not in known:
            known[id(level.regions)] = refit_regions(level.regions, model.points, points, threads)
    settings = blocks_of(model.levels[-1].regions).settings
    behind = extend_everywhere(points, int(settings.degree[0]), float(settings.tolerance[0]))
    levels = (*(Level(known[id(level.regions)], level.support) for level in model.levels[:-1]), behind)
    return replace(
        model, levels=levels, points=points, extremes=extremes_of(points.y), known_loo_error=None, known_calibration=None
    )


def refit_regions(regions: Regions, before: Points, points: Points, threads: Threads) -> Regions:
    """The regions with the responses of ``points``, which are those of ``before`` in the same order."""
    models = blocks_of(regions)
    if models.points is not before:
        raise ValueError("This model was put together from parts, and cannot be fitted again. Fit the whole data instead.")
    fitted = fit_blocks(points, models.members, models.settings, threads)
    return replace(regions, models=fitted, extremes=extremes_of_members(points.y, models.members))


def find_better_ridge(model: StitchedModel, threads: Threads) -> float:
    """The factor by which ridges had better be multiplied, judged in some regions; one where they suit."""
    models = blocks_of(model.levels[0].regions)
    some = random_sample(len(models.members), JUDGES)
    members, settings = models.members[some], models.settings.at(some)
    ridges = (1.0, *_OTHER_RIDGES)
    errors = [region_errors(model.points, members, replace(settings, ridge=factor * settings.ridge), threads) for factor in ridges]
    logs = np.log(np.maximum(np.stack(errors), np.finfo(float).tiny)).mean(axis=1)
    best = int(logs.argmin())
    return ridges[best] if logs[best] < logs[0] - 2.0 * np.log(_FAR_BETTER) else 1.0
