"""scipy's `RBFInterpolator` on the nearest neighbours of each query, as an estimator."""

from __future__ import annotations

from math import comb
from typing import Any, Self

import numpy as np
from scipy.interpolate import RBFInterpolator
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._types import Array

_LEAST_DEGREE = {"gaussian": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
_SUBSTITUTES = (("linear", 0), ("cubic", 1))  # for kernels whose least degree neighbours may not determine, as on a sphere


class NeighborRBF(RegressorMixin, BaseEstimator):
    """`scipy.interpolate.RBFInterpolator` with ``neighbors`` and ``degree``; it jumps where the neighbours change.

    ``scale`` is the length of the kernels that have one, in units of the mean distance to the farthest neighbour. The degree is
    lowered where the neighbours do not determine it, and with it the kernel if it needs that degree; coincident points are replaced
    by their mean.
    """

    def __init__(
        self, kernel: str = "thin_plate_spline", scale: float = 1.0, smoothing: float = 0.0, neighbors: int = 100, degree: int = 2
    ):
        self.kernel = kernel
        self.scale = scale
        self.smoothing = smoothing
        self.neighbors = neighbors
        self.degree = degree

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the data; everything else happens at queries."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        X, place, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
        y = np.bincount(place.ravel(), weights=y) / count
        neighbors = min(self.neighbors, len(X))
        sample = X[:: max(1, len(X) // 500)]
        radius = float(cKDTree(X).query(sample, k=[neighbors])[0].mean()) or 1.0
        least = _LEAST_DEGREE[self.kernel]
        own = [k for k in range(least, self.degree + 1) if comb(k + X.shape[1], X.shape[1]) <= neighbors // 2 or k == least]
        tried = [*_SUBSTITUTES[:least], *((self.kernel, degree) for degree in own)]
        options = {"smoothing": self.smoothing, "epsilon": 1.0 / (self.scale * radius), "neighbors": neighbors}
        self._interpolators = [RBFInterpolator(X, y, kernel=kernel, degree=degree, **options) for kernel, degree in tried]
        return self

    def predict(self, X: Any) -> Array:
        """A small system a query; `numpy.linalg.LinAlgError` where one is singular whatever is tried."""
        check_is_fitted(self, "_interpolators")
        return self._answer(validate_data(self, X, reset=False, dtype=np.float64), len(self._interpolators) - 1)

    def _answer(self, X: Array, tried: int) -> Array:
        """Halve what fails until the query is found whose neighbours do not determine the polynomial; it gets a lower degree."""
        try:
            return self._interpolators[tried](X)
        except np.linalg.LinAlgError:
            if len(X) > 1:
                return np.concatenate([self._answer(half, tried) for half in np.array_split(X, 2)])
            if tried == 0:
                raise
            return self._answer(X, tried - 1)
