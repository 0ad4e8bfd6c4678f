"""Fits of observations whose errors are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from .._parallel import Threads
from .._types import Array
from ..local.own import OwnModels
from ..local.points import Points
from ..local.radial import kernel_named
from ..model.errors import GAIN, KnownErrors, know_errors
from ..model.known_errors import further_noise, judge_regions
from ..model.stitched import StitchedModel
from .defaults import FEW_POINTS, LIKELY_MORE_ROWS, LIKELY_STEPS, METRIC_KERNEL
from .likelihood import Rows, maximise_likelihood, start_likelihood
from .points import random_sample
from .slopes import weigh_by_errors

_FURTHER = np.logspace(-1.5, 4.0, 12)  # variances of further noise that are tried, in units of the median error's
_TOLERANCE = 1e-10  # of the rank of the plane


def fit_errors(
    rows: Points, s2: Array, fit: Callable[[Points, Array], StitchedModel], threads: Threads, slopes: Array | None = None
) -> StitchedModel:
    """The model of rows whose errors have the variances ``s2`` (n, t).

    Errors of measured ``slopes`` may have known variances (n, k), too.
    """

    def fit_weighed(errors: KnownErrors) -> StitchedModel:
        return replace(fit(weigh(rows, s2, errors, slopes), errors.unit), errors=errors)

    return fit_further(know_errors(s2), fit_weighed, partial(ask_further, threads=threads))


def fit_further(errors: KnownErrors, fit: Callable[[KnownErrors], Any], ask: Callable[[Any, KnownErrors], Array]) -> Any:
    """The model that ``fit`` makes of the errors, fitted again if ``ask`` finds further noise in its residuals."""
    model = fit(errors)
    further = ask(model, errors)
    if not further.any():
        return model
    del model  # it may be large
    return fit(errors.add_further(further))


def weigh(rows: Points, s2: Array, errors: KnownErrors, slopes: Array | None) -> Points:
    """The rows with the weights of their errors."""
    rows = rows._replace(v=errors.weights(s2))
    return rows if slopes is None else weigh_by_errors(rows, float(np.exp(np.log(errors.unit).mean())), slopes)


def ask_further(model: StitchedModel, errors: KnownErrors, threads: Threads) -> Array:
    """The variances (t,) of further noise that a model of errors alone asks for, by its leave-one-out residuals.

    One region of few points takes it for roughness of the function: there the likelihood of the points tells.
    """
    regions = model.levels[0].regions
    if isinstance(regions.models, OwnModels):
        return np.zeros(model.n_outputs)
    if len(regions.radii) == regions.models_per_ball:
        return likely_further(model.points, errors.unit)
    levels = [model.levels[0]] * 2  # of the last nothing is asked
    judged = judge_regions(model.points, levels, model.weight, threads, errors)
    return further_noise(judged, errors)


def likely_further(points: Points, unit: Array) -> Array:
    """The variances (t,) of further noise of the greatest likelihood of some points, whose errors have the variances ``unit`` / v.

    Of Gaussian processes with a plane. Zero unless it is clearly better.
    """
    some = points.at(random_sample(len(points.X), LIKELY_MORE_ROWS // 2))
    deviation = some.X.std(axis=0)
    X = (some.X - some.X.mean(axis=0))[:, deviation > 0.0] / deviation[deviation > 0.0]
    if not X.shape[1] or len(X) < FEW_POINTS:
        return np.zeros(len(unit))
    return np.array([_likely_further(X, y, variance / some.v) for y, variance in zip(some.y.T, unit, strict=True)])


def _likely_further(X: Array, y: Array, s2: Array) -> float:
    """The same for one response (n,) with errors of variances ``s2`` (n,), and places of unit deviation."""
    kernel, d, scale = kernel_named(METRIC_KERNEL, X.shape[1]), X.shape[1], max(y.var(), np.finfo(float).tiny)

    def likelihood(further: float) -> float:
        v = 1.0 / (s2 + further)
        unit = 1.0 / v.mean() / scale
        v /= v.mean()
        rows = Rows(X, ((y - np.average(y, weights=v)) / np.sqrt(scale))[:, None], np.sqrt(v), np.arange(d), noise=np.array([unit]))
        _, value = maximise_likelihood(rows, kernel, 1, start_likelihood(rows)[:1], LIKELY_STEPS // 2, _TOLERANCE)
        return value - 0.5 * float(np.log(v).sum())

    tried = np.median(s2) * _FURTHER
    tried = tried[tried <= max(scale, 4.0 * tried[0])]
    found = [likelihood(further) for further in (0.0, *tried)]
    k = int(np.argmin(found[1:]))
    if found[1 + k] > found[0] - GAIN:
        return 0.0
    ends = np.log(tried[k]) + np.log(_FURTHER[1] / _FURTHER[0]) * np.array([-1.0, 1.0])
    best = minimize_scalar(lambda log: likelihood(np.exp(log)), bounds=ends, method="bounded", options={"xatol": 0.05})
    return float(np.exp(best.x))
