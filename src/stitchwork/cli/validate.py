"""Errors on parts of a table that are held out, as `stitchwork fit --validate` tells them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._regressor import StitchedRegressor
from .._types import Array, Index
from ..fitting.metric import metric_root
from ..model.boxes import cut_boxes

WAYS = ("blocks", "groups", "random")
_FOLDS = 5
_BLOCKS = 10  # blocks of space in each fold


def describe_validation(
    model: StitchedRegressor, X: Array, y: Array, v: Array | None, group: NDArray[Any] | None, s: Array | None, how: str
) -> str:
    """Root mean squared errors on five parts, each predicted by a model of the other four, and how many lie in 90 % intervals."""
    fold = find_folds(X, group, how)
    value, inside = np.empty_like(y), np.empty(y.shape, dtype=bool)
    for k in range(fold.max() + 1):
        train, test = fold != k, fold == k
        known = [None if one is None else one[train] for one in (v, group, s)]
        fitted = clone(model).fit(X[train], y[train], *known)
        value[test] = fitted.predict(X[test])
        ends = fitted.predict_interval(X[test], 0.9, None if s is None else s[test])
        inside[test] = (ends[..., 0] <= y[test]) & (y[test] <= ends[..., 1])
    errors = np.sqrt(np.mean((value - y) ** 2, axis=0))
    shares = np.mean(inside, axis=0)
    words = {"blocks": "blocks of space", "groups": "groups", "random": "random rows"}[how]
    listed = ", ".join(f"{error:.3g}" for error in np.atleast_1d(errors))
    held = ", ".join(f"{share:.1%}" for share in np.atleast_1d(shares))
    return f"RMSE {listed} in fifths of {words}, {held} inside of intervals of 90%"


def find_folds(X: Array, group: NDArray[Any] | None, how: str) -> Index:
    """The part (n,) of every row."""
    if how not in WAYS:
        raise ValueError(f"`--validate` must be one of {', '.join(WAYS)}, got {how!r}.")
    if how == "groups" and group is None:
        raise ValueError("`--validate groups` needs to know the groups. Name their column with `--groups`.")
    n = len(X)
    whole: Any = {"random": lambda: np.arange(n), "groups": lambda: group, "blocks": lambda: find_blocks(X)}[how]()
    _, number = np.unique(whole, return_inverse=True)
    count = int(number.max()) + 1
    if count < 2:
        raise ValueError("There is too little to hold out: `--validate` needs two rows, blocks or groups.")
    folds = min(_FOLDS, count)
    return np.asarray(np.random.default_rng(0).permutation(count)[number] % folds)


def find_blocks(X: Array) -> Index:
    """Boxes of space (n,) with about equally many points each, as features are spread."""
    Z = X @ metric_root("standardized", X, np.ones(len(X)))
    return cut_boxes(Z, len(Z), max(len(Z) // (_FOLDS * _BLOCKS), 1)).of(Z)
