"""What a fitted model chose and why, as text and as a table."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any

import numpy as np


class Summary(str):
    """Text that shows as a table in notebooks."""

    rows: list[tuple[str, str]]

    def __new__(cls, rows: list[tuple[str, str]]) -> Summary:
        """From pairs of a heading and what it says."""
        width = max(len(name) for name, _ in rows)
        summary = super().__new__(cls, "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows))
        summary.rows = rows
        return summary

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in self.rows)
        return f"<table>{cells}</table>"


def summarize(model: Any) -> Summary:
    """Data, metric, regions, local models, errors and smoothness of a fitted `StitchedRegressor`."""
    points, cover, settings = model._points, model._assembly.cover, model._assembly.settings
    n, d = points.X.shape
    m, h = cover.members.shape
    spread = float(np.sqrt(points.y.var(axis=0).mean()))
    rows = [
        (
            "data",
            f"{n:,} distinct points, {_plural(d, 'feature')}, {_plural(points.y.shape[1], 'output')} of deviation {spread:.3g}",
        ),
        ("metric", _metric(model)),
        (
            "regions",
            f"{m:,} of {h} points, each point in {m * h / n:.1f} on average, {len(model._assembly.levels) - 1} levels behind",
        ),
    ]
    if settings is None:
        rows.append(("local models", f"{type(model.local_model).__name__}, of your own"))
    else:
        rows += [
            ("local models", _counted(f"{k} with {_degree(g)}" for k, g in zip(model.kernels_, model.degrees_, strict=True))),
            ("bandwidths", f"{_range(model.bandwidths_)} times the mean distance in a region"),
            ("ridges", _range(model.ridges_)),
            ("chosen by", {"loo": "leave-one-out", "holdout": "held-out points", None: "the user"}[model.selection]),
            (
                "leave-one-out",
                f"RMSE {model.loo_error_:.3g}" + (f", {model.loo_error_ / spread:.2g} of the deviation" if spread else ""),
            ),
        ]
    reach = "jumps at borders" if model.smoothness_ < 0 else f"of class C{model.smoothness_:.0f}"
    return Summary([*rows, ("prediction", reach)])


def _metric(model: Any) -> str:
    if not model.metric_trials_:
        return model.metric if isinstance(model.metric, str) else "given"
    chosen, *others = model.metric_trials_.items()
    tried = ", ".join(f"{name} {np.exp(0.5 * (score - chosen[1])):.2f}" for name, score in others)
    return f"{chosen[0]} (error of the others tried relative to it: {tried})"


def _plural(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _degree(degree: int) -> str:
    return "no polynomial" if degree < 0 else f"degree {degree}"


def _counted(names: Any) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in Counter(names).most_common())


def _range(values: Any) -> str:
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
    return f"{middle:.3g}" if low == high else f"{low:.3g} to {high:.3g}, median {middle:.3g}"
