"""Fill missing features with the median of a column, or with a model of the column from the others.

For a model that exists, the rows that it was fitted to decide what is filled in, so that a row is filled in the same way whatever
other rows come with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._regressor import StitchedRegressor
from .._types import Array

_MOST_ROWS = 2000  # that a model of a column is fitted to: with more, it would take longer than the rest of the command


class Filler:
    """Fills columns (n, k) as other rows tell, ``source`` (m, k); columns of words (``worded``) get the most frequent one."""

    def __init__(self, source: Array, worded: Sequence[bool], how: str):
        self._middle = np.array([_middle(column, words) for column, words in zip(source.T, worded, strict=True)])
        self._source, self._worded, self._how = source, worded, how
        self._models: dict[int, StitchedRegressor] = {}

    def __call__(self, rows: Array) -> Array:
        """The rows with numbers in the place of NaN; unknown words stay."""
        filled = np.where(np.isnan(rows), self._middle, rows)
        if self._how == "median" or rows.shape[1] == 1:
            return filled
        plain = np.where(np.isfinite(rows), rows, self._middle)
        for k, words in enumerate(self._worded):
            lacking = np.isnan(rows[:, k])
            if lacking.any() and not words:
                filled[lacking, k] = self._model(k).predict(np.delete(plain[lacking], k, axis=1))
        return filled

    def _model(self, k: int) -> StitchedRegressor:
        """The model of a column from the others, fitted when first asked for."""
        if k not in self._models:
            known = np.flatnonzero(np.isfinite(self._source[:, k]))
            some = self._source[known[:: max(1, len(known) // _MOST_ROWS)]]
            given = np.where(np.isfinite(some), some, self._middle)
            self._models[k] = StitchedRegressor().fit(np.delete(given, k, axis=1), given[:, k])
        return self._models[k]


def _middle(column: Array, words: bool) -> float:
    known = column[np.isfinite(column)]
    if not len(known):
        raise ValueError("A feature has no number at all: there is nothing to fill it in with. Leave it out with `--exclude`.")
    if not words:
        return float(np.median(known))
    values, counts = np.unique(known, return_counts=True)
    return float(values[counts.argmax()])
