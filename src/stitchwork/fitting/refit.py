"""Refit a model to new responses: regions and hyperparameters stay, only the linear systems are solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._parallel import Threads
from .._types import Array, Index
from ..local.batch import batch_size, make_batch
from ..local.fit import fit_blocks
from ..local.groups import weigh_judged
from ..local.points import Points
from ..local.system import spectrum
from ..model.bounds import extremes_of, extremes_of_members
from ..model.deviation import blocks_of
from ..model.operator import check_rows
from ..model.stitch import Level, Regions
from ..model.stitched import StitchedModel
from .background import extend_everywhere
from .defaults import JUDGES
from .points import random_sample
from .slopes import fill_responses

_OTHER_RIDGES = (1e-6, 1e-3, 1e3, 1e6, 1e9)  # in units of those in use
_FAR_BETTER = 1.5  # times smaller errors with other ridges: a warning


def refit(model: StitchedModel, y: Array, threads: Threads, slopes: Array | None = None) -> StitchedModel:
    """The model of responses ``y`` (N,) or (N, t) to the rows that it was fitted to; t may be another than before.

    A model with slopes takes new ones (N, k, t), those by the features that it knows; what was not measured is zero.
    """
    check_rows(model)
    flat, y = y.ndim == 1, y.reshape(len(y), -1)
    named = model.origin if y.shape[1] == model.n_outputs else replace(model.origin, target_names=None)
    points = merge_responses(model, y) if slopes is None else merge_with_slopes(model, y, slopes)
    known: dict[int, Regions] = {}
    for level in model.levels[:-1]:
        if id(level.regions) not in known:
            known[id(level.regions)] = refit_regions(level.regions, points, threads)
    settings = blocks_of(model.levels[-1].regions).settings
    behind = extend_everywhere(points, int(settings.degree[0]), float(settings.tolerance[0]))
    levels = (*(Level(known[id(level.regions)], level.support) for level in model.levels[:-1]), behind)
    fresh = replace(model, known_loo_error=None, known_calibration=None)
    return replace(fresh, levels=levels, points=points, extremes=extremes_of(points.y), flat=flat, origin=named)


def merge_responses(model: StitchedModel, y: Array) -> Points:
    """The points of a model with the means, and the spread about them, of responses ``y`` (N, t) to its rows."""
    points, merged = model.points, model.merged
    if merged is None:
        return points._replace(y=np.ascontiguousarray(y[points.row]), repeats=None)
    C = merged.matrix()
    means = C @ y
    away = np.where(merged.first[:, None] >= 0, y - means[merged.first], 0.0)
    repeats = points.observed()._replace(spread=points.v[:, None] * (C @ away**2)[points.row])
    return points._replace(y=np.ascontiguousarray(means[points.row]), repeats=repeats)


def merge_with_slopes(model: StitchedModel, y: Array, slopes: Array) -> Points:
    """The same of responses and slopes (N, k, t)."""
    points, merged, n = model.points, model.merged, len(y)
    assert points.slopes is not None
    repeats = None
    if merged is not None:
        means = merged.matrix() @ np.concatenate([y, slopes.reshape(-1, y.shape[1])])
        away = np.where(merged.share[:, :1] > 0.0, y - means[merged.first], 0.0)
        spread = np.zeros_like(y)
        np.add.at(spread, merged.first, merged.share[:, :1] * away**2)  # rows without weight have no share
        repeats = points.observed()._replace(spread=points.v[:, None] * spread[points.row])
        y, slopes = means[:n], means[n:].reshape(slopes.shape)
    own = points.slopes._replace(value=np.ascontiguousarray(slopes[points.row]))
    return fill_responses(points._replace(y=np.ascontiguousarray(y[points.row]), repeats=repeats, slopes=own))


def check_fields(model: StitchedModel, y: Array) -> None:
    """Raise a `ValueError` unless other responses ``y`` (N,) or (N, t) can take the place of those of a model."""
    if any(blocks_of(level.regions).points is not model.points for level in model.levels[:-1]):
        raise ValueError("This model was assembled from parts and cannot be refitted. Fit the whole data instead.")
    own = model.errors is not None or any(level.regions.output_factor is not None for level in model.levels)
    if own and ((y.ndim == 1) != model.flat or y.size // len(y) != model.n_outputs):
        expected = "(n,)" if model.flat else f"(n, {model.n_outputs})"
        raise ValueError(f"Outputs of this model have their own hyperparameters or errors: `y` must be {expected}, not {y.shape}.")


def refit_regions(regions: Regions, points: Points, threads: Threads) -> Regions:
    """The regions with the responses of ``points``, which are those that they have in the same order."""
    models = blocks_of(regions)
    if points.slopes is None:
        solved = models.solve(points, threads)
    else:
        solved = fit_blocks(points, models.members, models.settings, threads)
    return replace(regions, models=solved, extremes=extremes_of_members(points.y, models.members))


def find_better_ridge(model: StitchedModel, threads: Threads) -> float:
    """The factor that would clearly improve the ridges, by leave-one-out in some regions; one if they suit."""
    models = blocks_of(model.levels[0].regions)
    some = random_sample(len(models.members), JUDGES)
    members, settings = models.members[some], models.settings.at(some)
    ridges = np.array([1.0, *_OTHER_RIDGES])

    def log_errors(regions: Index) -> Array:
        own, local_metric = settings.at(regions), settings.local_metric_of(regions[0])
        batch = make_batch(model.points, members[regions], True, local_metric, own.slope_weights)
        K, R, _ = batch.system(own.kernels[own.kernel[0]], own.bandwidth, int(own.degree[0]), own.tolerance)
        e = batch.leave_out(spectrum(K, R.U), own.ridge[:, None] * ridges)[0][:, : batch.h]  # (B, h, t, e)
        w = weigh_judged(model.points, members[regions], np.ones(members[regions].shape))
        mean = np.einsum("bh,bhte->be", w, e**2) / (w.sum(axis=1)[:, None] * e.shape[2])
        return np.asarray(np.log(np.maximum(mean, np.finfo(float).tiny)))

    logs = np.concatenate(threads.map(log_errors, settings.stacks(batch_size(members.shape[1] * model.points.equations)))).mean(
        axis=0
    )
    best = int(logs.argmin())
    return float(ridges[best]) if logs[best] < logs[0] - 2.0 * np.log(_FAR_BETTER) else 1.0
