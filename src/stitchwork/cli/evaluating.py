"""`stitchwork evaluate`: how well a model predicts a table, in one sentence and in figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._parallel import Threads
from .._types import Array
from ..model.link import IDENTITY
from ..model.stitched import StitchedModel
from ..views.advice import find_known
from ..views.errors import Skill, crps, errors, nearest_responses, share_inside, skill
from .console import Console
from .loading import check_jobs, load_model
from .reading import read_known
from .tables import open_table
from .text import Reading

_NEARLY_ALL = 1e-12  # least ratio of squared errors, so that the sentence stays finite where errors are only rounding


def evaluate_table(path: Path, data: Path, reading: Reading, jobs: int, console: Console) -> None:
    """Print the errors of a model on a table, for each target."""
    threads = Threads(check_jobs(jobs), console.live)
    model = load_model(path, jobs).model_
    X, y, *_ = read_known(model, open_table(data, reading), reading, console)
    known = find_known(model, X, y)
    if known.any() and not known.all():  # what it was fitted to says nothing of its errors
        console.announce(f"compared       {len(X) - known.sum():,} rows: the other {known.sum():,} are in the model")
        X, y = X[~known], y[~known]
    moments, calibration = model.moments(X, threads), model.calibration(threads)
    inside = {level: share_inside(calibration.intervals(moments, level), y) for level in (0.5, 0.9)}
    nearest = nearest_responses(model, X)
    for k, name in enumerate(model.target_names):
        found = skill(moments.value[:, k], y[:, k], float(model.responses[:, k].mean()), nearest[:, k])
        console.announce(f"{name}: {say_headline(found, float(y[:, k].std()))}")
        console.announce(f"{name}: {_say_errors(moments.value[:, k], y[:, k], found)}")
        if model.origin.link != IDENTITY and (y[:, k] > 0.0).all():
            logs = skill(np.log(moments.value[:, k]), np.log(y[:, k]), float(model.points.y[:, k].mean()), np.log(nearest[:, k]))
            console.announce(f"log {name}: {_say_figures(logs)}")
        shares = ", ".join(f"{share[k]:.1%} inside of intervals of {level:.0%}" for level, share in inside.items())
        console.announce(f"{name}: {shares}{_say_crps(model, moments, y, k)}")
    if known.all():
        console.warn(
            f"{len(X):,} of these {len(X):,} rows are in the model: it was fitted to them, and errors on new data are"
            f" larger. Leave-one-out says RMSE {model.loo_error(threads):.3g}."
        )


def say_headline(found: Skill, spread: float) -> str:
    """How far predictions are off, and what they are worth, in one sentence."""
    share = f", {100 * found.median / spread:.2g} % of the standard deviation of the data, {spread:.3g}" if spread else ""
    off = f"half of the predictions are off by less than {found.median:.3g}{share}"
    rivals = {"the mean of the data": found.mean, "the nearest known point": found.nearest}
    known = {name: spared for name, spared in rivals.items() if np.isfinite(spared)}
    if not known:
        return f"{off}."
    rival, spared = min(known.items(), key=lambda pair: pair[1])
    if spared <= 0.0:
        return f"{off}, but {rival} does better."
    return f"{off}; {1.0 / np.sqrt(max(1.0 - spared, _NEARLY_ALL)):.2g} times closer than {rival}."


def _say_errors(prediction: Array, truth: Array, found: Skill) -> str:
    """The figures, with relative errors where no response vanishes."""
    relative = errors(prediction, truth)
    text = _say_figures(found)
    if not np.isfinite(relative.max_relative) or not truth.all():
        return text
    return f"{text}; relative errors up to {relative.max_relative:.6g}, {relative.mean_relative:.6g} on average"


def _say_figures(found: Skill) -> str:
    return (
        f"RMSE {found.rmse:.6g}, mean error {found.mae:.6g}, median error {found.median:.6g}, R² {found.r2:.6g};"
        f" skill {found.mean:.4g} against the mean, {found.nearest:.4g} against the nearest known point"
    )


def _say_crps(model: StitchedModel, moments: Any, y: Array, k: int) -> str:
    """The score of Gaussian deviations; with a link they are not."""
    return "" if model.origin.link != IDENTITY else f", CRPS {crps(moments.value, moments.deviation(), y).mean(axis=0)[k]:.6g}"
