"""Nadaraya-Watson regression with the singular kernel of Belkin, Rakhlin and Tsybakov (2019)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.sparse import coo_array
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._parallel import slices
from ..._types import Array


class NadarayaWatson(RegressorMixin, BaseEstimator):
    """Σ k(x - x_i) y_i / Σ k(x - x_i) with k(u) = |u|^-a for |u| ≤ ρ and 0 beyond.

    The singularity makes it interpolate; a = ``power`` · d/2 with 0 < ``power`` < 1 keeps it consistent. Cutting it off makes it
    local, and makes it jump at distance ρ from every point. ρ is the mean distance of a point to its ``n_neighbors``-th neighbour.
    A query with no point so near gets the value of the nearest one.
    """

    def __init__(self, n_neighbors: int = 20, power: float = 0.9):
        self.n_neighbors = n_neighbors
        self.power = power

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the data and find the radius."""
        self.X_, self.y_ = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        self._tree = cKDTree(self.X_)
        sample = self.X_[:: max(1, len(self.X_) // 1000)]
        self.radius_ = float(self._tree.query(sample, k=[min(self.n_neighbors + 1, len(self.X_))])[0].mean())
        return self

    def predict(self, X: Any) -> Array:
        """Weighted means of the neighbours' values."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return np.concatenate([self._answer(X[part]) for part in slices(len(X), 4096)])

    def _answer(self, X: Array) -> Array:
        a = self.power * X.shape[1] / 2.0
        distance, nearest = self._tree.query(X)
        pairs = cKDTree(X).sparse_distance_matrix(self._tree, self.radius_, output_type="ndarray")
        # Scaled by the nearest distance, which cancels and keeps the powers finite.
        near = np.maximum(distance[pairs["i"]], np.finfo(float).tiny)
        w = (np.maximum(pairs["v"], near) / near) ** -a
        weights = coo_array((w, (pairs["i"], pairs["j"])), shape=(len(X), len(self.X_))).tocsr()
        total = weights.sum(axis=1)
        with np.errstate(invalid="ignore"):
            mean = (weights @ self.y_) / total
        return np.where((total == 0.0) | (distance == 0.0), self.y_[nearest], mean)
