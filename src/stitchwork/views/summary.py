"""What a fitted model chose and why, as text and as a table."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any

import numpy as np

from .._parallel import ALONE, Threads
from .._types import Array
from ..model.chart import Chart
from ..model.link import IDENTITY
from ..model.loo import LeftOut
from ..model.reasons import reasons_of
from ..model.stitched import StitchedModel
from .errors import on_own_scale


class Summary(str):
    """Text that shows as a table in notebooks."""

    rows: list[tuple[str, str]]

    def __new__(cls, rows: list[tuple[str, str]]) -> Summary:
        """From pairs of a heading and what it says."""
        width = max(len("leave-one-out"), *(len(name) for name, _ in rows))  # the same with and without it
        summary = super().__new__(cls, "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows))
        summary.rows = rows
        return summary

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in self.rows)
        return f"<table>{cells}</table>"


def summarize(model: StitchedModel, threads: Threads = ALONE, left_out: LeftOut | None = None, quick: bool = False) -> Summary:
    """Data, metric, regions, local models, errors and smoothness of a fitted model.

    ``left_out`` is what the model says of leave-one-out, if that is known already; with ``quick``, nothing is said of it.
    """
    n, d, m, h, spread = model.n_points, model.n_features, model.n_regions, model.region_size, model.spread
    outputs = f"{_plural(model.n_outputs, 'output')} of standard deviation {spread:.3g}"
    rows = [
        ("data", f"{n:,} distinct points, {_plural(d, 'feature')}, {outputs}"),
        ("metric", _metric(model)),
        ("regions", f"{m:,} of {h} points, each point in {m * h / n:.1f} on average, {len(model.levels) - 1} levels behind"),
    ]
    if model.chart is not None:
        rows.insert(1, ("coordinates", _coordinates(model.chart, model.feature_names)))
    settings, parameters = model.settings, model.origin.parameters
    if settings is None:
        rows.append(("local models", f"{type(parameters['local_model']).__name__}, of your own"))
    else:
        used = zip(settings.kernel_names, settings.degree, strict=True)
        rows += [
            ("local models", _counted(f"{kernel} with {_degree(degree)}" for kernel, degree in used)),
            ("bandwidths", f"{_range(settings.bandwidth)} times the mean distance in a region"),
            ("ridges", _range(settings.ridge)),
            ("chosen by", {"loo": "leave-one-out", "holdout": "held-out points", None: "the user"}[parameters["selection"]]),
            *([("reasons", _counted(reasons_of(model.levels, 0, parameters)))] if model.levels[0] is not None else []),
        ]
        if not quick:
            rows += [*_leave_one_out(model, threads, left_out), ("noise", f"{_noise(model, threads)}{_of_log(model)}")]
    smooth = "jumps at borders" if model.smoothness < 0 else f"of class C{model.smoothness:.0f}"
    return Summary([*rows, ("prediction", smooth)])


def _leave_one_out(model: StitchedModel, threads: Threads, left_out: LeftOut | None) -> list[tuple[str, str]]:
    """The error of the prediction, that of each output where there are several, and for a model of log y that of log y, too."""
    groups = (", whole groups left out" if model.grouped else "") + (", weighted by the errors" if model.errors is not None else "")
    if model.n_outputs == 1 and model.origin.link == IDENTITY:
        return [("leave-one-out", _error(model.loo_error(threads), model.spread) + groups)]
    left_out = model.left_out(threads) if left_out is None else left_out
    lines = []
    for one, before in ((left_out, ""), (on_own_scale(model, left_out), "log ")):
        names = [f"{before}{name}: " if before or model.n_outputs > 1 else "" for name in model.target_names]
        lines += [
            ("leave-one-out", f"{name}{_error(error, spread)}{groups}")
            for name, error, spread in zip(names, one.errors(), one.y.std(axis=0), strict=True)
        ]
    return lines[: model.n_outputs] if model.origin.link == IDENTITY else lines


def _of_log(model: StitchedModel) -> str:
    return "" if model.origin.link == IDENTITY else f" of log {', log '.join(model.target_names)}"


def _noise(model: StitchedModel, threads: Threads) -> str:
    found = ", ".join(f"{noise:.3g}" for noise in mean_noise(model.noises(threads)))
    if model.errors is None:
        return f"standard deviation {found}"
    typical = ", ".join(f"{s:.3g}" for s in np.sqrt(model.errors.unit - model.errors.further))
    return f"errors given, {typical} in the median; further noise {found}"


def mean_noise(noises: Array) -> Array:
    """Root mean square (t,) of the standard deviations of the noise in all regions, (m, t)."""
    return np.asarray(np.sqrt(np.mean(noises**2, axis=0)))


def _coordinates(chart: Chart, names: list[str]) -> str:
    globe = chart.globe or ()
    texts = [f"{names[k]} has period {p:g}" for k, p in enumerate(chart.periods) if p and k not in globe]
    return ", ".join([*texts, *([f"{names[globe[0]]} and {names[globe[1]]} are on the globe"] if globe else [])])


def _metric(model: StitchedModel) -> str:
    origin, metric = model.origin, model.origin.parameters["metric"]
    if not origin.metric_trials and model.settings is not None and model.settings.local_metrics is not None:
        return "one length scale a feature, by likelihood"
    if not origin.metric_trials:
        return metric if isinstance(metric, str) else "given"
    chosen, *others = origin.metric_trials.items()
    tried = ", ".join(f"{name} {np.exp(0.5 * (score - chosen[1])):.2f}" for name, score in others)
    kept = "; one below 1 is not clearly better in most places" if any(score < chosen[1] - 0.01 for _, score in others) else ""
    return f"{chosen[0]} (error of the others tried relative to it: {tried}{kept})"


def _error(error: float, spread: float) -> str:
    return f"RMSE {error:.3g}" + (f", {error / spread:.2g} of the standard deviation" if spread else "")


def _plural(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _degree(degree: int) -> str:
    return "no polynomial" if degree < 0 else f"degree {degree}"


def _counted(names: Any) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in Counter(names).most_common())


def _range(values: Any) -> str:
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
    return f"{middle:.3g}" if low == high else f"{low:.3g} to {high:.3g}, median {middle:.3g}"
