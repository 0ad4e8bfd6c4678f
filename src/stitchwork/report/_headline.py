"""What to know of a model first: how large its errors are, in words and as a share of the spread, and where they are largest."""

from __future__ import annotations

import numpy as np

from .._types import Array, Index
from ..model.link import IDENTITY
from ..model.stitched import StitchedModel
from ..views.columns import Column, find_columns, write_value

# Errors as a share of the responses' standard deviation: below each, the word for them.
_WORDS = ((0.01, "very small"), (0.05, "small"), (0.2, "moderate"), (0.6, "large"), (0.95, "very large"))
_PARTS = 5  # of a column, with equally many points each
_LEAST = 40  # points of a part: fewer say little
_DIFFERS = 1.5  # worst part over best: less is chance or does not matter
_BOLD, _SHY = 0.05, 0.05  # how far the share inside 90 % intervals may be off


def headlines(model: StitchedModel, errors: list[tuple[str, Array, Array, Array]], held: Array | None) -> list[list[str]]:
    """Sentences for every output; ``errors`` are named sets of points, responses and residuals, those that count most first.

    ``held`` (t,) is the share of left-out points inside of 90 % intervals.
    """
    if not errors:
        return [["A model of your own has no leave-one-out errors in closed form: compare it with data."]] * model.n_outputs
    name, X, y, residual = errors[0]
    columns, found = find_columns(model), []
    for k, target in enumerate(model.target_names):
        sentences = [_size(target, name, y[:, k], residual[:, k], model.grouped)]
        if model.origin.link != IDENTITY:
            sentences.append(f"Half of the predictions are within {_percent(_relative(y[:, k], residual[:, k]))} of the value.")
        sentences.append(_places(columns, X, residual[:, k]))
        if held is not None:
            sentences.append(_intervals(float(held[k])))
        found.append([text for text in sentences if text])
    return found


def _size(target: str, name: str, y: Array, residual: Array, grouped: bool) -> str:
    """How large errors are, against how much the responses vary."""
    error, spread = float(np.sqrt(np.mean(residual**2))), float(y.std())
    one = "each group predicted from the other groups" if grouped else "each point predicted from all others"
    how = one if name == "leave-one-out" else f"on {len(y):,} rows that it was not fitted to"
    if not spread:
        return f"{target} does not vary, and is predicted to within {error:.2g} ({how})."
    share = error / spread
    size = next((word for bound, word in _WORDS if share < bound), None)
    if size is None:
        return f"{target} is predicted no better than by its mean: errors are {error:.3g}, its spread {spread:.3g} ({how})."
    return f"Errors of {target} are {size}: typically {error:.3g}, which is {_percent(share)} of its spread ({how})."


def _percent(share: float) -> str:
    if share < 1e-4:
        return "less than 0.01 %"
    return f"{100.0 * share:.2g} %" if share < 0.995 else f"{100.0 * share:.0f} %"


def _relative(y: Array, residual: Array) -> float:
    return float(np.median(np.abs(residual) / np.maximum(np.abs(y), np.finfo(float).tiny)))


def _places(columns: list[Column], X: Array, residual: Array) -> str:
    """The column along which errors differ most, and where they are smallest and largest."""
    best = (_DIFFERS, "")
    for column in columns:
        parts = _split(column, X)
        if len(parts) < 2:
            continue
        sizes = [float(np.sqrt(np.mean(residual[rows] ** 2))) for _, rows in parts]
        low, high = int(np.argmin(sizes)), int(np.argmax(sizes))
        ratio = sizes[high] / sizes[low] if sizes[low] > 0.0 else 0.0
        if ratio > best[0]:
            text = (
                f"Predictions are best where {parts[low][0]} (typical error {sizes[low]:.2g}) and worst where"
                f" {parts[high][0]} ({sizes[high]:.2g})."
            )
            best = (ratio, text)
    return best[1] or ("Errors are about as large everywhere." if len(residual) >= _PARTS * _LEAST else "")


def _split(column: Column, X: Array) -> list[tuple[str, Index]]:
    """Parts of a column in words, with the rows of each; words that are rare are left out."""
    if column.kind == "category":
        words = X[:, column.features].argmax(axis=1)
        parts = [(f"{column.name} is {word}", np.flatnonzero(words == n)) for n, word in enumerate(column.words)]
        return [(text, rows) for text, rows in parts if len(rows) >= _LEAST]
    x = X[:, column.features[0]]
    edges = np.unique(np.quantile(x, np.linspace(0.0, 1.0, _PARTS + 1)))
    if len(edges) < 3 or len(x) < _LEAST * _PARTS:
        return []
    part = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    ends = [write_value(column, edge) for edge in edges]
    found = [(f"{column.name} is {ends[n]} to {ends[n + 1]}", np.flatnonzero(part == n)) for n in range(len(edges) - 1)]
    return [(text, rows) for text, rows in found if len(rows) >= _LEAST]


def _intervals(held: float) -> str:
    """Whether intervals hold what they say."""
    text = f"90 % intervals hold {100.0 * held:.0f} % of the points that were left out"
    if held < 0.9 - _BOLD:
        return f"{text}: they are too narrow."
    return f"{text}: they are wider than need be." if held > 0.9 + _SHY else f"{text}."
