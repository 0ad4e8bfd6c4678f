"""Features of a model as the columns that they came from: categories as words, dates as dates.

A column of words is a feature for each of them, ``soil=clay`` and so on, of which one is 1; dates are days since 1970-01-01.
The model knows which of its features are such: a column of numbers may be called ``lag=1``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import qmc

from .._parallel import Threads
from .._regressor import StitchedRegressor
from .._types import Array
from .._validation import read_bounds
from ..fitting.suggest import choose_candidates
from ..model.stitched import StitchedModel
from ..views.columns import CATEGORY, find_columns
from .cells import DAYS

_CANDIDATES = 2048


def find_categories(model: StitchedModel) -> dict[str, list[int]]:
    """The features of each column of words."""
    return {column.name: column.features for column in find_columns(model) if column.kind == "category"}


def name_columns(
    model: StitchedModel,
    features: Sequence[str],
    targets: Sequence[str],
    dates: Sequence[str],
    words: Mapping[str, str],
    known: Mapping[str, Mapping[str, str]],
) -> StitchedModel:
    """The model with names for its columns, that knows its dates, the columns of the features that are ``words``, and what is
    ``known`` of columns besides.
    """
    about = {name: dict(known[name]) for name in (*features, *targets) if name in known}
    about |= {name: {"units": DAYS} for name in dates} | {name: {CATEGORY: column} for name, column in words.items()}
    named = model.rename(features, targets)
    return fix_categories(replace(named, origin=replace(named.origin, attributes=named.origin.attributes | about)))


def fix_categories(model: StitchedModel) -> StitchedModel:
    """The model whose categories stand at the most frequent word, where other features stand at their medians."""
    frame, X = model.frame.copy(), model.X
    for features in find_categories(model).values():
        frame[2, features] = 0.0
        frame[2, features[int(X[:, features].sum(axis=0).argmax())]] = 1.0
    return replace(model, frame=frame)


def suggest_rows(model: StitchedRegressor, n: int, bounds: dict[str, tuple[float, float]]) -> Array:
    """Suggested points (n, d); with columns of words, out of candidates that have one word each."""
    fitted = model.model_
    categories = find_categories(fitted)
    if not categories:
        return np.asarray(model.suggest(n, bounds or None))
    box, random = read_bounds(bounds or None, fitted), np.random.default_rng(model.random_state)
    count = 1 << int(np.ceil(np.log2(max(_CANDIDATES, 8 * n))))
    candidates = box[:, 0] + qmc.Sobol(len(box), rng=random).random(count) * np.ptp(box, axis=1)
    for features in categories.values():
        candidates[:, features] = np.eye(len(features))[random.integers(len(features), size=count)]
    return choose_candidates(fitted, n, candidates, np.empty((0, len(box))), Threads(model.n_jobs))


def column_values(model: StitchedModel, X: Array) -> dict[str, Any]:
    """The columns that points ``X`` (n, d) are read from: numbers, words, and dates as text."""
    names, categories = model.feature_names, find_categories(model)
    column_of = {k: column for column, features in categories.items() for k in features}
    columns: dict[str, Any] = {}
    for k, name in enumerate(names):
        if k in column_of:
            column = column_of[k]
            features = categories[column]
            words = np.array([names[j][len(column) + 1 :] for j in features])
            columns.setdefault(column, words[X[:, features].argmax(axis=1)])
        elif model.origin.attributes.get(name, {}).get("units") == DAYS:
            columns[name] = (X[:, k] * 86_400).round().astype("datetime64[s]").astype(str)
        else:
            columns[name] = X[:, k]
    return columns
