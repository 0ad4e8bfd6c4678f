"""Fits of observations whose errors are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..local.own import OwnModels
from ..local.points import Points
from ..model.errors import KnownErrors, find_further, know_errors
from ..model.known_errors import leave_out_parts
from ..model.stitched import StitchedModel
from .slopes import tell_weights


def fit_errors(
    rows: Points, s2: Array, fit: Callable[[Points], StitchedModel], threads: Threads, slopes: Array | None = None
) -> StitchedModel:
    """The model of rows whose errors have the variances ``s2`` (n, t).

    Errors of measured ``slopes`` may have known variances (n, k), too.
    """

    def fit_weighed(errors: KnownErrors) -> StitchedModel:
        return replace(fit(weigh(rows, s2, errors, slopes)), errors=errors)

    return fit_further(know_errors(s2), fit_weighed, partial(ask_further, threads=threads))


def fit_further(errors: KnownErrors, fit: Callable[[KnownErrors], Any], ask: Callable[[Any, KnownErrors], Array]) -> Any:
    """The model that ``fit`` makes of the errors, fitted again if its residuals ``ask`` for further noise."""
    model = fit(errors)
    further = ask(model, errors)
    if not further.any():
        return model
    del model  # it may be large
    return fit(errors.add_further(further))


def weigh(rows: Points, s2: Array, errors: KnownErrors, slopes: Array | None) -> Points:
    """The rows with the weights of their errors."""
    rows = rows._replace(v=errors.weights(s2))
    return rows if slopes is None else tell_weights(rows, float(np.exp(np.log(errors.unit).mean())), slopes)


def ask_further(model: StitchedModel, errors: KnownErrors, threads: Threads) -> Array:
    """The variances (t,) of further noise that the leave-one-out residuals of a model ask for."""
    if isinstance(model.levels[0].models, OwnModels):
        return np.zeros(model.n_outputs)
    return find_further(leave_out_parts(model.points, model.levels[0], model.weight, threads, errors))
