"""Fits of observations whose errors are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..local.own import OwnModels
from ..local.points import Points
from ..model.deviation import leave_out_parts
from ..model.errors import KnownErrors, find_further, know_errors
from ..model.stitched import StitchedModel
from .slopes import tell_weights


def fit_errors(
    rows: Points, s2: Array, fit: Callable[[Points], StitchedModel], threads: Threads, slopes: Array | None = None
) -> StitchedModel:
    """The model of rows whose errors have the variances ``s2`` (n, t): fitted again if its residuals ask for further noise.

    Errors of measured ``slopes`` may have known variances (n, k), too.
    """
    errors = know_errors(s2)
    model = replace(fit(weigh(rows, s2, errors, slopes)), errors=errors)
    if isinstance(model.levels[0].models, OwnModels):
        return model
    further = ask_further(model, errors, threads)
    if not further.any():
        return model
    errors = know_errors(s2, further)
    return replace(fit(weigh(rows, s2, errors, slopes)), errors=errors)


def weigh(rows: Points, s2: Array, errors: KnownErrors, slopes: Array | None) -> Points:
    """The rows with the weights of their errors."""
    rows = rows._replace(v=errors.weights(s2))
    return rows if slopes is None else tell_weights(rows, float(np.exp(np.log(errors.unit).mean())), slopes)


def ask_further(model: StitchedModel, errors: KnownErrors, threads: Threads) -> Array:
    """The variances (t,) of further noise that the leave-one-out residuals of a model ask for."""
    parts = leave_out_parts(model.points, model.levels, model.weight, threads, errors)
    return find_further(parts, parts.noise) if len(parts.error) else np.zeros(model.n_outputs)
