"""Support-vector regressions on pieces of the data: KNN SVM (Hable 2013) and Local SVM (Steinwart and Thomann 2017).

The machines are libsvm's, with the Gaussian kernel exp(-|x - x'|² / σ²), σ = ``bandwidth`` · b, and C = 1 / (2η): the ridge of
kernel ridge regression, ½|f|² + C Σ loss. Responses are scaled to unit deviation in each machine, and ε is in that unit. libsvm's
iterations are capped, since C is large and the kernels are smooth.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, Self

import numpy as np
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from sklearn.svm import SVR
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._parallel import Threads
from ..._types import Array
from ...fitting.defaults import PAPER_BANDWIDTHS, PAPER_RIDGES
from ._kernel_ridge import mean_distance


def _machine(b: float, bandwidth: float, ridge: float, epsilon: float, max_iter: int) -> SVR:
    """One support-vector regression; γ = 1/σ²."""
    return SVR(gamma=1.0 / (bandwidth * b) ** 2, C=0.5 / ridge, epsilon=epsilon, max_iter=max_iter, cache_size=20)


class KNNSVM(RegressorMixin, BaseEstimator):
    """A support-vector regression on the nearest neighbours of each query, fitted when the query comes; it jumps."""

    def __init__(
        self,
        bandwidth: float = 1.0,
        ridge: float = 1e-3,
        n_neighbors: int = 50,
        epsilon: float = 1e-3,
        max_iter: int = 2000,
        n_jobs: int | None = None,
    ):
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_neighbors = n_neighbors
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the data."""
        self.X_, self.y_ = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        self._tree = cKDTree(self.X_)
        return self

    def predict(self, X: Any) -> Array:
        """One machine a query."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        k = min(self.n_neighbors, len(self.X_))
        _, neighbors = self._tree.query(X, k=k, workers=Threads(self.n_jobs).count)
        neighbors = neighbors.reshape(len(X), k)

        def answer(query: int) -> float:
            near, y = self.X_[neighbors[query]], self.y_[neighbors[query]]
            scale = y.std() or 1.0
            machine = _machine(mean_distance(near), self.bandwidth, self.ridge, self.epsilon, self.max_iter)
            machine.fit(near - X[query], (y - y.mean()) / scale)
            return y.mean() + scale * machine.predict(np.zeros((1, X.shape[1])))[0]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.array(Threads(self.n_jobs).map(answer, range(len(X))))


class LocalSVM(RegressorMixin, BaseEstimator):
    """Voronoi cells of about ``cell_size`` points, one cross-validated support-vector regression each; it jumps at borders."""

    def __init__(
        self,
        bandwidths: tuple[float, ...] = PAPER_BANDWIDTHS,
        ridges: tuple[float, ...] = PAPER_RIDGES,
        cell_size: int = 200,
        epsilon: float = 1e-3,
        folds: int = 3,
        max_iter: int = 2000,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ):
        self.bandwidths = bandwidths
        self.ridges = ridges
        self.cell_size = cell_size
        self.epsilon = epsilon
        self.folds = folds
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> Self:
        """Centres by k-means; a grid search in each cell."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        cells = max(1, round(len(X) / self.cell_size))
        kmeans = MiniBatchKMeans(cells, n_init=3, random_state=self.random_state).fit(X)
        self.centers_ = kmeans.cluster_centers_.astype(np.float64)
        self._tree = cKDTree(self.centers_)
        cell = self._tree.query(X)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._machines = Threads(self.n_jobs).map(lambda j: self._fit_cell(X[cell == j], y[cell == j]), range(cells))
        return self

    def _fit_cell(self, X: Array, y: Array) -> tuple[Any, float, float]:
        """The machine of one cell with the mean and the scale of its responses; no machine where too little is there."""
        if len(X) < 2 * self.folds or np.ptp(y) == 0.0:
            return None, float(y.mean()) if len(y) else 0.0, 1.0
        b, mean, scale = mean_distance(X), float(y.mean()), float(y.std())
        z = (y - mean) / scale
        folds = list(KFold(self.folds, shuffle=True, random_state=self.random_state).split(X))

        def machine(candidate: tuple[float, float]) -> SVR:
            return _machine(b, *candidate, self.epsilon, self.max_iter)

        def error(candidate: tuple[float, float]) -> float:
            return sum(np.square(machine(candidate).fit(X[a], z[a]).predict(X[v]) - z[v]).sum() for a, v in folds)

        best = min(product(self.bandwidths, self.ridges), key=error)
        return machine(best).fit(X, z), mean, scale

    def predict(self, X: Any) -> Array:
        """The machine of the nearest centre answers."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        cell = self._tree.query(X)[1]
        prediction = np.empty(len(X))
        for j in np.unique(cell):
            machine, mean, scale = self._machines[j]
            prediction[cell == j] = mean + (scale * machine.predict(X[cell == j]) if machine else 0.0)
        return prediction
